"""A Trace as HTML: real tables with headers, status as glyph and word, colours that follow the lab's theme."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from labkit.engine.trace_text import verdict, why
from labkit.i18n import get_language, t

if TYPE_CHECKING:
    from labkit.engine.trace import Trace
    from labkit.framework.status import Status

_MANY = 40
_CSS = (
    "<style>.lkt{font:14px/1.45 system-ui,'Noto Sans','Noto Sans CJK SC','PingFang SC','Microsoft YaHei',sans-serif;"
    "color:var(--jp-ui-font-color1,#1c2430);max-width:1100px}"
    ".lkt p{margin:0 0 8px}.lkt .v{font-size:17px;font-weight:650;margin:0 0 2px}"
    ".lkt table{border-collapse:collapse;margin:0 0 10px;font-size:13px}"
    ".lkt caption{text-align:left;font-size:12px;font-weight:650;padding-bottom:4px}"
    ".lkt th,.lkt td{padding:5px 10px;border:0;border-bottom:1px solid var(--jp-border-color2,#d9dde3);text-align:left;"
    "background:none;white-space:normal}.lkt tr{background:none!important}"
    ".lkt .n{text-align:right;font-variant-numeric:tabular-nums}.lkt tr.w>*{font-weight:700}"
    ".lkt pre{white-space:pre-wrap}</style>"
)


def render(trace: Trace) -> str:
    """The whole record."""
    lang = "zh-CN" if get_language() == "zh" else "en"
    parts = [_CSS, f'<div class="lkt" lang="{lang}"><p class="v">{escape(verdict(trace))}</p>']
    reason = why(trace)
    if reason:
        parts.append(f"<p>{escape(reason)}</p>")
    if trace.filter:
        parts.append(_table(t("Nodes", "节点"), trace))
    if trace.scores:
        parts.append(_scores(trace))
    result = trace.post_filter_result
    if trace.post_filter_status is not None:
        parts.append(f"<p>PostFilter: {escape(trace.post_filter_status.code.label)}")
        if result is not None and result.victims:
            parts.append(t("; victims: ", "；被抢占的 Pod：") + escape(", ".join(result.victims)))
        parts.append("</p>")
    if trace.error is not None and trace.error.traceback:
        parts.append(f"<pre>{escape(trace.error.traceback)}</pre>")
    if trace.notes:
        parts.append("<ul>" + "".join(f"<li>{escape(n)}</li>" for n in trace.notes) + "</ul>")
    parts.append("</div>")
    return "".join(parts)


def status_words(status: Status) -> str:
    """`✓ pass`, `✕ NodeResourcesFit`, `! error`."""
    if status.is_success:
        return t("✓ pass", "✓ 通过")
    glyph = "✕" if status.is_rejected else "!"
    return f"{glyph} {status.plugin or status.code.label}"


def _table(caption: str, trace: Trace) -> str:
    names = sorted(trace.filter, key=lambda n: (not trace.filter[n].is_success, n))
    rows = []
    for name in names[:_MANY]:
        status = trace.filter[name]
        chosen = ' class="w"' if name == trace.node else ""
        rows.append(
            f'<tr{chosen}><th scope="row">{escape(name)}</th><td>{escape(status_words(status))}</td>'
            f"<td>{escape(', '.join(status.reasons)) or '–'}</td></tr>"
        )
    more = ""
    if len(names) > _MANY:
        more = f"<p>{t(f'and {len(names) - _MANY} more nodes', f'另外 {len(names) - _MANY} 个节点')}</p>"
    return (
        f'<table><caption>{caption}</caption><thead><tr><th scope="col">{t("Node", "节点")}</th>'
        f'<th scope="col">Filter</th><th scope="col">{t("Reason", "原因")}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{more}"
    )


def _scores(trace: Trace) -> str:
    head = "".join(f'<th scope="col" class="n">{escape(p)} ×{w}</th>' for p, w in trace.weights.items())
    rows = []
    for name, total in trace.ranking()[:_MANY]:
        scores = trace.scores[name].plugins
        cells = "".join(
            f'<td class="n">{scores[p].raw} → {scores[p].normalized} → {scores[p].weighted}</td>'
            for p in trace.weights
        )
        chosen = ' class="w"' if name == trace.node else ""
        rows.append(f'<tr{chosen}><th scope="row">{escape(name)}</th>{cells}<td class="n">{total}</td></tr>')
    caption = t("Scores: raw → normalised → weighted", "分数：原始 → 归一化 → 加权")
    return (
        f'<table><caption>{caption}</caption><thead><tr><th scope="col">{t("Node", "节点")}</th>{head}'
        f'<th scope="col" class="n">{t("Total", "总分")}</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )
