"""The ten-minute path: demo class, grading, feedback, report, export, from the command line."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from labkit.cli import main
from labkit.course.ledger import Record
from labkit.course.page import cleaned
from labkit.course.report import correlation, items, report_csv
from labkit.i18n import set_language

from tests.course import sample

SECRET = "score = (add(-1, 1) == 0)"


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    """Exit status and output of `labkit course ...`."""
    with pytest.raises(SystemExit) as e:
        main(["course", *args])
    set_language(None)
    out = capsys.readouterr()
    return int(e.value.code or 0), out.out + out.err


@pytest.mark.nbgrader
def test_from_demo_to_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve made-up submissions: expected marks, feedback without hidden tests, a report, a file for the LMS."""
    sample.write_module(tmp_path / "data" / "notebooks")
    monkeypatch.setenv("LABKIT_DATA", str(tmp_path / "data"))
    folder = tmp_path / "demo"
    assert run(capsys, "demo", str(folder), "--module", "42")[0] == 0
    status, out = run(capsys, "grade", "42", "--timeout", "3", "--course", str(folder))
    assert status == 1, out
    assert "11 graded, 1 not" in out
    marks = {
        line.split()[1].rstrip(":"): line.split()[2] for line in out.splitlines() if line.startswith("  ✓")
    }
    full = dict.fromkeys(("ada", "bo", "chen", "eli", "gus", "han", "jo", "li"), "3/4")
    assert marks == {**full, "dana": "0/4", "fay": "0/4", "ida": "0/4"}
    assert run(capsys, "feedback", "42", "--course", str(folder))[0] == 0
    pages = {p.parts[-3]: p.read_text() for p in (folder / "feedback").rglob("*.html")}
    assert len(pages) == 12
    for text in pages.values():
        assert SECRET not in text
        assert "HIDDEN" not in text
        assert "<script" not in text
        assert "http" not in text.replace("http-equiv", "")
    assert 'lang="zh-CN"' in pages["bo"]
    assert "This is not a zero" in pages["kim"]
    assert run(capsys, "report", "--course", str(folder))[0] == 0
    report = (folder / "reports" / f"{sample.NAME}.html").read_text()
    assert "12 submissions: 11 graded, 1 not" in report
    status, out = run(capsys, "export", "--format", "moodle", "--course", str(folder))
    rows = {r["Username"]: r for r in csv.DictReader(io.StringIO(out))}
    assert (rows["ada"][sample.NAME], rows["kim"][sample.NAME]) == ("3", "")
    assert "damaged or cut short" in rows["kim"]["Feedback comments"]


def test_checking_before_submitting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`labkit course check FILE`: 0 for a sound one, 1 with instructions for the others, 2 for nonsense."""
    from labkit.course.source import read_notebook, write_notebook
    from labkit.course.workspace import build_workspace

    sample.write_module(tmp_path / "data" / "notebooks")
    monkeypatch.setenv("LABKIT_DATA", str(tmp_path / "data"))
    build_workspace(tmp_path / "ws", "zh")
    file = tmp_path / "ws" / sample.NAME / f"{sample.NAME}.ipynb"
    assert run(capsys, "check", str(file)) == (0, f"✓ {sample.NAME}: can be graded\n")
    notebook = read_notebook(file)
    next(c for c in notebook.cells if c["id"] == "add-visible").source = "assert True"
    write_notebook(notebook, file)
    status, out = run(capsys, "check", str(file))
    assert status == 1
    assert "! 检查单元 add-visible 被修改" in out
    file.write_text(file.read_text()[:300])
    status, out = run(capsys, "check", str(file.parent))
    assert status == 1
    assert "已损坏或不完整" in out
    assert run(capsys, "check", str(tmp_path / "nothing.ipynb"))[0] == 2
    assert run(capsys, "grade", "42", "--course", str(tmp_path))[0] == 2


def record(student: str, *points: float) -> Record:
    """A graded record with questions a, b, c of one point each."""
    marks: dict[str, float | None] = dict(zip("abc", points, strict=True))
    return Record(
        student, "m", "graded", score=sum(points), most=3, marks=marks, maxima=dict.fromkeys("abc", 1.0)
    )


def test_difficulty_and_discrimination() -> None:
    """Mean share of points; correlation with the rest of the score; none where nothing varies."""
    found = {
        i.id: i
        for i in items(
            [record("x", 1, 1, 1), record("y", 1, 0, 1), record("z", 0, 0, 1), record("w", 0, 1, 1)]
        )
    }
    assert (found["a"].difficulty, found["c"].difficulty) == (0.5, 1.0)
    assert found["c"].discrimination is None
    assert found["a"].discrimination == pytest.approx(0.0)
    assert correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1.0)
    assert correlation([1, 2], [1, 2]) is None


def test_no_spreadsheet_formula_comes_out_of_a_name() -> None:
    """A student called `=cmd()` stays a text."""
    assert "'=cmd()" in report_csv([record("=cmd()", 1, 1, 1)])


def test_html_of_a_submission_is_made_harmless() -> None:
    """Scripts, handlers, links and styles are gone; the table stays."""
    dirty = '<table onclick="x()"><tr><td style="a">1</td></tr></table><script>alert(1)</script><img src=x onerror=y><a href="http://x">z</a>'
    clean = cleaned(dirty)
    assert "<td>1</td>" in clean
    for bad in ("<script", "onclick", "onerror", "<img", "href", "style"):
        assert bad not in clean
