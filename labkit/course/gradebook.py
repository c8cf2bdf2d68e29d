"""Marks into nbgrader's gradebook, as `nbgrader autograde` would write them, so that Formgrader works as ever."""

from __future__ import annotations

import warnings
from datetime import datetime
from typing import Any

from labkit.course.ledger import Record
from labkit.course.marks import Marks
from labkit.course.project import Course
from labkit.course.strip import checksum
from labkit.errors import LabError
from labkit.i18n import t


class BusyError(LabError):
    """Another program writes to the gradebook. Nothing was changed; grading with --resume tries again."""

    def __init__(self) -> None:
        super().__init__(
            t("gradebook.db is in use by another program", "gradebook.db 正被另一程序使用"),
            hint=t(
                "end other nbgrader commands, then grade with --resume",
                "结束其他 nbgrader 命令，然后用 --resume 评分",
            ),
        )


class Book:
    """The gradebook of a course, open for one module. One writer at a time."""

    def __init__(self, course: Course, module: str) -> None:
        from nbgrader.api import Gradebook, MissingEntry
        from sqlalchemy.exc import OperationalError, SAWarning

        # nbgrader's own objects raise these by the hundred; they mean nothing for marks.
        warnings.filterwarnings("ignore", category=SAWarning)
        self.module = module
        self._missing = MissingEntry
        self._locked = OperationalError
        try:
            self._book = Gradebook(f"sqlite:///{course.root / 'gradebook.db'}")
        except OperationalError as e:
            raise BusyError from e
        try:
            self._book.find_notebook(module, module)
        except MissingEntry:
            self._book.close()
            raise LabError(
                f"module {module} is not in the gradebook",
                hint=f"labkit course release {module} puts it there",
            ) from None

    def close(self) -> None:
        """Close the database."""
        self._book.close()

    def save(
        self, student: str, notebook: Any, marks: Marks, record: Record, submitted: datetime | None
    ) -> None:
        """Write one submission. Manual scores stay and are marked for another look. Raises LabError, and BusyError
        where trying again helps."""
        book = self._book
        try:
            book.update_or_create_student(student)
            fields = {"timestamp": submitted.replace(tzinfo=None)} if submitted is not None else {}
            book.update_or_create_submission(self.module, student, **fields)
            points = {c.id: c.points for c in marks.cells}
            for cell in notebook.cells:
                mark = cell.metadata.get("nbgrader") or {}
                id = mark.get("grade_id")
                if id in points:
                    found = book.find_grade(id, self.module, self.module, student)
                    found.auto_score = points[id]
                    found.needs_manual_grade = found.manual_score is not None or points[id] is None
                if mark.get("solution") or mark.get("task"):
                    comment = book.find_comment(id, self.module, self.module, student)
                    same = mark.get("checksum") == checksum(cell) and not mark.get("task")
                    comment.auto_comment = "No response." if same else None
            entry = book.find_submission_notebook(self.module, self.module, student)
            entry.late_submission_penalty = record.late or None
            book.db.commit()
        except self._locked as e:
            book.db.rollback()
            raise BusyError from e
        except self._missing as e:
            book.db.rollback()
            raise LabError(
                f"the gradebook does not know this: {e}",
                hint=f"labkit course release {self.module}, then grade again",
            ) from e
        except BaseException:
            book.db.rollback()
            raise

    def scores(self) -> dict[str, tuple[float, float, bool]]:
        """student -> (score with manual parts and penalty, maximum, still to be marked by a person)."""
        found = {}
        for submission in self._book.assignment_submissions(self.module):
            # nbgrader's score is before the penalty.
            found[submission.student.id] = (
                max(0.0, submission.score - (submission.late_submission_penalty or 0.0)),
                submission.max_score,
                bool(submission.needs_manual_grade),
            )
        return found
