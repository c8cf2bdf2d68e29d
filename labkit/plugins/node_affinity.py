"""NodeAffinity (spec 10 §10.4)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.results import NodeScore, PreFilterResult
from labkit.framework.status import Status
from labkit.objects.node import Node
from labkit.objects.pod import NodeAffinity as NodeAffinitySpec
from labkit.objects.pod import NodeSelector, Pod, PreferredSchedulingTerm
from labkit.objects.selectors import (
    NodeSelectorMatcher,
    NodeSelectorTermMatcher,
    RequiredNodeAffinity,
    SelectorError,
    required_node_affinity,
)
from labkit.plugins._normalize import default_normalize_batch, default_normalize_score
from labkit.plugins._signs import encoded

_FILTER_KEY = "PreFilterNodeAffinity"
_SCORE_KEY = "PreScoreNodeAffinity"
_CONFLICT = Status.unresolvable("pod affinity terms conflict", plugin="NodeAffinity")
_ENFORCED = Status.unresolvable(
    "node(s) didn't match scheduler-enforced node affinity", plugin="NodeAffinity"
)
_POD = Status.unresolvable("node(s) didn't match Pod's node affinity/selector", plugin="NodeAffinity")

Weighted = list[tuple[int, NodeSelectorTermMatcher]]


class NodeAffinity(Plugin):
    """`spec.nodeSelector` and node affinity, plus the profile's `addedAffinity`."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        added = _added_affinity(args)
        required = added.required_during_scheduling_ignored_during_execution if added else None
        preferred = added.preferred_during_scheduling_ignored_during_execution if added else None
        self._added_required = NodeSelectorMatcher(required) if required is not None else None
        try:
            self._added_preferred = preferred_terms(preferred) if preferred else None
        except SelectorError as e:
            raise ValueError(
                f"parsing addedAffinity.preferredDuringSchedulingIgnoredDuringExecution: {e}"
            ) from None
        if self._added_required is not None and self._added_required.error is not None:
            raise ValueError(
                f"parsing addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: {self._added_required.error}"
            )

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> Status | tuple[PreFilterResult | None, Status | None]:
        """Skip when nothing is asked; narrow the nodes when every term names some by `metadata.name`."""
        required = _required(pod)
        if required is None and self._added_required is None and pod.spec.node_selector is None:
            return Status.skip()
        state.write(_FILTER_KEY, required_node_affinity(pod))
        if required is None or not required.node_selector_terms:
            return None, None
        names: set[str] = set()
        for term in required.node_selector_terms:
            allowed: set[str] | None = None
            for field in term.match_fields:
                if field.key == "metadata.name" and field.operator == "In":
                    allowed = set(field.values) if allowed is None else allowed & set(field.values)
            if allowed is None:
                return None, None
            names |= allowed
        if not names:
            return None, _CONFLICT
        return PreFilterResult(names), None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """The profile's required affinity first, then the pod's."""
        if self._added_required is not None and not self._added_required.matches(node.node):
            return _ENFORCED
        affinity: RequiredNodeAffinity = state.get(_FILTER_KEY) or required_node_affinity(pod)
        return None if affinity.matches(node.node) else _POD

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip when neither pod nor profile prefers anything; Error when a preferred term does not parse."""
        preferred = _preferred(pod)
        if preferred is None and self._added_preferred is None:
            return Status.skip()
        try:
            state.write(_SCORE_KEY, [*(self._added_preferred or ()), *preferred_terms(preferred or [])])
        except SelectorError as e:
            return Status.as_error_of(e)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int | tuple[int, Status]:
        """The sum of the weights of matching terms."""
        terms: Weighted | None = state.get(_SCORE_KEY)
        if terms is None:
            # PreScore is disabled in this profile.
            try:
                terms = [*(self._added_preferred or ()), *preferred_terms(_preferred(pod) or [])]
            except SelectorError as e:
                return 0, Status.as_error_of(e)
        return sum(weight for weight, term in terms if term.matches(node.node))

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> Status | None:
        """Scaled by the highest sum."""
        default_normalize_score(scores, reverse=False)
        return None

    def sign_pod(self, pod: Pod) -> Hashable:
        """Node selector and node affinity."""
        affinity = pod.spec.affinity
        return encoded(pod.spec.node_selector), encoded(affinity.node_affinity if affinity else None)

    def normalize_batch(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Any) -> Any:
        """`normalize_score` on an array."""
        return default_normalize_batch(scores, reverse=False)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A node that matches and is new, or did not match before."""
        event = ClusterEvent("Node", ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [ClusterEventWithHint(event, self._matches_now)]

    def _matches_now(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        if new is None or (self._added_required is not None and not self._added_required.matches(new)):
            return QueueingHint.SKIP
        affinity = required_node_affinity(pod)
        if not affinity.matches(new):
            # Filter overlooks terms that do not parse; here they count as "worth a try".
            return QueueingHint.QUEUE if affinity.error_on(new) else QueueingHint.SKIP
        return QueueingHint.SKIP if old is not None and affinity.matches(old) else QueueingHint.QUEUE


def preferred_terms(terms: Iterable[PreferredSchedulingTerm]) -> Weighted:
    """Weighted terms that can add something. SelectorError when one does not parse."""
    found: Weighted = []
    messages: list[str] = []
    for i, term in enumerate(terms):
        matcher = NodeSelectorTermMatcher(term.preference, f"[{i}]")
        if term.weight == 0 or matcher.empty:
            continue
        if matcher.error is not None:
            messages += matcher.error.messages
        found.append((term.weight, matcher))
    if messages:
        raise SelectorError(*messages)
    return found


def _added_affinity(args: Any) -> NodeAffinitySpec | None:
    raw = args.get("addedAffinity") if isinstance(args, dict) else getattr(args, "added_affinity", None)
    if raw is None or isinstance(raw, NodeAffinitySpec):
        return raw
    return msgspec.convert(raw, NodeAffinitySpec)


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def _preferred(pod: Pod) -> list[PreferredSchedulingTerm] | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
