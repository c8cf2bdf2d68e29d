"""What a learner gets: solutions replaced by a stub, hidden tests gone, outputs cleared, checksums written.

The result is what `nbgrader generate_assignment` makes of the same notebook with the course's configuration
(a test compares the two); it is done here without nbgrader, whose import alone takes seconds.
"""

from __future__ import annotations

import copy
import hashlib
import re
from typing import Any

from labkit.errors import InputError

CODE_STUB = "# YOUR CODE HERE / 在此编写代码\nraise NotImplementedError()"
TEXT_STUB = "YOUR ANSWER HERE / 在此写下你的回答"


def strip(notebook: Any) -> Any:
    """The learner's version of a one-language notebook. Raises InputError naming the cell with unpaired marks."""
    result = copy.deepcopy(notebook)
    for cell in result.cells:
        graded = cell.metadata.get("nbgrader")
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("outputs-zh", None)
        if graded is None:
            continue
        if graded.get("grade") and not graded.get("solution"):
            cell.source = without_hidden_tests(cell.source, str(cell.get("id")))
        if graded.get("solution"):
            cell.source = _without_solution(cell.source, str(cell.get("id")), cell.cell_type)
        if graded.get("grade") or graded.get("solution") or graded.get("locked"):
            cell.metadata["deletable"] = False
            if graded.get("locked") and not graded.get("solution"):
                cell.metadata["editable"] = False
            graded["cell_type"] = cell.cell_type
            graded["checksum"] = checksum(cell)
    return result


def without_hidden_tests(source: str, cell: str) -> str:
    """A test cell's source as learners see it."""
    return _replace(source, "HIDDEN TESTS", None, cell)


def _without_solution(source: str, cell: str, cell_type: str) -> str:
    stub = CODE_STUB if cell_type == "code" else TEXT_STUB
    if "BEGIN SOLUTION" not in source and "END SOLUTION" not in source:
        return stub
    return _replace(source, "SOLUTION", stub, cell)


def _replace(source: str, what: str, stub: str | None, cell: str) -> str:
    lines: list[str] = []
    inside = False
    for line in source.split("\n"):
        if f"BEGIN {what}" in line:
            if inside:
                raise InputError(f"### BEGIN {what} twice without ### END {what}", object=f"cell {cell}")
            inside = True
            if stub is not None:
                indent = re.match(r"\s*", line).group(0)  # type: ignore[union-attr]  # \s* always matches
                lines += [indent + part for part in stub.split("\n")]
        elif f"END {what}" in line:
            inside = False
        elif not inside:
            lines.append(line)
    if inside:
        raise InputError(f"### BEGIN {what} without ### END {what}", object=f"cell {cell}")
    return "\n".join(lines)


def checksum(cell: Any) -> str:
    """nbgrader's checksum of a graded cell (schema 3): source, type, flags, id and points."""
    graded = cell.metadata["nbgrader"]
    grade = bool(graded.get("grade"))
    digest = hashlib.md5(usedforsecurity=False)
    for part in (
        cell.source,
        cell.cell_type,
        grade,
        bool(graded.get("solution")),
        bool(graded.get("locked")),
    ):
        digest.update(str(part).encode())
    digest.update(str(graded["grade_id"]).encode())
    if grade:
        digest.update(str(float(graded["points"])).encode())
    return digest.hexdigest()
