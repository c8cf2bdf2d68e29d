"""From a response to a mark: how much of it is right, and why, for every option."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from labkit.errors import InputError, LabError
from labkit.i18n import t
from labkit.quiz.evidence import (
    Outcome,
    Runner,
    compare,
    computed_answer,
    engine_runner,
    look_up,
    predicted,
    run_scenario,
)
from labkit.quiz.model import AnyQuestion, FixYaml, Match, Multiple, Numeric, Order, PredictNode, Single
from labkit.quiz.present import NONE, node_names, right_id
from labkit.quiz.scenario import instance


@dataclass
class Line:
    """What there is to say about one option: a status with a word for it, the option, and why."""

    id: str
    status: str
    text: str
    why: str = ""
    word: str = ""

    def __post_init__(self) -> None:
        if not self.word:
            words = {
                "pass": t("right", "正确"),
                "fail": t("not right", "不正确"),
                "skip": t("not it", "不是"),
            }
            self.word = words.get(self.status, t("error", "错误"))


@dataclass
class Mark:
    """`fraction` from 0 to 1; the rest explains it in the current language."""

    fraction: float
    lines: list[Line] = field(default_factory=list)
    explanation: str = ""
    corrections: list[tuple[str, str]] = field(default_factory=list)
    right: Any = None

    @property
    def verdict(self) -> str:
        """In one or two words."""
        if self.fraction >= 1:
            return t("Right", "正确")
        return t("Partly right", "部分正确") if self.fraction > 0 else t("Not right", "不正确")


def is_answered(response: Any) -> bool:
    """False for "nothing chosen yet"."""
    return response is not None and response not in ("", [], {})


def mark(question: AnyQuestion, response: Any, seed: str, runner: Runner = engine_runner) -> Mark:
    """Mark a response. A response of a wrong type or with unknown ids counts as wrong, never as an error."""
    question = instance(question, seed)
    result = _mark(question, response, runner)
    result.fraction = min(1.0, max(0.0, result.fraction))
    result.explanation = str(question.explanation or "") or result.explanation
    result.corrections = [(str(c.source), str(c.fact)) for c in question.corrections]
    return result


def _mark(question: AnyQuestion, response: Any, runner: Runner) -> Mark:
    if isinstance(question, Single):
        right = next(o.id for o in question.options if o.correct)
        return Mark(
            float(response == right),
            _option_lines(question, {response} if _text(response) else set()),
            right=right,
        )
    if isinstance(question, Multiple):
        return _mark_multiple(question, response)
    if isinstance(question, Numeric):
        return _mark_numeric(question, response, runner)
    if isinstance(question, Order):
        return _mark_order(question, response)
    if isinstance(question, Match):
        return _mark_match(question, response)
    if isinstance(question, FixYaml):
        return _mark_fix(question, response, runner)
    return _mark_predict(question, response, runner)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> list[str]:
    return (
        [v for v in value if isinstance(v, str)] if isinstance(value, Iterable) and not _text(value) else []
    )


def _option_lines(question: Single | Multiple, chosen: set[str]) -> list[Line]:
    lines = []
    for option in question.options:
        picked = option.id in chosen
        status = "pass" if option.correct else "fail" if picked else "skip"
        if option.correct:
            word = t("right", "正确") if picked else t("right, not chosen", "正确，未选")
        else:
            word = t("chosen, wrong", "已选，错误") if picked else t("wrong", "错误")
        lines.append(Line(option.id, status, str(option.text), str(option.explain), word))
    return lines


def _mark_multiple(question: Multiple, response: Any) -> Mark:
    """Each right choice adds its share, each wrong choice takes one away; never below 0."""
    chosen = set(_texts(response))
    right = {o.id for o in question.options if o.correct}
    wrong = {o.id for o in question.options if not o.correct}
    fraction = len(chosen & right) / len(right) - len(chosen & wrong) / max(len(wrong), 1)
    return Mark(fraction, _option_lines(question, chosen), right=sorted(right))


def parse_number(text: Any) -> float | None:
    """A number as people type it: "72", "72,5", "7/8", "72 %". None when it is none."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    cleaned = str(text).strip().removesuffix("%").strip().replace("，", ",").replace("。", ".")
    if cleaned.count(",") == 1 and "." not in cleaned:
        cleaned = cleaned.replace(",", ".")
    try:
        if cleaned.count("/") == 1:
            above, below = cleaned.split("/")
            value = float(above) / float(below)
        else:
            value = float(cleaned)
    except (ValueError, ZeroDivisionError):
        return None
    return value if math.isfinite(value) else None


def _mark_numeric(question: Numeric, response: Any, runner: Runner) -> Mark:
    answer = computed_answer(question, runner)
    value = parse_number(response)
    shown = f"{answer:g}{' ' + question.unit if question.unit else ''}"
    lines = [Line("answer", "pass", shown, t("the right number", "正确的数"))]
    if value is not None and abs(value - answer) <= question.tolerance:
        return Mark(1.0, lines, right=answer)
    for mistake in question.mistakes:
        expected = parse_number(mistake.value)
        if (
            value is not None
            and expected is not None
            and abs(value - expected) <= max(question.tolerance, 1e-9)
        ):
            lines.append(Line("mistake", "fail", f"{value:g}", str(mistake.explain)))
            break
    else:
        said = str(response) if is_answered(response) else t("nothing", "空")
        why = "" if value is not None else t("not a number", "不是数字")
        lines.append(Line("given", "fail", said, why))
    return Mark(0.0, lines, right=answer)


