"""What is remembered about nodes from one cycle to the next, by pod shape (numpy arrays by node index).

Most pods of a cluster are copies of a few templates, and one decision changes one node. So a plugin's answer about
(shape, node) is kept until the node changes. A shape is what the plugin's `sign_pod` says it looks at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from labkit.framework.node_info import NodeInfo
from labkit.framework.snapshot import Snapshot

Index = NDArray[np.intp]
RowType = TypeVar("RowType", bound="Row")
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


class Rows:
    """The rows of one profile."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Hashable, Row] = OrderedDict()

    def row(self, key: Hashable, kind: Callable[[], RowType], snapshot: Snapshot) -> RowType:
        """The row that is kept by `key`, a new one when there is none, up to date with `snapshot`.

        Whoever keeps rows begins his keys with his name: one key, one kind.
        """
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = kind()
            if len(self._rows) > _MOST_ROWS:
                self._rows.popitem(last=False)
        else:
            self._rows.move_to_end(key)
        row.catch_up(snapshot)
        return cast(RowType, row)
