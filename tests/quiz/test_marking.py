"""Right, partly right, wrong and nonsensical answers of every kind of question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labkit.i18n import language
from labkit.quiz.bank import find_bank
from labkit.quiz.marking import mark, parse_number, points
from labkit.quiz.present import present, right_id
from labkit.quiz.scenario import draw

from tests.quiz.banks import bank, cpu_runner

RIGHT = "kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, resources: {requests: {cpu: 2}}}]}\n"


@pytest.mark.parametrize(
    ("question", "response", "fraction"),
    [
        ("one", "a", 1),
        ("one", "b", 0),
        ("one", ["a"], 0),
        ("many", ["a", "b"], 1),
        ("many", ["a"], 0.5),
        ("many", ["a", "b", "c"], 0.5),
        ("many", ["a", "b", "c", "d"], 0),
        ("many", ["c"], 0),
        ("order", ["f", "s", "b"], 1),
        ("order", ["s", "f", "b"], 1 / 3),
        ("order", ["b", "s", "f"], 0),
        ("order", ["f"], 0),
        ("fix", RIGHT, 1),
        ("fix", RIGHT.replace("cpu: 2", "cpu: 3"), 0),
        ("fix", "not: [yaml", 0),
        ("fix", RIGHT.replace("web", "db"), 0),
        ("where", "n2", 1),
        ("where", "n1", 0),
        ("where", "none", 0),
    ],
)
def test_fractions(tmp_path: Path, question: str, response: Any, fraction: float) -> None:
    """What share of the points an answer gets."""
    assert mark(bank(tmp_path).question(question), response, "s", cpu_runner).fraction == pytest.approx(
        fraction
    )


@pytest.mark.parametrize("question", ["one", "many", "number", "order", "match", "fix", "where"])
@pytest.mark.parametrize("response", [None, "", 7, [], {}, [1, None], {"x": ["y"]}, "\x00", True])
def test_nonsense_is_wrong_and_never_an_error(tmp_path: Path, question: str, response: Any) -> None:
    """A damaged answers file costs points, not a traceback."""
    assert points(bank(tmp_path).question(question), response, "s", cpu_runner) == 0


@pytest.mark.parametrize("containers", ["null", "[null]", "[3]", "{a: 1}", "[{resources: {limits: [1]}}]"])
def test_pods_that_are_none_are_told(tmp_path: Path, containers: str) -> None:
    """YAML of a wrong shape costs the points; what is wrong is said in the learner's language."""
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {{containers: {containers}}}\n"
    question = find_bank("part1").question("9")
    with language("zh"):
        found = mark(question, text, "s")
    assert found.fraction < 1
    assert "expected" not in " ".join(line.why for line in found.lines if line.status == "error")


def test_match_gives_each_pair_its_share(tmp_path: Path) -> None:
    """Half of two pairs is 0.5; ids of right-hand sides do not tell the pair."""
    question = bank(tmp_path).question("match")
    x, y = right_id("x", question), right_id("y", question)
    assert mark(question, {"x": x, "y": y}, "s").fraction == 1
    assert mark(question, {"x": x, "y": x}, "s").fraction == 0.5
    assert {c.id for c in present(question, "s").choices} == {x, y}
    assert not {"x", "y"} & {x, y}


def test_numbers_come_from_the_seed_and_the_key_from_the_engine(tmp_path: Path) -> None:
    """Each learner has their own numbers; the same learner always the same; the engine knows the answer."""
    question = bank(tmp_path).question("number")
    drawn = {seed: draw(question, seed) for seed in ("ann", "ben", "cem", "dan", "eve")}
    assert draw(question, "ann") == drawn["ann"]
    assert len({tuple(d.values()) for d in drawn.values()}) > 1
    for seed, values in drawn.items():
        assert str(values["total"]) in str(present(question, seed).text)
        left = values["total"] - values["used"]
        assert mark(question, str(left), seed, cpu_runner).fraction == 1
        wrong = mark(question, str(values["total"]), seed, cpu_runner)
        assert (wrong.fraction, wrong.lines[-1].why) == (0, "the pod counts too")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("72", 72),
        (" 72 ", 72),
        ("72,5", 72.5),
        ("7/8", 0.875),
        ("72 %", 72),
        ("７２", 72),
        ("x", None),
        ("1/0", None),
    ],
)
def test_numbers_as_people_type_them(text: str, number: float | None) -> None:
    """Commas, fractions, percent signs and full-width digits are understood."""
    assert parse_number(text) == number
    assert parse_number("nan") is None


def test_every_option_is_explained_in_the_learners_language(tmp_path: Path) -> None:
    """Right, chosen and not chosen options all have their reason."""
    with language("zh"):
        lines = mark(bank(tmp_path).question("one"), "b", "s").lines
    assert [(x.word, x.why) for x in lines] == [("正确，未选", "是甲"), ("已选，错误", "不是乙")]


def test_a_predicted_node_is_explained_by_the_trace(tmp_path: Path) -> None:
    """The reason of a node that does not fit is the plugin's own."""
    lines = {x.id: x for x in mark(bank(tmp_path).question("where"), "n1", "s", cpu_runner).lines}
    assert lines["n1"].why == "NodeResourcesFit: Insufficient cpu"
    assert (lines["n1"].status, lines["n2"].status) == ("fail", "pass")


def test_what_is_shown_has_no_key(tmp_path: Path) -> None:
    """The shipped form of a bank has no explanation, no key and no order that gives it away."""
    import msgspec
    from labkit.quiz.present import read_shown, shown_bank, write_shown

    kinds = bank(tmp_path)
    shown = shown_bank(kinds, "s")
    text = msgspec.json.encode(shown).decode()
    for secret in (
        "A it is",
        "correct",
        "explain",
        "solution",
        "goal",
        "evidence",
        "status_codes",
        "requests: {cpu: 1}}",
    ):
        assert secret not in text, secret
    assert [c.id for c in shown.questions[3].choices] != ["f", "s", "b"]
    write_shown(shown, tmp_path / "quiz-kinds.json")
    assert read_shown(tmp_path / "quiz-kinds.json") == shown
