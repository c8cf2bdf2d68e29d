"""Kubernetes Scheduler Lab."""
