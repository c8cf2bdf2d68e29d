"""CustomNodeResourcesFit: does the pod fit, and how much would be left?

Filter compares what the pod *requests* with what is *allocatable* and not yet requested. Limits play no part, and
neither does what containers really use. Score is "least allocated": the free share after the pod, in percent,
averaged by weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo, pod_info
from labkit.framework.plugin import Plugin
from labkit.framework.requests import requests_of_incoming_pod
from labkit.framework.resource import Resource
from labkit.framework.status import Status
from labkit.objects.pod import Pod


class CustomNodeResourcesFit(Plugin):
    """Args: `resourceWeights`, resource name -> weight in the score; cpu and memory with weight 1 by default.

    The weights only matter to Score: a pod must fit in everything that it requests.
    """

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        weights = (args or {}).get("resourceWeights") or {"cpu": 1, "memory": 1}
        self._weights = {str(name): int(weight) for name, weight in weights.items() if int(weight) > 0}

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Work out the request once, not once a node."""
        state.write(self.name, requests_of_incoming_pod(pod))
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """All reasons at once; unresolvable when the pod would not even fit on the empty node."""
        asked: Resource = state.read(self.name)
        offered, used = node.allocatable, node.requested
        reasons: list[str] = []
        hopeless = False
        if len(node.pods) + 1 > offered.allowed_pod_number:
            reasons.append("Too many pods")
            hopeless = offered.allowed_pod_number == 0
        for name in ("cpu", "memory", "ephemeral-storage", *sorted(asked.scalars)):
            amount = asked.get(name)
            # A pod that asks for nothing of a resource fits whatever the node has of it.
            if amount and amount > offered.get(name) - used.get(name):
                reasons.append(f"Insufficient {name}")
                hopeless = hopeless or amount > offered.get(name)
        if not reasons:
            return None
        return Status.unresolvable(*reasons) if hopeless else Status.unschedulable(*reasons)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0..100: the free share after the pod, so no normaliser is needed.

        Containers that request no cpu or memory count with small defaults (100m, 200Mi): many pods without
        requests would otherwise all go to the same node.
        """
        info = pod_info(pod)
        total = weights = 0
        for name, weight in self._weights.items():
            offered = node.allocatable.get(name)
            if not offered:
                continue
            if name == "cpu":
                taken = node.non_zero_cpu + info.non_zero_cpu
            elif name == "memory":
                taken = node.non_zero_memory + info.non_zero_memory
            else:
                taken = node.requested.get(name) + info.requested.get(name)
            free = max(offered - taken, 0)
            total += free * 100 // offered * weight
            weights += weight
        return total // weights if weights else 0

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A pod left or shrank; a node came or grew."""
        pods = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            ClusterEventWithHint(ClusterEvent("Pod", pods), self._after_pod),
            ClusterEventWithHint(ClusterEvent("Node", nodes)),
        ]

    @staticmethod
    def _after_pod(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        other = new or old
        helps = other is not None and (other.uid == pod.uid or bool(other.spec.node_name))
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP
