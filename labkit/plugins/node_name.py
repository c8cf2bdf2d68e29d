"""NodeName (spec 10 §10.2)."""

from __future__ import annotations

from collections.abc import Hashable

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod

_REJECTED = Status.unresolvable("node(s) didn't match the requested node name", plugin="NodeName")


class NodeName(Plugin):
    """Keeps a pod with `spec.nodeName` to that node."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Success when the pod names no node, or this one."""
        wanted = pod.spec.node_name
        return None if not wanted or wanted == node.node.metadata.name else _REJECTED

    def sign_pod(self, pod: Pod) -> Hashable:
        """The node it names."""
        return pod.spec.node_name

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A new node may be the one."""
        return [ClusterEventWithHint(ClusterEvent("Node", ActionType.ADD))]
