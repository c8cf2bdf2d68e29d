"""Reading a view as a learner would: its blocks, tables and controls."""

from __future__ import annotations

import json
from typing import Any


def blocks_of(view: Any) -> list[dict[str, Any]]:
    """Every dict in a view, depth first."""
    if isinstance(view, dict):
        return [view, *(b for v in view.values() for b in blocks_of(v))]
    return [b for v in view for b in blocks_of(v)] if isinstance(view, list) else []


def text_of(view: Any) -> str:
    """All that a view says, as JSON text without escapes."""
    return json.dumps(view, ensure_ascii=False)


def of_type(view: Any, type_: str) -> list[dict[str, Any]]:
    """Blocks of one type, in order."""
    return [b for b in blocks_of(view) if b.get("type") == type_]


def verdict(view: Any) -> str:
    """The first verdict's text."""
    return str(of_type(view, "verdict")[0]["text"])


def cells(table: dict[str, Any]) -> list[list[str]]:
    """A table's cells as text: a mark as `status text`, a stack as its label."""

    def plain(cell: Any) -> str:
        if isinstance(cell, dict):
            if "stack" in cell:
                return str(cell["label"])
            return f"{cell['status']} {cell['text']}".strip() if "status" in cell else str(cell["text"])
        return "–" if cell is None else str(cell)

    return [[plain(c) for c in r["cells"]] for r in table["rows"]]


def column(table: dict[str, Any], title: str) -> dict[str, str]:
    """First cell of each row -> the cell in the column called `title`."""
    at = [c["text"].replace("\u200b", "") for c in table["columns"]].index(title)
    return {r[0]: r[at] for r in cells(table)}


def controls(view: Any) -> dict[str, dict[str, Any]]:
    """Controls and buttons by id."""
    found = [b for b in blocks_of(view) if "id" in b and ("kind" in b or b.get("type") == "button")]
    assert len({b["id"] for b in found}) == len(found), "two controls with one id"
    return {b["id"]: b for b in found}
