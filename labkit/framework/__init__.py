"""What a plugin is: extension points, Status, CycleState, NodeInfo, Handle, Clock.

Here belongs what plugins and engine both know; nothing here decides anything.
docs/plugins.md shows how to write a plugin.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.framework.clock import Clock as Clock
    from labkit.framework.clock import RealClock as RealClock
    from labkit.framework.clock import VirtualClock as VirtualClock
    from labkit.framework.cycle_state import CycleState as CycleState
    from labkit.framework.cycle_state import MissingStateError as MissingStateError
    from labkit.framework.events import ActionType as ActionType
    from labkit.framework.events import ClusterEvent as ClusterEvent
    from labkit.framework.events import ClusterEventWithHint as ClusterEventWithHint
    from labkit.framework.events import QueueingHint as QueueingHint
    from labkit.framework.handle import Handle as Handle
    from labkit.framework.handle import ObjectLister as ObjectLister
    from labkit.framework.handle import WaitingPod as WaitingPod
    from labkit.framework.node_info import NodeInfo as NodeInfo
    from labkit.framework.node_info import PodInfo as PodInfo
    from labkit.framework.node_info import QueuedPodInfo as QueuedPodInfo
    from labkit.framework.node_info import pod_info as pod_info
    from labkit.framework.plugin import EXTENSION_POINTS as EXTENSION_POINTS
    from labkit.framework.plugin import Plugin as Plugin
    from labkit.framework.plugin import plugin_name as plugin_name
    from labkit.framework.requests import pod_requests as pod_requests
    from labkit.framework.resource import Resource as Resource
    from labkit.framework.results import MAX_NODE_SCORE as MAX_NODE_SCORE
    from labkit.framework.results import MIN_NODE_SCORE as MIN_NODE_SCORE
    from labkit.framework.results import FitError as FitError
    from labkit.framework.results import NodeScore as NodeScore
    from labkit.framework.results import NodeToStatus as NodeToStatus
    from labkit.framework.results import PostFilterResult as PostFilterResult
    from labkit.framework.results import PreBindPreFlightResult as PreBindPreFlightResult
    from labkit.framework.results import PreFilterResult as PreFilterResult
    from labkit.framework.snapshot import Snapshot as Snapshot
    from labkit.framework.status import Code as Code
    from labkit.framework.status import Status as Status

_WHERE: dict[str, tuple[str, ...]] = {
    "clock": (
        "Clock",
        "RealClock",
        "VirtualClock",
    ),
    "cycle_state": (
        "CycleState",
        "MissingStateError",
    ),
    "events": (
        "ActionType",
        "ClusterEvent",
        "ClusterEventWithHint",
        "QueueingHint",
    ),
    "handle": (
        "Handle",
        "ObjectLister",
        "WaitingPod",
    ),
    "node_info": (
        "NodeInfo",
        "PodInfo",
        "QueuedPodInfo",
        "pod_info",
    ),
    "plugin": (
        "EXTENSION_POINTS",
        "Plugin",
        "plugin_name",
    ),
    "requests": ("pod_requests",),
    "resource": ("Resource",),
    "results": (
        "MAX_NODE_SCORE",
        "MIN_NODE_SCORE",
        "FitError",
        "NodeScore",
        "NodeToStatus",
        "PostFilterResult",
        "PreBindPreFlightResult",
        "PreFilterResult",
    ),
    "snapshot": ("Snapshot",),
    "status": (
        "Code",
        "Status",
    ),
}
__all__ = [
    "EXTENSION_POINTS",
    "MAX_NODE_SCORE",
    "MIN_NODE_SCORE",
    "ActionType",
    "Clock",
    "ClusterEvent",
    "ClusterEventWithHint",
    "Code",
    "CycleState",
    "FitError",
    "Handle",
    "MissingStateError",
    "NodeInfo",
    "NodeScore",
    "NodeToStatus",
    "ObjectLister",
    "Plugin",
    "PodInfo",
    "PostFilterResult",
    "PreBindPreFlightResult",
    "PreFilterResult",
    "QueuedPodInfo",
    "QueueingHint",
    "RealClock",
    "Resource",
    "Snapshot",
    "Status",
    "VirtualClock",
    "WaitingPod",
    "plugin_name",
    "pod_info",
    "pod_requests",
]


def __getattr__(name: str) -> Any:
    # Imported when first used: a module of this package costs only itself.
    for module, names in _WHERE.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
