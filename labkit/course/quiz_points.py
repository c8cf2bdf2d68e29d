"""Quizzes of a module in the gradebook: in a course with graded quizzes each bank gets a cell of its own for points."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labkit.quiz.graded import GRADED, Terms, course_bank

_CELL = """# Your answers to the quiz questions above count here; they are marked after the deadline.
# 以上测验题在此计分；截止后评分。
from labkit.quiz import score

score({arguments}, points={points:g})"""


def with_quiz_points(notebook: Any, course: Path, terms: Terms) -> Any:
    """A copy with a locked cell of points at the end for each bank that the notebook asks questions of.

    Questions that a cell of the module scores already are left to it; in practice mode nothing is added. Raises
    InputError for a bank or a question that does not exist.
    """
    result = copy.deepcopy(notebook)
    if terms.quiz != GRADED:
        return result
    code = [str(c.source) for c in result.cells if c.cell_type == "code"]
    scored = set(questions_of(code, "score", course))
    asked: dict[str, list[str]] = {}
    for bank, id in dict.fromkeys(questions_of(code, "quiz", course)):
        if (bank, id) not in scored:
            asked.setdefault(bank, []).append(id)
    for bank, ids in asked.items():
        questions = course_bank(bank, course)
        points = sum(questions.question(id).points for id in ids)
        arguments = ", ".join(f'"{a}"' for a in (bank, *ids))
        result.cells.append(_cell(f"quiz-{bank}", _CELL.format(arguments=arguments, points=points), points))
    return result


def questions_of(sources: list[str], function: str, course: Path) -> Iterator[tuple[str, str]]:
    """(bank, question) of every call with plain arguments; a call without ids means the whole bank."""
    for source in sources:
        try:
            nodes = list(ast.walk(ast.parse(source)))
        except SyntaxError:
            continue
        for node in nodes:
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            arguments = [a.value for a in node.args if isinstance(a, ast.Constant)]
            if name != function or not arguments or len(arguments) != len(node.args):
                continue
            bank, *ids = arguments
            if isinstance(bank, str):
                known = ids or [q.id for q in course_bank(bank, course).questions]
                yield from ((bank, str(id)) for id in known)


def _cell(id: str, source: str, points: float) -> Any:
    from nbformat.v4 import new_code_cell

    mark = {
        "schema_version": 3,
        "grade_id": id,
        "grade": True,
        "solution": False,
        "locked": True,
        "task": False,
        "points": points,
    }
    return new_code_cell(source, id=id, metadata={"nbgrader": mark})
