"""The plugins that the course builds: complete, correct, one file each, to be read in one sitting.

from labkit.plugins.course import GangPermit
lab.plugins.enable(GangPermit())                 # or Lab(..., plugins=all_plugins()) and name them in a config
"""

from __future__ import annotations

import importlib
from typing import Any

_WHERE: dict[str, str] = {
    "ApprovalPermit": "approval_permit",
    "Coscheduling": "coscheduling",
    "CustomBalancedAllocation": "custom_balanced_allocation",
    "CustomInterPodAffinity": "custom_inter_pod_affinity",
    "CustomNodeResourcesFit": "custom_node_resources_fit",
    "CustomPostFilter": "custom_post_filter",
    "GangPermit": "gang_permit",
    "LicencePreBind": "licence_pre_bind",
    "NodeName": "node_name",
}
__all__ = ["all_plugins", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def all_plugins() -> list[type]:
    """Every course plugin's class, for `Scheduler(plugins=...)`: usable by name in a configuration.

    Without NodeName, which would take the place of kube-scheduler's own.
    """
    return [__getattr__(name) for name in _WHERE if name != "NodeName"]
