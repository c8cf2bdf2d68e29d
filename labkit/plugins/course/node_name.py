"""NodeName: the smallest Filter plugin there is.

Pods that name their node normally never meet a scheduler: whoever sets `spec.nodeName` has already placed the
pod. The plugin exists so that a pod with a node name that does come by is not sent elsewhere.
"""

from __future__ import annotations

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod


class NodeName(Plugin):
    """Keeps a pod with `spec.nodeName` to the node of that name."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Success when the pod names no node, or this one.

        "Unresolvable": no preemption on another node would ever make its name fit.
        """
        if pod.spec.node_name in ("", node.name):
            return None
        return Status.unresolvable("node(s) didn't match the requested node name")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A node that is added later may be the one."""
        return [ClusterEventWithHint(ClusterEvent("Node", ActionType.ADD))]
