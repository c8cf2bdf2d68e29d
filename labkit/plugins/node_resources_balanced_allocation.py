"""NodeResourcesBalancedAllocation (spec 11 §11.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.requests import requests_of_placed_pod
from labkit.framework.resource import Resource, is_scalar
from labkit.framework.status import Status
from labkit.objects.pod import Pod
from labkit.plugins._normalize import truncating_div
from labkit.plugins._resource_score import balance, weighted_resources

_KEY = "PreScoreNodeResourcesBalancedAllocation"


class NodeResourcesBalancedAllocation(Plugin):
    """Scores how the pod changes the balance between a node's resources: 75 unchanged, 100 repaired, 50 spoilt."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        raw = args.get("resources") if isinstance(args, dict) else getattr(args, "resources", None)
        self._resources = [name for name, _ in weighted_resources(raw)]

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip when the pod requests none of the configured resources."""
        request = _request(pod)
        if all(request.get(name) == 0 for name in self._resources):
            return Status.skip()
        state.write(_KEY, request)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """50 plus half the change in balance, towards zero; 50..100."""
        request: Resource | None = state.get(_KEY)
        if request is None:
            # PreScore is disabled in this profile: a pod that requests nothing scores 0 instead of being skipped.
            request = _request(pod)
            if all(request.get(name) == 0 for name in self._resources):
                return 0
        before: list[tuple[int, int]] = []
        after: list[tuple[int, int]] = []
        for name in self._resources:
            asked = request.get(name)
            if asked == 0 and is_scalar(name):
                continue
            allocatable = node.allocatable.get(name)
            if allocatable == 0:
                continue
            used = node.requested.get(name)
            before.append((used, allocatable))
            after.append((used + asked, allocatable))
        return 50 + truncating_div(50 + balance(after) - balance(before), 2)


def _request(pod: Pod) -> Resource:
    cached: Resource | None = pod.__dict__.get("_balanced_request")
    if cached is None:
        cached = pod.__dict__["_balanced_request"] = requests_of_placed_pod(pod)
    return cached
