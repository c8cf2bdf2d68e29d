"""NodeResourcesFit (spec 11 §11.5, §11.6)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.requests import (
    NON_ZERO_DEFAULTS,
    pod_requests,
    requests_of_incoming_pod,
    requests_of_placed_pod,
)
from labkit.framework.resource import Resource, is_extended
from labkit.framework.status import Code, Status
from labkit.objects.node import Node
from labkit.objects.pod import Pod
from labkit.plugins._resource_score import (
    Entry,
    Plan,
    Strategy,
    entries,
    least_allocated,
    most_allocated,
    plan,
    request_units,
    requested_to_capacity_ratio,
    weighted_resources,
)

if TYPE_CHECKING:
    from labkit.plugins.placement import Placement

_FILTER_KEY = "PreFilterNodeResourcesFit"
_SCORE_KEY = "PreScoreNodeResourcesFit"
#: A shape's score of 0..10 becomes 0..100.
_SHAPE_SCALE = 10


class NodeResourcesFit(Plugin):
    """Filter: does the request fit what is free? Score: by the profile's scoring strategy."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        self._ignored = frozenset(_arg(args, "ignored_resources", "ignoredResources") or ())
        self._ignored_groups = frozenset(_arg(args, "ignored_resource_groups", "ignoredResourceGroups") or ())
        strategy = _arg(args, "scoring_strategy", "scoringStrategy")
        self._resources = weighted_resources(_arg(strategy, "resources", "resources"))
        self._strategy = _strategy(strategy)
        #: `LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`.
        self.strategy_name = str(_arg(strategy, "type", "type") or "LeastAllocated")

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Compute the request. Never skips: a pod without requests still needs a place among the node's pods."""
        request = _incoming(pod)
        state.write(_FILTER_KEY, (request, [n for n in _asked_scalars(request) if not self._ignores(n[0])]))
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """All reasons at once; unresolvable when some request exceeds what the whole node offers."""
        request, scalars = state.read(_FILTER_KEY, "error reading")
        return _verdict(request, scalars, node)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Compute the request as scoring counts it: containers only, with defaults for what they leave out."""
        state.write(_SCORE_KEY, plan(self._resources, _units_for_scoring(pod)))
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int | tuple[int, Status | None]:
        """The strategy's result, 0..100; not normalised."""
        looked_at: Plan | None = state.get(_SCORE_KEY)
        if looked_at is None:
            looked_at = plan(self._resources, _units_for_scoring(pod))
        return self._strategy(entries(looked_at, node, non_zero=True))

    def placement_score(self, group: Any, scheduled: Sequence[Pod], placement: Placement) -> int:
        """How full the placement would be as a whole, 0..100 (spec 15 §1.3)."""
        sums: list[Entry] = []
        for name, weight in self._resources:
            total = sum(node.allocatable.get(name) for node in placement.nodes)
            taken = sum(node.requested.get(name) for node in placement.nodes)
            asked = sum(_incoming(pod).get(name) for pod in placement.proposed)
            if total:
                sums.append((taken, asked, total, weight))
        return most_allocated(sums)

    def sign_pod(self, pod: Pod) -> Hashable:
        """Requests, as Filter and as Score count them."""
        cached: Hashable = pod.__dict__.get("_fit_sign")
        if cached is None:
            r = _incoming(pod)
            units = tuple(sorted(_units_for_scoring(pod).items()))
            cached = (r.milli_cpu, r.memory, r.ephemeral_storage, tuple(sorted(r.scalars.items())), units)
            pod.__dict__["_fit_sign"] = cached
        return cached

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Room made by a pod that goes or shrinks, or by a node that comes or grows."""
        pod_events = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        node_events = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            ClusterEventWithHint(ClusterEvent("Pod", pod_events), self._pod_makes_room),
            ClusterEventWithHint(ClusterEvent("Node", node_events), self._node_makes_room),
            ClusterEventWithHint(
                ClusterEvent("resource.k8s.io/DeviceClass", ActionType.ADD | ActionType.UPDATE), _device_class
            ),
        ]

    def _ignores(self, name: str) -> bool:
        return is_extended(name) and (name in self._ignored or name.split("/", 1)[0] in self._ignored_groups)

    def _pod_makes_room(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        if new is None:
            gone = old is not None and (old.spec.node_name or old.status.nominated_node_name)
            return QueueingHint.QUEUE if gone else QueueingHint.SKIP
        if new.uid == pod.uid:
            return QueueingHint.QUEUE
        if old is None or not new.spec.node_name:
            return QueueingHint.SKIP
        wanted, before, after = _incoming(pod), requests_of_placed_pod(old), requests_of_placed_pod(new)
        names = ["cpu", "memory", "ephemeral-storage", *wanted.scalars]
        shrank = any(wanted.get(n) > 0 and after.get(n) < before.get(n) for n in names)
        return QueueingHint.QUEUE if shrank else QueueingHint.SKIP

    def _node_makes_room(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        if new is None:
            return QueueingHint.SKIP
        request = _incoming(pod)
        # Ignored resources are ignored by Filter alone, not here.
        if _verdict(request, _asked_scalars(request), NodeInfo(new)) is not None:
            return QueueingHint.SKIP
        if old is None:
            return QueueingHint.QUEUE
        before, after = Resource.of_allocatable(old), Resource.of_allocatable(new)
        names = ["cpu", "memory", "ephemeral-storage", *request.scalars]
        grew = after.allowed_pod_number > before.allowed_pod_number or any(
            request.get(n) > 0 and after.get(n) > before.get(n) for n in names
        )
        return QueueingHint.QUEUE if grew else QueueingHint.SKIP


def _asked_scalars(request: Resource) -> list[tuple[str, int]]:
    return sorted((name, asked) for name, asked in request.scalars.items() if asked)


def _verdict(request: Resource, scalars: Sequence[tuple[str, int]], node: NodeInfo) -> Status | None:
    reasons: list[str] = []
    hopeless = False
    offered, used = node.allocatable, node.requested
    if len(node.pods) + 1 > offered.allowed_pod_number:
        reasons.append("Too many pods")
    cpu, memory, storage = request.milli_cpu, request.memory, request.ephemeral_storage
    if cpu > 0 and cpu > offered.milli_cpu - used.milli_cpu:
        reasons.append("Insufficient cpu")
        hopeless |= cpu > offered.milli_cpu
    if memory > 0 and memory > offered.memory - used.memory:
        reasons.append("Insufficient memory")
        hopeless |= memory > offered.memory
    if storage > 0 and storage > offered.ephemeral_storage - used.ephemeral_storage:
        reasons.append("Insufficient ephemeral-storage")
        hopeless |= storage > offered.ephemeral_storage
    for name, asked in scalars:
        total = offered.scalars.get(name, 0)
        if asked > total - used.scalars.get(name, 0):
            reasons.append(f"Insufficient {name}")
            hopeless |= asked > total
    if not reasons:
        return None
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE
    return _rejection(code, tuple(reasons))


@lru_cache(maxsize=256)
def _rejection(code: Code, reasons: tuple[str, ...]) -> Status:
    """One object for all nodes with the same verdict: who counts reasons counts objects."""
    return Status(code, *reasons, plugin="NodeResourcesFit")


def _device_class(pod: Pod, old: Any, new: Any) -> QueueingHint:
    def extended_name(device_class: Any) -> str:
        spec = device_class.get("spec", {}) if isinstance(device_class, dict) else {}
        return str(spec.get("extendedResourceName") or "")

    wanted = _incoming(pod).scalars
    name = new.get("metadata", {}).get("name", "") if isinstance(new, dict) else ""
    if old is None and f"deviceclass.resource.kubernetes.io/{name}" in wanted:
        return QueueingHint.QUEUE
    if old is not None and extended_name(old) == extended_name(new):
        return QueueingHint.SKIP
    return QueueingHint.QUEUE if extended_name(new) in wanted else QueueingHint.SKIP


def _incoming(pod: Pod) -> Resource:
    cached: Resource | None = pod.__dict__.get("_fit_request")
    if cached is None:
        cached = pod.__dict__["_fit_request"] = requests_of_incoming_pod(pod)
    return cached


def _units_for_scoring(pod: Pod) -> dict[str, int]:
    # Pod-level requests are not looked at here: the scorer's own copy of the feature switch is never set.
    cached: dict[str, int] | None = pod.__dict__.get("_fit_score_units")
    if cached is None:
        found = request_units(pod_requests(pod, pod_level=False, defaults=NON_ZERO_DEFAULTS))
        cached = pod.__dict__["_fit_score_units"] = found
    return cached


def _arg(args: Any, attribute: str, json_name: str) -> Any:
    return args.get(json_name) if isinstance(args, dict) else getattr(args, attribute, None)


def _strategy(strategy: Any) -> Strategy:
    kind = _arg(strategy, "type", "type") or "LeastAllocated"
    if kind == "MostAllocated":
        return most_allocated
    if kind == "RequestedToCapacityRatio":
        if isinstance(strategy, dict):
            points = (strategy.get("requestedToCapacityRatio") or {}).get("shape") or ()
        else:
            points = strategy.shape or ()
        shape = [
            (
                int(_arg(p, "utilization", "utilization") or 0),
                _SHAPE_SCALE * int(_arg(p, "score", "score") or 0),
            )
            for p in points
        ]
        return requested_to_capacity_ratio(shape or [(0, 100), (100, 0)])
    return least_allocated
