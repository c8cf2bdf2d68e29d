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
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from labkit.course.preflight import quiz_cells
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


def mark_notebook(notebook: Any, quiz_points: dict[str, float]) -> Marks:
    """Points of every graded cell; `quiz_points` are those of cells marked from the answers file."""
    marks = Marks()
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader") or {}
        if not mark.get("grade") and not mark.get("task"):
            continue
        id, most = str(mark["grade_id"]), float(mark.get("points") or 0)
        if id in quiz_points:
            marks.cells.append(CellMark(id, min(quiz_points[id], most), most))
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
    """Points of a test cell from its outputs, and why not all."""
    for output in outputs:
        kind = output.get("output_type")
        if kind == "error":
            return 0.0, f"{output.get('ename')}: {output.get('evalue')}"
        if kind == "stream" and output.get("name") == "stderr":
            return 0.0, "stderr: " + str(output.get("text"))[:200]
        if kind == "execute_result":
            text = str((output.get("data") or {}).get("text/plain", "")).strip()
            try:
                value = float(text)
            except ValueError:
                return most, ""
            if value != value or value < 0:
                return 0.0, f"the result {text} is no number of points"
            if value > most:
                return most, f"the result {text} is more than the maximum"
            return value, ""
    return most, ""


def quiz_points(
    source: Any, folder: Path, student: str | None, seconds: float = 60
) -> tuple[dict[str, float], str]:
    """Points of quiz cells from `folder/answers`, computed by a process of its own; and what went wrong.

    A learner's YAML may be anything, so it is run under limits and cannot stop the others' marks.
    """
    wanted = quiz_cells(source)
    if not wanted:
        return {}, ""
    if not (folder / "answers").is_dir():
        return dict.fromkeys(wanted, 0.0), ""
    asked = json.dumps({"cells": wanted, "folder": str(folder), "student": student})
    try:
        run = subprocess.run(
            [sys.executable, "-m", "labkit.course.marks"],
            input=asked,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            preexec_fn=_limit,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        found = json.loads(run.stdout)
        return {id: float(found[id]) for id in wanted}, ""
    except subprocess.TimeoutExpired:
        return dict.fromkeys(wanted, 0.0), "an answer took too long to run"
    except (ValueError, KeyError, TypeError):
        return dict.fromkeys(wanted, 0.0), "the answers could not be marked"


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (60, 65))


def _quiz_process() -> None:
    from labkit.quiz.session import score

    asked = json.load(sys.stdin)
    folder = Path(asked["folder"])
    points = {}
    for id, (bank, questions, most) in asked["cells"].items():
        points[id] = score(bank, *questions, points=most, folder=folder, student=asked["student"])
    print(json.dumps(points))


def late_penalty(score: float, submitted: datetime | None, policy: dict[str, Any]) -> float:
    """Points to take off. `policy`: `due` (ISO time), `per_day` (share of the score), `grace_minutes`, `most` (share)."""
    if submitted is None or not policy.get("due"):
        return 0.0
    due = datetime.fromisoformat(str(policy["due"]))
    due = due if due.tzinfo else due.replace(tzinfo=UTC)
    late = submitted - due - timedelta(minutes=float(policy.get("grace_minutes", 0)))
    if late <= timedelta(0):
        return 0.0
    days = -(-late // timedelta(days=1))
    share = min(days * float(policy.get("per_day", 0)), float(policy.get("most", 1)))
    return round(score * share, 4)


if __name__ == "__main__":
    _quiz_process()
