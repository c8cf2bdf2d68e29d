"""A Trace as HTML: real tables with headers, status as glyph and word, colours that follow the lab's theme."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from labkit.engine.trace_rows import (
    ERROR,
    FAIL,
    LATER,
    NONE,
    PASS,
    FilterTable,
    NodeRow,
    ScoreRow,
    ScoreTable,
    cut,
    extender_lines,
    filter_table,
    post_filter_lines,
    pre_filter_lines,
    score_table,
)
from labkit.engine.trace_text import verdict, why
from labkit.i18n import get_language, t

if TYPE_CHECKING:
    from labkit.engine.trace import Trace

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CSS = (
    "<style>.lkt{font:14px/1.45 system-ui,'Noto Sans','Noto Sans CJK SC','PingFang SC','Microsoft YaHei',sans-serif;"
    "color:var(--jp-ui-font-color1,#1c2430);max-width:1100px}"
    ".lkt p{margin:0 0 8px}.lkt .v{font-size:17px;font-weight:650;margin:0 0 2px}"
    ".lkt .r{color:var(--jp-ui-font-color1,#1c2430);font-size:12px;margin:-4px 0 10px}"
    ".lkt .b{max-height:420px;overflow-y:auto;margin:0 0 10px}"
    ".lkt table{border-collapse:collapse;color:inherit;font-size:13px;margin:0 0 6px}"
    ".lkt caption{text-align:left;font-size:12px;font-weight:650;padding-bottom:4px;color:inherit}"
    ".lkt th,.lkt td{padding:5px 10px;border:0;border-bottom:1px solid var(--jp-border-color2,#d9dde3);"
    "text-align:left;vertical-align:baseline;background:none;white-space:normal}"
    ".lkt thead th{position:sticky;top:0;background:var(--jp-layout-color1,#fff);font-size:12px;"
    "line-height:1.25;vertical-align:bottom}"
    ".lkt tr,.lkt tr:nth-child(even){background:none!important}"
    ".lkt tbody th{white-space:nowrap;font:13px ui-monospace,'DejaVu Sans Mono',monospace}"
    ".lkt .c{text-align:center}.lkt .n{text-align:right;font-variant-numeric:tabular-nums}"
    ".lkt .d{color:var(--jp-ui-font-color1,#1c2430)}"
    ".lkt tr.w>*{font-weight:700;border-bottom-color:var(--jp-brand-color1,#0072b2)}"
    ".lkt tr.w>th{box-shadow:inset 3px 0 var(--jp-brand-color1,#0072b2)}"
    ".lkt pre{white-space:pre-wrap;font-size:12px}</style>"
)


def render(trace: Trace) -> str:
    """The whole record."""
    lang = "zh-CN" if get_language() == "zh" else "en"
    parts = [_CSS, f'<div class="lkt" lang="{lang}"><p class="v">{escape(verdict(trace))}</p>']
    reason = why(trace)
    if reason and trace.skipped is None:
        parts.append(f"<p>{escape(reason)}</p>")
    parts += _paragraphs(pre_filter_lines(trace))
    if trace.filter:
        parts.append(_filter(filter_table(trace)))
    if trace.scores:
        parts.append(_scores(score_table(trace)))
    parts += _paragraphs(extender_lines(trace))
    parts += _paragraphs(post_filter_lines(trace))
    if trace.error is not None and trace.error.traceback:
        parts.append(f"<pre>{escape(trace.error.traceback)}</pre>")
    if trace.notes:
        parts.append("<ul>" + "".join(f"<li>{escape(n)}</li>" for n in trace.notes) + "</ul>")
    parts.append("</div>")
    return "".join(parts)


def _paragraphs(lines: Iterable[str]) -> list[str]:
    joined = "<br>".join(escape(line.strip()) for line in lines)
    return [f"<p>{joined}</p>"] if joined else []


def _table(caption: str, head: str, rows: list[str], columns: int) -> str:
    top, left_out = cut(len(rows))
    if left_out:
        gap = t(f"… {left_out} more …", f"… 另外 {left_out} 个 …")
        rows = [*rows[:top], f'<tr><td colspan="{columns}">{gap}</td></tr>', *rows[top + left_out :]]
    return (
        f'<div class="b"><table><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _heads(names: Iterable[str], cls: str = "") -> str:
    shown = f' class="{cls}"' if cls else ""
    # Long plugin names may break between their words only.
    return "".join(f'<th scope="col"{shown}>{_HUMP.sub("<wbr>", escape(n))}</th>' for n in names)


def _filter(found: FilterTable) -> str:
    head = (
        _heads([t("Node", "节点"), t("Verdict", "结论")])
        + _heads(found.plugins, "c")
        + _heads([t("Reason", "原因")])
    )
    rows = [_node_row(row) for row in found.rows]
    remarks = "".join(f'<p class="r">{escape(r)}</p>' for r in found.remarks)
    caption = t("Filter: nodes and plugins", "Filter：节点与插件")
    return _table(caption, head, rows, len(found.plugins) + 3) + remarks


def _node_row(row: NodeRow) -> str:
    chosen = ' class="w"' if row.chosen else ""
    cells = "".join(f'<td class="c" aria-label="{_spoken(c)}">{c}</td>' for c in row.cells)
    return (
        f'<tr{chosen}><th scope="row">{escape(row.node)}</th><td>{escape(row.verdict)}</td>{cells}'
        f"<td>{escape(row.reasons) or NONE}</td></tr>"
    )


def _spoken(glyph: str) -> str:
    return {
        PASS: t("pass", "通过"),
        FAIL: t("rejects", "拒绝"),
        LATER: t("would reject, not asked", "也会拒绝，未被询问"),
        ERROR: t("error", "错误"),
        NONE: t("not run", "未运行"),
    }[glyph]


def _scores(found: ScoreTable) -> str:
    names = [f"{p} ×{w}" for p, w in found.plugins] + (["Extender"] if found.has_extender else [])
    head = _heads([t("Node", "节点")]) + _heads([*names, t("Total", "总分")], "n")
    rows = [_score_row(row, found.has_extender) for row in found.rows]
    caption = t("Scores: raw → normalised → weighted", "分数：原始 → 归一化 → 加权")
    table = _table(caption, head, rows, len(names) + 2)
    if found.skipped:
        skipped = ", ".join(found.skipped)
        text = t(f"– not scored (PreScore: Skip): {skipped}", f"– 未打分（PreScore: Skip）：{skipped}")
        table += f'<p class="r">{escape(text)}</p>'
    return table


def _score_row(row: ScoreRow, extender: bool) -> str:
    chosen = ' class="w"' if row.chosen else ""
    mark = "▸ " if row.chosen else ""
    cells = "".join(f'<td class="n">{raw} → {norm} → {weighted}</td>' for raw, norm, weighted in row.scores)
    if extender:
        cells += f'<td class="n">{row.extender}</td>'
    return (
        f'<tr{chosen}><th scope="row">{mark}{escape(row.node)}</th>{cells}<td class="n">{row.total}</td></tr>'
    )
