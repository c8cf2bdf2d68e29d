"""What PodTopologySpread counts for one incoming pod, by constraint (spec 12 §12.2.4 - §12.2.6).

Counted anew over all nodes in a small cluster, read from tallies in a large one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.results import FilterCodes
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Status
from labkit.objects.pod import Pod
from labkit.plugins._signs import encoded
from labkit.plugins._spread_constraints import HOSTNAME, Constraint

Counts = dict[str, int]


class HardState:
    """Per hard constraint: matching pods by topology value, and whether the incoming pod matches itself."""

    def __init__(self, constraints: Sequence[Constraint], pod: Pod) -> None:
        self.constraints = constraints
        self.self_match = [1 if c.selector.matches(pod.labels) else 0 for c in constraints]
        self._minima: list[int | None] = [None] * len(constraints)
        self._counts: list[Counts] | None = [{} for _ in constraints]
        #: In a large cluster, per constraint: matching pods by value, the label's column, ids of its domains.
        self._large: list[tuple[Any, Any, Any]] = []

    @property
    def counts(self) -> list[Counts]:
        """Matching pods by topology value, for each constraint; domains without any count 0."""
        if self._counts is None:
            self._counts = []
            for c, (sums, column, domains) in zip(self.constraints, self._large, strict=True):
                names = [column.values[i] for i in domains.tolist()]
                self._counts.append(dict(zip(names, sums.over(c.key, domains).tolist(), strict=True)))
        return self._counts

    def clone(self) -> HardState:
        """A copy that can be changed."""
        copy = HardState.__new__(HardState)
        copy.constraints = self.constraints
        copy._counts = [dict(c) for c in self.counts]
        copy.self_match = self.self_match
        copy._minima = list(self._minima)
        copy._large = []
        return copy

    def has_all_keys(self, labels: dict[str, str]) -> bool:
        """Only such nodes count."""
        return all(c.key in labels for c in self.constraints)

    def add(self, i: int, value: str, amount: int) -> None:
        """Count for constraint `i`."""
        counts = self.counts[i]
        counts[value] = counts.get(value, 0) + amount
        self._minima[i] = None
        self._large = []

    def minimum(self, i: int) -> int:
        """The fewest matching pods of any domain; 0 when there are fewer domains than `minDomains`."""
        found = self._minima[i]
        if found is None:
            counts = self.counts[i]
            enough = len(counts) >= self.constraints[i].min_domains
            found = self._minima[i] = min(counts.values(), default=0) if enough else 0
        return found

    def count_all(self, pod: Pod, snapshot: Snapshot, nodes: Sequence[NodeInfo]) -> None:
        """Everybody that is there."""
        if snapshot.large:
            self._counts = None
            keys = tuple(c.key for c in self.constraints)
            self._large = [_counted(pod, c, keys, snapshot) for c in self.constraints]
            return
        for node in nodes:
            labels = node.node.metadata.labels
            if not self.has_all_keys(labels):
                continue
            for i, c in enumerate(self.constraints):
                if c.includes(pod, node.node):
                    self.add(i, labels[c.key], c.count(pod, node))

    # --- in a large cluster -------------------------------------------------------------------------------

    @property
    def is_large(self) -> bool:
        """Counts come from tallies, and no hypothetical pod was counted in or out."""
        return bool(self._large)

    def codes(self, snapshot: Snapshot, statuses: tuple[Status, Status]) -> FilterCodes:
        """The verdict on each node, by the first constraint that it fails."""
        import numpy as np

        codes = np.zeros(len(snapshot.nodes), np.int8)
        for i in reversed(range(len(self.constraints))):
            c, (sums, column, domains) = self.constraints[i], self._large[i]
            enough = len(domains) and len(domains) >= c.min_domains
            fewest = int(sums.over(c.key, domains).min()) if enough else 0
            codes[sums.by_node(c.key) + (self.self_match[i] - fewest) > c.max_skew] = 2
            codes[~column.present] = 1
        return FilterCodes(codes, statuses)


class SoftState:
    """Soft constraints with weights, nodes that do not count, and matching pods by topology value."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self.constraints = constraints
        self.ignored: set[str] = set()
        self.weights: list[float] = []
        self._counts: list[Counts] | None = [{} for _ in constraints]
        self._large: list[Any] = []

    @property
    def counts(self) -> list[Counts]:
        """Matching pods by topology value, for each constraint but the one over hostnames."""
        if self._counts is None:
            self._counts = [
                {} if c.key == HOSTNAME else sums.by_value(c.key)
                for c, sums in zip(self.constraints, self._large, strict=True)
            ]
        return self._counts

    def count_all(self, pod: Pod, everybody: Snapshot, nodes: Sequence[NodeInfo], require_all: bool) -> None:
        """Weigh the constraints by the domains of the feasible `nodes`; then count everybody that is there."""
        if everybody.large and (require_all or not self._has_blanks(everybody)):
            self._count_large(pod, everybody, nodes, require_all)
            return
        for node in nodes:
            labels = node.node.metadata.labels
            if require_all and not all(c.key in labels for c in self.constraints):
                self.ignored.add(node.name)
                continue
            for i, c in enumerate(self.constraints):
                if c.key != HOSTNAME:
                    self.counts[i].setdefault(labels.get(c.key, ""), 0)
        for i, c in enumerate(self.constraints):
            size = len(nodes) - len(self.ignored) if c.key == HOSTNAME else len(self.counts[i])
            self.weights.append(math.log(size + 2))
        spread_over = [(i, c) for i, c in enumerate(self.constraints) if c.key != HOSTNAME]
        for node in everybody.nodes if spread_over else ():
            labels = node.node.metadata.labels
            if require_all and not all(c.key in labels for c in self.constraints):
                continue
            for i, c in spread_over:
                value = labels.get(c.key, "")
                if value in self.counts[i] and c.includes(pod, node.node):
                    self.counts[i][value] += c.count(pod, node)

    # --- in a large cluster -------------------------------------------------------------------------------

    @property
    def is_large(self) -> bool:
        """Counts come from tallies."""
        return bool(self._large)

    def _has_blanks(self, everybody: Snapshot) -> bool:
        """Some node has the empty value: it then shares a domain with the nodes that lack the label."""
        from labkit.plugins._tallies import Tallies

        kept = Tallies.of(everybody)
        return any("" in kept.column(c.key).values for c in self.constraints)

    def _count_large(
        self, pod: Pod, everybody: Snapshot, nodes: Sequence[NodeInfo], require_all: bool
    ) -> None:
        import numpy as np

        from labkit.plugins._tallies import Tallies, places

        kept = Tallies.of(everybody)
        keys = tuple(c.key for c in self.constraints) if require_all else ()
        at = places(nodes, len(nodes))
        counted = at
        if require_all:
            complete = np.ones(len(everybody.nodes), np.bool_)
            for key in keys:
                complete &= kept.column(key).present
            counted = at[complete[at]]
            self.ignored = {everybody.nodes[i].name for i in at[~complete[at]].tolist()}
        self._counts = None
        for c in self.constraints:
            if c.key == HOSTNAME:
                size = len(nodes) - len(self.ignored)
                self._large.append(kept.sums(("on node", _shape(pod, c)), _amounts(pod, c, None)))
            else:
                size = len(np.unique(kept.column(c.key).ids[counted]))
                self._large.append(_counted(pod, c, keys, everybody)[0])
            self.weights.append(math.log(size + 2))

    def scores(self, snapshot: Snapshot, at: Any) -> Any:
        """Raw scores of the nodes `at`: weighted matching pods, rounded half up; 0 where a node does not count."""
        import numpy as np

        from labkit.plugins._tallies import Tallies

        kept = Tallies.of(snapshot)
        total = np.zeros(len(at), np.float64)
        for c, sums, weight in zip(self.constraints, self._large, self.weights, strict=True):
            counts = sums.by_node(None if c.key == HOSTNAME else c.key)[at]
            cost = counts.astype(np.float64) * weight + float(c.max_skew - 1)
            # Adding 0 where the label is absent leaves the sum as it is.
            total += np.where(kept.column(c.key).present[at], cost, 0.0)
        floor = np.floor(total)
        scores = np.where(total - floor >= 0.5, floor + 1, floor).astype(np.int64)
        if self.ignored:
            scores[self.mask_of_ignored([snapshot.nodes[i] for i in at.tolist()])] = 0
        return scores

    def mask_of_ignored(self, nodes: Sequence[NodeInfo]) -> Any:
        """Which of `nodes` do not count."""
        import numpy as np

        return np.fromiter((n.name in self.ignored for n in nodes), np.bool_, len(nodes))


