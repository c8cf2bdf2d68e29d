"""nbgrader's repair of locked cells, with a warning only where a learner really changed something."""

from __future__ import annotations

from typing import Any

from nbgrader.api import MissingEntry
from nbgrader.preprocessors import OverwriteCells

from labkit.course.strip import checksum, without_hidden_tests


class OverwriteEditedCells(OverwriteCells):  # type: ignore[misc]  # nbgrader is untyped
    """Restores test cells as nbgrader does. A cell that is as it was released raises no warning."""

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> Any:
        """See nbgrader; notes first whether the cell is as released."""
        self._as_released = self._is_as_released(cell)
        return super().preprocess_cell(cell, resources, cell_index)

    def report_change(self, name: str, attr: str, old: Any, new: Any) -> None:
        """Hidden tests change the checksum of every cell that has some; that is no news."""
        if attr == "checksum" and self._as_released:
            return
        super().report_change(name, attr, old, new)

    def _is_as_released(self, cell: Any) -> bool:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id is None:
            return False
        try:
            source = self.gradebook.find_source_cell(grade_id, self.notebook_id, self.assignment_id)
        except MissingEntry:
            return False
        released = type(cell)(cell)
        released.source = without_hidden_tests(source.source, grade_id)
        same: bool = checksum(released) == checksum(cell)
        return same
