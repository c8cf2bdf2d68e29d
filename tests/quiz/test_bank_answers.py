"""Right, partly right and wrong answers to every question of the real banks, marked by the real engine."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.i18n import language
from labkit.quiz.bank import bank_names, find_bank
from labkit.quiz.evidence import computed_answer, predicted
from labkit.quiz.marking import mark
from labkit.quiz.model import AnyQuestion, FixYaml, Match, Multiple, Numeric, Order, PredictNode, Single
from labkit.quiz.present import NONE, node_names, right_id
from labkit.quiz.scenario import instance

QUESTIONS = [(name, q.id) for name in bank_names() for q in find_bank(name).questions]
KINDS = ("single", "multiple", "numeric", "order", "match", "fix_yaml", "predict_node")
SEED = "ann"


def answers(question: AnyQuestion) -> tuple[Any, list[Any]]:
    """The right answer and some wrong or half right ones."""
    drawn = instance(question, SEED)
    if isinstance(drawn, Single):
        return next(o.id for o in drawn.options if o.correct), [o.id for o in drawn.options if not o.correct]
    if isinstance(drawn, Multiple):
        right = [o.id for o in drawn.options if o.correct]
        return right, [
            right[:-1],
            [o.id for o in drawn.options],
            [o.id for o in drawn.options if not o.correct],
        ]
    if isinstance(drawn, Numeric):
        number = computed_answer(drawn)
        return f"{number:g}", [str(number + 1), "-1", "many", *[str(m.value) for m in drawn.mistakes]]
    if isinstance(drawn, Order):
        ids = [i.id for i in drawn.items]
        return ids, [ids[::-1], [*ids[:-2], ids[-1], ids[-2]], ids[:1]]
    if isinstance(drawn, Match):
        right = {p.id: right_id(p.id, drawn) for p in drawn.pairs}
        first = right[drawn.pairs[0].id]
        return right, [dict.fromkeys(right, first), {drawn.pairs[0].id: first}]
    if isinstance(drawn, FixYaml):
        return drawn.solution, [drawn.start, "x: [", "kind: Pod\nmetadata: {name: nobody}\n"]
    assert isinstance(drawn, PredictNode)
    best, _ = predicted(drawn)
    return best[0], [n for n in (*node_names(drawn.scenario), NONE) if n not in best]


@pytest.mark.parametrize(("name", "id"), QUESTIONS)
def test_right_is_full_marks_and_wrong_is_less(name: str, id: str) -> None:
    """The right answer gets 1; every other one less, with a line that says why."""
    question = find_bank(name).question(id)
    right, wrong = answers(question)
    assert mark(question, right, SEED).fraction == 1
    assert wrong
    for response in wrong:
        marked = mark(question, response, SEED)
        assert marked.fraction < 1, response
        assert any(line.status != "pass" or line.word != "right" for line in marked.lines)


@pytest.mark.parametrize("kind", ["multiple", "order", "match"])
def test_half_right_gets_a_part(kind: str) -> None:
    """Kinds with several parts pay for each part that is right."""
    found = [find_bank(n).question(i) for n, i in QUESTIONS if find_bank(n).question(i).kind == kind]
    for question in found:
        _, wrong = answers(question)
        assert any(0 < mark(question, response, SEED).fraction < 1 for response in wrong), question.id


def test_each_kind_is_there_several_times_in_both_new_banks() -> None:
    """All seven kinds, at least three times; parameterised questions too; two for each module named."""
    banks = {n: find_bank(n).questions for n in bank_names()}
    every = [q for questions in banks.values() for q in questions]
    assert {k: sum(q.kind == k for q in every) >= 3 for k in KINDS} == dict.fromkeys(KINDS, True)
    assert sum(bool(q.parameters) for q in every) >= 6
    assert len(banks["part1"]) >= 15
    assert len(banks["part2"]) >= 15
    topics = [q.topic for q in every]
    assert {t for t in topics if topics.count(t) < 2} == set()
    assert len(set(topics)) == 14


def test_parameters_change_the_answer() -> None:
    """A parameterised question has more than one right answer over its learners."""
    for name, id in QUESTIONS:
        question = find_bank(name).question(id)
        if not question.parameters:
            continue
        right = set()
        for i in range(20):
            drawn = instance(question, f"learner {i}")
            right.add(str(computed_answer(drawn) if isinstance(drawn, Numeric) else predicted(drawn)[0]))
        assert len(right) > 1, f"{name} {id}"


FIXES = [(n, q.id) for n in bank_names() for q in find_bank(n).questions if q.kind == "fix_yaml"]


@pytest.mark.parametrize(("name", "id"), FIXES)
def test_yaml_that_was_not_mended_earns_nothing(name: str, id: str) -> None:
    """Goals that hold at the start are no achievement; what is so instead is told in the learner's language."""
    question = find_bank(name).question(id)
    assert isinstance(question, FixYaml)
    with language("zh"):
        found = mark(question, question.start, "s")
    assert found.fraction == 0
    assert mark(question, question.solution, "s").fraction == 1
    assert not any(line.why.startswith(("expected", "got")) for line in found.lines)