def _amounts(pod: Pod, c: Constraint, key: str | None) -> Any:
    namespace, selector = pod.metadata.namespace, c.selector
    one = ((key, 1),)

    def amounts(info: PodInfo) -> Iterable[tuple[str | None, int]]:
        meta = info.pod.metadata
        counts = meta.namespace == namespace and not meta.deletion_timestamp and selector.matches(meta.labels)
        return one if counts and not selector.is_empty else ()

    return amounts


def _counted(pod: Pod, c: Constraint, keys: tuple[str, ...], snapshot: Snapshot) -> tuple[Any, Any, Any]:
    """(matching pods by value of `c.key`, its column, ids of the domains); nodes count that have all `keys` and
    meet the constraint's policies."""
    from labkit.plugins._tallies import Tallies

    kept = Tallies.of(snapshot)
    affinity = pod.spec.affinity
    policies = (
        (encoded(pod.spec.node_selector), encoded(affinity.node_affinity if affinity else None))
        if c.honor_affinity
        else None,
        encoded(pod.spec.tolerations) if c.honor_taints else None,
    )

    def counts(node: NodeInfo) -> bool:
        labels = node.node.metadata.labels
        return all(key in labels for key in keys) and c.includes(pod, node.node)

    region = kept.region(("spread", keys, policies), counts)
    sums = kept.sums(("spread", keys, policies, _shape(pod, c)), _amounts(pod, c, c.key), region=region)
    column = kept.column(c.key)
    return sums, column, region.domains(column)


def _shape(pod: Pod, c: Constraint) -> Hashable:
    s = c.selector
    return (pod.metadata.namespace, c.key, tuple(sorted(s.equal.items())), frozenset(s.rest), s.nothing)
