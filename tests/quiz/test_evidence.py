"""All evidence of all banks holds when the engine runs it; and evidence that is wrong is found out."""

from __future__ import annotations

import pytest
from labkit.i18n import LANGUAGES, language
from labkit.quiz.bank import bank_names, find_bank
from labkit.quiz.evidence import check, look_up
from labkit.quiz.export import FORMATS, export_bank
from labkit.quiz.marking import mark
from labkit.quiz.model import Evidence, Multiple, Scenario, Single, Text
from labkit.quiz.verify import BankReport, verify_question

QUESTIONS = [(name, q.id) for name in bank_names() for q in find_bank(name).questions]
HERE = Text("x", "x")


@pytest.mark.parametrize(("name", "id"), QUESTIONS)
def test_the_engine_agrees(name: str, id: str) -> None:
    """Every claim of the question's evidence is what happens, for all its numbers."""
    from labkit.quiz.evidence import engine_runner

    report = BankReport(name)
    verify_question(find_bank(name).question(id), report, engine_runner)
    assert report.problems == []


@pytest.mark.parametrize(("name", "id"), QUESTIONS)
def test_the_key_gets_full_marks_and_other_options_none(name: str, id: str) -> None:
    """Choosing what is marked right is right; each wrong option alone is not."""
    question = find_bank(name).question(id)
    if isinstance(question, Single):
        for option in question.options:
            assert mark(question, option.id, "s").fraction == option.correct
    elif isinstance(question, Multiple):
        assert mark(question, [o.id for o in question.options if o.correct], "s").fraction == 1


@pytest.mark.parametrize("name", bank_names())
def test_every_bank_exports_in_every_format_and_language(name: str) -> None:
    """No question breaks an export."""
    for lang in LANGUAGES:
        with language(lang):
            for format in FORMATS:
                assert export_bank(find_bank(name), format, "s")[0]


@pytest.mark.parametrize(
    ("evidence", "difference"),
    [
        (
            Evidence(
                HERE,
                scenario=Scenario(nodes={"n1": {"cpu": 1}}, pods={"w": {"cpu": 2}}),
                expect={"w": {"bound": "n1"}},
            ),
            "w.bound: expected 'n1', got None",
        ),
        (
            Evidence(HERE, scenario=Scenario(pods={"w": {}}), expect={"other": {"bound": None}}),
            "other: there is no decision",
        ),
        (
            Evidence(HERE, scenario=Scenario(config={"profile": []}), error="no such text"),
            "must be refused with 'no such text'",
        ),
        (
            Evidence(HERE, scenario=Scenario(config={"profile": []}), expect={"w": {}}),
            "the configuration is refused",
        ),
        (Evidence(HERE, scenario=Scenario(objects="kind: [", pods={"w": {}}), expect={"w": {}}), "objects"),
        (
            Evidence(HERE, call="weight", args={"plugin": "InterPodAffinity"}, result=1),
            "weight: expected 1, got 2",
        ),
        (Evidence(HERE, call="no_such", result=1), "is no proof"),
        (Evidence(HERE, call="weight", args={"x": 1}, result=1), "does not take these arguments"),
    ],
)
def test_false_evidence_is_found_out(evidence: Evidence, difference: str) -> None:
    """What does not hold is told with what was expected and what happened."""
    found = check(evidence).differences
    assert any(difference in line for line in found), found


def test_facts_with_dots_in_their_names_are_found() -> None:
    """Extended resources and node names may contain dots."""
    decision = {"filter": {"node.a.b": {"code": "Success"}}, "scores": {}}
    assert look_up(decision, "filter.node.a.b.code") == "Success"
    assert look_up(decision, "filter.node.x") is None
