"""Every learner has own numbers: the same ones each time, shown without the key, and the ones that grading uses."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from labkit.course.grade import grade
from labkit.course.project import Course, release
from labkit.errors import InputError
from labkit.quiz.bank import bank_names, find_bank
from labkit.quiz.evidence import computed_answer, predicted
from labkit.quiz.graded import Terms, hidden_bank, variant
from labkit.quiz.model import AnyQuestion, Numeric
from labkit.quiz.present import NONE, present
from labkit.quiz.scenario import draw, instance
from labkit.quiz.session import Session, question_scores
from labkit.widgets.quiz import QuizController

from tests.course.test_graded_quiz import MODULE, NAME, new_course, write_module
from tests.quiz import banks

TERMS = Terms("course", "graded", True, "secret")
PARAMETERISED = [(name, q.id) for name in bank_names() for q in find_bank(name).questions if q.parameters]
STUDENTS = [f"student-{n}" for n in range(12)]

#: Answered by the engine of this lab: which raw score?
BALANCED = """
title: {en: Numbers, zh: 数字}
questions:
  - id: balance
    kind: numeric
    text: {en: "A pod of ${cpu} CPUs and ${memory}Gi on an empty node of 10 and 10Gi: BalancedAllocation?", zh: "空节点 10 CPU、10Gi，Pod 请求 ${cpu} CPU 和 ${memory}Gi：BalancedAllocation？"}
    parameters: {cpu: {choose: [4, 5, 6, 8]}, memory: {choose: [1, 2, 3]}}
    scenario:
      nodes: {n1: {cpu: 10, memory: 10Gi}, n2: {cpu: 20, memory: 20Gi}}
      pods: {web: {cpu: "${cpu}", memory: "${memory}Gi"}}
    key: [web, scores, n1, plugins, NodeResourcesBalancedAllocation, raw]
"""


def test_there_are_families_in_the_banks() -> None:
    """What follows is about something."""
    assert len(PARAMETERISED) >= 8


@pytest.mark.parametrize(("bank", "id"), PARAMETERISED)
def test_learners_differ_and_stay_the_same(bank: str, id: str) -> None:
    """Twelve learners do not all get the same numbers; asked again, each gets the same, whatever `random` did."""
    question = find_bank(bank).question(id)
    first = {s: draw(question, TERMS.seed(bank, s)) for s in STUDENTS}
    assert len({json.dumps(v, sort_keys=True) for v in first.values()}) > 1
    random.seed(99)
    assert {s: draw(question, TERMS.seed(bank, s)) for s in reversed(STUDENTS)} == {
        s: first[s] for s in reversed(STUDENTS)
    }


def test_numbers_never_change_between_versions() -> None:
    """Pinned: a class that is half-way must not get others with the next release of labkit."""
    question = find_bank("part2").question("3")
    drawn = {s: draw(question, TERMS.seed("part2", s)) for s in ("ada", "bo", "艾达")}
    assert drawn == {
        "ada": {"cpu": 6, "memory": 3},
        "bo": {"cpu": 8, "memory": 3},
        "艾达": {"cpu": 5, "memory": 1},
    }


@pytest.mark.parametrize(("bank", "id"), PARAMETERISED)
def test_what_is_shown_is_what_the_grader_marks(bank: str, id: str) -> None:
    """The shipped template, filled on the learner's machine, is the question that the grader has, word for word."""
    whole = find_bank(bank)
    shipped = hidden_bank(whole, TERMS)
    for student in STUDENTS[:5]:
        seed = TERMS.seed(bank, student)
        shown = variant(shipped, id, seed)
        assert shown == present(whole.question(id), seed)
        assert "${" not in f"{shown}"


def test_the_answer_differs_between_learners() -> None:
    """Copying from a neighbour does not pay: for every family some learners' answers are different."""
    for bank, id in PARAMETERISED:
        question = find_bank(bank).question(id)
        assert len({str(answer(question, TERMS.seed(bank, s))) for s in STUDENTS}) > 1, (bank, id)


def answer(question: AnyQuestion, seed: str) -> Any:
    """The right answer with these numbers, by the engine."""
    mine = instance(question, seed)
    if isinstance(mine, Numeric):
        return computed_answer(mine)
    best, _ = predicted(mine)
    return sorted(best)[0] if best else NONE


def variants_course(base: Path) -> Course:
    """A graded course with variants whose module asks `balance` of its own bank."""
    course = new_course(base, variants=True)
    (course.root / "quizzes" / "kinds.yaml").write_text(BALANCED, encoding="utf-8")
    text = MODULE.replace('"one", "many", "order", "match"', '"balance"').replace(
        '"many", "order", "match"', '"balance"'
    )
    write_module(base / "notebooks", text.replace('"one"', '"balance"'))
    return course


