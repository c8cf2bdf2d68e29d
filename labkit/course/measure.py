"""How fast is grading, and are the marks the same? `labkit course grade` against plain `nbgrader autograde`.

    python -m labkit.course.measure FOLDER [--module 03] [--submissions 200] [--sample 20] [--jobs 2]

Makes a course in FOLDER with that many submissions: right, half done, untouched, wrong, raising. nbgrader grades the
first `sample` of them in a course of their own, labkit all, then nbgrader its sample again, so that a machine that gets
busier favours neither. Prints submissions a minute, and every mark that differs.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.course.demo import solved
from labkit.course.grade import grade
from labkit.course.graded_cells import graded_cells, is_answer
from labkit.course.project import Course, init_course, nbgrader, release
from labkit.course.source import build_language, read_notebook, source_path, write_notebook


@dataclass
class Run:
    """One grading run."""

    submissions: int
    seconds: float

    @property
    def a_minute(self) -> float:
        """Submissions a minute, as a clock on the wall says."""
        return self.submissions / self.seconds * 60


@dataclass
class Measured:
    """The runs, and students whose marks differ."""

    module: str
    labkit: list[Run] = field(default_factory=list)
    plain: list[Run] = field(default_factory=list)
    compared: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def factor(self) -> float:
        """How many times as fast labkit is, compared with nbgrader's better run."""
        return min(r.a_minute for r in self.labkit) / max(r.a_minute for r in self.plain)


def measure(
    root: Path,
    module: str = "03",
    *,
    submissions: int = 200,
    sample: int = 20,
    jobs: int = 2,
    notebooks: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Measured:
    """Run the comparison in the new folder `root`. Raises LabError as `init_course` and `release` do."""
    name = source_path(module, notebooks).stem
    ours, theirs = init_course(root / "labkit"), init_course(root / "nbgrader")
    for course in (ours, theirs):
        release(course, name, root=notebooks)
    source = build_language(read_notebook(source_path(name, notebooks)), "en")
    released = read_notebook(ours.root / "release" / name / f"{name}.ipynb")
    for number in range(submissions):
        _submit(ours, name, f"s{number:03}", _CLASS[number % len(_CLASS)](released, source))
    for number in range(min(sample, submissions)):
        _submit(theirs, name, f"s{number:03}", _CLASS[number % len(_CLASS)](released, source))
    found = Measured(name)

    def plain() -> None:
        nbgrader(theirs, "autograde", name, "--force", timeout=3600)

    def ours_all() -> None:
        grade(ours, name, jobs=jobs)

    for title, what, count, runs in (
        ("nbgrader autograde", plain, min(sample, submissions), found.plain),
        ("labkit course grade", ours_all, submissions, found.labkit),
        ("nbgrader autograde", plain, min(sample, submissions), found.plain),
    ):
        run = _timed(what, count)
        runs.append(run)
        say(f"{title}: {count} submissions in {run.seconds:.0f} s, {run.a_minute:.1f} a minute")
    _compare(ours, theirs, found)
    return found


def _timed(what: Callable[[], None], count: int) -> Run:
    began = time.monotonic()
    what()
    return Run(count, time.monotonic() - began)


def _submit(course: Course, module: str, student: str, notebook: Any) -> None:
    folder = course.root / "submitted" / student / module
    shutil.copytree(course.root / "release" / module, folder)
    # No two submissions are alike.
    notebook.cells[0].source += f"\n\n{student}"
    write_notebook(notebook, folder / f"{module}.ipynb")


def _compare(ours: Course, theirs: Course, found: Measured) -> None:
    a, b = _marks(ours, found.module), _marks(theirs, found.module)
    found.compared = len(b)
    for student, marks in sorted(b.items()):
        if marks != a.get(student):
            found.differences.append(f"{student}: labkit {a.get(student)}, nbgrader {marks}")


def _marks(course: Course, module: str) -> dict[str, dict[str, float | None]]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        return {
            s.student.id: {grade.name: grade.auto_score for n in s.notebooks for grade in n.grades}
            for s in book.assignment_submissions(module)
        }


def _answered(code: str) -> Callable[[Any, Any], Any]:
    """Every code answer replaced."""

    def change(released: Any, source: Any) -> Any:
        notebook = solved(released, source, most=0)
        answers = graded_cells(source)
        for cell in notebook.cells:
            id = (cell.metadata.get("nbgrader") or {}).get("grade_id")
            if id in answers and is_answer(answers[id]) and cell.cell_type == "code":
                cell.source = code
        return notebook

    return change


_CLASS: list[Callable[[Any, Any], Any]] = [
    solved,
    lambda r, s: solved(r, s, most=1),
    lambda r, s: solved(r, s, most=0),
    solved,
    _answered("answer = None"),
    lambda r, s: solved(r, s, before="print('working on it')"),
    _answered("raise RuntimeError('not finished')"),
    solved,
]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="labkit course grade against nbgrader autograde")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--module", default="03")
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--sample", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    found = measure(
        given.folder,
        given.module,
        submissions=given.submissions,
        sample=given.sample,
        jobs=given.jobs,
        say=lambda line: print(line, flush=True),
    )
    print(f"{found.module}: labkit is {found.factor:.1f} times as fast")
    print(f"marks of {found.compared} compared, {len(found.differences)} differ")
    for line in found.differences:
        print(f"  {line}")


if __name__ == "__main__":
    main()
