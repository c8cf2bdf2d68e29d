"""What InterPodAffinity counts for one incoming pod, by topology pair (spec 12 §12.1.2, §12.1.4).

Counted anew over all pods in a small cluster, read from tallies in a large one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.results import FilterCodes
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Status
from labkit.objects.pod import Pod
from labkit.plugins._affinity_terms import Term, all_match, pod_terms
from labkit.plugins._signs import encoded

if TYPE_CHECKING:
    from labkit.plugins._tallies import Sums

#: (topology key, value) -> count
Counts = dict[tuple[str, str], int]
#: Sums for existing pods' anti-affinity, own affinity, own anti-affinity.
_Three = tuple["Sums | None", "Sums | None", "Sums | None"]


class FilterState:
    """Counts per topology pair for one incoming pod, and its own terms."""

    __slots__ = ("_counts", "_sums", "namespace_labels", "required", "required_anti")

    def __init__(
        self, required: Sequence[Term], required_anti: Sequence[Term], namespace_labels: Mapping[str, str]
    ) -> None:
        self.required = required
        self.required_anti = required_anti
        self.namespace_labels = namespace_labels
        self._counts: tuple[Counts, Counts, Counts] | None = ({}, {}, {})
        self._sums: _Three = (None, None, None)

    # --- reading ------------------------------------------------------------------------------------------

    def _all(self) -> tuple[Counts, Counts, Counts]:
        if self._counts is None:
            first, second, third = ({} if s is None else s.pairs() for s in self._sums)
            self._counts = (first, second, third)
        return self._counts

    @property
    def existing_anti(self) -> Counts:
        """Required anti-affinity terms of existing pods that reject the incoming one."""
        return self._all()[0]

    @property
    def affinity(self) -> Counts:
        """Existing pods that meet all own required terms."""
        return self._all()[1]

    @property
    def anti(self) -> Counts:
        """Existing pods that meet an own anti-affinity term."""
        return self._all()[2]

    @property
    def anything_rejects(self) -> bool:
        """Some existing pod's term rejects the incoming one somewhere."""
        if self._counts is None:
            return self._sums[0] is not None and self._sums[0].hits > 0
        return bool(self._counts[0])

    def clone(self) -> FilterState:
        """A copy that can be changed."""
        copy = FilterState(self.required, self.required_anti, self.namespace_labels)
        existing_anti, affinity, anti = self._all()
        copy._counts = (dict(existing_anti), dict(affinity), dict(anti))
        return copy

    # --- counting -----------------------------------------------------------------------------------------

    def count_existing_anti(
        self, incoming: Pod, existing: Pod, labels: Mapping[str, str], delta: int
    ) -> None:
        """The existing pod's required anti-affinity terms that reject the incoming pod."""
        for term in pod_terms(existing).required_anti:
            value = labels.get(term.key)
            if value is not None and term.matches(incoming, self.namespace_labels):
                _add(self.existing_anti, (term.key, value), delta)

    def count_own(self, existing: Pod, labels: Mapping[str, str], delta: int) -> None:
        """The incoming pod's own required terms, as the existing pod meets them."""
        if self.required and all_match(self.required, existing):
            for term in self.required:
                value = labels.get(term.key)
                if value is not None:
                    _add(self.affinity, (term.key, value), delta)
        for term in self.required_anti:
            value = labels.get(term.key)
            if value is not None and term.matches(existing):
                _add(self.anti, (term.key, value), delta)

    def change(self, incoming: Pod, other: Pod, labels: Mapping[str, str], delta: int) -> None:
        """A pod came (1) to a node with `labels` or went (-1)."""
        self.count_existing_anti(incoming, other, labels, delta)
        self.count_own(other, labels, delta)
        self._sums = (None, None, None)

    def count_all(self, incoming: Pod, snapshot: Snapshot, nodes: Sequence[NodeInfo]) -> None:
        """Everybody that is there."""
        if snapshot.large:
            self._count_large(incoming, snapshot)
            return
        for node in snapshot.with_required_anti_affinity:
            labels = node.node.metadata.labels
            for info in node.pods_with_required_anti_affinity:
                self.count_existing_anti(incoming, info.pod, labels, 1)
        if self.required or self.required_anti:
            for node in nodes:
                if node.pods:
                    labels = node.node.metadata.labels
                    for info in node.pods:
                        self.count_own(info.pod, labels, 1)

    # --- in a large cluster -------------------------------------------------------------------------------

    def _count_large(self, incoming: Pod, snapshot: Snapshot) -> None:
        from labkit.plugins._tallies import Tallies

        kept = Tallies.of(snapshot)
        required, required_anti, labels = self.required, self.required_anti, self.namespace_labels

        def rejections(info: PodInfo) -> Iterable[tuple[str, int]]:
            if info.required_anti_affinity:
                for term in pod_terms(info.pod).required_anti:
                    if term.matches(incoming, labels):
                        yield term.key, 1

        def friends(info: PodInfo) -> Iterable[tuple[str, int]]:
            return [(t.key, 1) for t in required] if all_match(required, info.pod) else ()

        def rivals(info: PodInfo) -> Iterable[tuple[str, int]]:
            return [(t.key, 1) for t in required_anti if t.matches(info.pod)]

        existing = affinity = anti = None
        if snapshot.with_required_anti_affinity:
            question = ("rejections", looked_at(incoming, labels))
            existing = kept.sums(question, rejections, pods="pods_with_required_anti_affinity")
        spec = incoming.spec.affinity
        if required and spec is not None:
            affinity = kept.sums(("friends", _terms(required), encoded(spec.pod_affinity)), friends)
        if required_anti and spec is not None:
            anti = kept.sums(("rivals", _terms(required_anti), encoded(spec.pod_anti_affinity)), rivals)
        self._sums, self._counts = (existing, affinity, anti), None

    def codes(self, pod: Pod, snapshot: Snapshot, statuses: tuple[Status, Status, Status]) -> FilterCodes:
        """The verdict on each node: own affinity, own anti-affinity, anti-affinity of existing pods."""
        import numpy as np

        from labkit.plugins._tallies import Tallies

        existing, affinity, anti = self._sums
        codes = np.zeros(len(snapshot.nodes), np.int8)
        if existing is not None:
            for key in existing.keys:
                codes[existing.by_node(key) > 0] = 3
        if anti is not None:
            for term in self.required_anti:
                codes[anti.by_node(term.key) > 0] = 2
        if affinity is not None:
            kept = Tallies.of(snapshot)
            # The first pod of a group may go anywhere that has the labels.
            first = not affinity.hits and all_match(self.required, pod)
            for term in self.required:
                fine = kept.column(term.key).present if first else affinity.by_node(term.key) > 0
                codes[~fine] = 1
        return FilterCodes(codes, statuses)

    @property
    def is_large(self) -> bool:
        """Counts come from tallies, and no hypothetical pod was counted in or out."""
        return self._counts is None or any(s is not None for s in self._sums)


