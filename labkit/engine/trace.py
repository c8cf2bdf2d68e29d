"""What one scheduling attempt leaves behind: the single decision record.

Widgets, `labkit simulate`, quiz evidence and the tests against recorded decisions read it. `to_dict` gives the
JSON form of the golden traces (`tests/golden/FORMAT.md`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from labkit.engine.trace_scores import NodeScores, PluginScore, Scores
from labkit.framework.results import PostFilterResult, PreFilterResult
from labkit.framework.status import Code, Status

__all__ = ["SUCCESS", "ExtenderCall", "NodeScores", "PluginScore", "PreFilterRecord", "Trace", "timed"]

SUCCESS = Status(Code.SUCCESS)
_NOT_TIMED = nullcontext()


@dataclass
class PreFilterRecord:
    """One PreFilter plugin's answer; `nodes` only when it narrowed them."""

    status: Status
    nodes: list[str] | None = None


@dataclass
class ExtenderCall:
    """One call of an HTTP extender; times in milliseconds."""

    extender: str
    verb: str
    nodes: int
    kept: int | None
    error: str
    milliseconds: float
    failed: dict[str, str] = field(default_factory=dict)
    scores: dict[str, int] = field(default_factory=dict)
    warning: str = ""


@dataclass
class Trace:
    """The record of one attempt for `pod` (`namespace/name`). Filled by the engine, read by everybody else.

    `seconds` is the real time spent at each point (`PreFilter`, `Filter`, `Score`, `PostFilter`), what the record
    itself costs included; no view shows it, so that equal decisions look equal.
    """

    pod: str
    profile: str = ""
    attempt: int = 1
    time: float = 0.0
    skipped: dict[str, Any] | None = None
    pre_filter_plugins: dict[str, PreFilterRecord] = field(default_factory=dict)
    pre_filter_ran: bool = False
    allowed_nodes: list[str] | None = None
    filter: dict[str, Status] = field(default_factory=dict)
    filter_by_plugin: dict[str, dict[str, Status]] = field(default_factory=dict)
    pre_score_codes: dict[str, Code] = field(default_factory=dict)
    scores: Scores = field(default_factory=Scores)
    weights: dict[str, int] = field(default_factory=dict)
    best: list[str] = field(default_factory=list)
    node: str | None = None
    message: str | None = None
    full_message: str | None = None
    error: Status | None = None
    post_filter_status: Status | None = None
    post_filter_result: PostFilterResult | None = None
    extender_calls: list[ExtenderCall] = field(default_factory=list)
    steps: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    volumes: list[dict[str, str]] | None = None
    all_filters: bool = True

    @contextmanager
    def _timed(self, point: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[point] = self.seconds.get(point, 0.0) + time.perf_counter() - start

    # --- what the engine reports --------------------------------------------------------------------------

    def follow(self, extenders: Iterable[Any]) -> None:
        """Have the calls of `extenders` for this pod recorded in `extender_calls`, where they keep records."""
        for extender in extenders:
            record = getattr(extender, "record_into", None)
            if record is not None:
                record(self.pod, self.extender_calls)

    def pre_filter(self, plugin: str, status: Status | None, result: PreFilterResult | None) -> None:
        """A PreFilter plugin answered."""
        names = None
        if result is not None and result.node_names is not None and (status is None or status.is_success):
            names = sorted(result.node_names)
        self.pre_filter_plugins[plugin] = PreFilterRecord(status or SUCCESS, names)

    def pre_score(self, plugin: str, status: Status | None) -> None:
        """A PreScore plugin answered."""
        self.pre_score_codes[plugin] = (status or SUCCESS).code

    def scored(self, nodes: Sequence[str]) -> None:
        """These nodes are being scored, also when every Score plugin was skipped."""
        self.scores.of_nodes(nodes)

    def score(
        self, plugin: str, weight: int, nodes: Sequence[str], raw: Sequence[int], normalized: Sequence[int]
    ) -> None:
        """A Score plugin scored all feasible nodes."""
        self.weights[plugin] = weight
        self.scores.add(plugin, weight, nodes, raw, normalized)

    def extender_score(self, node: str, points: int) -> None:
        """Extenders added `points` to a node's total."""
        self.scores.add_extender(node, points)

    # --- what readers ask ---------------------------------------------------------------------------------

    @property
    def scheduled(self) -> bool:
        """A node was found."""
        return self.node is not None

    def rejected_by(self, node: str) -> str | None:
        """The plugin that rejected `node`, or None when it passed or was not looked at."""
        status = self.filter.get(node)
        return None if status is None or status.is_success else status.plugin

    def ranking(self) -> list[tuple[str, int]]:
        """(node, total) of the scored nodes, best first, ties in byte order of the name."""
        return sorted(((n, s.total) for n, s in self.scores.items()), key=lambda e: (-e[1], e[0]))

    def decisive_plugin(self) -> tuple[str, str, int, int] | None:
        """The plugin without which another node would win: (plugin, that node, its total, the winner's), or None.

        When there are several, the one whose absence would help the other node most.
        """
        if self.node is None or len(self.scores) < 2 or self.node not in self.scores:
            return None
        found: list[tuple[int, str, str, int, int]] = []
        for plugin in self.weights:
            without = {
                name: s.total - (s.plugins[plugin].weighted if plugin in s.plugins else 0)
                for name, s in self.scores.items()
            }
            top = max(without.values())
            if without[self.node] < top:
                other = min(name for name, total in without.items() if total == top)
                found.append((top - without[self.node], plugin, other, top, without[self.node]))
        if not found:
            return None
        _, plugin, other, top, own = max(found, key=lambda f: (f[0], f[1]))
        return plugin, other, top, own

    def verdict(self) -> str:
        """The decision in one line."""
        from labkit.engine.trace_text import verdict

        return verdict(self)

    def why(self) -> str:
        """What decided, in one or two sentences, in the current language."""
        from labkit.engine.trace_text import why

        return why(self)

    def to_text(self) -> str:
        """The whole record as aligned text."""
        from labkit.engine.trace_text import render

        return render(self)

    def to_html(self) -> str:
        """The whole record as an accessible HTML table."""
        from labkit.engine.trace_html import render

        return render(self)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Trace {self.pod}: {self.verdict()}>"

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_dict(self) -> dict[str, Any]:
        """The golden form: one `expect` entry."""
        if self.skipped is not None:
            return {
                "pod": self.pod,
                "skipped": self.skipped,
                "preFilter": None,
                "filter": {},
                "filterByPlugin": {},
                "preScore": {},
                "scores": {},
                "best": [],
                "bound": None,
                "message": None,
                "fullMessage": None,
                "postFilter": None,
            }
        found: dict[str, Any] = {
            "pod": self.pod,
            "preFilter": self._pre_filter_dict(),
            "filter": {name: _verdict(s) for name, s in self.filter.items()},
            "filterByPlugin": {
                node: {plugin: _code(s) for plugin, s in verdicts.items()}
                for node, verdicts in self.filter_by_plugin.items()
            },
            "preScore": {plugin: code.label for plugin, code in self.pre_score_codes.items()},
            "scores": {
                name: {
                    "plugins": {
                        p: {"raw": x.raw, "normalized": x.normalized, "weighted": x.weighted}
                        for p, x in s.plugins.items()
                    },
                    "total": s.total,
                }
                for name, s in self.scores.items()
            },
            "best": sorted(self.best),
            "bound": self.node,
            "message": self.message,
            "fullMessage": self.full_message,
            "postFilter": self._post_filter_dict(),
        }
        if self.volumes:
            found["volumes"] = self.volumes
        return found

    def _pre_filter_dict(self) -> dict[str, Any] | None:
        if not self.pre_filter_ran:
            return None
        plugins: dict[str, Any] = {}
        for name, record in self.pre_filter_plugins.items():
            plugins[name] = _code(record.status)
            if record.nodes is not None:
                plugins[name]["nodes"] = record.nodes
        return {"plugins": plugins, "nodes": self.allowed_nodes}

    def _post_filter_dict(self) -> dict[str, Any] | None:
        status, result = self.post_filter_status, self.post_filter_result
        if status is None:
            return None
        found: dict[str, Any] = {
            "code": status.code.label,
            "nominatedNode": (result.nominated_node_name or None) if result is not None else None,
            "victims": sorted(result.victims) if result is not None else [],
        }
        if result is not None and result.candidates:
            found["candidates"] = dict(result.candidates)
        if result is not None and result.ties and status.is_success:
            found["ties"] = sorted(result.ties)
        return found


def timed(trace: Trace | None, point: str) -> AbstractContextManager[None]:
    """Adds the time inside the `with` block to `trace.seconds[point]`; without a trace it does nothing."""
    return _NOT_TIMED if trace is None else trace._timed(point)


def _code(status: Status) -> dict[str, Any]:
    found: dict[str, Any] = {"code": status.code.label}
    if status.reasons:
        found["reasons"] = sorted(status.reasons)
    return found


def _verdict(status: Status) -> dict[str, Any]:
    if status.is_success:
        return {"code": status.code.label}
    return {"code": status.code.label, "plugin": status.plugin, "reasons": sorted(status.reasons)}
