"""NodeDeclaredFeatures (spec 10 §10.10)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState, MissingStateError
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.node import Node
from labkit.objects.pod import Pod

_KEY = "PreFilterNodeDeclaredFeatures"
_REJECTED = Status.unresolvable("node(s) didn't match Pod's required features", plugin="NodeDeclaredFeatures")
_RESTART_ALL = "RestartAllContainersOnContainerExits"
_USER_NAMESPACES = "UserNamespacesHostNetworkSupport"


#: Registered features, in order.
_KNOWN = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    _RESTART_ALL,
    _USER_NAMESPACES,
)


class NodeDeclaredFeatures(Plugin):
    """Rejects nodes whose kubelet does not declare a feature that the pod needs."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip when the pod needs no feature."""
        required = required_features(pod)
        if not required:
            return Status.skip()
        state.write(_KEY, required)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """UnschedulableAndUnresolvable unless all required features are declared."""
        required: tuple[str, ...] | None = state.get(_KEY)
        if required is None:
            raise MissingStateError(f'error reading "{_KEY}" from cycle-state: not found')
        return None if declares(node.node.status.declared_features, required) else _REJECTED

    def sign_pod(self, pod: Pod) -> Hashable:
        """Required features."""
        return required_features(pod)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A node with other features, or the pod's own update that changes its needs."""
        node_events = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return [
            ClusterEventWithHint(ClusterEvent("Node", node_events), _features_changed),
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.UPDATE), _needs_changed),
        ]


def required_features(pod: Pod) -> tuple[str, ...]:
    """Features that the pod needs, in alphabetical order."""
    found = []
    if any(
        rule.action == "RestartAllContainers"
        for c in (*pod.spec.init_containers, *pod.spec.containers)
        for rule in c.restart_policy_rules
    ):
        found.append(_RESTART_ALL)
    if pod.spec.host_network and pod.spec.host_users is False:
        found.append(_USER_NAMESPACES)
    return tuple(found)


def declares(declared: Sequence[str], required: Sequence[str]) -> bool:
    """Subset test by one walk over the declared list, which is expected in order: names out of order may be missed."""
    i = 0
    found: set[str] = set()
    for name in declared:
        while i < len(_KNOWN) and _KNOWN[i] < name:
            i += 1
        if i < len(_KNOWN) and _KNOWN[i] == name:
            found.add(name)
            i += 1
    return all(r in found for r in required)


def _features_changed(pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
    if old is not None and new is not None and old.status.declared_features == new.status.declared_features:
        return QueueingHint.SKIP
    return QueueingHint.QUEUE


def _needs_changed(pod: Pod, old: Pod | None, new: Any) -> QueueingHint:
    if new is None or new.uid != pod.uid or old is None:
        return QueueingHint.SKIP
    return QueueingHint.SKIP if required_features(old) == required_features(new) else QueueingHint.QUEUE
