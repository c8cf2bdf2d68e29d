"""InterPodAffinity (spec 12 §12.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from labkit.plugins._affinity_counts import FilterState, preferences, topology_of, wishes
from labkit.plugins._affinity_terms import Term, all_match, pod_terms

#: topology key -> value -> weight
Topology = dict[str, dict[str, int]]

_FILTER_KEY = "PreFilterInterPodAffinity"
_SCORE_KEY = "PreScoreInterPodAffinity"
_AFFINITY = Status.unresolvable("node(s) didn't match pod affinity rules", plugin="InterPodAffinity")
_ANTI = Status.unschedulable("node(s) didn't match pod anti-affinity rules", plugin="InterPodAffinity")
_EXISTING = Status.unschedulable(
    "node(s) didn't satisfy existing pods anti-affinity rules", plugin="InterPodAffinity"
)


class InterPodAffinity(Plugin):
    """Keeps pods together or apart, within the same value of a node label."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        hard = _arg(args, "hard_pod_affinity_weight", "hardPodAffinityWeight")
        self._hard_weight = 1 if hard is None else int(hard)
        self._ignore_existing = bool(
            _arg(args, "ignore_preferred_terms_of_existing_pods", "ignorePreferredTermsOfExistingPods")
        )

    # --- Filter -------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Count what existing pods mean for this one; Skip when nothing does and it asks for nothing."""
        assert self.handle is not None
        terms = pod_terms(pod)
        if terms.error is not None:
            return Status.unresolvable(f"parsing pod: {terms.error}")
        required, required_anti = self._own_terms(pod)
        own = FilterState(required, required_anti, self._namespace_labels(pod))
        own.count_all(pod, self.handle.snapshot, nodes)
        if not required and not required_anti and not own.anything_rejects:
            return Status.skip()
        state.write(_FILTER_KEY, own)
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
        own: FilterState = state.read(_FILTER_KEY, "error reading")
        own.change(pod, other.pod, node.node.metadata.labels, delta)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Own affinity, own anti-affinity, then the anti-affinity of existing pods."""
        own: FilterState = state.read(_FILTER_KEY, "error reading")
        labels = node.node.metadata.labels
        if own.required and not self._affinity_holds(own, pod, labels):
            return _AFFINITY
        if own.anti:
            for term in own.required_anti:
                value = labels.get(term.key)
                if value is not None and own.anti.get((term.key, value), 0) > 0:
                    return _ANTI
        if own.existing_anti:
            counts = own.existing_anti
            for pair in labels.items():
                if counts.get(pair, 0) > 0:
                    return _EXISTING
        return None

    def filter_batch(self, state: CycleState, pod: Pod) -> FilterCodes | None:
        """`filter` on all nodes of a large snapshot."""
        assert self.handle is not None
        own: FilterState | None = state.get(_FILTER_KEY)
        if own is None or not own.is_large:
            return None
        return own.codes(pod, self.handle.snapshot, (_AFFINITY, _ANTI, _EXISTING))

    @staticmethod
    def _affinity_holds(own: FilterState, pod: Pod, labels: Mapping[str, str]) -> bool:
        found = True
        for term in own.required:
            value = labels.get(term.key)
            if value is None:
                return False
            if own.affinity.get((term.key, value), 0) <= 0:
                found = False
        # The first pod of a group may go anywhere that has the labels.
        return found or (not own.affinity and all_match(own.required, pod))

    # --- Score --------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Add up weights per topology pair, from this pod's preferences and from those of existing pods."""
        assert self.handle is not None
        terms = pod_terms(pod)
        affinity = pod.spec.affinity
        has_own = affinity is not None and any(
            side is not None and side.preferred_during_scheduling_ignored_during_execution
            for side in (affinity.pod_affinity, affinity.pod_anti_affinity)
        )
        if self._ignore_existing and not has_own:
            return Status.skip()
        if terms.preferred_error is not None or terms.error is not None:
            return Status.as_error_of(f"parsing pod: {terms.preferred_error or terms.error}")
        objects = self.handle.objects
        preferred = [t.with_known_namespaces(objects) for t in terms.preferred]
        preferred_anti = [t.with_known_namespaces(objects) for t in terms.preferred_anti]
        namespace_labels = self._namespace_labels(pod)
        snapshot = self.handle.snapshot
        if snapshot.large:
            sums = preferences(
                pod, snapshot, preferred, preferred_anti, namespace_labels, self._hard_weight, has_own
            )
            if not sums.hits:
                return Status.skip()
            state.write(_SCORE_KEY, sums)
            return None
        topology: Topology = {}
        for node in snapshot.nodes if has_own else snapshot.with_affinity:
            labels = node.node.metadata.labels
            if not labels:
                continue
            for info in node.pods if has_own else node.pods_with_affinity:
                existing = info.pod
                for t in preferred:
                    if t.matches(existing):
                        _score(topology, t.key, labels, t.weight)
                for t in preferred_anti:
                    if t.matches(existing):
                        _score(topology, t.key, labels, -t.weight)
                if info.with_affinity:
                    for key, weight in wishes(existing, pod, namespace_labels, self._hard_weight):
                        _score(topology, key, labels, weight)
        if not topology:
            return Status.skip()
        state.write(_SCORE_KEY, topology)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The sum over the node's topology pairs; may be negative."""
        topology = state.read(_SCORE_KEY, "failed to read")
        if not isinstance(topology, dict):
            topology = topology_of(topology)
            state.write(_SCORE_KEY, topology)
        labels = node.node.metadata.labels
        total = 0
        for key, values in topology.items():
            value = labels.get(key)
            if value is not None:
                total += values.get(value, 0)
        return total

    def score_batch(self, state: CycleState, pod: Pod, at: Any) -> Any:
        """`score` on the nodes with the indexes `at`."""
        sums = state.get(_SCORE_KEY)
        if sums is None or isinstance(sums, dict):
            return None
        return sum(sums.by_node(key)[at] for key in sums.keys)

    def normalize_batch(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Any) -> Any:
        """`normalize_score` on an array."""
        if state.get(_SCORE_KEY) is None or not len(scores):
            return scores
        low, high = int(scores.min()), int(scores.max())
        if low == high:
            return scores - low
        return (float(MAX_NODE_SCORE) * ((scores - low) / float(high - low))).astype(scores.dtype)

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> Status | None:
        """Lowest 0, highest 100; all equal: 0."""
        if state.get(_SCORE_KEY) is None or not scores:
            return None
        low = min(s.score for s in scores)
        high = max(s.score for s in scores)
        diff = high - low
        for s in scores:
            s.score = int(float(MAX_NODE_SCORE) * (float(s.score - low) / float(diff))) if diff > 0 else 0
        return None

    def _namespace_labels(self, pod: Pod) -> Mapping[str, str]:
        assert self.handle is not None
        namespace = self.handle.objects.get("Namespace", "", pod.metadata.namespace)
        return namespace.labels if namespace is not None else {}

    # --- events -------------------------------------------------------------------------------------------

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods that come, go or change labels; nodes that come or change labels."""
        pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [
            ClusterEventWithHint(ClusterEvent("Pod", pods), self._pod_event),
            ClusterEventWithHint(ClusterEvent("Node", nodes), self._node_event),
        ]

    def _own_terms(self, pod: Pod) -> tuple[Sequence[Term], Sequence[Term]]:
        assert self.handle is not None
        terms, objects = pod_terms(pod), self.handle.objects
        return (
            tuple(t.with_known_namespaces(objects) for t in terms.required),
            tuple(t.with_known_namespaces(objects) for t in terms.required_anti),
        )

    def _pod_event(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        if new is not None and old is not None and new.uid == pod.uid:
            return QueueingHint.QUEUE
        other = new if new is not None else old
        if other is None or not (other.spec.node_name or other.status.nominated_node_name):
            return QueueingHint.SKIP
        required, required_anti = self._own_terms(pod)
        if new is not None and old is not None:
            helps = (all_match(required, new) and not all_match(required, old)) or (
                all_match(required_anti, old) and not all_match(required_anti, new)
            )
        elif new is not None:
            helps = all_match(required, new)
        else:
            helps = all_match(required_anti, other) or all_match(pod_terms(other).required_anti, pod)
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def _node_event(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        if new is None:
            return QueueingHint.SKIP
        terms = pod_terms(pod)
        labels = new.labels
        if old is None:
            helps = any(t.key in labels for t in terms.required) or bool(terms.required_anti)
            return QueueingHint.QUEUE if helps else QueueingHint.SKIP
        before = old.labels
        for t in terms.required:
            if t.key in labels and labels[t.key] != before.get(t.key):
                return QueueingHint.QUEUE
        for t in terms.required_anti:
            if t.key in before and labels.get(t.key) != before[t.key]:
                return QueueingHint.QUEUE
        return QueueingHint.SKIP


def _score(topology: Topology, key: str, labels: Mapping[str, str], amount: int) -> None:
    value = labels.get(key)
    if value is not None:
        values = topology.setdefault(key, {})
        values[value] = values.get(value, 0) + amount


def _arg(args: Any, attribute: str, json_name: str) -> Any:
    return args.get(json_name) if isinstance(args, dict) else getattr(args, attribute, None)
