"""What is remembered about nodes from one cycle to the next, by pod shape (numpy arrays by node index).

Most pods of a cluster are copies of a few templates, and one decision changes one node. So a plugin's answer about
(shape, node) is kept until the node changes. A shape is what the plugin's `sign_pod` says it looks at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.framework.node_info import NodeInfo
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Code, Status

Index = NDArray[np.intp]
#: Shapes that are remembered; the one that was not asked for longest goes first.
_MOST_ROWS = 128


class NotKept(Exception):
    """An answer that cannot be kept (an Error, or no number): the search must be made node by node."""


class Row:
    """Answers about one pod shape; `stale` marks the nodes that must be asked about (again)."""

    def __init__(self) -> None:
        self.stale: NDArray[np.bool_] = np.ones(0, np.bool_)
        self._epoch = -1
        self._read = 0

    def catch_up(self, snapshot: Snapshot) -> None:
        """Nodes that changed since the last cycle become stale."""
        touched = snapshot.touched
        if self._epoch != snapshot.epoch:
            self._epoch = snapshot.epoch
            self.stale = np.ones(len(snapshot.nodes), np.bool_)
            self.begin(len(snapshot.nodes))
        elif self._read < len(touched):
            self.stale[touched[self._read :]] = True
        self._read = len(touched)

    def begin(self, nodes: int) -> None:
        """Nothing is known about any of `nodes` nodes."""
        raise NotImplementedError


class FilterRow(Row):
    """What the node-local filters say: `passes` by node index, and the status of each node that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.statuses: dict[int, Status] = {}
        #: node index -> (uids of the rivals nominated there, the verdict with them)
        self.with_rivals: dict[int, tuple[tuple[str, ...], Status | None]] = {}

    def begin(self, nodes: int) -> None:
        """Nothing is known."""
        self.passes = np.zeros(nodes, np.bool_)
        self.statuses = {}
        self.with_rivals = {}

    def fill(self, at: Index, nodes: list[NodeInfo], ask: Callable[[NodeInfo], Status | None]) -> None:
        """Ask about the stale ones of the nodes `at`. NotKept when an answer is an Error."""
        wanted: list[int] = at[self.stale[at]].tolist()
        for i in wanted:
            status = ask(nodes[i])
            self.with_rivals.pop(i, None)
            if status is None:
                self.passes[i] = True
                self.statuses.pop(i, None)
            elif status.code == Code.ERROR:
                raise NotKept
            else:
                self.passes[i] = False
                self.statuses[i] = status
            self.stale[i] = False


class ScoreRow(Row):
    """Raw scores of one plugin by node index."""

    def __init__(self) -> None:
        super().__init__()
        self.values: NDArray[np.int64] = np.zeros(0, np.int64)

    def begin(self, nodes: int) -> None:
        """Nothing is known."""
        self.values = np.zeros(nodes, np.int64)

    def scores(self, at: Index, nodes: list[NodeInfo], ask: Callable[[NodeInfo], Any]) -> NDArray[np.int64]:
        """The scores of the nodes `at`. NotKept when one is no plain number."""
        wanted: list[int] = at[self.stale[at]].tolist()
        for i in wanted:
            score = ask(nodes[i])
            if type(score) is not int:
                raise NotKept
            self.values[i] = score
            self.stale[i] = False
        found: NDArray[np.int64] = self.values[at]
        return found


class NoteRow(Row):
    """What a plugin noted about single nodes (`labkit.framework.handle.NodeNotes`)."""

    def __init__(self) -> None:
        super().__init__()
        self._notes: dict[int, Any] = {}

    def begin(self, nodes: int) -> None:
        """Nothing is known."""
        self._notes = {}

    def get(self, node: NodeInfo) -> Any | None:
        """The note about a node that has not changed since; else None."""
        return None if self.stale[node.index] else self._notes.get(node.index)

    def put(self, node: NodeInfo, note: Any) -> None:
        """Note something about a node of the current snapshot."""
        self._notes[node.index] = note
        self.stale[node.index] = False


class Rows:
    """The rows of one profile."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Hashable, Row] = OrderedDict()

    def filter_row(self, shape: Hashable, snapshot: Snapshot) -> FilterRow:
        """The row of all node-local filters for a shape, up to date with `snapshot`."""
        row = self._row(("filter", shape), FilterRow, snapshot)
        assert isinstance(row, FilterRow)
        return row

    def score_row(self, plugin: str, shape: Hashable, snapshot: Snapshot) -> ScoreRow:
        """The row of one scoring plugin for a shape, up to date with `snapshot`."""
        row = self._row((plugin, shape), ScoreRow, snapshot)
        assert isinstance(row, ScoreRow)
        return row

    def note_row(self, plugin: str, shape: Hashable, snapshot: Snapshot) -> NoteRow:
        """The notes of one plugin for a shape, up to date with `snapshot`."""
        row = self._row((plugin, "notes", shape), NoteRow, snapshot)
        assert isinstance(row, NoteRow)
        return row

    def _row(self, key: Hashable, kind: type[Row], snapshot: Snapshot) -> Row:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = kind()
            if len(self._rows) > _MOST_ROWS:
                self._rows.popitem(last=False)
        else:
            self._rows.move_to_end(key)
        row.catch_up(snapshot)
        return row
