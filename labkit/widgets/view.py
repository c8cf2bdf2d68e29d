"""The words that a widget's view is written in: blocks, as plain dicts that the browser draws.

A controller returns a list of blocks; `assets/lab.js` draws each kind. Keeping the vocabulary here makes every
widget of the family look and behave alike, and lets tests read what a learner would see without a browser.
Colours are names of plugins' colours (`style.plugin_color`), statuses one of `STATUSES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

Block = dict[str, Any]
Status = Literal["pass", "fail", "skip", "wait", "error", "now"]
STATUSES: tuple[str, ...] = ("pass", "fail", "skip", "wait", "error", "now")
GLYPHS = {"pass": "✓", "fail": "✕", "skip": "–", "wait": "◷", "error": "!", "now": "▸"}


def _block(type_: str, **fields: Any) -> Block:
    return {"type": type_, **{k: v for k, v in fields.items() if v is not None}}


# --- layout -----------------------------------------------------------------------------------------------


def toolbar(
    title: str,
    *,
    sub: str | None = None,
    clock: str | None = None,
    clock_label: str | None = None,
    buttons: Sequence[Block] = (),
) -> Block:
    """The first line: what this is, its state, the clock and the main buttons."""
    return _block(
        "toolbar", title=title, sub=sub, clock=clock, clock_label=clock_label, buttons=list(buttons)
    )


def button(
    id: str,
    text: str,
    *,
    primary: bool = False,
    disabled: bool = False,
    label: str | None = None,
    pressed: bool | None = None,
) -> Block:
    """A real button; `label` is its accessible name where `text` alone would not do."""
    return _block(
        "button", id=id, text=text, primary=primary, disabled=disabled, label=label, pressed=pressed
    )


def buttons(*items: Block) -> Block:
    """A row of buttons."""
    return _block("buttons", items=list(items))


def grid(columns: str, *items: Block, keep: bool = False) -> Block:
    """Blocks side by side (CSS grid columns); one column on narrow pages, unless `keep`."""
    return _block("grid", columns=columns, items=list(items), keep=keep or None)


def card(title: str | None, *items: Block) -> Block:
    """A topic in a frame."""
    return _block("card", title=title, items=list(items))


def details(summary: str, *items: Block, open: bool = False) -> Block:
    """Blocks that unfold."""
    return _block("details", summary=summary, items=list(items), open=open)


# --- words ------------------------------------------------------------------------------------------------


def verdict(text: str, why: str | None = None, *, status: str | None = None) -> Block:
    """The decision in words; announced politely when it changes."""
    return _block("verdict", text=text, why=why, status=status)


def heading(text: str) -> Block:
    """A small heading inside a card."""
    return _block("heading", text=text)


def text(text: str, *, mute: bool = False) -> Block:
    """A paragraph."""
    return _block("text", text=text, mute=mute)


def notice(status: str, text: str, detail: str | None = None) -> Block:
    """A remark that must be seen: an error with its fix, a pass, a warning."""
    return _block("notice", status=status, text=text, detail=detail)


def pre(text: str, *, label: str | None = None) -> Block:
    """Monospaced text: code, a message, JSON that was asked for."""
    return _block("pre", text=text, label=label)


def chips(items: Iterable[tuple[str, str | None]], *, title: str | None = None) -> Block:
    """Short labels in a row, each (text, status or None)."""
    return _block("chips", title=title, items=[{"text": t, "status": s} for t, s in items])


def legend(items: Iterable[tuple[str, str]], *, label: str | None = None) -> Block:
    """(text, colour) of a picture."""
    return _block("legend", label=label, items=[{"text": t, "color": c} for t, c in items])


# --- pictures and tables ----------------------------------------------------------------------------------


def part(width: float, text: str, kind: str | None = None) -> Block:
    """A stretch of a meter, `width` in percent; kind "new" (this decision), "maybe" (would fit here
    as well), "over" (would not fit) or "leaves" (has to go)."""
    return {"width": round(width, 2), "text": text, "kind": kind}


def meter(parts: Sequence[Block], *, label: str, text: str | None = None, figure: str | None = None) -> Block:
    """One bar of a node; `label` says in words what it shows."""
    return {"parts": list(parts), "label": label, "text": text, "figure": figure}


def node(
    name: str,
    *,
    figure: str = "",
    meters: Sequence[Block] = (),
    tag: str = "",
    status: str | None = None,
    win: bool = False,
    hatch: bool = False,
) -> Block:
    """A node card: name, figure, bars, and one line that says what happened to it."""
    return {
        "name": name,
        "figure": figure,
        "meters": list(meters),
        "tag": tag,
        "status": status,
        "win": win,
        "hatch": hatch,
    }


def nodes(groups: Iterable[tuple[str, Sequence[Block]]]) -> Block:
    """Node cards in titled groups, such as zones."""
    return _block("nodes", groups=[{"title": t, "nodes": list(ns)} for t, ns in groups])


def column(text: str, *, num: bool = False, width: str | None = None) -> Block:
    """A table column; numbers are right-aligned, their unit belongs in `text`."""
    return {"text": text, "num": num, "width": width}


def row(*cells: Any, win: bool = False) -> Block:
    """A table row; the first cell names it. Cells: text, number, None, `mark(...)` or `stack(...)`."""
    return {"cells": list(cells), "win": win}


def table(columns: Sequence[Block], rows: Iterable[Block], *, caption: str | None = None) -> Block:
    """A table with real headers; scrolls under a sticky header past twelve rows."""
    return _block("table", columns=list(columns), rows=list(rows), caption=caption)


def mark(status: str, text: str) -> Block:
    """A status in a table: glyph and word."""
    return {"status": status, "text": text}


def strong(text: str) -> Block:
    """Emphasis, for what changed and nothing else."""
    return {"text": text, "strong": True}


def stack(parts: Iterable[tuple[float, str, str]], *, label: str) -> Block:
    """Stacked parts (width in percent, colour, text); `label` says in words what they add up to."""
    return {"stack": [{"width": round(w, 2), "color": c, "label": t} for w, c, t in parts], "label": label}


def span(start: float, end: float, text: str, status: str | None = None) -> Block:
    """A stretch of a timeline lane, in percent."""
    return {"from": round(start, 2), "to": round(end, 2), "text": text, "status": status}


def timeline(lanes: Iterable[tuple[str, Sequence[Block]]], *, label: str, now: float | None = None) -> Block:
    """Lanes of spans; `now` in percent draws the clock's hand."""
    return _block("timeline", lanes=[{"name": n, "spans": list(s)} for n, s in lanes], label=label, now=now)


