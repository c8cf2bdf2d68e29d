"""Real nbgrader commands on a sample module: release, autograde, feedback, marks as computed by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from labkit.course.project import Course, init_course, nbgrader, open_course, release
from labkit.course.source import build_language, read_notebook, write_notebook
from labkit.course.strip import strip
from labkit.errors import InputError, LabError

from tests.course import sample

pytestmark = pytest.mark.nbgrader

RIGHT = "def add(a, b):\n    return a + b"
#: student -> (answer, language, points of add-visible, points of add-hidden)
STUDENTS = {
    "right": (RIGHT, "en", 1, 2),
    "right-zh": (RIGHT, "zh", 1, 2),
    "partly": ("def add(a, b):\n    return int(a) + int(b)", "en", 1, 0),
    "numbers-only": ("def add(a, b):\n    return abs(a + b) if isinstance(a, int) else a", "en", 1, 1),
    "untouched": (None, "en", 0, 0),
    "wrong": ("def add(a, b):\n    return 4", "en", 0, 0),
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course whose one module is released, submitted by six students, and autograded."""
    base = tmp_path_factory.mktemp("course")
    sample.write_module(base / "notebooks")
    course = init_course(base / "demo", "en")
    made = release(course, "42", ["en", "zh"], root=base / "notebooks")
    for student, (code, lang, *_) in STUDENTS.items():
        released = read_notebook(made.folders[lang] / f"{sample.NAME}.ipynb")
        folder = course.root / "submitted" / student / sample.NAME
        notebook = released if code is None else sample.answered(released, code)
        if student == "right-zh":
            notebook.cells[-2].source = "因为加法。"
        write_notebook(notebook, folder / f"{sample.NAME}.ipynb")
        (folder / "lab.json").write_text((made.folders[lang] / "lab.json").read_text())
    (course.root / "autograde.log").write_text(nbgrader(course, "autograde", sample.NAME))
    nbgrader(course, "generate_feedback", sample.NAME)
    return course


@pytest.fixture
def marks(course: Course) -> Iterator[dict[str, dict[str, float]]]:
    """student -> grade id -> automatic points, from the gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        yield {
            student: {
                grade.cell.name: grade.auto_score
                for grade in gradebook.find_submission_notebook(sample.NAME, sample.NAME, student).grades
            }
            for student in STUDENTS
        }


@pytest.mark.parametrize("student", STUDENTS)
def test_marks_are_the_ones_computed_by_hand(marks: dict[str, dict[str, float]], student: str) -> None:
    """Right is full, untouched is 0, each wrong one gets its part, whatever the language of the notebook."""
    _, _, visible, hidden = STUDENTS[student]
    assert (marks[student]["add-visible"], marks[student]["add-hidden"]) == (visible, hidden)


def test_answers_in_words_wait_for_a_person_unless_untouched(marks: dict[str, dict[str, float]]) -> None:
    """The text cell of the untouched release is 0 already; a written one has no automatic points."""
    assert marks["untouched"]["why"] == 0
    assert marks["right-zh"]["why"] is None


def test_the_release_is_what_a_workspace_gets(course: Course) -> None:
    """nbgrader's own stripping and ours give the same cells, checksums included."""
    released = read_notebook(course.root / "release" / sample.NAME / f"{sample.NAME}.ipynb")
    ours = strip(build_language(sample.notebook(), "en"))
    assert [(c["id"], c.source, c.metadata) for c in released.cells] == [
        (c["id"], c.source, c.metadata) for c in ours.cells
    ]


def test_the_release_says_its_language(course: Course) -> None:
    """lab.json is beside the notebook, and grading leaves the learner's own in place."""
    for student, lang in (("right", "en"), ("right-zh", "zh")):
        path = course.root / "autograded" / student / sample.NAME / "lab.json"
        assert json.loads(path.read_text())["language"] == lang


def test_untouched_test_cells_raise_no_warning(course: Course) -> None:
    """No word about changed checksums: nobody edited a test here."""
    assert "has changed" not in (course.root / "autograde.log").read_text()


def test_an_edited_test_is_restored_and_reported(course: Course, marks: dict[str, dict[str, float]]) -> None:
    """`assert True` instead of the test gains nothing, and the log names the cell."""
    notebook = read_notebook(course.root / "release" / sample.NAME / f"{sample.NAME}.ipynb")
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "add-visible":
            cell.source = "assert True"
    write_notebook(notebook, course.root / "submitted" / "cheat" / sample.NAME / f"{sample.NAME}.ipynb")
    log = nbgrader(course, "autograde", sample.NAME, "--student", "cheat")
    from nbgrader.api import Gradebook

    assert re.search(r"'checksum' for cell add-visible has changed", log)
    assert "add-hidden has changed" not in log
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        assert gradebook.find_submission(sample.NAME, "cheat").score == 0


def test_feedback_exists_for_everybody(course: Course) -> None:
    """One HTML page a submission."""
    for student in STUDENTS:
        assert (course.root / "feedback" / student / sample.NAME / f"{sample.NAME}.html").is_file()


def test_refusals_are_messages(course: Course, tmp_path: Path) -> None:
    """A module that does not exist, a folder that is no course, nbgrader's own refusal: no traceback."""
    with pytest.raises(InputError, match="names no module"):
        release(course, "77", root=course.root / "source")
    with pytest.raises(InputError, match="is not a course"):
        open_course(tmp_path)
    with pytest.raises(LabError, match="nbgrader autograde 99-nothing failed"):
        nbgrader(course, "autograde", "99-nothing")
