"""CustomInterPodAffinity: pods that want to be together, or apart, within the same value of a node label.

Three things that a first sketch gets wrong:

* "together" is about a *topology*, not about the node: a pod anywhere in the same zone counts when the term says
  `topologyKey: zone`. So what matters is collected once, over all nodes, as (label, value) pairs.
* anti-affinity works both ways: a pod that is already there and wants to be left alone keeps others out, also
  others that say nothing themselves.
* the first pod of a group that wants to be with its like finds none. It may go anywhere, or no group would ever
  start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint
from labkit.framework.node_info import NodeInfo, PodInfo, pod_info
from labkit.framework.plugin import Plugin
from labkit.framework.results import MAX_NODE_SCORE, NodeScore
from labkit.framework.status import Status
from labkit.objects.pod import Pod, PodAffinityTerm
from labkit.objects.selectors import SelectorError, compile_label_selector

#: A node label and its value, such as ("topology.kubernetes.io/zone", "a").
Pair = tuple[str, str]


class Pairs:
    """What the pods that are there mean for one incoming pod; the numbers say how many pods mean it."""

    def __init__(self) -> None:
        self.friends: Counter[Pair] = Counter()
        self.rivals: Counter[Pair] = Counter()
        self.closed: Counter[Pair] = Counter()

    def clone(self) -> Pairs:
        """A copy for what-ifs."""
        copy = Pairs()
        copy.friends, copy.rivals, copy.closed = self.friends.copy(), self.rivals.copy(), self.closed.copy()
        return copy


class CustomInterPodAffinity(Plugin):
    """Filter by required terms, score by preferred ones."""

    # --- Filter -----------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Look at every pod once. Skip when nobody wants anything."""
        pairs = Pairs()
        try:
            for node in nodes:
                for info in node.pods:
                    self._count(pairs, pod, info, node, 1)
        except SelectorError as e:
            return Status.unresolvable(f"parsing pod: {e}")
        own = pod_info(pod)
        if not own.required_affinity and not own.required_anti_affinity and not pairs.closed:
            return Status.skip()
        state.write(self.name, pairs)
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo) -> Status | None:
        """A what-if puts a pod on `node`."""
        self._count(state.read(self.name), pod, added, node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo) -> Status | None:
        """A what-if takes a pod off `node`."""
        self._count(state.read(self.name), pod, removed, node, -1)
        return None

    def _count(self, pairs: Pairs, pod: Pod, other: PodInfo, node: NodeInfo, step: int) -> None:
        own = pod_info(pod)
        # A friend is a pod that meets *all* terms, each within the topology of that term.
        if own.required_affinity and all(self._selects(t, pod, other.pod) for t in own.required_affinity):
            _add(pairs.friends, own.required_affinity, node, step)
        rivals = [t for t in own.required_anti_affinity if self._selects(t, pod, other.pod)]
        _add(pairs.rivals, rivals, node, step)
        closed = [t for t in other.required_anti_affinity if self._selects(t, other.pod, pod)]
        _add(pairs.closed, closed, node, step)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Friends must be near, rivals must not, and nobody near may object."""
        pairs: Pairs = state.read(self.name)
        own, labels = pod_info(pod), node.node.labels
        if own.required_affinity and not self._friends_are_near(pairs, pod, labels):
            return Status.unresolvable("node(s) didn't match pod affinity rules")
        if any(pairs.rivals[pair] > 0 for pair in labels.items()):
            return Status.unschedulable("node(s) didn't match pod anti-affinity rules")
        if any(pairs.closed[pair] > 0 for pair in labels.items()):
            return Status.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
        return None

    def _friends_are_near(self, pairs: Pairs, pod: Pod, labels: Mapping[str, str]) -> bool:
        terms = pod_info(pod).required_affinity
        if any(t.topology_key not in labels for t in terms):
            return False
        if all(pairs.friends[t.topology_key, labels[t.topology_key]] > 0 for t in terms):
            return True
        nobody_anywhere = not any(n > 0 for n in pairs.friends.values())
        return nobody_anywhere and all(self._selects(t, pod, pod) for t in terms)

    # --- Score ------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Add up, for each pair, the weights of all terms that speak for it (or against it).

        All nodes count, also those that were filtered out: their pods are in the same zone as others.
        """
        assert self.handle is not None
        points: Counter[Pair] = Counter()
        own = pod_info(pod)
        for node in self.handle.snapshot.nodes:
            for other in node.pods:
                for w in own.preferred_affinity:
                    if self._selects(w.pod_affinity_term, pod, other.pod):
                        _add(points, [w.pod_affinity_term], node, w.weight)
                for w in own.preferred_anti_affinity:
                    if self._selects(w.pod_affinity_term, pod, other.pod):
                        _add(points, [w.pod_affinity_term], node, -w.weight)
                # What the other pod wants counts too; what it requires of its neighbours counts as a wish of weight 1.
                for t in other.required_affinity:
                    if self._selects(t, other.pod, pod):
                        _add(points, [t], node, 1)
                for w in other.preferred_affinity:
                    if self._selects(w.pod_affinity_term, other.pod, pod):
                        _add(points, [w.pod_affinity_term], node, w.weight)
                for w in other.preferred_anti_affinity:
                    if self._selects(w.pod_affinity_term, other.pod, pod):
                        _add(points, [w.pod_affinity_term], node, -w.weight)
        if not points:
            return Status.skip()
        state.write(f"{self.name}/points", points)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The points of the node's labels; may be negative."""
        points: Counter[Pair] = state.read(f"{self.name}/points")
        return sum(points[pair] for pair in node.node.labels.items())

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> Status | None:
        """Lowest 0, highest 100: dividing by the highest alone would leave negative scores out of range."""
        low, high = min(s.score for s in scores), max(s.score for s in scores)
        for s in scores:
            s.score = (s.score - low) * MAX_NODE_SCORE // (high - low) if high > low else 0
        return None

    # --- terms ------------------------------------------------------------------------------------------------

    def _selects(self, term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
        """Does `owner`'s term mean `other`? By labels, in the namespaces that the term names."""
        names: Iterable[str] = term.namespaces
        if not term.namespaces and term.namespace_selector is None:
            names = (owner.namespace,)
        if other.namespace not in names:
            by_label = compile_label_selector(term.namespace_selector)
            if not by_label.matches(self._labels_of_namespace(other.namespace)):
                return False
        return compile_label_selector(term.label_selector).matches(other.labels)

    def _labels_of_namespace(self, name: str) -> Mapping[str, str]:
        assert self.handle is not None
        namespace: Any = self.handle.objects.get("Namespace", "", name)
        return namespace.labels if namespace is not None else {}

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods that come, go, or change labels; nodes that come or change labels."""
        pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [
            ClusterEventWithHint(ClusterEvent("Pod", pods)),
            ClusterEventWithHint(ClusterEvent("Node", nodes)),
        ]


def _add(counts: Counter[Pair], terms: Iterable[PodAffinityTerm], node: NodeInfo, amount: int) -> None:
    """Count `amount` for the node's pair of each term; a node without the label is in no topology."""
    for term in terms:
        value = node.node.labels.get(term.topology_key)
        if value is not None:
            counts[term.topology_key, value] += amount