# --- controls ---------------------------------------------------------------------------------------------


def controls(*items: Block) -> Block:
    """Controls one below the other."""
    return _block("controls", items=list(items))


def slider(
    id: str,
    text: str,
    value: float,
    *,
    min: float,
    max: float,
    step: float,
    figure: str,
    color: str | None = None,
    disabled: bool = False,
) -> Block:
    """A range input; `figure` is the value with its unit."""
    return {
        "kind": "range",
        "id": id,
        "text": text,
        "value": value,
        "min": min,
        "max": max,
        "step": step,
        "figure": figure,
        "color": color,
        "disabled": disabled,
    }


def weight(
    id: str,
    text: str,
    value: int,
    *,
    on: bool,
    color: str,
    toggle_label: str,
    weight_label: str,
    min: int = 0,
    max: int = 10,
) -> Block:
    """A plugin's switch and weight in one line; events come as `id` (number) and `id.on` (bool)."""
    return {
        "kind": "weight",
        "id": id,
        "text": text,
        "value": value,
        "on": on,
        "color": color,
        "min": min,
        "max": max,
        "toggle_label": toggle_label,
        "weight_label": weight_label,
    }


def select(id: str, text: str, value: str, options: Iterable[tuple[str, str]]) -> Block:
    """A drop-down list of (value, text)."""
    return {
        "kind": "select",
        "id": id,
        "text": text,
        "value": value,
        "options": [{"value": v, "text": t} for v, t in options],
    }


def check(id: str, text: str, value: bool) -> Block:
    """A checkbox."""
    return {"kind": "check", "id": id, "text": text, "value": value}


def choice(
    id: str,
    text: str,
    value: str | list[str] | None,
    options: Iterable[tuple[str, str]],
    *,
    many: bool = False,
    disabled: bool = False,
) -> Block:
    """Radio buttons, or checkboxes when `many`."""
    return {
        "kind": "choice",
        "id": id,
        "text": text,
        "value": value,
        "many": many,
        "disabled": disabled,
        "options": [{"value": v, "text": t} for v, t in options],
    }


def entry(id: str, text: str, value: str, *, number: bool = False) -> Block:
    """A line of text, or a number."""
    return {"kind": "number" if number else "text", "id": id, "text": text, "value": value}


def code(id: str, text: str, value: str, *, rows: int = 12, live: bool = True) -> Block:
    """An editor; `live` sends what is typed after a short pause, otherwise on leaving the field."""
    return {"kind": "code", "id": id, "text": text, "value": value, "rows": rows, "live": live}
