"""A class of forty submissions, most of them trouble: each gets its right mark or a precise reason, in one pass."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from labkit.course.grade import Summary, grade
from labkit.course.ledger import FAILED, GRADED, Ledger, Record
from labkit.course.project import Course, init_course, nbgrader, open_course, release
from labkit.course.sandbox import Limits, isolation
from labkit.course.source import read_notebook, write_notebook
from labkit.errors import LabError

from tests.course import sample

pytestmark = pytest.mark.nbgrader

NAME = sample.NAME
LIMITS = Limits(cell_seconds=3, wall_seconds=40, memory_mb=900, processes=40)
RIGHT = "def add(a, b):\n    return a + b"

#: student -> (code of the answer cell, points of both tests together)
ANSWERS: dict[str, tuple[str, float]] = {
    "right": (RIGHT, 3),
    "partly": ("def add(a, b):\n    return int(a) + int(b)", 1),
    "wrong": ("def add(a, b):\n    return 4", 0),
    "syntax-error": ("def add(a, b:\n", 0),
    "raises": ("def add(a, b):\n    raise RuntimeError('no')", 0),
    "endless-loop": (RIGHT + "\nwhile True: pass", 3),
    "endless-in-function": ("def add(a, b):\n    while True: pass", 0),
    "stubborn-loop": ("def add(a, b):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass", 0),
    "os-exit": (RIGHT + "\nimport os; os._exit(1)", 0),
    "os-exit-in-function": ("import os\ndef add(a, b):\n    os._exit(0)", 0),
    "sys-exit": (RIGHT + "\nimport sys; sys.exit(0)", 3),
    "fork-bomb": (RIGHT + "\nimport os\nwhile True: os.fork()", 0),
    "memory-bomb": (RIGHT + "\nxs = []\nwhile True: xs.append(bytearray(10**7))", 3),
    "memory-bomb-children": (
        RIGHT + "\nimport os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        b = bytearray(10**8); time.sleep(20); os._exit(0)\ntime.sleep(20)",
        0,
    ),
    "output-flood": (RIGHT + "\nfor _ in range(100000): print('x' * 1000)", 3),
    "raw-output-flood": (RIGHT + "\nimport os\nfor _ in range(2000): os.write(1, b'x' * 100000)", 3),
    "disk-bomb": (RIGHT + "\nwith open('x', 'wb') as f:\n    while True: f.write(bytes(10**6))", 3),
    "many-files": (RIGHT + "\nfor n in range(3000): open(f'/tmp/{n}', 'w').close()", 3),
    "asks": ("def add(a, b):\n    return input('?')", 0),
    "stderr-in-test": (RIGHT.replace("return", "import sys; print('hm', file=sys.stderr); return"), 0),
    "stderr-in-answer": (RIGHT + "\nimport warnings; warnings.warn('careful')", 3),
    "always-equal": ("class E:\n    def __eq__(self, o): return True\n    __hash__ = None\ndef add(a, b): return E()", 3),
    "builtins": (RIGHT.replace("a + b", "a - b") + "\nimport builtins\nbuiltins.float = lambda x: 2.0", 0),
    "labkit-changed": (RIGHT + "\nimport labkit.check.report as r\nr.Exercise.score = property(lambda s: 9)", 3),
    "kills-parent": (RIGHT + "\nimport os\nfor p in (os.getppid(), 1):\n    try: os.kill(p, 9)\n    except Exception: pass", 3),
    "network": (RIGHT + "\nimport socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 1); ok = 1\nexcept OSError: ok = 0", 3),
    "threads": (RIGHT + "\nimport threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()", 3),
    "child-writes": (RIGHT + "\nimport subprocess; subprocess.run(['echo', 'hello'])", 3),
    "unicode": (RIGHT + "\nprint('你好 \\ud83d'.encode('utf-8', 'replace'))", 3),
    "too-many-points": (RIGHT.replace("a + b", "type('N', (int,), {'__eq__': lambda s, o: 50})()"), 3),
}  # fmt: skip


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A released course with all the submissions below."""
    base = tmp_path_factory.mktemp("grading")
    sample.write_module(base / "notebooks")
    course = init_course(base / "demo", "en")
    release(course, NAME, ["en", "zh"], root=base / "notebooks")
    for student, (code, _) in ANSWERS.items():
        submit(course, student, sample.answered(released(course), code))
    for student, (change, *_rest) in NOTEBOOKS.items():
        submit(course, student, change(sample.answered(released(course), RIGHT)))
    checkout = Path(__file__).resolve().parents[2]
    spy = (
        "import os\nseen = []\n"
        f"for p in [{str(course.root)!r}, {str(course.root.parent)!r}, {str(checkout / 'quizzes')!r}, "
        f"{str(checkout / 'notebooks')!r}, '/proc/1/root{course.root}']:\n"
        "    try: seen += os.listdir(p)\n    except OSError: pass\n"
        f"for p in [{str(course.root / 'gradebook.db')!r}, {str(checkout / 'labkit' / 'written')!r}, '/in/x']:\n"
        "    try: open(p, 'w'); seen.append(p)\n    except OSError: pass\n"
    )
    submit(course, "spy", sample.answered(released(course), f"{RIGHT}\n{spy}print(sorted(seen))"))
    for student, make in FOLDERS.items():
        folder = course.root / "submitted" / student / NAME
        folder.mkdir(parents=True)
        make(folder, course)
    return course


