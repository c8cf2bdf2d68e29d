"""Cluster events and queueing hints: what may bring a rejected pod back (spec 02 §8, §9, §11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any

from labkit.objects.pod import Pod


class ActionType(IntFlag):
    """What happened to a resource; the numeric order matters for matching (spec 02 §8.1)."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """(resource, action, optional custom label), e.g. ClusterEvent("Node", ActionType.ADD).

    Resources: "Pod", "Node", "PersistentVolume", "PersistentVolumeClaim", "storage.k8s.io/CSINode", ..., "*";
    incoming pod events use "AssignedPod" and "UnschedulablePod".
    """

    resource: str
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """`NodeAdd`, `AssignedPodDelete`, `NodeUpdateNodeTaint`, or the custom label."""
        if self.custom_label:
            return self.custom_label
        name = {ActionType.ALL: "All", ActionType.UPDATE: "Update"}.get(self.action)
        if name is None:
            name = "".join(part.capitalize() for part in (self.action.name or "").split("_"))
        return self.resource + name

    @property
    def is_wildcard(self) -> bool:
        """An event about everything: forces moves, matches no ordinary registration."""
        return self.resource == "*" and self.action == ActionType.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """True when this registration is interested in `incoming`."""
        if self.is_wildcard:
            return True
        same = self.resource in (incoming.resource, "*") or (
            self.resource == "Pod" and incoming.resource in ("AssignedPod", "UnschedulablePod")
        )
        return same and bool(self.action & incoming.action) and incoming.action <= self.action


class QueueingHint(Enum):
    """A hint function's answer."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


#: hint(waiting pod, old object or None, new object or None) -> QueueingHint; raising counts as Queue.
QueueingHintFn = Callable[[Pod, Any, Any], QueueingHint]


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """One registration of a plugin; without a hint function every such event queues."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None
