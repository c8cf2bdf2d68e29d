"""Late submissions: what the policy says is what is taken, in gradebook, feedback and reports, to the minute."""

from __future__ import annotations

import csv
import io
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from labkit.cli import main
from labkit.course.collect import collect
from labkit.course.feedback import write_feedback
from labkit.course.grade import grade
from labkit.course.late import LatePolicy, submitted_at, write_submitted
from labkit.course.project import Course, init_course, open_course, put_source, release
from labkit.course.report import export_marks, report_csv
from labkit.course.settings import Settings, changed, read_settings, write_settings
from labkit.course.source import read_notebook, write_notebook
from labkit.errors import InputError
from labkit.i18n import set_language

from tests.course import sample

NAME = sample.NAME
DUE = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
POLICY = LatePolicy(due="2026-03-01T23:59Z", per_day=0.1, grace_minutes=10, most=0.5)


@pytest.mark.parametrize(
    ("after", "share"),
    [
        (timedelta(days=-3), 0),
        (timedelta(0), 0),
        (timedelta(minutes=10), 0),
        (timedelta(minutes=10, seconds=1), 0.1),
        (timedelta(days=1, minutes=10), 0.1),
        (timedelta(days=1, minutes=11), 0.2),
        (timedelta(days=4, hours=1), 0.5),
        (timedelta(days=40), 0.5),
    ],
)
def test_every_begun_day_after_the_grace_costs(after: timedelta, share: float) -> None:
    """Boundaries to the second, and the most that is taken."""
    assert POLICY.share("ann", DUE + after) == pytest.approx(share)
    assert POLICY.penalty(8, "ann", DUE + after) == pytest.approx(8 * share)


@pytest.mark.parametrize(
    ("due", "submitted", "late"),
    [
        ("2026-03-01T23:59+08:00", datetime(2026, 3, 1, 16, 0, tzinfo=UTC), True),
        ("2026-03-01T23:59-08:00", datetime(2026, 3, 2, 7, 58, tzinfo=UTC), False),
        ("2026-03-01T23:59", datetime(2026, 3, 1, 23, 58), False),
        ("2026-03-01T23:59", datetime(2026, 3, 2, 0, 0), True),
    ],
)
def test_time_zones(due: str, submitted: datetime, late: bool) -> None:
    """A zone counts; without one both are UTC."""
    assert (LatePolicy(due=due, per_day=0.5).share("ann", submitted) > 0) == late


def test_an_extension_is_for_one_learner() -> None:
    """Theirs alone is another due time; what lateness costs stays the same."""
    policy = LatePolicy(due=POLICY.due, per_day=0.1, extensions={"bo": "2026-03-05T00:00Z"})
    when = datetime(2026, 3, 5, 12, tzinfo=UTC)
    assert policy.share("bo", when) == pytest.approx(0.1)
    assert policy.share("ann", when) == pytest.approx(0.4)


def test_a_module_overrides_the_course_field_by_field() -> None:
    """`*` fills what the module does not say; an explicit 0 is said."""
    settings = Settings(
        "c", "en", late={"*": POLICY, "03-x": LatePolicy(due="2026-04-01T00:00Z", per_day=0.0)}
    )
    assert settings.late_policy("03-x") == LatePolicy("2026-04-01T00:00Z", 0.0, 10, 0.5)
    assert settings.late_policy("04-y") == POLICY
    assert Settings("c", "en").late_policy("03-x").share("ann", DUE) == 0


@pytest.mark.parametrize(
    ("policy", "field", "what"),
    [
        ({"due": "tomorrow"}, "late", "no ISO time"),
        ({"due": "2026-03-01T23:59Z", "per_day": 10}, "late", "per_day is a share"),
        ({"grace_minutes": -1}, "late", "must not be negative"),
        ({"per_day": "much"}, "per_day", "Expected `float"),
        ({"until": "2026-03-01"}, "late", "until"),
        ({"extensions": {"bo": "later"}}, "late", "'later' is no ISO time"),
    ],
)
def test_a_faulty_policy_is_told_before_grading(
    tmp_path: Path, policy: dict[str, Any], field: str, what: str
) -> None:
    """By file and field; the settings stay as they were."""
    course = init_course(tmp_path / "c")
    before = (course.root / "course.json").read_bytes()
    with pytest.raises(InputError, match=what) as e:
        write_settings(course.root, changed(course.root, course.settings, late={"*": policy}))
    assert field in str(e.value.field)
    assert (course.root / "course.json").read_bytes() == before


def test_the_time_in_nbgraders_form_comes_back(tmp_path: Path) -> None:
    """What is written is read; rubbish and nothing are no time."""
    write_submitted(tmp_path, DUE)
    assert (tmp_path / "timestamp.txt").read_text() == "2026-03-01 23:59:00.000000 UTC"
    assert submitted_at(tmp_path) == DUE
    (tmp_path / "timestamp.txt").write_text("2015-02-02 15:58:23.948203 UTC\n")
    assert submitted_at(tmp_path) == datetime(2015, 2, 2, 15, 58, 23, 948203, tzinfo=UTC)
    (tmp_path / "timestamp.txt").write_text("never")
    assert submitted_at(tmp_path) is None
    assert submitted_at(tmp_path / "nowhere") is None


