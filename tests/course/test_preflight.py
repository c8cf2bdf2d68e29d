"""Notebooks in which any one value is nonsense: repaired, or refused with words; never a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labkit.course.preflight import check_folder
from labkit.course.source import build_language, read_notebook, write_notebook
from labkit.course.strip import strip

from tests.course import sample

NAME = sample.NAME
NONSENSE: list[Any] = [None, -1, True, 1e400, "", "\ud83d", [1], {"a": 1}, {"nbgrader": 3}, "add"]
SOURCE = build_language(sample.notebook(), "en")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of everything in a piece of JSON."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


def checked_bytes(folder: Path, content: bytes) -> Any:
    """What preflight says of a file with this content."""
    folder.mkdir(exist_ok=True)
    (folder / f"{NAME}.ipynb").write_bytes(content)
    found = check_folder(folder, NAME, SOURCE)
    if found.fatal is None:
        # Repaired means: it can be written, read, and has every graded cell once.
        write_notebook(found.notebook, folder.parent / "out.ipynb")
        again = read_notebook(folder.parent / "out.ipynb")
        ids = [(c.metadata.get("nbgrader") or {}).get("grade_id") for c in again.cells]
        assert [i for i in ids if i] == ["add", "add-visible", "add-hidden", "why"]
    else:
        assert found.fatal.text
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(SOURCE.cells) + 1))
def test_any_value_may_be_nonsense(tmp_path: Path, number: int) -> None:
    """Each value of the file in turn replaced and deleted: of one cell, and of the notebook around the cells."""
    base = json.loads(json.dumps(strip(SOURCE)))
    for path in places(base):
        inside = path[0] == "cells" and len(path) > 1
        if (path[1] if inside else len(SOURCE.cells)) != number:
            continue
        for value in [*NONSENSE, "delete"]:
            notebook = copy.deepcopy(base)
            owner = notebook
            for key in path[:-1]:
                owner = owner[key]
            if value == "delete":
                del owner[path[-1]]
            else:
                owner[path[-1]] = value
            checked_bytes(tmp_path / "in", json.dumps(notebook).encode())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe{\x00}\x00",
        b"[" * 100_000,
        b'{"cells": '
        + b"[" * 5_000
        + b"]" * 5_000
        + b', "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
        b'{"cells": [], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}',
        b'{"cells": [], "metadata": {}, "nbformat": 99, "nbformat_minor": 0}',
        "<html>登录</html>".encode("gbk"),
        b"\x1f\x8b\x08\x00zip",
        b"\x00" * 1000,
    ],
    ids=[str(n) for n in range(12)],
)
def test_what_is_no_notebook_is_damaged_in_words(tmp_path: Path, content: bytes) -> None:
    """Empty, no JSON, another encoding, too deep, other formats."""
    found = checked_bytes(tmp_path / "in", content)
    assert found.fatal is not None
    assert found.fatal.kind in ("damaged", "foreign")
    assert "Traceback" not in found.fatal.text


def test_two_thousand_copies_are_still_one_submission(tmp_path: Path) -> None:
    """Copies of the answer cell beyond counting: the first one counts."""
    base = json.loads(json.dumps(strip(SOURCE)))
    base["cells"] += [base["cells"][2]] * 2000
    found = checked_bytes(tmp_path / "in", json.dumps(base).encode())
    assert [f.kind for f in found.findings] == ["copied"]
