"""Verdicts about many nodes as arrays: a number a node, and the few different statuses that the numbers stand for.

Most nodes of a cluster are refused for the same two or three reasons. So a verdict is 0 (fine) or k: `statuses[k - 1]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.engine.nominator import Nominator
from labkit.engine.rows import Index, NotKept, Row
from labkit.framework.node_info import NodeInfo
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Code, Status

Codes = NDArray[np.intp]
#: Statuses beyond the number of nodes that a row remembers before it begins anew: texts may differ without end.
_SPARE_STATUSES = 64


class Verdicts:
    """Why nodes were rejected: node `nodes[at[j]]` with `statuses[codes[j] - 1]`. Implements `NodeVerdicts`."""

    def __init__(
        self, nodes: Sequence[NodeInfo], at: Index, codes: Codes, statuses: Sequence[Status]
    ) -> None:
        self.nodes = nodes
        self._at = at
        self._codes = codes
        self._statuses = statuses

    def __len__(self) -> int:
        return len(self._at)

    def items(self) -> Iterator[tuple[str, Status]]:
        """(node name, status), in the order in which the nodes were looked at."""
        nodes, statuses = self.nodes, self._statuses
        for i, code in zip(self._at.tolist(), self._codes.tolist(), strict=True):
            yield nodes[i].name, statuses[code - 1]

    def counts(self) -> Iterable[tuple[Status, int]]:
        """Each status that some node has, and how many have it."""
        times = np.bincount(self._codes)
        return [(self._statuses[k - 1], int(times[k])) for k in np.flatnonzero(times).tolist()]

    def with_code(self, code: Code, *, others: bool) -> list[NodeInfo]:
        """Nodes whose status has `code`, and with `others` those that have none, in the order of `nodes`."""
        chosen = np.full(len(self.nodes), others)
        has = np.array([True, *(s.code == code for s in self._statuses)], np.bool_)
        chosen[self._at] = has[self._codes]
        nodes = self.nodes
        return [nodes[i] for i in np.flatnonzero(chosen).tolist()]


class VerdictRow(Row):
    """Verdicts about one pod shape by node index, and a note beside each where the asker wants one: `NodeNotes`.

    With a `nominator` they rest on nominations as well: a node where these changed becomes stale.
    """

    def __init__(self, nominator: Nominator | None = None) -> None:
        super().__init__()
        self.codes: Codes = np.zeros(0, np.intp)
        self.statuses: list[Status] = []
        self.notes: dict[int, Any] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._nominator = nominator
        self._heard = (-1, 0)
        self._for_one: int | None = None
        self._nodes: list[NodeInfo] = []

    def begin(self, nodes: int) -> None:
        """Nothing is known."""
        self.codes = np.zeros(nodes, np.intp)
        self.statuses = []
        self.notes = {}
        self._numbers = {}
        self._for_one = None

    def catch_up(self, snapshot: Snapshot) -> None:
        """Nodes that changed, or whose nominations did, become stale."""
        super().catch_up(snapshot)
        self._nodes = snapshot.nodes
        if len(self.statuses) > len(snapshot.nodes) + _SPARE_STATUSES:
            self.stale[:] = True
            self.begin(len(snapshot.nodes))
        if self._for_one is not None:
            self.stale[self._for_one] = True
            self._for_one = None
        if self._nominator is not None:
            self._hear(self._nominator, snapshot)

    def _hear(self, nominator: Nominator, snapshot: Snapshot) -> None:
        epoch, read = self._heard
        if epoch != nominator.epoch:
            self.stale[:] = True
        else:
            for name in nominator.changed[read:]:
                node = snapshot.by_name.get(name)
                if node is not None:
                    self.stale[node.index] = True
        self._heard = (nominator.epoch, len(nominator.changed))

    def ask_for_one(self, node: NodeInfo) -> None:
        """What is said of `node` next holds for one pod alone, until the next `catch_up`: its own nomination does not
        stand in its way."""
        self._for_one = node.index
        self.stale[node.index] = True

    def put(self, i: int, status: Status | None, note: Any = None) -> None:
        """Keep the verdict about the node with index `i`."""
        code = 0
        if status is not None:
            key = (status.code, status.plugin, status.reasons)
            code = self._numbers.get(key, 0)
            if not code:
                self.statuses.append(status)
                code = self._numbers[key] = len(self.statuses)
        self.codes[i] = code
        self.stale[i] = False
        if note is None:
            self.notes.pop(i, None)
        else:
            self.notes[i] = note

    def why(self, at: Index) -> Verdicts:
        """The verdicts about these nodes, none of which is good."""
        return Verdicts(self._nodes, at, self.codes[at], self.statuses)

    def fill(self, at: Index, nodes: Sequence[NodeInfo], ask: Callable[[NodeInfo], Status | None]) -> None:
        """Ask about the stale ones of the nodes `at`. NotKept when an answer is an Error."""
        for i in at[self.stale[at]].tolist():
            status = ask(nodes[i])
            if status is not None and status.code == Code.ERROR:
                raise NotKept
            self.put(i, status)
