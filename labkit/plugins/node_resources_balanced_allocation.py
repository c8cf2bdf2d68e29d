"""NodeResourcesBalancedAllocation (spec 11 §11.7)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.requests import pod_requests
from labkit.framework.status import Status
from labkit.objects.pod import Pod
from labkit.plugins._normalize import truncating_div
from labkit.plugins._resource_score import Plan, balance, entries, plan, request_units, weighted_resources

_KEY = "PreScoreNodeResourcesBalancedAllocation"


class NodeResourcesBalancedAllocation(Plugin):
    """Scores how the pod changes the balance between a node's resources: 75 unchanged, 100 repaired, 50 spoilt."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        raw = args.get("resources") if isinstance(args, dict) else getattr(args, "resources", None)
        self._resources = weighted_resources(raw)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip when the pod requests none of the configured resources."""
        looked_at = self._plan(pod)
        if looked_at is None:
            return Status.skip()
        state.write(_KEY, looked_at)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """50 plus half the change in balance, towards zero; 50..100."""
        looked_at: Plan | None = state.get(_KEY)
        if looked_at is None:
            # PreScore is disabled in this profile: a pod that requests nothing scores 0 instead of being skipped.
            looked_at = self._plan(pod)
            if looked_at is None:
                return 0
        found = entries(looked_at, node, non_zero=False)
        before = balance([(taken, total) for taken, _, total, _ in found])
        after = balance([(taken + asked, total) for taken, asked, total, _ in found])
        return 50 + truncating_div(50 + after - before, 2)

    def sign_pod(self, pod: Pod) -> Hashable:
        """Requests."""
        return tuple(sorted(_units(pod).items()))

    def _plan(self, pod: Pod) -> Plan | None:
        units = _units(pod)
        if not any(units.get(name) for name, _ in self._resources):
            return None
        return plan(self._resources, units)


def _units(pod: Pod) -> dict[str, int]:
    found: dict[str, int] | None = pod.__dict__.get("_balanced_units")
    if found is None:
        found = pod.__dict__["_balanced_units"] = request_units(pod_requests(pod, use_status=True))
    return found
