"""`labkit progress` reads what the workspace says."""

from __future__ import annotations

from pathlib import Path

import pytest
from labkit.cli import main
from labkit.course.progress import next_step, progress
from labkit.course.source import read_notebook, write_notebook
from labkit.course.workspace import build_workspace
from labkit.errors import LabError
from labkit.i18n import set_language
from labkit.quiz.answers import Answers

from tests.course import sample


def test_from_nothing_to_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not begun, begun with a weak spot, done; the next step moves on."""
    for name in (sample.NAME, "43-more"):
        sample.write_module(tmp_path / "notebooks", name)
    ws = tmp_path / "ws"
    build_workspace(ws, "zh", root=tmp_path / "notebooks")
    assert [m.started for m in progress(ws)] == [False, False]
    Answers("part3", ws / sample.NAME / "answers").add("8", "a", "s", 0.0)
    first = progress(ws)[0]
    assert (first.answered, first.quiz_right, first.weak, first.done) == (1, 0.0, ["part3 8"], False)
    notebook = sample.answered(
        read_notebook(ws / sample.NAME / f"{sample.NAME}.ipynb"), "def add(a, b): return a + b"
    )
    for cell in notebook.cells:
        if cell["id"] == "add-visible":
            cell.execution_count = 1
        if cell["id"] == "add-hidden":
            cell.execution_count, cell.source = 2, "2.0"
            cell.outputs = [
                {
                    "output_type": "execute_result",
                    "data": {"text/plain": "2.0"},
                    "metadata": {},
                    "execution_count": 2,
                }
            ]
    from nbformat import from_dict

    write_notebook(from_dict(notebook), ws / sample.NAME / f"{sample.NAME}.ipynb")
    found = progress(ws)
    assert (found[0].points, found[0].done) == (3, True)
    assert next_step(found) is found[1]
    with pytest.raises(SystemExit):
        main(["progress", "--workspace", str(ws)])
    set_language(None)
    out = capsys.readouterr().out
    assert "完成" in out
    assert "下一步：43-more/43-more.ipynb" in out


def test_no_workspace_is_told(tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(LabError, match="is no workspace"):
        progress(tmp_path)
