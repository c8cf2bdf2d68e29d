"""Answers survive: every attempt is kept, across restarts, two kernels, crashes and damaged files."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from labkit.errors import InputError, LabError
from labkit.quiz import answers as answers_module
from labkit.quiz.answers import Answers
from labkit.quiz.session import Session, score

from tests.quiz.banks import bank, cpu_runner


def test_a_new_session_finds_the_old_answer(tmp_path: Path) -> None:
    """Reopening the notebook shows what was answered, with its mark and number."""
    Session(bank(tmp_path), folder=tmp_path).submit("one", "b")
    Session(bank(tmp_path), folder=tmp_path).submit("one", "a")
    last = Session(bank(tmp_path), folder=tmp_path).last("one")
    assert last is not None
    assert (last.response, last.number, last.fraction) == ("a", 2, 1.0)
    assert [a.response for a in Answers("kinds", tmp_path / "answers").read().of("one")] == ["b", "a"]


def test_two_kernels_lose_nothing(tmp_path: Path) -> None:
    """Four processes write fifteen answers each at the same time; sixty are there."""
    code = (
        "import sys; from pathlib import Path; from labkit.quiz.answers import Answers\n"
        "for i in range(15): Answers('b', Path(sys.argv[1])).add('q', f'{sys.argv[2]}-{i}', 's')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)]) for n in range(4)]
    assert [p.wait() for p in running] == [0, 0, 0, 0]
    stored = Answers("b", tmp_path).read().attempts
    assert sorted(a.response for a in stored) == sorted(f"{n}-{i}" for n in range(4) for i in range(15))
    assert [a.number for a in stored] == list(range(1, 61))


def test_a_lock_that_stays_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting ends with a message that says what to do."""
    import fcntl

    monkeypatch.setattr(answers_module, "LOCK_SECONDS", 0.05)
    with (tmp_path / ".b.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(LabError, match="is locked by another program"):
            Answers("b", tmp_path).add("q", "a", "s")


@pytest.mark.parametrize("content", ["", "{", '{"bank": 5}', "\x00\x01", '{"bank": "b", "attempts": {}}'])
def test_a_damaged_file_is_put_aside(tmp_path: Path, content: str) -> None:
    """The damaged file is kept under another name, and answering goes on."""
    (tmp_path / "b.json").write_text(content)
    Answers("b", tmp_path).add("q", "a", "s")
    assert (tmp_path / "b.damaged-1.json").read_text() == content
    assert json.loads((tmp_path / "b.json").read_text())["attempts"][0]["response"] == "a"


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file where the folder should be: a message, no traceback."""
    (tmp_path / "answers").write_text("x")
    with pytest.raises(LabError, match="answers"):
        Answers("b", tmp_path / "answers").add("q", "a", "s")


@pytest.mark.parametrize(
    "response",
    [
        "\ud83d",
        float("nan"),
        {"a": float("-inf")},
        10**30,
        {1: 2},
        {"x"},
        object(),
        b"a",
        "x" * 10**6,
        ("a",),
    ],
)
def test_no_answer_spoils_the_others(tmp_path: Path, response: Any) -> None:
    """Whatever is given as an answer is stored, and what was stored before can still be read."""
    answers = Answers("b", tmp_path)
    answers.add("q", "a", "s")
    answers.add("q", response, "s")
    answers.add("q", "z", "s")
    assert not answers.is_damaged()
    assert [a.response for a in answers.read().of("q")][::2] == ["a", "z"]


def test_a_full_disk_keeps_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new answer is told not to be saved; the old ones are as they were, and no half file lies about."""
    answers = Answers("b", tmp_path)
    answers.add("q", "a", "s")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LabError, match="not saved"):
        answers.add("q", "b", "s")
    assert [a.response for a in answers.read().attempts] == ["a"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [".b.lock", "b.json"]


def test_score_marks_anew_and_believes_no_claim(tmp_path: Path) -> None:
    """Points come from the response and the instructor's bank, not from `fraction` in the learner's file."""
    import labkit.quiz.session as session

    kinds = bank(tmp_path)
    made = Session(kinds, folder=tmp_path)
    made.submit("one", "a")
    made.answers.add("many", ["a"], "s", fraction=1.0)
    original = session.find_bank
    session.find_bank = lambda name: kinds  # type: ignore[assignment]
    try:
        assert score("kinds", "one", "many", folder=tmp_path) == 2
        assert score("kinds", "one", "many", points=6, folder=tmp_path) == 4
        assert score("kinds", "order", folder=tmp_path) == 0
    finally:
        session.find_bank = original


def test_graded_mode_knows_no_key(tmp_path: Path) -> None:
    """With a released bank beside the notebook answers are stored unmarked."""
    from labkit.quiz.present import shown_bank, write_shown

    write_shown(shown_bank(bank(tmp_path), "ann"), tmp_path / "quiz-kinds.json")
    session = Session("kinds", folder=tmp_path)
    assert session.mode == "graded"
    assert session.submit("one", "b").fraction is None
    assert session.mark("one", "a") is None
    assert session.question("one") is None


def test_other_numbers_on_request(tmp_path: Path) -> None:
    """`another` changes the seed, an answer is tied to the numbers it was given for."""
    session = Session(bank(tmp_path), folder=tmp_path, runner=cpu_runner)
    session.submit("number", "1")
    session.another("number")
    assert session.last("number") is None
    session.submit("number", "2")
    assert Session(bank(tmp_path), folder=tmp_path).seed("number").endswith("/1")


def test_no_answer_is_not_stored(tmp_path: Path) -> None:
    """Submitting nothing is a message."""
    with pytest.raises(InputError, match="has no answer yet"):
        Session(bank(tmp_path), folder=tmp_path).submit("one", "")
    assert not (tmp_path / "answers").exists()
