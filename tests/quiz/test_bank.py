"""A faulty bank is told by file, question and field; the course's own banks are sound."""

from __future__ import annotations

from pathlib import Path

import pytest
from labkit.errors import InputError
from labkit.quiz.bank import bank_names, find_bank, load_bank, read_bank

from tests.quiz.banks import TEXT, bank, write_bank


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("kind: single", "kind: singel"),
            r"kinds\.yaml, question one, kind: .*singel.*kinds: single, multiple",
        ),
        (
            ("text: {en: Pick A, zh: 选 A}", "text: {en: Pick A}"),
            r"question one, text: .*missing required field `zh`",
        ),
        (
            (
                "correct: true}\n      - {id: b, text: {en: B, zh: 乙}, explain: {en: B",
                "correct: true, x: 1}\n      - {id: b, text: {en: B, zh: 乙}, explain: {en: B",
            ),
            r"question one, options\[0\]: .*unknown field `x`",
        ),
        (("points: 2", "points: -2"), r"question many, points: must be more than 0"),
        (("points: 2", "points: two"), r"question many, points: Expected `float`, got `str`"),
        (("id: number", "id: one"), r"question one, id: id used twice"),
        (("options: [a, b], call", "options: [a], call"), r"question one, evidence: no evidence for b"),
        (
            ("options: [a, b], call", "options: [a, b, z], call"),
            r"evidence\[0\]\.options: names no option: 'z'",
        ),
        (("key: [web, left]", "key: [web]"), r"question number: `key` is \[pod, field, ...\]"),
        (("{choose: [1, 2, 3]}", "{step: 2}"), r"parameters.*: needs either `choose` or"),
        (("title: {en: All kinds, zh: 各种题型}", "titel: x"), r"kinds\.yaml, titel: unknown field"),
        (("questions:", "questions: 5\nother:"), r"must be a map with `title` and `questions`"),
        (("title: {", "title: {{"), r"is not YAML \(line"),
    ],
)
def test_faults_are_told(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    """One fault in a sound bank: file, question, field, and what was expected."""
    assert change[0] in TEXT
    path = write_bank(tmp_path, TEXT.replace(*change, 1))
    with pytest.raises(InputError, match=message):
        load_bank(path)


def test_all_faults_are_collected(tmp_path: Path) -> None:
    """`labkit quiz check` reports every fault of a file at once."""
    problems: list[InputError] = []
    text = TEXT.replace("points: 2", "points: -1").replace("kind: order", "kind: sort")
    loaded = read_bank(write_bank(tmp_path, text), problems)
    assert [p.object for p in problems] == ["question many", "question order"]
    assert loaded is not None
    assert len(loaded.questions) == 6


def test_an_unknown_bank_names_the_known_ones(tmp_path: Path) -> None:
    """The hint lists what there is."""
    write_bank(tmp_path)
    with pytest.raises(InputError, match="banks: kinds"):
        find_bank("other", tmp_path)


@pytest.mark.parametrize("name", bank_names())
def test_the_courses_banks_are_sound(name: str) -> None:
    """Every bank in quizzes/ loads without a fault."""
    problems: list[InputError] = []
    read_bank_path = find_bank(name)
    assert not problems
    assert read_bank_path.questions


def test_a_bank_of_all_kinds_loads(tmp_path: Path) -> None:
    """The seven kinds."""
    assert [q.kind for q in bank(tmp_path).questions] == [
        "single", "multiple", "numeric", "order", "match", "fix_yaml", "predict_node",
    ]  # fmt: skip


def test_every_seed_question_is_corrected_and_most_corrections_are_shown() -> None:
    """Ten questions, each beside what the source says; what the lab can run is run."""
    found = [c for q in find_bank("part3").questions for c in q.corrections]
    assert all(q.corrections for q in find_bank("part3").questions)
    assert sum(bool(c.evidence) for c in found) >= 30
    assert all(c.source != c.fact for c in found)