def test_a_learners_own_timestamp_is_not_believed(tmp_path: Path) -> None:
    """Uploaded to an LMS it is dropped; the exchange's folder name or --received says when."""
    sample.write_module(tmp_path / "notebooks")
    course = init_course(tmp_path / "course")
    put_source(course, "42", root=tmp_path / "notebooks")
    archive = tmp_path / "moodle.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for name, text in ((f"{NAME}.ipynb", "{}"), ("timestamp.txt", "2001-01-01 00:00:00 UTC")):
            out.writestr(f"Ada L_12_assignsubmission_file_/{name}", text)
    collect(course, archive, NAME)
    folder = course.root / "submitted" / "Ada L" / NAME
    assert [p.name for p in folder.iterdir()] == [f"{NAME}.ipynb"]
    collect(course, archive, NAME, received=DUE)
    assert submitted_at(folder) == DUE
    inbound = tmp_path / "inbound" / f"bo+{NAME}+2026-03-02 08:00:00.000000 UTC+abc"
    inbound.mkdir(parents=True)
    (inbound / f"{NAME}.ipynb").write_text("{}")
    (inbound / "timestamp.txt").write_text("2001-01-01 00:00:00 UTC")
    collect(course, tmp_path / "inbound", received=DUE)
    assert submitted_at(course.root / "submitted" / "bo" / NAME) == datetime(2026, 3, 2, 8, tzinfo=UTC)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Four right submissions: in time, a day late, late with an extension, at a time that nobody knows."""
    base = tmp_path_factory.mktemp("late")
    sample.write_module(base / "notebooks")
    course = init_course(base / "demo")
    release(course, NAME, root=base / "notebooks")
    policy = LatePolicy(due="2026-03-01T23:59Z", per_day=0.25, extensions={"extended": "2026-03-09T00:00Z"})
    write_settings(course.root, changed(course.root, course.settings, late={NAME: policy}))
    course = open_course(course.root)
    released = read_notebook(course.root / "release" / NAME / f"{NAME}.ipynb")
    for student, hours in (("punctual", -1), ("late", 25), ("extended", 25), ("unknown", None)):
        folder = course.root / "submitted" / student / NAME
        notebook = sample.answered(released, "def add(a, b):\n    return a + b")
        write_notebook(notebook, folder / f"{NAME}.ipynb")
        if hours is not None:
            write_submitted(folder, DUE + timedelta(hours=hours))
    return course


@pytest.mark.nbgrader
def test_the_penalty_is_everywhere_the_same(course: Course) -> None:
    """Record, gradebook, export and feedback page; a policy that changes is applied by --resume."""
    records = {r.student: r for r in grade(course, NAME).records}
    assert {s: (r.score, r.late) for s, r in records.items()} == {
        "punctual": (3, 0),
        "late": (1.5, 1.5),
        "extended": (3, 0),
        "unknown": (3, 0),
    }
    assert records["unknown"].notes["late"] == "when it was handed in is not known"
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        late = {s.student.id: s.late_submission_penalty for s in book.assignment_submissions(NAME)}
        assert late == {"punctual": 0, "late": 1.5, "extended": 0, "unknown": 0}
    exported = {r["student"]: r["score"] for r in csv.DictReader(io.StringIO(export_marks(course, "csv")))}
    assert exported == {"punctual": "3", "late": "1.5", "extended": "3", "unknown": "3"}
    rows = {r["student"]: r for r in csv.DictReader(io.StringIO(report_csv(list(records.values()))))}
    assert (rows["late"]["late"], rows["late"]["score"]) == ("1.5", "1.5")
    write_feedback(course, NAME)
    pages = {p.parts[-3]: p.read_text() for p in (course.root / "feedback").rglob("*.html")}
    assert "Late penalty: 1.5" in pages["late"]
    assert "Late penalty" not in pages["extended"]
    milder = changed(course.root, course.settings, late={NAME: {"due": "2026-03-01T23:59Z", "per_day": 0.1}})
    write_settings(course.root, milder)
    again = {r.student: r.score for r in grade(open_course(course.root), NAME, resume=True).records}
    assert again == {"punctual": 3, "late": 2.4, "extended": 2.4, "unknown": 3}


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy, an extension, and their display; a fault is a message and exit status 2, not a traceback."""

    def run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as e:
            main(["course", *arguments, "--course", str(tmp_path / "c")])
        set_language(None)
        out = capsys.readouterr()
        return int(e.value.code or 0), out.out + out.err

    init_course(tmp_path / "c")
    status, out = run("late", "*", "--due", "2026-03-01T23:59+01:00", "--per-day", "0.1", "--most", "0.5")
    assert (status, out) == (0, "late *: due 2026-03-01T23:59+01:00, 10% a day, at most 50%\n")
    status, out = run("late", "*", "--student", "bo", "--due", "2026-03-08T00:00+01:00")
    assert status == 0
    assert out.endswith("at most 50%, bo: 2026-03-08T00:00+01:00\n")
    assert read_settings(tmp_path / "c").late["*"].due == "2026-03-01T23:59+01:00"
    assert out in run("settings")[1]
    status, out = run("late", "*", "--due", "soon")
    assert status != 0
    assert "'soon' is no ISO time" in out
    assert "Traceback" not in out
    status, out = run("late", "*", "--student", "bo")
    assert status != 0
    assert "--due" in out
