"""The scores of one attempt. The engine hands in columns, readers ask by node: the table is made when they do.

Most traces are never read, so recording must cost next to nothing for a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True)
class PluginScore:
    """One plugin's score for one node; `weighted` = normalized x weight."""

    raw: int
    normalized: int
    weighted: int


@dataclass(slots=True)
class NodeScores:
    """All plugins' scores for one node. `extender` is what extenders added to the total."""

    plugins: dict[str, PluginScore] = field(default_factory=dict)
    total: int = 0
    extender: int = 0


class _Column(NamedTuple):
    plugin: str
    weight: int
    nodes: Sequence[str]
    raw: Sequence[int]
    normalized: Sequence[int]


class Scores(Mapping[str, NodeScores]):
    """Node name -> its scores, in the order in which nodes were scored. What was handed in must not change."""

    def __init__(self) -> None:
        self._nodes: Sequence[str] = ()
        self._columns: list[_Column] = []
        self._extender: dict[str, int] = {}
        self._table: dict[str, NodeScores] | None = None

    def of_nodes(self, nodes: Sequence[str]) -> None:
        """These nodes are being scored, also when every Score plugin was skipped."""
        self._nodes = nodes
        self._table = None

    def add(
        self, plugin: str, weight: int, nodes: Sequence[str], raw: Sequence[int], normalized: Sequence[int]
    ) -> None:
        """A Score plugin's column. ValueError when the lengths differ."""
        if not len(nodes) == len(raw) == len(normalized):
            raise ValueError(f"{plugin}: {len(nodes)} nodes, {len(raw)} and {len(normalized)} scores")
        self._columns.append(_Column(plugin, weight, nodes, raw, normalized))
        self._table = None

    def add_extender(self, node: str, points: int) -> None:
        """Extenders added `points` to a node's total."""
        self._extender[node] = points
        self._table = None

    def _made(self) -> dict[str, NodeScores]:
        table = self._table
        if table is None:
            table = self._table = {name: NodeScores() for name in self._nodes}
            for plugin, weight, nodes, raw, normalized in self._columns:
                for name, r, n in zip(nodes, raw, normalized, strict=True):
                    entry = table.setdefault(name, NodeScores())
                    entry.plugins[plugin] = PluginScore(r, n, n * weight)
                    entry.total += n * weight
            for name, points in self._extender.items():
                entry = table.setdefault(name, NodeScores())
                entry.extender = points
                entry.total += points
        return table

    def __getitem__(self, node: str) -> NodeScores:
        return self._made()[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())

    def __bool__(self) -> bool:
        return bool(self._nodes or self._columns or self._extender)

    def __repr__(self) -> str:
        return repr(self._made())
