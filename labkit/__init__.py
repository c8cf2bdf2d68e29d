"""Kubernetes Scheduler Lab: kube-scheduler 1.36, decision for decision, in Python.

from labkit import Lab
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit import check as check
    from labkit.lab import Lab as Lab

__version__ = "0.1.0"
__all__ = ["Lab", "check"]


def __getattr__(name: str) -> Any:
    # Imported when first used: `import labkit` stays fast.
    if name == "Lab":
        from labkit.lab import Lab

        return Lab
    if name == "check":
        import importlib

        return importlib.import_module("labkit.check")
    raise AttributeError(f"module 'labkit' has no attribute {name!r}")
