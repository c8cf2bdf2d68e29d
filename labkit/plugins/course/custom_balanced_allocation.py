"""CustomBalancedAllocation: prefers nodes on which all resources would be used to the same degree.

For each resource: the share of the node that would be taken, with the pod counted in. The score is 100 minus the
weighted standard deviation of these shares, in percent:

    cpu 60 %, memory 60 %  -> deviation 0    -> 100
    cpu 90 %, memory 10 %  -> deviation 0.4  -> 60

Differences between pairs, added up, would count each pair twice, grow with the number of resources, and drop far
below 0; a deviation of shares can be at most one half, so no normaliser is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo, pod_info
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod


class CustomBalancedAllocation(Plugin):
    """Args: `resourceWeights`, resource name -> weight; cpu and memory with weight 1 by default."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        weights = (args or {}).get("resourceWeights") or {"cpu": 1, "memory": 1}
        self._weights = {str(name): int(weight) for name, weight in weights.items() if int(weight) > 0}

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip for a pod that requests none of the resources: it cannot change the balance anywhere."""
        asked = pod_info(pod).requested
        return None if any(asked.get(name) for name in self._weights) else Status.skip()

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """50..100: 100 minus the deviation of the shares in percent."""
        asked = pod_info(pod).requested
        shares: list[tuple[float, int]] = []
        for name, weight in self._weights.items():
            # A resource that the node does not have says nothing about its balance.
            if total := node.allocatable.get(name):
                taken = node.requested.get(name) + asked.get(name)
                shares.append((min(taken / total, 1.0), weight))
        if not shares:
            return 0
        weights = sum(w for _, w in shares)
        mean = sum(share * w for share, w in shares) / weights
        deviation = math.sqrt(sum((share - mean) ** 2 * w for share, w in shares) / weights)
        # Rounded first: 1 - 0.4 is a little less than 0.6 in floating point, and int() would make 59 of it.
        return int(round((1 - deviation) * 100, 9))
