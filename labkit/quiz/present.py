"""What a learner is shown: a question without its key. This alone is shipped in graded mode."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import yaml

from labkit.errors import InputError
from labkit.quiz.model import (
    AnyQuestion,
    Bank,
    FixYaml,
    Match,
    Multiple,
    Numeric,
    Order,
    Parameter,
    PredictNode,
    Question,
    Scenario,
    Single,
    Text,
)
from labkit.quiz.scenario import instance

NONE = "none"


class Choice(msgspec.Struct, frozen=True):
    """Something that can be chosen, put in order, or matched to."""

    id: str
    text: Text


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it is asked. `choices` are options, items or right-hand sides, `lefts` what to match."""

    id: str
    kind: str
    text: Text
    topic: str = ""
    points: float = 1
    hint: Text | None = None
    choices: list[Choice] = []
    lefts: list[Choice] = []
    unit: str = ""
    start: str = ""
    given: str = ""


class ShownBank(msgspec.Struct, frozen=True):
    """A bank without keys: what `labkit course release` puts beside a graded notebook.

    `seed` is everybody's; empty where every learner has own numbers, which come from `parameters` and go into the
    texts and, by question, into `scenarios` (`labkit.quiz.graded.variant`).
    """

    id: str
    title: Text
    questions: list[Shown]
    seed: str = ""
    scenarios: dict[str, Scenario] = {}
    parameters: dict[str, dict[str, Parameter]] = {}


def present(question: AnyQuestion, seed: str) -> Shown:
    """The question as the learner with this seed sees it."""
    return _shown(instance(question, seed), seed)


def template(question: AnyQuestion) -> Shown:
    """The question with `${name}` where its numbers go, without what must be computed from them."""
    if isinstance(question, PredictNode):
        common = {"id": question.id, "kind": question.kind, "text": question.text, "topic": question.topic}
        return Shown(**common, points=question.points, hint=question.hint)  # type: ignore[arg-type]
    return _shown(question, "")


def _shown(question: AnyQuestion, seed: str) -> Shown:
    common: dict[str, Any] = {
        "id": question.id,
        "kind": question.kind,
        "text": question.text,
        "topic": question.topic,
    }
    common |= {"points": question.points, "hint": question.hint}
    if isinstance(question, Single | Multiple):
        return Shown(**common, choices=[Choice(o.id, o.text) for o in question.options])
    if isinstance(question, Order):
        return Shown(
            **common, choices=_shuffled([Choice(i.id, i.text) for i in question.items], question, seed)
        )
    if isinstance(question, Match):
        # The right-hand sides get ids of their own: equal ids would give the pairs away.
        rights = _shuffled(
            [Choice(right_id(p.id, question), p.right) for p in question.pairs], question, seed
        )
        return Shown(**common, choices=rights, lefts=[Choice(p.id, p.left) for p in question.pairs])
    if isinstance(question, FixYaml):
        return Shown(**common, start=question.start, given=scenario_text(question.scenario))
    if isinstance(question, PredictNode):
        return Shown(
            **common, choices=predict_choices(question.scenario), given=scenario_text(question.scenario)
        )
    given = scenario_text(question.scenario) if isinstance(question, Numeric) and question.scenario else ""
    return Shown(**common, unit=getattr(question, "unit", ""), given=given)


def predict_choices(scenario: Scenario) -> list[Choice]:
    """Every node, and none."""
    choices = [Choice(n, Text(n, n)) for n in node_names(scenario)]
    return [*choices, Choice(NONE, Text("No node: it stays Pending", "没有节点：保持 Pending"))]


def right_id(pair: str, question: Question) -> str:
    """The id under which the right-hand side of a pair is shown."""
    return "r" + hashlib.sha256(f"{question.id}/{pair}".encode()).hexdigest()[:6]


def _shuffled(choices: list[Choice], question: Question, seed: str) -> list[Choice]:
    """Never in the order in which the bank lists them, which is the right one."""
    shuffled = list(choices)
    rng = random.Random(f"{seed}/{question.id}/order")
    while len(choices) > 1 and shuffled == choices:
        rng.shuffle(shuffled)
    return shuffled


def scenario_text(scenario: Scenario) -> str:
    """The scenario as YAML to read; empty when there is nothing."""
    raw = {k: v for k, v in msgspec.to_builtins(scenario).items() if v}
    if not raw:
        return ""
    return yaml.dump(raw, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=100).strip()


class _Readable(yaml.SafeDumper):
    """Short maps on one line, texts of several lines as blocks."""


def _map(dumper: yaml.SafeDumper, value: dict[str, Any]) -> yaml.Node:
    flat = bool(value) and not any(isinstance(v, dict | list) and v for v in value.values())
    return dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=flat)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Readable.add_representer(dict, _map)
_Readable.add_representer(str, _text)


def node_names(scenario: Scenario) -> list[str]:
    """Nodes of a scenario, in either form."""
    from labkit.quiz.scenario import engine_input

    return [str(o["metadata"]["name"]) for o in engine_input(scenario)["objects"] if o.get("kind") == "Node"]


def shown_bank(bank: Bank, seed: str, ids: list[str] | None = None) -> ShownBank:
    """The bank (or some of its questions) for a learner, without keys."""
    questions = [bank.question(i) for i in ids] if ids else bank.questions
    return ShownBank(bank.id, bank.title, [present(q, seed) for q in questions], seed)


def write_shown(shown: ShownBank, path: Path) -> None:
    """Write the shipped form."""
    path.write_text(
        json.dumps(msgspec.to_builtins(shown), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )


def read_shown(path: Path) -> ShownBank:
    """Read the shipped form. Raises InputError naming the file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ShownBank)
    except (OSError, msgspec.DecodeError) as e:
        raise InputError(f"is not a released question bank: {e}", file=str(path)) from e