def _mark_order(question: Order, response: Any) -> Mark:
    """By pairs: the share of pairs in the right order, counted from one half (chance) upwards."""
    right = [i.id for i in question.items]
    given = [i for i in dict.fromkeys(_texts(response)) if i in right]
    place = {name: number for number, name in enumerate(given)}
    pairs = [(a, b) for i, a in enumerate(right) for b in right[i + 1 :]]
    ordered = sum(a in place and b in place and place[a] < place[b] for a, b in pairs)
    lines = []
    for number, item in enumerate(question.items):
        at = place.get(item.id)
        said = (
            ""
            if at == number
            else t(f"you had it at {at + 1}", f"你放在第 {at + 1} 位")
            if at is not None
            else ""
        )
        why = " ".join(w for w in (said, str(item.explain or "")) if w)
        lines.append(Line(item.id, "pass" if at == number else "fail", f"{number + 1}. {item.text}", why))
    return Mark(2 * ordered / len(pairs) - 1, lines, right=right)


def _mark_match(question: Match, response: Any) -> Mark:
    given = response if isinstance(response, dict) else {}
    rights = {right_id(p.id, question): p for p in question.pairs}
    lines, correct = [], 0
    for pair in question.pairs:
        said = rights.get(str(given.get(pair.id)))
        # Two pairs may have the same right-hand side; either is right.
        good = said is not None and said.right == pair.right
        correct += good
        lines.append(
            Line(pair.id, "pass" if good else "fail", f"{pair.left} → {pair.right}", str(pair.explain or ""))
        )
    return Mark(
        correct / len(question.pairs), lines, right={p.id: right_id(p.id, question) for p in question.pairs}
    )


def _mark_fix(question: FixYaml, response: Any, runner: Runner) -> Mark:
    """The share of goals that hold when the learner's YAML is run, beyond those that held at the start."""
    text = response if isinstance(response, str) else ""
    try:
        outcome = run_scenario(question.scenario, runner, **{question.part: text})
    except LabError as e:
        return Mark(
            0.0, [Line("yaml", "error", t("it does not run", "无法运行"), str(e))], right=question.solution
        )
    if outcome.error is not None:
        said = t("kube-scheduler refuses this configuration", "kube-scheduler 拒绝这份配置")
        return Mark(0.0, [Line("config", "fail", said, outcome.error)], right=question.solution)
    lines = []
    for pod, fact, wanted in _goals(question):
        held = _holds(outcome, pod, fact, wanted)
        why = "" if held else _instead(outcome, pod, fact)
        lines.append(Line(f"{pod}.{fact}", "pass" if held else "fail", f"{pod}: {fact} = {wanted}", why))
    met, given = sum(line.status == "pass" for line in lines), _held_at_start(question, runner)
    return Mark((met - given) / max(len(lines) - given, 1), lines, right=question.solution)


def _goals(question: FixYaml) -> list[tuple[str, str, Any]]:
    return [(pod, fact, wanted) for pod, facts in question.goal.items() for fact, wanted in facts.items()]


def _holds(outcome: Outcome, pod: str, fact: str, wanted: Any) -> bool:
    return not list(compare({pod: {fact: wanted}}, outcome.decisions))


def _held_at_start(question: FixYaml, runner: Runner) -> int:
    try:
        outcome = run_scenario(question.scenario, runner, **{question.part: question.start})
    except LabError:
        return 0
    return sum(_holds(outcome, *goal) for goal in _goals(question))


def _instead(outcome: Outcome, pod: str, fact: str) -> str:
    """What is so in the place of a goal, with the pod's own message."""
    decision = outcome.decisions.get(pod)
    if decision is None:
        return t("there is no pod of this name", "没有这个名字的 Pod")
    found = look_up(decision, fact)
    said = t("there is none", "没有") if found is None else t(f"it is {found}", f"实际为 {found}")
    message = str(decision.get("message") or "")
    return f"{said}{t('. ', '。')}{message}" if message else said


def _mark_predict(question: PredictNode, response: Any, runner: Runner) -> Mark:
    best, decision = predicted(question, runner)
    lines = [predict_line(node, response, best, decision) for node in (*node_names(question.scenario), NONE)]
    message = decision.get("fullMessage") or ""
    return Mark(float(response in best), lines, explanation=str(message), right=best)


def predict_line(node: str, response: Any, best: list[str], decision: dict[str, Any]) -> Line:
    """Why the pod goes to `node`, or why not, as the trace tells it."""
    status = "pass" if node in best else "fail" if response == node else "skip"
    if node == NONE:
        text = t("No node", "没有节点")
        return Line(
            node, status, text, "" if node in best else t("at least one node fits", "至少有一个节点合适")
        )
    verdict = (decision.get("filter") or {}).get(node)
    total = ((decision.get("scores") or {}).get(node) or {}).get("total")
    if verdict is not None and verdict.get("code") != "Success":
        why = f"{verdict.get('plugin')}: {', '.join(verdict.get('reasons') or [])}"
    elif total is not None:
        parts = decision["scores"][node]["plugins"]
        why = (
            t("total", "总分")
            + f" {total} = "
            + " + ".join(f"{name} {p['weighted']}" for name, p in parts.items())
        )
    elif verdict is None:
        why = t("PreFilter left it out", "PreFilter 已排除")
    else:
        why = t("the only node that fits", "唯一合适的节点")
    return Line(node, status, node, why)


def points(question: AnyQuestion, response: Any, seed: str, runner: Runner = engine_runner) -> float:
    """The question's points for this response. A question that cannot be run raises InputError."""
    if not is_answered(response):
        return 0.0
    result = mark(question, response, seed, runner)
    if not 0 <= result.fraction <= 1:
        raise InputError(
            "is not between 0 and 1",
            object=f"question {question.id}",
            field="fraction",
            value=result.fraction,
        )
    return round(result.fraction * question.points, 4)
