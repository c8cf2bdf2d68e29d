"""A Trace as aligned text, in the learner's language; columns count Chinese characters as two."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from labkit.engine.trace_rows import (
    FilterTable,
    ScoreTable,
    cut,
    extender_lines,
    filter_table,
    post_filter_lines,
    pre_filter_lines,
    score_table,
)
from labkit.i18n import t

if TYPE_CHECKING:
    from labkit.engine.trace import Trace


#: Columns that a notebook's cell shows without breaking lines, and of a column heading that is broken.
_PAGE, _HEADING = 112, 13


def width(text: str) -> int:
    """Columns that `text` takes in a terminal."""
    return sum(
        2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text
    )


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """`text` filled with blanks to `columns`."""
    blanks = " " * max(0, columns - width(text))
    return blanks + text if right else text + blanks


def table(rows: Sequence[Sequence[str]], numeric: Sequence[int] = (), *, heads: int = 1) -> list[str]:
    """Rows (the first `heads` are the header) as aligned lines; `numeric` columns are right-aligned."""
    columns = [max(width(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines = []
    for n, r in enumerate(rows):
        cells = [pad(c, columns[i], right=i in numeric) for i, c in enumerate(r)]
        lines.append("  ".join(cells).rstrip())
        if n == heads - 1:
            lines.append("  ".join("─" * c for c in columns))
    return lines


def verdict(trace: Trace) -> str:
    """The decision in one line."""
    name = trace.pod.split("/")[-1]
    if trace.skipped is not None:
        if trace.skipped.get("reason") == "NoProfile":
            return t(
                f"{name}: no profile of this scheduler has its schedulerName",
                f"{name}：本调度器没有这个 schedulerName 的 profile",
            )
        by, why_ = trace.skipped.get("plugin", ""), ", ".join(trace.skipped.get("reasons", []))
        return t(f"{name}: kept out of the queue by {by} ({why_})", f"{name}：被 {by} 挡在队列之外（{why_}）")
    if trace.node is not None:
        return t(f"{name} → {trace.node}", f"{name} → {trace.node}")
    result = trace.post_filter_result
    if (
        result is not None
        and result.nominated_node_name
        and trace.post_filter_status is not None
        and trace.post_filter_status.is_success
    ):
        return t(
            f"{name}: no node fits; room is made on {result.nominated_node_name}",
            f"{name}：没有节点放得下；正在 {result.nominated_node_name} 上腾出空间",
        )
    if trace.error is not None:
        return t(f"{name}: the attempt ended in an error", f"{name}：本次尝试以错误结束")
    return t(f"{name}: no node fits", f"{name}：没有节点放得下")


def why(trace: Trace) -> str:
    """What decided."""
    if trace.node is None:
        return trace.full_message or trace.message or ""
    if not trace.scores:
        feasible = [n for n, s in trace.filter.items() if s.is_success]
        if len(feasible) <= 1:
            return t("It is the only feasible node; Score was skipped.", "只有这一个可行节点，跳过打分。")
        return t("Nothing was scored; the first feasible node is taken.", "没有打分，取第一个可行节点。")
    ranking = trace.ranking()
    own = trace.scores[trace.node].total
    runner_up = next(((n, s) for n, s in ranking if n != trace.node), None)
    if runner_up is None:
        return t(f"{own} points.", f"{own} 分。")
    other, points = runner_up
    if own == points:
        ties = ", ".join(trace.best)
        return t(
            f"{own} points, as many as {other}. Equals are {ties}; the first one in search order is taken.",
            f"{own} 分，与 {other} 相同。并列的是 {ties}；取搜索顺序中的第一个。",
        )
    text = t(
        f"{own} points, {own - points} more than {other}.", f"{own} 分，比 {other} 多 {own - points} 分。"
    )
    decisive = trace.decisive_plugin()
    if decisive is not None:
        plugin, rival, theirs, ours = decisive
        text += t(
            f" {plugin} decided: without it {rival} would win, {theirs} to {ours}.",
            f"{plugin} 起了决定作用：没有它会选 {rival}（{theirs} 对 {ours}）。",
        )
    return text


def render(trace: Trace) -> str:
    """Verdict, reason, the table of nodes, the scores, PostFilter, notes."""
    lines = [verdict(trace)]
    reason = why(trace)
    if reason and trace.skipped is None:
        lines.append(reason)
    found = pre_filter_lines(trace)
    if found:
        lines += ["", *found]
    if trace.filter:
        lines += ["", *_filter_lines(filter_table(trace))]
    if trace.scores:
        lines += ["", *_score_lines(score_table(trace))]
    found = extender_lines(trace)
    if found:
        lines += ["", *found]
    found = post_filter_lines(trace)
    if found:
        lines += ["", *found]
    if trace.error is not None and trace.error.traceback:
        lines += ["", trace.error.traceback.rstrip()]
    for note in trace.notes:
        lines.append(f"* {note}")
    return "\n".join(lines)


def _filter_lines(found: FilterTable) -> list[str]:
    rows = [[t("Node", "节点"), t("Verdict", "结论"), *found.plugins, t("Reason", "原因")]]
    top, left_out = cut(len(found.rows))
    for i, row in enumerate(found.rows):
        if top <= i < top + left_out:
            if i == top:
                rows.append(
                    ["…", t(f"{left_out} more", f"另外 {left_out} 个"), *("" for _ in found.plugins), ""]
                )
            continue
        rows.append([row.node, row.verdict, *row.cells, row.reasons or "–"])
    return [*table(rows), *(line for remark in found.remarks for line in _wrapped(remark))]


def _score_lines(found: ScoreTable) -> list[str]:
    header = ["  " + t("Node", "节点"), *(f"{p} ×{w}" for p, w in found.plugins)]
    if found.has_extender:
        header.append("Extender")
    header.append(t("Total", "总分"))
    rows = [header]
    top, left_out = cut(len(found.rows))
    for i, row in enumerate(found.rows):
        if top <= i < top + left_out:
            if i == top:
                rows.append(["  …", *("" for _ in header[2:]), t(f"{left_out} more", f"另外 {left_out} 个")])
            continue
        cells = [
            f"{raw} → {normalized} → {weighted}" if raw != normalized else f"{normalized} → {weighted}"
            for raw, normalized, weighted in row.scores
        ]
        if found.has_extender:
            cells.append(str(row.extender))
        rows.append([("▸ " if row.chosen else "  ") + row.node, *cells, str(row.total)])
    lines = [t("Scores: raw → normalised → weighted", "分数：原始 → 归一化 → 加权")]
    numeric = range(1, len(header))
    whole = table(rows, numeric=numeric)
    if width(whole[1]) > _PAGE:
        heads = _broken(header)
        whole = table([*heads, *rows[1:]], numeric=numeric, heads=len(heads))
    lines += whole
    if found.skipped:
        names = ", ".join(found.skipped)
        lines += _wrapped(
            t(f"– not scored (PreScore: Skip): {names}", f"– 未打分（PreScore: Skip）：{names}")
        )
    return lines


def _broken(header: Sequence[str]) -> list[list[str]]:
    """The header in several rows: long plugin names are broken between their words; all end in the last row."""
    cells = []
    for name in header:
        parts = [""]
        for word in re.findall(r"\S[^A-Z]*", name) if width(name) > _HEADING else [name]:
            if parts[-1] and width(parts[-1] + word) > _HEADING:
                parts.append("")
            parts[-1] += word
        cells.append([part.rstrip() for part in parts])
    most = max(map(len, cells))
    padded = [[""] * (most - len(parts)) + parts for parts in cells]
    return [list(row) for row in zip(*padded, strict=True)]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _PAGE, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