def released(course: Course, lang: str = "en") -> Any:
    """The released notebook."""
    return read_notebook(course.root / ("release" if lang == "en" else "release-zh") / NAME / f"{NAME}.ipynb")


def submit(course: Course, student: str, notebook: Any) -> None:
    """Hand in."""
    write_notebook(notebook, course.root / "submitted" / student / NAME / f"{NAME}.ipynb")


def cell(notebook: Any, id: str) -> Any:
    """A cell by grade id."""
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == id)


def without(id: str) -> Callable[[Any], Any]:
    """Delete a cell."""

    def change(notebook: Any) -> Any:
        notebook.cells.remove(cell(notebook, id))
        return notebook

    return change


def copied(notebook: Any) -> Any:
    """Copy the answer cell, with its id and mark, as JupyterLab's paste once did."""
    import copy

    notebook.cells.insert(4, copy.deepcopy(cell(notebook, "add")))
    return notebook


def edited(notebook: Any) -> Any:
    """`assert True` in the place of a test."""
    cell(notebook, "add-visible").source = "assert True"
    cell(notebook, "add").source = "def add(a, b):\n    return 4"
    return notebook


def cleared(notebook: Any) -> Any:
    """All nbgrader metadata gone."""
    for c in notebook.cells:
        c.metadata.pop("nbgrader", None)
    return notebook


def retyped(notebook: Any) -> Any:
    """A test turned into a text cell, and more points claimed."""
    test = cell(notebook, "add-hidden")
    test.cell_type = "markdown"
    test.pop("outputs")
    test.pop("execution_count")
    cell(notebook, "add-visible").metadata["nbgrader"]["points"] = 50
    return notebook


#: student -> (what happened to a right notebook, points, kinds of findings)
NOTEBOOKS: dict[str, tuple[Callable[[Any], Any], float, list[str]]] = {
    "copied-cell": (copied, 3, ["copied"]),
    "deleted-test": (without("add-hidden"), 3, ["deleted-test"]),
    "deleted-both": (
        lambda n: without("add-visible")(without("add-hidden")(n)),
        3,
        ["deleted-test", "deleted-test"],
    ),
    "deleted-answer": (without("add"), 0, ["deleted-answer"]),
    "edited-test": (edited, 0, ["edited-test"]),
    "cleared": (cleared, 3, ["metadata"] * 4),
    "retyped": (retyped, 3, ["type"]),
    "untouched": (
        lambda n: sample.answered(n, "def add(a, b):\n    # YOUR CODE HERE\n    raise NotImplementedError()"),
        0,
        [],
    ),
}


def renamed(folder: Path, course: Course) -> None:
    """`42-sample (1).ipynb`."""
    write_notebook(sample.answered(released(course, "zh"), RIGHT), folder / f"{NAME} (1).ipynb")


