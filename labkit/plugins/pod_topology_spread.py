"""PodTopologySpread (spec 12 §12.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.plugin import Plugin
from labkit.framework.results import MAX_NODE_SCORE, FilterCodes, NodeScore
from labkit.framework.status import Status
from labkit.objects.node import Node
from labkit.objects.pod import Pod
from labkit.objects.selectors import SelectorError
from labkit.plugins._normalize import truncating_div
from labkit.plugins._spread_constraints import (
    DO_NOT_SCHEDULE,
    HOSTNAME,
    SCHEDULE_ANYWAY,
    Constraint,
    Defaults,
    effective_constraints,
)
from labkit.plugins._spread_counts import HardState, SoftState

_FILTER_KEY = "PreFilterPodTopologySpread"
_SCORE_KEY = "PreScorePodTopologySpread"
_MISSING = Status.unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)",
    plugin="PodTopologySpread",
)
_SKEW = Status.unschedulable(
    "node(s) didn't match pod topology spread constraints", plugin="PodTopologySpread"
)


class PodTopologySpread(Plugin):
    """Spreads pods evenly over the values of node labels."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        self._defaults = Defaults(args)

    def _constraints(self, pod: Pod, action: str) -> list[Constraint]:
        own = bool(pod.spec.topology_spread_constraints)
        key = f"_spread_{action}"
        if own and key in pod.__dict__:
            cached: list[Constraint] = pod.__dict__[key]
            return cached
        objects = self.handle.objects if self.handle is not None else None
        found = effective_constraints(pod, action, self._defaults, objects)
        if own:
            pod.__dict__[key] = found
        return found

    # --- Filter -------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Count matching pods per domain; Skip without hard constraints."""
        try:
            constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        except SelectorError as e:
            return Status.as_error_of(
                f"get constraints from pod: obtaining pod's hard topology spread constraints: {e}"
            )
        if not constraints:
            return Status.skip()
        hard = HardState(constraints, pod)
        assert self.handle is not None
        hard.count_all(pod, self.handle.snapshot, nodes)
        state.write(_FILTER_KEY, hard)
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo) -> Status | None:
        """Count a hypothetical pod in."""
        self._change(state, pod, added, node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo) -> Status | None:
        """Count a hypothetically removed pod out."""
        self._change(state, pod, removed, node, -1)
        return None

    def _change(self, state: CycleState, pod: Pod, other: PodInfo, node: NodeInfo, delta: int) -> None:
        hard: HardState = state.read(_FILTER_KEY)
        labels = node.node.metadata.labels
        if other.pod.namespace != pod.namespace or not hard.has_all_keys(labels):
            return
        for i, c in enumerate(hard.constraints):
            if c.selector.matches(other.pod.labels) and c.includes(pod, node.node):
                hard.add(i, labels[c.key], delta)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Rejects nodes where the skew would exceed `maxSkew`, or that lack the label."""
        hard: HardState = state.read(_FILTER_KEY)
        labels = node.node.metadata.labels
        for i, c in enumerate(hard.constraints):
            value = labels.get(c.key)
            if value is None:
                return _MISSING
            if hard.counts[i].get(value, 0) + hard.self_match[i] - hard.minimum(i) > c.max_skew:
                return _SKEW
        return None

    def filter_batch(self, state: CycleState, pod: Pod) -> FilterCodes | None:
        """`filter` on all nodes of a large snapshot."""
        assert self.handle is not None
        hard: HardState | None = state.get(_FILTER_KEY)
        if hard is None or not hard.is_large:
            return None
        return hard.codes(self.handle.snapshot, (_MISSING, _SKEW))

    # --- Score --------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Weigh the soft constraints and count pods per domain; Skip without soft constraints."""
        assert self.handle is not None
        try:
            constraints = self._constraints(pod, SCHEDULE_ANYWAY)
        except SelectorError as e:
            return Status.as_error_of(
                f"calculating preScoreState: obtaining pod's soft topology spread constraints: {e}"
            )
        snapshot = self.handle.snapshot
        if not constraints or not snapshot.nodes:
            return Status.skip()
        require_all = bool(pod.spec.topology_spread_constraints) or self._defaults.is_list
        soft = SoftState(constraints)
        soft.count_all(pod, snapshot, nodes, require_all)
        state.write(_SCORE_KEY, soft)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Weighted matching pods in the node's domains, rounded; lower is better."""
        soft: SoftState = state.read(_SCORE_KEY, "error reading")
        if soft.ignored and node.name in soft.ignored:
            return 0
        labels = node.node.metadata.labels
        total = 0.0
        for i, c in enumerate(soft.constraints):
            value = labels.get(c.key)
            if value is None:
                continue
            count = c.count(pod, node) if c.key == HOSTNAME else soft.counts[i].get(value, 0)
            total += float(count) * soft.weights[i] + float(c.max_skew - 1)
        floor = math.floor(total)
        return floor + 1 if total - floor >= 0.5 else floor

    def score_batch(self, state: CycleState, pod: Pod, at: Any) -> Any:
        """`score` on the nodes with the indexes `at`."""
        assert self.handle is not None
        soft: SoftState | None = state.get(_SCORE_KEY)
        if soft is None or not soft.is_large:
            return None
        return soft.scores(self.handle.snapshot, at)

    def normalize_batch(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Any) -> Any:
        """`normalize_score` on an array; None where some nodes do not count."""
        soft: SoftState | None = state.get(_SCORE_KEY)
        if soft is None or not len(scores):
            return scores
        if soft.ignored or scores.min() < 0:
            return None
        low, high = int(scores.min()), int(scores.max())
        if high == 0:
            return scores + MAX_NODE_SCORE
        return MAX_NODE_SCORE * (high + low - scores) // high

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> Status | None:
        """Lowest raw score: 100. Nodes that do not count: 0."""
        soft: SoftState | None = state.get(_SCORE_KEY)
        if soft is None:
            return None
        counted = [s.score for s in scores if s.name not in soft.ignored]
        low, high = min(counted, default=0), max([0, *counted])
        for s in scores:
            if s.name in soft.ignored:
                s.score = 0
            elif high == 0:
                s.score = MAX_NODE_SCORE
            else:
                s.score = truncating_div(MAX_NODE_SCORE * (high + low - s.score), high)
        return None

    # --- events -------------------------------------------------------------------------------------------

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods that come, go or change; nodes that come, go or change labels or taints."""
        pods = (
            ActionType.ADD
            | ActionType.DELETE
            | ActionType.UPDATE_POD_LABEL
            | ActionType.UPDATE_POD_TOLERATION
        )
        nodes = (
            ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        )
        return [
            ClusterEventWithHint(ClusterEvent("Pod", pods), self._pod_event),
            ClusterEventWithHint(ClusterEvent("Node", nodes), self._node_event),
        ]

    def _pod_event(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        other = new if new is not None else old
        if other is None:
            return QueueingHint.SKIP
        own = other.uid == pod.uid
        used = bool(other.spec.node_name or other.status.nominated_node_name)
        if not own and not (used and other.namespace == pod.namespace):
            return QueueingHint.SKIP
        constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        if old is not None and new is not None:
            if (
                own
                and old.spec.tolerations != new.spec.tolerations
                and any(c.honor_taints for c in constraints)
            ):
                return QueueingHint.QUEUE
            if old.labels == new.labels:
                return QueueingHint.SKIP
            helps = any(c.selector.matches(old.labels) != c.selector.matches(new.labels) for c in constraints)
        else:
            helps = any(c.selector.matches(other.labels) for c in constraints)
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def _node_event(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        constraints = self._constraints(pod, DO_NOT_SCHEDULE)

        def complete(node: Node | None) -> bool:
            return node is not None and all(c.key in node.labels for c in constraints)

        before, after = complete(old), complete(new)
        if old is not None and new is not None:
            if before != after:
                return QueueingHint.QUEUE
            changed = (
                any(old.labels.get(c.key) != new.labels.get(c.key) for c in constraints)
                or old.spec.taints != new.spec.taints
            )
            return QueueingHint.QUEUE if after and changed else QueueingHint.SKIP
        return QueueingHint.QUEUE if (before or after) else QueueingHint.SKIP
