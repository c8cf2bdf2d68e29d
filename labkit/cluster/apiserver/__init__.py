"""The store over the Kubernetes REST API."""
