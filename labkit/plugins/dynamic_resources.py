"""DynamicResources, as far as pods without devices can tell: order and messages (spec 03 §3.2, spec 01 §4.4).

Pods with resource claims are told why they wait; allocating devices is outside what the lab models.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState, MissingStateError
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.results import NodeToStatus, PostFilterResult, PreBindPreFlightResult
from labkit.framework.status import Status
from labkit.objects.pod import Pod, PodResourceClaim

_KEY = "DynamicResources"
_NOT_MODELLED = "resource claims cannot be allocated: this scheduler does not manage devices"


def _need_state(state: CycleState) -> None:
    if state.get(_KEY) is None:
        raise MissingStateError("not found")


class DynamicResources(Plugin):
    """Keeps its place in every extension point; an ordinary pod passes untouched."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """A claim that does not exist yet keeps the pod out of the queue."""
        missing = self._missing_claim(pod)
        return Status.unresolvable(missing) if missing else None

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip for pods without claims; the state is written all the same, PostFilter looks for it."""
        state.write(_KEY, True)
        missing = self._missing_claim(pod)
        if missing:
            return Status.unresolvable(missing)
        return Status.unresolvable(_NOT_MODELLED) if _has_claims(pod) else Status.skip()

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Nothing to check: pods with claims do not get past PreFilter. MissingStateError where PreFilter is disabled."""
        _need_state(state)
        return None

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Nothing to deallocate. An earlier end of PreFilter leaves no state: Error `not found`."""
        if state.get(_KEY) is None:
            return None, Status.as_error_of("not found")
        return None, Status.unschedulable("no new claims to deallocate")

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0 on every node. MissingStateError where PreFilter is disabled."""
        _need_state(state)
        return 0

    def sign_pod(self, pod: Pod) -> Hashable:
        """Filter and Score look at nothing."""
        return ()

    def normalize_batch(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Any) -> Any:
        """`normalize_score` on an array."""
        return scores

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[object]) -> Status | None:
        """Nothing to normalise."""
        return None

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Nothing to book. MissingStateError where PreFilter is disabled."""
        _need_state(state)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Nothing to unbook."""

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[PreBindPreFlightResult | None, Status | None]:
        """Skip: no work in PreBind."""
        return PreBindPreFlightResult(allow_parallel=True), Status.skip()

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Nothing to do. MissingStateError where PreFilter is disabled."""
        _need_state(state)
        return None

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Nodes, claims, classes and slices."""
        node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        changed = ActionType.ADD | ActionType.UPDATE
        return [
            ClusterEventWithHint(ClusterEvent("Node", node)),
            ClusterEventWithHint(ClusterEvent("resource.k8s.io/ResourceClaim", changed)),
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)),
            ClusterEventWithHint(ClusterEvent("resource.k8s.io/DeviceClass", changed)),
            ClusterEventWithHint(ClusterEvent("resource.k8s.io/ResourceSlice", changed)),
        ]

    def _missing_claim(self, pod: Pod) -> str:
        """Which claim the pod waits for; empty when it has all it needs, be it none at all."""
        for entry in pod.spec.resource_claims:
            try:
                name = _claim_name(pod, entry)
            except LookupError as e:
                return str(e.args[0])
            if name is not None and self._claim(pod, name) is None:
                return f'could not find ResourceClaim "{pod.namespace}/{name}"'
        return ""

    def _claim(self, pod: Pod, name: str) -> Any:
        return self.handle.objects.get("ResourceClaim", pod.namespace, name) if self.handle else None


def _claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """The claim's name; None where none was made for a template because none is needed."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        raise LookupError(
            f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.get("name") == entry.name:
            name: str | None = status.get("resourceClaimName")
            return name
    raise LookupError(f'pod "{pod.key}": ResourceClaim not created yet')


def _has_claims(pod: Pod) -> bool:
    return any(_claim_name(pod, entry) is not None for entry in pod.spec.resource_claims)
