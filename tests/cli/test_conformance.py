"""`labkit conformance`: counts, differences, bad files, exit codes."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from labkit.cli import main

GOLDEN = Path(__file__).parent.parent / "golden"


def scenario(family: str = "textbook", at: int = 0) -> dict[str, Any]:
    """One recorded scenario."""
    with gzip.open(GOLDEN / f"{family}.jsonl.gz", "rt", encoding="utf-8") as lines:
        found: dict[str, Any] = json.loads(list(lines)[at])
    return found


def write(path: Path, *lines: Any) -> Path:
    """A .jsonl file; text lines are written as they are."""
    path.write_text(
        "\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines) + "\n", encoding="utf-8"
    )
    return path


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)."""
    with pytest.raises(SystemExit) as end:
        main(["conformance", *map(str, args)])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_all_match(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A line per family and exit 0; plain and gzipped files, folders and files."""
    write(tmp_path / "mine.jsonl", scenario())
    code, out, err = run(capsys, tmp_path, GOLDEN / "gates.jsonl.gz")
    assert (code, out, err) == (0, "textbook: 1/1\ngates: 24/24\n", "")


def test_a_difference_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """scenario, pod, field, expected, got; exit 1."""
    changed = scenario()
    changed["expect"][0]["scores"]["a"]["total"] += 1
    code, out, _ = run(capsys, write(tmp_path / "t.jsonl", changed, scenario()))
    assert code == 1
    assert out == ("textbook: 1/2\n  textbook-01-balanced default/p scores.a.total: expected 76 got 75\n")


def test_max_diffs_and_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """At most N differences a family; `-o json` has the same facts."""
    changed = scenario()
    for scores in changed["expect"][0]["scores"].values():
        scores["total"] += 1
    path = write(tmp_path / "t.jsonl", changed)
    code, out, _ = run(capsys, path, "--max-diffs", "1")
    assert (code, out.splitlines()[2]) == (1, "  … and 2 more")
    code, out, _ = run(capsys, path, "--max-diffs", "1", "-o", "json")
    assert code == 1
    (family,) = json.loads(out)
    assert (family["family"], family["matched"], family["total"], len(family["differences"])) == (
        "textbook",
        0,
        1,
        1,
    )
    assert family["differences"][0]["field"] == "scores.a.total"


def test_missing_and_additional_keys_differ(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A key that only one side has is a difference."""
    changed = copy.deepcopy(scenario())
    changed["expect"][0]["filter"]["ghost"] = {"code": "Success"}
    code, out, _ = run(capsys, write(tmp_path / "t.jsonl", changed))
    assert code == 1
    assert 'filter.ghost: expected {"code": "Success"} got null' in out


def test_config_errors_are_compared_word_for_word(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A config that is refused where a decision was recorded, and a changed text."""
    refused = next(s for s in (scenario("config-errors", i) for i in range(26)) if "configError" in s)
    changed = {**refused, "configError": refused["configError"] + "!"}
    code, out, _ = run(capsys, write(tmp_path / "t.jsonl", changed))
    assert code == 1
    assert "configError: expected" in out


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        '{"name": 5}',
        '{"name": "x-1"}',
        '{"name": "x-1", "expect": "no"}',
        '{"name": "x-1", "expect": [], "pods": {}}',
        "\x00",
    ],
)
def test_bad_lines_are_named_and_cost_only_themselves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str
) -> None:
    """File and line number, exit 2, and the good line is still counted."""
    path = write(tmp_path / "t.jsonl", line, scenario())
    code, out, err = run(capsys, path)
    assert (code, out) == (2, "textbook: 1/1\n")
    assert str(path) in err
    assert "line 1" in err
    assert "Traceback" not in err


def test_damaged_gzip(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Cut off in the middle: a message, exit 2."""
    data = (GOLDEN / "textbook.jsonl.gz").read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "fake.jsonl.gz").write_bytes(b"not gzip")
    code, _, err = run(capsys, tmp_path)
    assert code == 2
    assert "cut.jsonl.gz" in err
    assert "fake.jsonl.gz" in err


def test_objects_that_cannot_be_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A scenario with nonsense in its objects does not match, and does not crash."""
    broken = scenario()
    broken["objects"][0]["status"]["allocatable"]["cpu"] = "many"
    code, out, _ = run(capsys, write(tmp_path / "t.jsonl", broken))
    assert code == 1
    assert "'many' is not a quantity" in out


@pytest.mark.parametrize("what", ["nothing-here", "."])
def test_nothing_to_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """No file, or a folder without traces: exit 2."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, what)
    assert (code, out) == (2, "")
    assert what in err