def looked_at(pod: Pod, namespace_labels: Mapping[str, str]) -> Hashable:
    """What other pods' terms see of a pod."""
    labels = pod.metadata.labels
    return (
        pod.metadata.namespace,
        tuple(sorted(labels.items())),
        tuple(sorted(namespace_labels.items())),
    )


def _terms(terms: Sequence[Term]) -> Hashable:
    return tuple((t.namespaces, t.key) for t in terms)


def preferences(
    pod: Pod,
    snapshot: Snapshot,
    preferred: Sequence[Term],
    preferred_anti: Sequence[Term],
    namespace_labels: Mapping[str, str],
    hard_weight: int,
    has_own: bool,
) -> Sums:
    """Weights by topology pair, from the pod's preferences and from those of existing pods; large clusters only."""
    from labkit.plugins._tallies import Tallies

    def amounts(info: PodInfo) -> Iterable[tuple[str, int]]:
        existing = info.pod
        for t in preferred:
            if t.matches(existing):
                yield t.key, t.weight
        for t in preferred_anti:
            if t.matches(existing):
                yield t.key, -t.weight
        if info.with_affinity:
            yield from wishes(existing, pod, namespace_labels, hard_weight)

    affinity = pod.spec.affinity
    question = (
        "preferences",
        looked_at(pod, namespace_labels),
        hard_weight,
        _terms(preferred),
        _terms(preferred_anti),
        encoded(affinity if has_own else None),
    )
    return Tallies.of(snapshot).sums(question, amounts, pods="pods" if has_own else "pods_with_affinity")


def wishes(
    existing: Pod, pod: Pod, namespace_labels: Mapping[str, str], hard_weight: int
) -> Iterable[tuple[str, int]]:
    """(topology key, weight) of each term of an existing pod that scores for the incoming one."""
    theirs = pod_terms(existing)
    if hard_weight > 0:
        for t in theirs.required:
            if t.matches(pod, namespace_labels):
                yield t.key, hard_weight
    for t in theirs.preferred:
        if t.matches(pod, namespace_labels):
            yield t.key, t.weight
    for t in theirs.preferred_anti:
        if t.matches(pod, namespace_labels):
            yield t.key, -t.weight


def _add(counts: Counts, pair: tuple[str, str], delta: int) -> None:
    total = counts.get(pair, 0) + delta
    if total == 0:
        counts.pop(pair, None)
    else:
        counts[pair] = total


def topology_of(sums: Any) -> dict[str, dict[str, int]]:
    """Weights by topology key and value."""
    return {str(key): sums.by_value(key) for key in sums.keys}
