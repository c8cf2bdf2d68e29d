"""`labkit quiz` in a terminal: what is typed, what is printed, the exit status."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from labkit.cli import main
from labkit.i18n import set_language

from tests.quiz.banks import write_bank


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, *args: str
) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    with pytest.raises(SystemExit) as e:
        main(args)
    set_language(None)
    out = capsys.readouterr()
    return int(e.value.code or 0), out.out, out.err


def test_answer_in_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A misunderstood answer is asked again; the mark and the reason of each option are printed; it is stored."""
    path = write_bank(tmp_path)
    status, out, _ = run(
        monkeypatch,
        capsys,
        "9\nx\n2\n1 2\n",
        "quiz",
        "run",
        str(path),
        "-q",
        "one",
        "-q",
        "many",
        "--folder",
        str(tmp_path),
    )
    assert status == 0
    assert out.count("Not understood") == 2
    assert "✕ Not right" in out
    assert "✓ right, not chosen: A" in out
    assert "2 of 3 points" in out
    assert '"response": "b"' in (tmp_path / "answers" / "kinds.json").read_text()


def test_the_end_of_input_stops_politely(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Ctrl-D: what was answered is stored, status 1."""
    path = write_bank(tmp_path)
    status, out, _ = run(
        monkeypatch, capsys, "1\n", "--lang", "zh", "quiz", "run", str(path), "--folder", str(tmp_path)
    )
    assert status == 1
    assert "已停止" in out


@pytest.mark.parametrize(
    ("question", "typed", "said"),
    [
        ("one", "", "nothing was typed"),
        ("one", "\uff11", "no number from 1 to 2"),
        ("one", "1.5", "no number from 1 to 2"),
        ("many", "1 9", "no number from 1 to 4"),
        ("many", "", "nothing was typed"),
        ("order", "1 1 1", "each number from 1 to 3 once"),
        ("order", "1 2", "each number from 1 to 3 once"),
        ("match", "x", "is no pair"),
        ("match", "z=1", "is no pair"),
        ("match", "x=", "no number from 1 to 2"),
        ("number", "seven", "is no number"),
        ("fix", "nowhere.yaml", "cannot be read: No such file"),
        ("fix", ".", "cannot be read: Is a directory"),
    ],
)
def test_every_kind_says_what_it_did_not_understand(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    question: str,
    typed: str,
    said: str,
) -> None:
    """In our words, not in Python's; then it is asked again, and nothing was stored."""
    path = write_bank(tmp_path)
    args = ("quiz", "run", str(path), "-q", question, "--folder", str(tmp_path))
    status, out, _ = run(monkeypatch, capsys, typed + "\n", *args)
    assert status == 1
    assert "Not understood: " in out
    assert said in out
    assert not (tmp_path / "answers").exists()
    _, out, _ = run(monkeypatch, capsys, typed + "\n", "--lang", "zh", *args)
    assert "没看懂：" in out
    assert said not in out


def test_the_proof_is_printed_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`--prove` runs the evidence behind each answer."""
    path = write_bank(tmp_path)
    args = ("quiz", "run", str(path), "-q", "one", "--prove", "--folder", str(tmp_path))
    status, out, _ = run(monkeypatch, capsys, "1\n", *args)
    assert status == 0
    assert "✓ proof: codes" in out


def test_check_reports_every_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A wrong proof and a fault of the schema: both named, status 1."""
    from tests.quiz.banks import TEXT

    text = TEXT.replace("[Success, Error, Unsch", "[Success, Deny, Unsch").replace("points: 2", "points: 0")
    status, out, _ = run(monkeypatch, capsys, "", "quiz", "check", str(write_bank(tmp_path, text, "bad")))
    assert status == 1
    assert "question many, points: must be more than 0" in out
    assert "question one: evidence[0]: status_codes: expected ['Success', 'Deny'" in out


def test_unknown_banks_and_commands_have_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, the message on standard error, and what to do."""
    status, _, err = run(monkeypatch, capsys, "", "quiz", "run", "nothing")
    assert status == 2
    assert "'nothing' is no question bank" in err
    assert "banks:" in err
    status, _, err = run(monkeypatch, capsys, "", "quizz")
    assert (status, "Did you mean `labkit quiz`?" in err) == (2, True)
    status, _, err = run(monkeypatch, capsys, "", "--lang", "fr", "quiz")
    assert status == 2


def test_export_to_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The bank is written, notes go to standard error."""
    path = write_bank(tmp_path, "title: {en: T, zh: T}\nquestions:\n" + ONE, "small")
    target = tmp_path / "x.gift"
    status, _, _ = run(
        monkeypatch, capsys, "", "quiz", "export", str(path), "--format", "gift", "-o", str(target)
    )
    assert status == 0
    assert "::small-n::" in target.read_text()
    status, _, err = run(
        monkeypatch, capsys, "", "quiz", "export", str(path), "--format", "gift", "-o", str(tmp_path)
    )
    assert status == 2
    assert "cannot be written" in err


ONE = """
  - id: n
    kind: numeric
    text: {en: one and one, zh: 一加一}
    answer: 2
    evidence: [{about: {en: x, zh: x}, call: extension_points, result: {}}]
"""
