"""Which cells of a notebook count: by nbgrader's marks, and those whose points come from the answers file."""

from __future__ import annotations

import ast
from typing import Any


def graded_cells(source: Any) -> dict[str, Any]:
    """Cells of a notebook with an nbgrader mark, by grade id, in order."""
    return {grade_id(c): c for c in source.cells if grade_id(c)}


def grade_id(cell: Any) -> str:
    """Its id; empty without a mark, or with one that is none."""
    mark = cell.metadata.get("nbgrader")
    value = mark.get("grade_id") if isinstance(mark, dict) else None
    return value if isinstance(value, str) else ""


def is_answer(cell: Any) -> bool:
    """A cell whose content is the learner's."""
    return bool(cell.metadata["nbgrader"].get("solution"))


def quiz_cells(source: Any) -> dict[str, tuple[str, list[str], float | None]]:
    """Graded cells that are marked from the answers file: grade id -> (bank, question ids, points).

    Such a cell ends in `score("part3", "8")` with plain arguments.
    """
    found: dict[str, tuple[str, list[str], float | None]] = {}
    for id, cell in graded_cells(source).items():
        if cell.cell_type != "code" or not cell.metadata["nbgrader"].get("grade"):
            continue
        try:
            body = ast.parse(cell.source).body
        except SyntaxError:
            continue
        last = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
        if (
            not isinstance(last, ast.Call)
            or getattr(last.func, "id", getattr(last.func, "attr", "")) != "score"
        ):
            continue
        try:
            args = [ast.literal_eval(a) for a in last.args]
            keywords = {k.arg: ast.literal_eval(k.value) for k in last.keywords}
        except ValueError:
            continue
        if args and all(isinstance(a, str | int) for a in args):
            found[id] = (str(args[0]), [str(a) for a in args[1:]], keywords.get("points"))
    return found
