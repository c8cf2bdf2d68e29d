"""A decision as blocks: verdict, why, nodes by plugin, scores as stacked bars. Used by every widget that decides."""

from __future__ import annotations

from typing import Any

from labkit.engine.trace import Trace
from labkit.engine.trace_text import verdict as verdict_text
from labkit.engine.trace_text import why
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.style import plugin_color
from labkit.widgets.view import Block

#: Nodes shown of a large cluster: the best, and those at the end.
TOP, BOTTOM = 24, 6


def verdict_block(trace: Trace) -> Block:
    """The decision in words."""
    return v.verdict(verdict_text(trace), why(trace), status=None if trace.node else "fail")


def decision_blocks(trace: Trace, *, search: str = "") -> list[Block]:
    """The whole decision: words, then the picture with its numbers, then the score table."""
    blocks = [verdict_block(trace), nodes_table(trace, search=search)]
    if trace.weights:
        blocks.append(score_legend(trace))
        blocks.append(v.details(t("Scores as numbers", "分数明细"), score_table(trace, search=search)))
    if trace.post_filter_status is not None:
        blocks.append(v.text(f"PostFilter: {trace.post_filter_status.code.label}"))
    if trace.error is not None:
        blocks.append(v.notice("error", trace.error.message, trace.error.traceback or None))
    return blocks


def nodes_table(trace: Trace, *, search: str = "") -> Block:
    """Node, verdict, reason, stacked score, total: the winner first, then by total, rejected ones last."""
    names = _ordered(trace, search)
    top = max((s.total for s in trace.scores.values()), default=0) or 1
    rows: list[Block] = []
    for name in _cut(names):
        if name is None:
            rows.append(
                v.row(
                    "…",
                    None,
                    t(f"{len(names) - TOP - BOTTOM} more nodes", f"另外 {len(names) - TOP - BOTTOM} 个节点"),
                    None,
                    None,
                )
            )
            continue
        status = trace.filter.get(name)
        scores = trace.scores.get(name)
        if status is None or status.is_success:
            mark, reason = v.mark("pass", t("pass", "通过")), None
        else:
            kind = "fail" if status.is_rejected else "error"
            mark, reason = v.mark(kind, status.plugin or status.code.label), ", ".join(status.reasons)
        if scores is None or not scores.plugins:
            bar: Any = v.mark("skip", t("not scored", "未打分"))
            total: Any = None
        else:
            bar = v.stack(
                [
                    (100 * s.weighted / top, plugin_color(p), f"{p} {s.weighted}")
                    for p, s in scores.plugins.items()
                    if s.weighted > 0
                ],
                label=" + ".join(f"{p} {s.weighted}" for p, s in scores.plugins.items() if s.weighted)
                + f" = {scores.total}",
            )
            total = scores.total
        won = name == trace.node
        rows.append(v.row(v.strong(name) if won else name, mark, reason, bar, total, win=won))
    columns = [
        v.column(t("Node", "节点")),
        v.column("Filter"),
        v.column(t("Reason", "原因")),
        v.column(t("Score by plugin", "各插件得分"), width="34%"),
        v.column(t("Total", "总分"), num=True),
    ]
    return v.table(columns, rows)


def score_legend(trace: Trace) -> Block:
    """Which colour is which plugin, with weights; plugins that add nothing anywhere are left out."""
    counted = {p for s in trace.scores.values() for p, x in s.plugins.items() if x.weighted}
    items = [(f"{p} ×{w}", plugin_color(p)) for p, w in trace.weights.items() if p in counted]
    return v.legend(items, label=t("Plugins", "插件"))


def score_table(trace: Trace, *, search: str = "") -> Block:
    """Raw, normalised and weighted scores, one row a node and plugin."""
    rows = []
    for name in _cut([n for n in _ordered(trace, search) if n in trace.scores]):
        if name is None:
            rows.append(v.row("…", "", None, None, None))
            continue
        for plugin, s in trace.scores[name].plugins.items():
            rows.append(v.row(name, plugin, s.raw, s.normalized, s.weighted, win=name == trace.node))
    columns = [
        v.column(t("Node", "节点")),
        v.column(t("Plugin", "插件")),
        v.column(t("raw", "原始"), num=True),
        v.column(t("normalised", "归一化"), num=True),
        v.column(t("weighted", "加权"), num=True),
    ]
    return v.table(columns, rows, caption=t("Scores", "分数"))


def _ordered(trace: Trace, search: str) -> list[str]:
    names = dict.fromkeys([*trace.filter, *trace.scores])
    wanted = [n for n in names if search.lower() in n.lower()]

    def key(name: str) -> tuple[bool, bool, int, str]:
        scores = trace.scores.get(name)
        status = trace.filter.get(name)
        passed = status is None or status.is_success
        return name != trace.node, not passed, -(scores.total if scores else 0), name

    return sorted(wanted, key=key)


def _cut(names: list[str]) -> list[str | None]:
    if len(names) <= TOP + BOTTOM + 1:
        return list(names)
    return [*names[:TOP], None, *names[-BOTTOM:]]


class TraceExplorerController:
    """Looks through the decisions that a lab has made, or at one trace."""

    def __init__(self, traces: list[Trace]) -> None:
        if not traces:
            raise ValueError(t("there is no decision to show yet", "还没有可以展示的决策"))
        self.traces = traces
        self.index = len(traces) - 1
        self.search = ""

    def handle(self, id: str, value: Any) -> None:
        """`trace` picks a decision, `search` narrows the nodes, `back` and `next` step."""
        if id == "trace":
            self.index = int(value)
        elif id == "search":
            self.search = str(value)
        elif id == "back":
            self.index = max(0, self.index - 1)
        elif id == "next":
            self.index = min(len(self.traces) - 1, self.index + 1)

    def view(self) -> list[Block]:
        """The chosen decision."""
        trace = self.traces[self.index]
        blocks: list[Block] = []
        if len(self.traces) > 1:
            options = [(str(i), f"{i + 1}. {verdict_text(x)}") for i, x in enumerate(self.traces)]
            blocks.append(
                v.toolbar(
                    t("Decisions", "决策"),
                    sub=f"{self.index + 1} / {len(self.traces)}",
                    buttons=[
                        v.button("back", t("◂ Back", "◂ 上一个"), disabled=self.index == 0),
                        v.button(
                            "next", t("Next ▸", "下一个 ▸"), disabled=self.index == len(self.traces) - 1
                        ),
                    ],
                )
            )
            blocks.append(v.controls(v.select("trace", t("Decision", "决策"), str(self.index), options)))
        if len(trace.filter) > TOP + BOTTOM:
            blocks.append(v.controls(v.entry("search", t("Search a node", "搜索节点"), self.search)))
        blocks.append(v.card(None, *decision_blocks(trace, search=self.search)))
        return blocks

    def summary(self) -> str:
        """The decision in one line."""
        return verdict_text(self.traces[self.index])
