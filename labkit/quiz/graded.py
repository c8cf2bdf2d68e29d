"""Quizzes that count: what is shipped without the key, and how the grader finds its way back to the key.

In graded mode a course ships `quiz-<bank>.json` beside the notebook: the questions, no right answers, no
explanations. Ids that would tell something (of items to order, of right-hand sides) are replaced by ones made with
the course's secret. With variants every learner has own numbers, drawn from the learner's name.
"""

from __future__ import annotations

import ast
import hashlib
import hmac
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from labkit.errors import InputError
from labkit.quiz.bank import find_bank, load_bank
from labkit.quiz.model import (
    AnyQuestion,
    Bank,
    FixYaml,
    Match,
    Numeric,
    Order,
    Parameter,
    PredictNode,
    Scenario,
)
from labkit.quiz.present import (
    Choice,
    Shown,
    ShownBank,
    predict_choices,
    present,
    right_id,
    scenario_text,
    template,
)
from labkit.quiz.scenario import draw_values, fill

PRACTICE, GRADED = "practice", "graded"
COURSE_FILE = "course.json"
#: An instructor's own banks, which no learner has: `<course>/quizzes/<bank>.yaml`.
OWN_BANKS = "quizzes"


class Terms(msgspec.Struct, frozen=True):
    """How a course runs its quizzes; part of its `course.json`."""

    course_id: str = ""
    quiz: str = PRACTICE
    variants: bool = False
    secret: str = ""

    def seed(self, bank: str, student: str) -> str:
        """What a graded question's numbers come from: the course, or the learner where there are variants."""
        return f"{student if self.variants else self.course_id}/{bank}/0"


def terms_of(course: Path) -> Terms:
    """The terms in `course/course.json`. Raises InputError when it cannot be read."""
    try:
        return msgspec.json.decode((course / COURSE_FILE).read_bytes(), type=Terms)
    except (OSError, msgspec.DecodeError) as e:
        raise InputError(f"cannot be read: {e}", file=str(course / COURSE_FILE)) from e


def course_around(folder: Path) -> tuple[Path, str] | None:
    """(course, student) when `folder` is `<course>/<submitted or autograded>/<student>/<module>`."""
    here = folder.resolve()
    if len(here.parents) < 3 or here.parents[1].name not in ("submitted", "autograded"):
        return None
    course = here.parents[2]
    return (course, here.parents[0].name) if (course / COURSE_FILE).is_file() else None


def course_bank(name: str, course: Path | None) -> Bank:
    """The course's own bank of this name, else labkit's. Raises InputError."""
    own = course / OWN_BANKS / f"{name}.yaml" if course is not None else None
    return load_bank(own) if own is not None and own.is_file() else find_bank(name)


def hidden_bank(bank: Bank, terms: Terms) -> ShownBank:
    """The bank as it is shipped in graded mode."""
    seed = terms.seed(bank.id, "")
    questions: list[Shown] = []
    scenarios: dict[str, Scenario] = {}
    parameters: dict[str, dict[str, Parameter]] = {}
    for question in bank.questions:
        if terms.variants and question.parameters:
            shown = template(question)
            parameters[question.id] = question.parameters
            if isinstance(question, PredictNode | Numeric | FixYaml) and question.scenario is not None:
                scenarios[question.id] = question.scenario
        else:
            shown = present(question, seed)
        if isinstance(question, Order | Match):
            shown = msgspec.structs.replace(shown, choices=_opaque(question, shown.choices, terms))
        questions.append(shown)
    return ShownBank(bank.id, bank.title, questions, "" if terms.variants else seed, scenarios, parameters)


def _opaque(question: AnyQuestion, choices: list[Choice], terms: Terms) -> list[Choice]:
    """In the order of the new ids, which says nothing about the right one."""
    return sorted(
        (Choice(opaque_id(question, c.id, terms), c.text) for c in choices), key=lambda choice: choice.id
    )


def opaque_id(question: AnyQuestion, id: str, terms: Terms) -> str:
    """The id under which a choice is shipped; not to be had without the course's secret."""
    digest = hmac.new(terms.secret.encode(), f"{question.id}/{id}".encode(), hashlib.sha256)
    return "x" + digest.hexdigest()[:8]


def variant(bank: ShownBank, id: str, seed: str) -> Shown:
    """A shipped question with the numbers of this seed: the ones that the grader will draw."""
    shown = next(q for q in bank.questions if q.id == id)
    if id not in bank.parameters:
        return shown
    values = draw_values(id, bank.parameters[id], seed)
    filled: Shown = msgspec.convert({**fill(msgspec.to_builtins(shown), values), "id": id}, Shown)
    if id not in bank.scenarios:
        return filled
    scenario = msgspec.convert(fill(msgspec.to_builtins(bank.scenarios[id]), values), Scenario)
    choices = predict_choices(scenario) if shown.kind == "predict_node" else filled.choices
    return msgspec.structs.replace(filled, given=scenario_text(scenario), choices=choices)


def revealed(question: AnyQuestion, response: Any, terms: Terms) -> Any:
    """A response to the shipped question in the bank's own ids. What was not shipped becomes nothing."""
    if isinstance(question, Order) and isinstance(response, list):
        own = {opaque_id(question, i.id, terms): i.id for i in question.items}
        return [own.get(str(given), "") for given in response]
    if isinstance(question, Match) and isinstance(response, dict):
        rights = [right_id(p.id, question) for p in question.pairs]
        back = {opaque_id(question, right, terms): right for right in rights}
        return {left: back.get(str(given), "") for left, given in response.items()}
    return response


def banks_in(sources: Iterable[str]) -> list[str]:
    """Banks that code cells use: the first argument of `quiz("part3", 8)` and `score("part3", 8)`."""
    found: list[str] = []
    for source in sources:
        try:
            calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call) and n.args]
        except SyntaxError:
            continue
        for call in calls:
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            first = call.args[0]
            if name in ("quiz", "score") and isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.append(first.value)
    return list(dict.fromkeys(found))


def ship(banks: Iterable[str], folder: Path, course: Path | None, terms: Terms) -> list[Path]:
    """Put beside a notebook what its quizzes need: in graded mode the questions alone, in practice the course's own
    banks whole (labkit's are installed). Returns what was written. Raises InputError for an unknown bank."""
    written = []
    for name in banks:
        bank = course_bank(name, course)
        own = course / OWN_BANKS / f"{name}.yaml" if course is not None else None
        path = folder / f"quiz-{name}.json"
        if terms.quiz == GRADED:
            content = msgspec.to_builtins(hidden_bank(bank, terms))
            path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            written.append(path)
        elif own is not None and own.is_file():
            path = folder / f"quiz-{name}.yaml"
            path.write_bytes(own.read_bytes())
            written.append(path)
    return written
