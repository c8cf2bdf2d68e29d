"""NodeUnschedulable (spec 10 §10.1)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.node import Node, Taint
from labkit.objects.pod import Pod
from labkit.objects.selectors import tolerates
from labkit.plugins._signs import tolerations

_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_REJECTED = Status.unresolvable("node(s) were unschedulable", plugin="NodeUnschedulable")


class NodeUnschedulable(Plugin):
    """Rejects cordoned nodes, unless the pod tolerates `node.kubernetes.io/unschedulable:NoSchedule`."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Looks at `spec.unschedulable` alone; the real taint is TaintToleration's business."""
        if not node.node.spec.unschedulable or _tolerated(pod):
            return None
        return _REJECTED

    def sign_pod(self, pod: Pod) -> Hashable:
        """Tolerations."""
        return tolerations(pod)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A node that becomes schedulable, or the pod's own new toleration."""
        node_events = ActionType.ADD | ActionType.UPDATE_NODE_TAINT
        return [
            ClusterEventWithHint(ClusterEvent("Node", node_events), _schedulable_now),
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.UPDATE_POD_TOLERATION), _tolerates_now),
        ]


def _tolerated(pod: Pod) -> bool:
    return any(tolerates(t, _TAINT) for t in pod.spec.tolerations)


def _schedulable_now(pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
    if new is None or new.spec.unschedulable:
        return QueueingHint.SKIP
    return QueueingHint.QUEUE if old is None or old.spec.unschedulable else QueueingHint.SKIP


def _tolerates_now(pod: Pod, old: Any, new: Pod | None) -> QueueingHint:
    return (
        QueueingHint.QUEUE
        if new is not None and new.uid == pod.uid and _tolerated(new)
        else QueueingHint.SKIP
    )