@pytest.mark.nbgrader
def test_from_release_to_marks(tmp_path: Path) -> None:
    """Released to each by name; own right answer is full, the neighbour's and one given under another name are 0."""
    course = variants_course(tmp_path)
    made = release(
        course, "43", ["en", "zh"], students=["ada", "bo", "cy", "dee"], root=tmp_path / "notebooks"
    )
    assert made.students == ["ada", "bo", "cy", "dee"]
    for path in (course.root / "release-to").rglob("*"):
        if path.is_file():
            assert '"key"' not in path.read_text(encoding="utf-8"), path
    from labkit.quiz.bank import load_bank

    question = load_bank(course.root / "quizzes" / "kinds.yaml").question("balance")
    answers = {s: answer(question, f"{s}/kinds/0") for s in ("ada", "bo", "cy", "dee")}
    other = next(s for s in ("bo", "cy", "dee") if answers[s] != answers["ada"])
    given = {"ada": answers["ada"], "bo": answers["bo"], "cy": answers["cy"], "dee": answers["dee"]}
    given[other] = answers["ada"]
    for student, value in given.items():
        taken = course.root / "release-to" / student / (f"{NAME}-zh" if student == "ada" else NAME)
        folder = course.root / "submitted" / student / NAME
        shutil.copytree(taken, folder)
        session = Session("kinds", folder=folder)
        assert session.student == student
        session.submit("balance", str(value))
    shutil.copytree(course.root / "release" / NAME, course.root / "submitted" / "eve" / NAME)
    Session("kinds", folder=course.root / "submitted" / "eve" / NAME, student="ada").submit(
        "balance", str(answers["ada"])
    )
    records = {r.student: r for r in grade(course, NAME).records}
    expected = {s: {"one-question": 1.0, "three-questions": 6.0} for s in given}
    expected[other] = expected["eve"] = {"one-question": 0.0, "three-questions": 0.0}
    assert {s: r.marks for s, r in records.items()} == expected
    assert records["eve"].notes["one-question"] == "balance: answered with the numbers of ada/kinds/0"
    before = {s: r.marks for s, r in records.items()}
    assert {r.student: r.marks for r in grade(course, NAME).records} == before


def test_a_learner_without_a_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody works with numbers that do not count: the widget says what to write where; then, and on a hub, it works."""
    for name in ("LABKIT_STUDENT", "JUPYTERHUB_USER"):
        monkeypatch.delenv(name, raising=False)
    course = variants_course(tmp_path)
    from labkit.quiz.graded import ship

    ship(["kinds"], tmp_path, course.root, course.settings.terms)
    with pytest.raises(InputError, match=r"(?s)must be your name in the course.*lab\.json"):
        Session("kinds", folder=tmp_path)
    (tmp_path / "lab.json").write_text('{"language": "zh", "student": "ada"}')
    named = QuizController(Session("kinds", folder=tmp_path))
    monkeypatch.setenv("JUPYTERHUB_USER", "bo")
    assert Session("kinds", folder=tmp_path).student == "ada"
    (tmp_path / "lab.json").unlink()
    hub = QuizController(Session("kinds", folder=tmp_path))
    assert hub.session.student == "bo"
    pages = [json.dumps(w.view(), ensure_ascii=False) for w in (named, hub)]
    assert not any("${" in page for page in pages)


def test_there_are_no_other_numbers_to_choose_from(tmp_path: Path) -> None:
    """In graded mode `another` does nothing, and an attempt with an own seed does not change what is shown."""
    course = variants_course(tmp_path)
    from labkit.quiz.graded import ship

    ship(["kinds"], tmp_path, course.root, course.settings.terms)
    session = Session("kinds", folder=tmp_path, student="ada")
    before = session.shown("balance")
    session.another("balance")
    session.answers.add("balance", "50", "ada/kinds/17")
    assert session.seed("balance") == "ada/kinds/0"
    assert session.shown("balance") == before
    found = question_scores("kinds", "balance", folder=tmp_path, student="ada", course=course.root)
    assert found is not None
    assert (found[0].fraction, found[0].note) == (0, "answered with the numbers of ada/kinds/17")


def test_without_variants_the_class_has_the_same_numbers(tmp_path: Path) -> None:
    """One seed for the course, shipped with the bank, whoever answers; another course has its own."""
    (tmp_path / "x").mkdir()
    whole = banks.bank(tmp_path / "x")
    one, two = (hidden_bank(whole, Terms(id, "graded", False, "secret")) for id in ("c1", "c2"))
    assert one.parameters == {}
    assert one.seed == "c1/kinds/0"
    assert Session(one, student="ada", folder=tmp_path).shown("number") == Session(
        one, student="bo", folder=tmp_path
    ).shown("number")
    assert two.seed != one.seed


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a\\b"])
def test_names_that_are_paths_are_refused(tmp_path: Path, name: str) -> None:
    """A roster cannot write outside the course."""
    course = variants_course(tmp_path)
    with pytest.raises(InputError, match="cannot be a student's name"):
        release(course, "43", students=[name], root=tmp_path / "notebooks")
