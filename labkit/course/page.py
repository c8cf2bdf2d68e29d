"""The small HTML of feedback and reports: one file, no scripts, no links outward, in the reader's language."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

from labkit.i18n import t

_STYLE = """
body{font:15px/1.55 system-ui,"Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif;color:#1c2330;background:#fff;max-width:980px;margin:24px auto;padding:0 16px}
h1{font-size:22px}h2{font-size:17px;margin-top:28px}.mute{color:#566072}.pass{color:#1b6e3c}.fail{color:#b3261e}.wait{color:#8a5a00}
table{border-collapse:collapse;width:100%;font-size:14px}th{text-align:left;color:#566072;font-weight:600}th,td{border-bottom:1px solid #d6dbe3;padding:5px 8px;vertical-align:top}
td.num,th.num{text-align:right;font-variant-numeric:tabular-nums}
pre{background:#f4f6f9;border:1px solid #d6dbe3;border-radius:6px;padding:8px 10px;white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px}
section{border:1px solid #d6dbe3;border-radius:8px;padding:10px 14px;margin:14px 0}summary{cursor:pointer}
@media (prefers-color-scheme:dark){body{background:#15181e;color:#e4e8ef}pre{background:#1e232c;border-color:#39414f}th,td,section{border-color:#39414f}th,.mute{color:#a5afbf}.pass{color:#6fcf97}.fail{color:#ff8a80}.wait{color:#f2c063}}
"""
#: What may be in an output of a submission when it is shown: text and tables, nothing that acts or loads.
TAGS = frozenset(
    [
        "p",
        "div",
        "span",
        "b",
        "i",
        "em",
        "strong",
        "code",
        "pre",
        "ul",
        "ol",
        "li",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "caption",
        "details",
        "summary",
        "br",
        "h3",
        "h4",
        "h5",
    ]
)
ATTRIBUTES = {"*": ["lang", "scope", "colspan", "rowspan", "aria-label", "role"]}


def e(text: Any) -> str:
    """Escaped."""
    return html.escape(str(text), quote=True)


def page(title: str, *parts: str) -> str:
    """A whole document."""
    lang = t("en", "zh-CN")
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html>\n<html lang="{lang}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{e(title)}</title><style>{_STYLE}</style></head><body><main><h1>{e(title)}</h1>"
        + "\n".join(parts)
        + "</main></body></html>\n"
    )


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Iterable[int] = (), caption: str = ""
) -> str:
    """A table; `numbers` are the columns that hold numbers. Cells are text, or ready HTML as `Raw`."""
    right = set(numbers)

    def one(i: int, value: Any) -> str:
        kind = ' class="num"' if i in right else ""
        return f"<td{kind}>{value.html if isinstance(value, Raw) else e(value)}</td>"

    head = "".join(
        f'<th scope="col"{" class=num" if i in right else ""}>{e(c)}</th>' for i, c in enumerate(columns)
    )
    body = "".join("<tr>" + "".join(one(i, v) for i, v in enumerate(row)) + "</tr>" for row in rows)
    title = f"<caption>{e(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Raw:
    """HTML that is ready."""

    def __init__(self, html: str) -> None:
        self.html = html


def status(kind: str, text: str) -> Raw:
    """Glyph and word."""
    glyph = {"pass": "✓", "fail": "✕", "wait": "◷"}[kind]
    return Raw(f'<span class="{kind}">{glyph} {e(text)}</span>')


def cleaned(text: str) -> str:
    """HTML that a submission produced, without anything that could act or load."""
    import bleach  # type: ignore[import-untyped]

    found: str = bleach.clean(text, tags=TAGS, attributes=ATTRIBUTES, strip=True)
    return found


def terminal(text: str) -> str:
    """Without colour codes."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
