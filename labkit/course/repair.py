"""A learner's notebook made whole: every graded cell of the source once, in place, with the source's own checks."""

from __future__ import annotations

import copy
from typing import Any

from labkit.course.findings import Checked
from labkit.course.graded_cells import grade_id, graded_cells, is_answer
from labkit.course.strip import strip


def repair(notebook: Any, source: Any, checked: Checked) -> Any:
    """The learner's notebook with every graded cell of the source once, in place, and the source's own tests."""
    result = copy.deepcopy(notebook)
    wanted = graded_cells(source)
    released = graded_cells(strip(source))
    _put_back_marks(result, wanted, released, checked)
    _only_first_counts(result, wanted, checked)
    present = {grade_id(c): c for c in result.cells if grade_id(c) in wanted}
    for id, cell in present.items():
        original = wanted[id]
        if cell.cell_type != original.cell_type:
            checked.note("type", "repaired", id, found=str(cell.cell_type))
            _become(cell, original)
        if not is_answer(original):
            if cell.source not in (released[id].source, original.source):
                checked.note("edited-test", "flagged", id)
            cell.source = original.source
        cell.metadata["nbgrader"] = copy.deepcopy(released[id].metadata["nbgrader"])
    _put_back_cells(result, wanted, released, present, checked)
    for cell in result.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if grade_id(cell) not in wanted:
            cell.metadata.pop("nbgrader", None)
    return result


def _put_back_marks(result: Any, wanted: dict[str, Any], released: dict[str, Any], checked: Checked) -> None:
    """A cell that lost its mark is known by its id, a test cell also by its text."""
    here = {grade_id(c) for c in result.cells}
    for id, original in wanted.items():
        if id in here:
            continue
        for cell in result.cells:
            same_id = cell.get("id") == original.get("id") and not grade_id(cell)
            same_text = not is_answer(original) and cell.source == released[id].source and not grade_id(cell)
            if same_id or same_text:
                cell.metadata["nbgrader"] = copy.deepcopy(released[id].metadata["nbgrader"])
                checked.note("metadata", "repaired", id)
                break


def _only_first_counts(result: Any, wanted: dict[str, Any], checked: Checked) -> None:
    seen: dict[str, int] = {}
    names: set[str] = set()
    for number, cell in enumerate(result.cells):
        id = grade_id(cell)
        if id in wanted:
            seen[id] = seen.get(id, 0) + 1
            if seen[id] > 1:
                cell.metadata.pop("nbgrader", None)
        if not cell.get("id") or cell["id"] in names:
            cell["id"] = f"copy-{number}"
        names.add(cell["id"])
    for id, count in seen.items():
        if count > 1:
            checked.note("copied", "repaired", id, n=count)


def _become(cell: Any, original: Any) -> None:
    cell.cell_type = original.cell_type
    if original.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    else:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)


def _put_back_cells(
    result: Any, wanted: dict[str, Any], released: dict[str, Any], present: dict[str, Any], checked: Checked
) -> None:
    before: Any = None
    for id, original in wanted.items():
        if id not in present:
            cell = copy.deepcopy(original)
            if is_answer(original):
                cell.source = released[id].source
                checked.note("deleted-answer", "flagged", id)
            else:
                checked.note("deleted-test", "repaired", id)
            cell.metadata["nbgrader"] = copy.deepcopy(released[id].metadata["nbgrader"])
            at = 0 if before is None else next(i for i, c in enumerate(result.cells) if c is before) + 1
            result.cells.insert(at, cell)
            present[id] = cell
        before = present[id]
