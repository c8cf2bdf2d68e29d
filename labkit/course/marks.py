"""From an executed notebook to points, by nbgrader's rules, without its traps.

nbgrader's rules (measured): an error or anything on stderr in a test cell is 0; a number as the cell's result is
that many points; anything else is full marks. Its traps: a number above the maximum ends the whole submission, and
a test cell that never ran has no output and so gets full marks.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.course.graded_cells import quiz_cells
from labkit.course.strip import checksum

#: Reported in place of outputs where a cell did not run.
NOT_RUN = "NotRun"


@dataclass
class CellMark:
    """Points of one graded cell; None waits for a person."""

    id: str
    points: float | None
    most: float
    note: str = ""


@dataclass
class Marks:
    """All graded cells of a submission."""

    cells: list[CellMark] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Sum of the automatic points."""
        return round(sum(c.points or 0 for c in self.cells), 4)

    @property
    def most(self) -> float:
        """What can be reached, manual parts included."""
        return sum(c.most for c in self.cells)

    def as_dict(self) -> dict[str, float | None]:
        """Points by cell."""
        return {c.id: c.points for c in self.cells}


def mark_notebook(notebook: Any, quizzes: QuizMarks) -> Marks:
    """Points of every graded cell; `quizzes` are those of cells marked from the answers file."""
    marks = Marks()
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader") or {}
        if not mark.get("grade") and not mark.get("task"):
            continue
        id, most = str(mark["grade_id"]), float(mark.get("points") or 0)
        if id in quizzes.points:
            marks.cells.append(CellMark(id, min(quizzes.points[id], most), most, quizzes.notes.get(id, "")))
        elif mark.get("solution") or mark.get("task"):
            untouched = mark.get("solution") and mark.get("checksum") == checksum(cell)
            marks.cells.append(
                CellMark(id, 0.0 if untouched else None, most, "no answer" if untouched else "")
            )
        elif cell.cell_type == "code":
            points, note = cell_points(cell.outputs, most)
            marks.cells.append(CellMark(id, points, most, note))
        else:
            marks.cells.append(CellMark(id, None, most))
    return marks


def cell_points(outputs: list[Any], most: float) -> tuple[float, str]:
    """Points of a test cell from its outputs, and why not all. An error counts wherever it is among them."""
    for output in outputs:
        kind = output.get("output_type")
        if kind == "error":
            return 0.0, f"{output.get('ename')}: {output.get('evalue')}"
        if kind == "stream" and output.get("name") == "stderr":
            return 0.0, "stderr: " + str(output.get("text"))[:200]
    # Only the last one can be the cell's own.
    results = [o for o in outputs if o.get("output_type") == "execute_result"]
    if not results:
        return most, ""
    text = str((results[-1].get("data") or {}).get("text/plain", "")).strip()
    try:
        value = float(text)
    except ValueError:
        return most, ""
    if value != value or value < 0:
        return 0.0, f"the result {text} is no number of points"
    if value > most:
        return most, f"the result {text} is more than the maximum"
    return value, ""


@dataclass
class QuizMarks:
    """Points of quiz cells, why not more, and what went wrong for all of them."""

    points: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def quiz_marks(
    source: Any, folder: Path, student: str, course: Path, *, language: str = "en", seconds: float = 60
) -> QuizMarks:
    """Marks of quiz cells from `folder/answers`, computed by a process of its own with the course's key.

    A learner's YAML may be anything, so it is run under limits and cannot stop the others' marks.
    """
    wanted = quiz_cells(source)
    if not wanted:
        return QuizMarks()
    nothing = dict.fromkeys(wanted, 0.0)
    if not (folder / "answers").is_dir():
        return QuizMarks(nothing)
    asked = {"cells": wanted, "folder": str(folder), "student": student, "course": str(course)}
    try:
        run = subprocess.run(
            [sys.executable, "-m", "labkit.course.marks"],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            preexec_fn=_limit,
            env={**os.environ, "PYTHONHASHSEED": "0", "LABKIT_LANG": language},
        )
        found = json.loads(run.stdout)
        notes = {id: str(found[id][1]) for id in wanted if found[id][1]}
        return QuizMarks({id: float(found[id][0]) for id in wanted}, notes)
    except subprocess.TimeoutExpired:
        return QuizMarks(nothing, problem="an answer took too long to run")
    except (ValueError, KeyError, TypeError):
        why = (run.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
        return QuizMarks(nothing, problem=f"the answers could not be marked: {why}")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (60, 65))


def _quiz_process() -> None:
    from labkit.quiz.session import question_scores, score

    asked = json.load(sys.stdin)
    where: dict[str, Any] = {
        "folder": Path(asked["folder"]),
        "student": asked["student"],
        "course": Path(asked["course"]),
    }
    found = {}
    for id, (bank, questions, most) in asked["cells"].items():
        scores = question_scores(bank, *questions, **where) or []
        notes = [f"{s.id}: {s.note or f'{round(s.fraction * 100)}%'}" for s in scores if s.fraction < 1]
        found[id] = (score(bank, *questions, points=most, **where), "; ".join(notes))
    print(json.dumps(found))


if __name__ == "__main__":
    _quiz_process()