def truncated(folder: Path, course: Course) -> None:
    """Half a file."""
    text = (course.root / "release-zh" / NAME / f"{NAME}.ipynb").read_text()
    (folder / f"{NAME}.ipynb").write_text(text[: len(text) // 2])
    (folder / "lab.json").write_text('{"language": "zh"}')


def other_module(folder: Path, course: Course) -> None:
    """Another module's notebook under this one's name."""
    from labkit.course.text import from_text

    other = from_text("%% prose a\n# A\n%% zh\n# 甲\n%% code b\n1\n")
    other.metadata["labkit"] = {"module": "07-other"}
    write_notebook(other, folder / f"{NAME}.ipynb")


def huge(folder: Path, course: Course) -> None:
    """Fifty megabytes of output."""
    notebook = sample.answered(released(course), RIGHT)
    cell(notebook, "add").outputs = [{"output_type": "stream", "name": "stdout", "text": "x" * 50_000_000}]
    from nbformat import from_dict

    write_notebook(from_dict(notebook), folder / f"{NAME}.ipynb")


def linked(folder: Path, course: Course) -> None:
    """A link to the instructor's own notebook."""
    (folder / f"{NAME}.ipynb").symlink_to(course.root / "source" / NAME / f"{NAME}.ipynb")


#: student -> how the folder is made
FOLDERS: dict[str, Callable[[Path, Course], None]] = {
    "renamed": renamed,
    "truncated": truncated,
    "empty": lambda folder, course: None,
    "other-module": other_module,
    "huge": huge,
    "linked": linked,
    "not-json": lambda folder, course: (folder / f"{NAME}.ipynb").write_bytes(b"\x00\xff") and None,
}
REASONS = {
    "truncated": ("zh", "damaged", "已损坏或不完整"),
    "empty": ("en", "nothing", "There is no notebook"),
    "other-module": ("en", "module", "is a notebook of module 07-other"),
    "huge": ("en", "huge", "Clear the outputs"),
    "linked": ("en", "nothing", "There is no notebook"),
    "not-json": ("en", "damaged", "is damaged or cut short"),
}


@pytest.fixture(scope="module")
def records(course: Course) -> dict[str, Record]:
    """One pass over all of them."""
    summary: Summary = grade(course, NAME, jobs=2, limits=LIMITS)
    return {r.student: r for r in summary.records}


def test_all_are_there(records: dict[str, Record]) -> None:
    """More than forty, in one pass, each with an outcome."""
    assert len(records) >= 40
    assert set(records) == {*ANSWERS, *NOTEBOOKS, *FOLDERS, "spy"}
    assert all(r.status == GRADED or r.reason for r in records.values())


@pytest.mark.parametrize("student", ANSWERS)
def test_answers_get_their_marks(records: dict[str, Record], student: str) -> None:
    """Marks computed by hand, whatever the code does to the process."""
    record = records[student]
    assert record.status == GRADED, record.reason
    assert (record.marks["add-visible"] or 0) + (record.marks["add-hidden"] or 0) == ANSWERS[student][1], (
        record.notes
    )


@pytest.mark.parametrize("student", NOTEBOOKS)
def test_damaged_notebooks_are_repaired(records: dict[str, Record], student: str) -> None:
    """What is safe to repair is, and noted; honest ones have no finding."""
    _, points, kinds = NOTEBOOKS[student]
    record = records[student]
    assert record.status == GRADED, record.reason
    assert (record.marks["add-visible"] or 0) + (record.marks["add-hidden"] or 0) == points
    assert [f["kind"] for f in record.findings] == kinds


@pytest.mark.parametrize("student", REASONS)
def test_what_cannot_be_graded_has_a_reason(records: dict[str, Record], student: str) -> None:
    """Failed is not zero: no marks, a precise instruction in the learner's language."""
    lang, kind, text = REASONS[student]
    record = records[student]
    assert (record.status, record.language, record.marks) == (FAILED, lang, {})
    assert record.findings[-1]["kind"] == kind
    assert text in record.reason


def test_a_renamed_notebook_is_graded(records: dict[str, Record]) -> None:
    """In Chinese, too."""
    assert (records["renamed"].status, records["renamed"].score, records["renamed"].language) == (
        GRADED,
        3,
        "zh",
    )


def test_changed_labkit_is_put_back_and_flagged(records: dict[str, Record]) -> None:
    """The record names what was replaced."""
    assert records["labkit-changed"].changed == ["Exercise.score"]
    assert "builtins.float" in records["builtins"].changed
    assert records["right"].changed == []


@pytest.mark.skipif(isolation() != "bubblewrap", reason="without bubblewrap the box cannot hide files")
def test_a_spy_sees_nothing(course: Course, records: dict[str, Record]) -> None:
    """No notebook but its own, no gradebook, nothing written outside."""
    notebook = read_notebook(course.root / "autograded" / "spy" / NAME / f"{NAME}.ipynb")
    assert cell(notebook, "add").outputs[0]["text"].strip() == "[]"
    assert records["spy"].score == 3
    assert (course.root / "gradebook.db").stat().st_size > 0


def test_marks_equal_plain_nbgrader_where_it_can_grade(course: Course, records: dict[str, Record]) -> None:
    """The same points for those submissions that nbgrader gets through."""
    from nbgrader.api import Gradebook

    honest = ("right", "partly", "wrong", "raises", "stderr-in-test", "sys-exit", "asks")
    ours = {s: records[s].score for s in honest}
    import shutil

    other = course.root.parent / "plain"
    shutil.copytree(course.root, other, ignore=shutil.ignore_patterns(".labkit", "submitted", "autograded"))
    for student in honest:
        shutil.copytree(course.root / "submitted" / student, other / "submitted" / student)
    nbgrader(open_course(other), "autograde", NAME, "--force")
    with Gradebook(f"sqlite:///{other / 'gradebook.db'}") as book:
        theirs = {s: book.find_submission(NAME, s).score for s in honest}
    assert ours == theirs


def test_the_gradebook_has_the_graded_ones(course: Course, records: dict[str, Record]) -> None:
    """Formgrader's numbers are the records' numbers; failed submissions have no zero there."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        there = {s.student.id: s.score for s in book.assignment_submissions(NAME)}
    assert {s: r.score for s, r in records.items() if r.status == GRADED} == {
        s: there[s] for s in there if s in records
    }
    assert not set(there) & set(REASONS)


def test_grading_twice_gives_the_same(course: Course, records: dict[str, Record]) -> None:
    """A second pass over some of them: the same marks, no difference reported; a changed answer is one."""
    some = ["right", "partly", "copied-cell", "renamed"]
    again = grade(course, NAME, students=some, limits=LIMITS)
    assert again.differences == []
    assert {r.student: r.marks for r in again.records} == {s: records[s].marks for s in some}
    submit(course, "partly", sample.answered(released(course), RIGHT))
    changed = grade(course, NAME, students=["partly"], limits=LIMITS)
    assert changed.differences == ["partly: 1.0 -> 3.0"]


def test_resume_grades_only_what_is_new(course: Course, records: dict[str, Record]) -> None:
    """Nothing twice, nothing lost."""
    submit(course, "newcomer", sample.answered(released(course), RIGHT))
    summary = grade(course, NAME, resume=True, limits=LIMITS)
    assert [r.student for r in summary.records] == ["newcomer"]
    assert summary.skipped >= 40


def test_a_killed_run_goes_on(course: Course, records: dict[str, Record]) -> None:
    """kill -9 in the middle; --resume does the rest; no box is left behind."""
    names = [f"late-{i}" for i in range(6)]
    for name in names:
        submit(course, name, sample.answered(released(course), RIGHT + "\nimport time; time.sleep(1)"))
    code = (
        "from pathlib import Path; from labkit.course.project import open_course; from labkit.course.grade import grade\n"
        f"grade(open_course(Path({str(course.root)!r})), {NAME!r}, resume=True, jobs=1)"
    )
    run = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    ledger = Ledger(course.root)
    deadline = time.monotonic() + 90
    while ledger.read(NAME, names[0]) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    done = {n for n in names if ledger.read(NAME, n) is not None}
    assert 0 < len(done) < len(names)
    summary = grade(course, NAME, resume=True, limits=LIMITS)
    assert {r.student for r in summary.records} == set(names) - done
    assert all(ledger.read(NAME, n).score == 3 for n in names)  # type: ignore[union-attr]


def test_two_graders_at_once(course: Course) -> None:
    """The second one is told, and harms nothing."""
    ledger = Ledger(course.root)
    with ledger.lock(), pytest.raises(LabError, match="another grading run"):
        grade(course, NAME, students=["right"])


def test_the_audit_trail_says_what_was_done(course: Course, records: dict[str, Record]) -> None:
    """Each grading with time, version, hashes and marks."""
    lines = [json.loads(x) for x in (course.root / ".labkit" / "audit.jsonl").read_text().splitlines()]
    first = next(x for x in lines if x.get("student") == "right")
    assert (first["what"], first["score"]) == ("graded", 3)
    assert first["submission"]
    assert first["time"].endswith("+00:00")
