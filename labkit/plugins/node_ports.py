"""NodePorts (spec 10 §10.5)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.node_info import HostPort, NodeInfo, pod_info
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod

_KEY = "PreFilterNodePorts"
_ANY_IP = "0.0.0.0"
_REJECTED = Status.unschedulable(
    "node(s) didn't have free ports for the requested pod ports", plugin="NodePorts"
)

UsedPorts = Mapping[str, set[tuple[str, int]]]


class NodePorts(Plugin):
    """Rejects nodes where a wanted host port is taken."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip when the pod wants no host port."""
        wanted = pod_info(pod).host_ports
        if not wanted:
            return Status.skip()
        state.write(_KEY, wanted)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Unschedulable when any wanted port conflicts."""
        wanted: Sequence[HostPort] = state.read(_KEY)
        return _REJECTED if conflict(wanted, node.used_ports) else None

    def sign_pod(self, pod: Pod) -> Hashable:
        """Host ports."""
        return tuple(pod_info(pod).host_ports)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A pod that leaves and frees a wanted port, or a new node."""
        return [
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.DELETE), _frees_a_port),
            ClusterEventWithHint(ClusterEvent("Node", ActionType.ADD)),
        ]


def conflict(wanted: Sequence[HostPort], used: UsedPorts) -> bool:
    """True when a wanted (IP, protocol, port) is used on the same IP, or either side is 0.0.0.0."""
    for ip, protocol, port in wanted:
        if ip == _ANY_IP:
            if any((protocol, port) in ports for ports in used.values()):
                return True
        elif (protocol, port) in used.get(_ANY_IP, ()) or (protocol, port) in used.get(ip, ()):
            return True
    return False


def _frees_a_port(pod: Pod, old: Pod | None, new: Any) -> QueueingHint:
    if old is None or not (old.spec.node_name or old.status.nominated_node_name):
        return QueueingHint.SKIP
    freed: dict[str, set[tuple[str, int]]] = {}
    for ip, protocol, port in pod_info(old).host_ports:
        freed.setdefault(ip, set()).add((protocol, port))
    return QueueingHint.QUEUE if conflict(pod_info(pod).host_ports, freed) else QueueingHint.SKIP
