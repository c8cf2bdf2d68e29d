"""Modules without a kernel: run a module's code cells in one namespace, with answers of our own, and read the points."""

from __future__ import annotations

import ast
import contextlib
import io
from dataclasses import dataclass, field
from typing import Any

from labkit.course.source import base_id, build_language, modules, read_notebook, source_path
from labkit.course.strip import strip

STUB, SOLUTION = "stub", "solution"


@dataclass
class Outcome:
    """What a run of a module gave: points and report by test cell, and errors by cell."""

    points: dict[str, float] = field(default_factory=dict)
    reports: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """All points."""
        return round(sum(self.points.values()), 4)


def run_module(number: str, answers: dict[str, str] | str = SOLUTION) -> Outcome:
    """Run module `number` ("07"): with its solutions, as released (`STUB`), or with `answers` by solution cell
    in the place of the solutions. Hidden tests always run."""
    (name,) = [m for m in modules() if m.startswith(number)]
    source = build_language(read_notebook(source_path(name)), "en")
    released = strip(build_language(read_notebook(source_path(name)), "en"))
    stubs = {base_id(c): c.source for c in released.cells}
    outcome = Outcome()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in source.cells:
        mark = cell.metadata.get("nbgrader") or {}
        if cell.cell_type != "code":
            continue
        code, id = cell.source, base_id(cell)
        if mark.get("solution"):
            if answers == STUB:
                code = stubs[id]
            elif isinstance(answers, dict) and id in answers:
                code = answers[id]
        _run(id, code, namespace, outcome, graded=bool(mark.get("grade")) and not mark.get("solution"))
    return outcome


def _run(id: str, code: str, namespace: dict[str, Any], outcome: Outcome, *, graded: bool) -> None:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(tree, id, "exec"), namespace)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), id, "eval"), namespace)
    except Exception as e:
        outcome.errors[id] = f"{type(e).__name__}: {e}"
        value = 0.0
    if graded:
        outcome.points[id] = float(value if value is not None else 0)
        text = getattr(value, "text", None)
        outcome.reports[id] = text() if callable(text) else outcome.errors.get(id, "")


def most_points(number: str) -> float:
    """What a module is worth."""
    (name,) = [m for m in modules() if m.startswith(number)]
    cells = read_notebook(source_path(name)).cells
    marks = [c.metadata.get("nbgrader") or {} for c in cells]
    return float(sum(m.get("points", 0) for m in marks if m.get("grade")))
