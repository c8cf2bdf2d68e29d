"""Pods counted by topology value, kept in step from cycle to cycle instead of being counted anew (numpy arrays).

A tally answers one question ("pods that this term selects, by zone"). Between two cycles few pods come or go; the
snapshot's journal says which, and only these are asked about.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.snapshot import Snapshot

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: Topology key (None: each node is a domain of its own) and by how much one pod raises its value's count.
Amounts = Iterable[tuple[str | None, int]]

_KEPT = "tallies"
#: Questions that are kept up to date; the one that was not asked for longest goes first.
_MOST_TALLIES = 128


class Column:
    """One label over all nodes: `ids` by node index, -1 where a node lacks it; `values` by id."""

    def __init__(self, nodes: list[NodeInfo], key: str | None) -> None:
        found: dict[str, int] = {}
        if key is None:
            self.ids = np.arange(len(nodes))
            self.values = [n.name for n in nodes]
            return
        ids = []
        for node in nodes:
            value = node.node.metadata.labels.get(key)
            ids.append(-1 if value is None else found.setdefault(value, len(found)))
        self.ids = np.array(ids, np.intp)
        self.values = list(found)

    @property
    def present(self) -> Mask:
        """Nodes that have the label."""
        return self.ids >= 0

    def zeros(self) -> Ints:
        """A count for each value; one more at the end stays 0, for the nodes without the label."""
        return np.zeros(len(self.values) + 1, np.int64)


class Region:
    """Nodes that count: `mask` by node index."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self._domains: dict[int, NDArray[np.intp]] = {}

    def domains(self, column: Column) -> NDArray[np.intp]:
        """Ids of the values that these nodes have."""
        found = self._domains.get(id(column))
        if found is None:
            ids = column.ids[self.mask]
            found = self._domains[id(column)] = np.unique(ids[ids >= 0])
        return found


class Sums:
    """Counts by topology key and value at one moment."""

    def __init__(self, kept: Tallies, by_key: Mapping[str | None, Ints], hits: int) -> None:
        self._nodes = kept.nodes
        self._columns = {key: kept.column(key) for key in by_key}
        self._by_key = {key: counts.copy() for key, counts in by_key.items()}
        #: Pods that count for something, weighted by how often: 0 means that nothing was ever counted.
        self.hits = hits

    @property
    def keys(self) -> Iterable[str | None]:
        """Topology keys that anything counts for."""
        return self._by_key.keys()

    def by_node(self, key: str | None) -> Ints:
        """The count of each node's value of `key`; 0 where the node lacks it."""
        if key not in self._by_key:
            return np.zeros(self._nodes, np.int64)
        found: Ints = self._by_key[key][self._columns[key].ids]
        return found

    def by_value(self, key: str | None) -> dict[str, int]:
        """Counts that are not 0, by value."""
        if key not in self._by_key:
            return {}
        counts, values = self._by_key[key], self._columns[key].values
        return {values[i]: int(counts[i]) for i in np.flatnonzero(counts).tolist()}

    def over(self, key: str | None, ids: NDArray[np.intp]) -> Ints:
        """The counts of the values with these ids."""
        found = self._by_key.get(key)
        return np.zeros(len(ids), np.int64) if found is None else found[ids]

    def pairs(self) -> dict[tuple[str, str], int]:
        """Counts that are not 0, by (topology key, value)."""
        return {(str(k), v): n for k in self._by_key for v, n in self.by_value(k).items()}


class Tally:
    """One question's counts. `amounts(pod)`: what a pod counts for on a node of `region` (None: on any node)."""

    def __init__(self, pods: str, amounts: Callable[[PodInfo], Amounts], region: Region | None) -> None:
        self._pods = pods
        self._amounts = amounts
        self._mask = region.mask if region is not None else None
        self._read = -1
        self._by_key: dict[str | None, Ints] = {}
        self._hits = 0

    def sums(self, kept: Tallies, snapshot: Snapshot) -> Sums:
        """The counts as of `snapshot`."""
        moves = snapshot.moves
        if self._read < 0:
            for node in snapshot.nodes:
                for info in getattr(node, self._pods):
                    self._count(kept, 1, info, node.index)
        else:
            for n, info, index in moves[self._read :]:
                self._count(kept, n, info, index)
        self._read = len(moves)
        return Sums(kept, self._by_key, self._hits)

    def _count(self, kept: Tallies, n: int, info: PodInfo, index: int) -> None:
        if self._mask is not None and not self._mask[index]:
            return
        for key, amount in self._amounts(info):
            at = kept.column(key).ids[index]
            if at < 0:
                continue
            counts = self._by_key.get(key)
            if counts is None:
                counts = self._by_key[key] = kept.column(key).zeros()
            counts[at] += n * amount
            self._hits += n


class Tallies:
    """Columns, regions and tallies of one snapshot and epoch."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.epoch = snapshot.epoch
        self.nodes = len(snapshot.nodes)
        self._snapshot = snapshot
        self._columns: dict[str | None, Column] = {}
        self._regions: OrderedDict[Hashable, Region] = OrderedDict()
        self._tallies: OrderedDict[Hashable, Tally] = OrderedDict()

    @classmethod
    def of(cls, snapshot: Snapshot) -> Tallies:
        """What is kept for a large snapshot; new in each epoch."""
        found: Any = snapshot.kept.get(_KEPT)
        if found is None or found.epoch != snapshot.epoch:
            found = snapshot.kept[_KEPT] = cls(snapshot)
        kept: Tallies = found
        return kept

    def column(self, key: str | None) -> Column:
        """The column of a label; None: of the nodes themselves."""
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = Column(self._snapshot.nodes, key)
        return found

    def region(self, question: Hashable, test: Callable[[NodeInfo], bool]) -> Region:
        """Nodes that pass `test`, which looks at nothing but their labels and spec."""
        found = self._regions.get(question)
        if found is None:
            nodes = self._snapshot.nodes
            mask = np.fromiter((test(n) for n in nodes), np.bool_, len(nodes))
            found = self._regions[question] = Region(mask)
            if len(self._regions) > _MOST_TALLIES:
                self._regions.popitem(last=False)
        else:
            self._regions.move_to_end(question)
        return found

    def sums(
        self,
        question: Hashable,
        amounts: Callable[[PodInfo], Amounts],
        *,
        pods: str = "pods",
        region: Region | None = None,
    ) -> Sums:
        """The counts for a question: equal questions must come with equal `amounts` and `region`.

        `pods`: the list of NodeInfo that holds every pod that counts for anything.
        """
        tally = self._tallies.get(question)
        if tally is None:
            tally = self._tallies[question] = Tally(pods, amounts, region)
            if len(self._tallies) > _MOST_TALLIES:
                self._tallies.popitem(last=False)
        else:
            self._tallies.move_to_end(question)
        return tally.sums(self, self._snapshot)


def places(nodes: Iterable[NodeInfo], count: int) -> NDArray[np.intp]:
    """The indexes of `count` nodes in their snapshot."""
    return np.fromiter((n.index for n in nodes), np.intp, count)
