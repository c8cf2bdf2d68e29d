"""The workspace keeps every piece of a learner's work and follows the course where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labkit.course.source import read_notebook, write_notebook
from labkit.course.text import from_text
from labkit.course.workspace import build_workspace, workspace_language
from labkit.errors import LabError

from tests.course import sample

NOTEBOOK = f"{sample.NAME}/{sample.NAME}.ipynb"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A course of one module."""
    sample.write_module(tmp_path / "notebooks")
    return tmp_path / "notebooks"


def work(path: Path, code: str) -> bytes:
    """Do what a learner does: write an answer and save."""
    write_notebook(sample.answered(read_notebook(path), code), path)
    return path.read_bytes()


def new_version(root: Path) -> None:
    """The course publishes a changed module."""
    text = sample.TEXT.replace("Add two numbers.", "Add two numbers, please.").replace(
        "把两个数相加。", "请把两个数相加。"
    )
    write_notebook(from_text(text), root / NOTEBOOK)


def test_a_new_workspace_has_stripped_notebooks_and_localised_files(root: Path, tmp_path: Path) -> None:
    """One language, stubs for solutions, files under their plain names, the language remembered."""
    report = build_workspace(tmp_path / "ws", "zh", root=root)
    text = (tmp_path / "ws" / NOTEBOOK).read_text()
    assert "把两个数相加" in text
    assert "Add two numbers" not in text
    assert "return a + b" not in text
    assert (tmp_path / "ws" / sample.NAME / "hint.md").read_text() == "用 +。\n"
    assert sorted(report.added) == [NOTEBOOK, f"{sample.NAME}/hint.md", f"{sample.NAME}/numbers.txt"]
    assert workspace_language(tmp_path / "ws") == "zh"


def test_a_second_run_changes_nothing(root: Path, tmp_path: Path) -> None:
    """Nothing is written when nothing is new, whether or not the learner worked."""
    ws = tmp_path / "ws"
    build_workspace(ws, "en", root=root)
    done = work(ws / NOTEBOOK, "def add(a, b):\n    return a + b")
    report = build_workspace(ws, "en", root=root)
    assert (ws / NOTEBOOK).read_bytes() == done
    assert (report.added, report.updated, report.beside) == ([], [], [])
    assert report.kept == [NOTEBOOK]


def test_an_update_reaches_untouched_files_only(root: Path, tmp_path: Path) -> None:
    """Untouched: the new version. Touched: the learner's version stays, the new one is beside it, once."""
    ws = tmp_path / "ws"
    build_workspace(ws, "en", root=root)
    done = work(ws / NOTEBOOK, "answer = 1")
    new_version(root)
    (root / sample.NAME / "numbers.txt").write_text("4 5 6\n")
    report = build_workspace(ws, "en", root=root)
    beside = ws / sample.NAME / f"{sample.NAME}.new.ipynb"
    assert (ws / NOTEBOOK).read_bytes() == done
    assert "please" in beside.read_text()
    assert (ws / sample.NAME / "numbers.txt").read_text() == "4 5 6\n"
    assert report.updated == [f"{sample.NAME}/numbers.txt"]
    beside.unlink()
    assert build_workspace(ws, "en", root=root).beside == []
    assert not beside.exists()


def test_another_language_translates_the_prose_around_the_work(root: Path, tmp_path: Path) -> None:
    """Answers and the learner's own notes stay; course prose changes language, there and back."""
    ws = tmp_path / "ws"
    build_workspace(ws, "en", root=root)
    work(ws / NOTEBOOK, "answer = 1")
    notebook = read_notebook(ws / NOTEBOOK)
    notebook.cells[-1].source = "## My own words"
    write_notebook(notebook, ws / NOTEBOOK)
    report = build_workspace(ws, "zh", root=root)
    sources = [c.source for c in read_notebook(ws / NOTEBOOK).cells]
    assert sources[0].startswith("# 示例")
    assert "answer = 1" in sources
    assert sources[-1] == "## My own words"
    assert report.beside == []
    build_workspace(ws, "en", root=root)
    assert read_notebook(ws / NOTEBOOK).cells[0].source.startswith("# Sample")
    assert not list(ws.rglob("*.new.*"))


def test_new_modules_and_lost_files_are_added(root: Path, tmp_path: Path) -> None:
    """A module that the course gains, and a file that the learner deleted, are there after the next run."""
    ws = tmp_path / "ws"
    build_workspace(ws, "en", root=root)
    (ws / sample.NAME / "numbers.txt").unlink()
    sample.write_module(root, "43-more")
    report = build_workspace(ws, "en", root=root)
    assert f"{sample.NAME}/numbers.txt" in report.added
    assert "43-more/43-more.ipynb" in report.added


def test_a_damaged_note_of_deliveries_costs_no_work(root: Path, tmp_path: Path) -> None:
    """Without the note every file counts as the learner's."""
    ws = tmp_path / "ws"
    build_workspace(ws, "en", root=root)
    done = work(ws / NOTEBOOK, "answer = 1")
    (ws / ".labkit" / "delivered.json").write_text("{ not json")
    build_workspace(ws, "en", root=root)
    assert (ws / NOTEBOOK).read_bytes() == done
    assert NOTEBOOK in json.loads((ws / ".labkit" / "delivered.json").read_text())


def test_a_folder_that_cannot_be_one_is_refused(root: Path, tmp_path: Path) -> None:
    """The source folder itself, or a file: a message, nothing written."""
    with pytest.raises(LabError, match="holds the source notebooks"):
        build_workspace(root, "en", root=root)
    (tmp_path / "file").write_text("x")
    with pytest.raises(LabError, match="file"):
        build_workspace(tmp_path / "file", "en", root=root)
