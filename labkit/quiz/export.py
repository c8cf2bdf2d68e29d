"""Banks for learning platforms: Moodle XML, GIFT, QTI 2.1. In the current language, keys computed by the engine.

A kind that a format lacks becomes the nearest one that it has, and a note says so: nothing is left out silently.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.errors import InputError
from labkit.i18n import t
from labkit.quiz.evidence import Runner, computed_answer, engine_runner, predicted
from labkit.quiz.marking import parse_number, predict_line
from labkit.quiz.model import AnyQuestion, Bank, FixYaml, Match, Multiple, Numeric, Order, PredictNode, Single
from labkit.quiz.present import present, scenario_text
from labkit.quiz.scenario import instance

FORMATS = ("moodle-xml", "gift", "qti")


@dataclass
class FlatOption:
    """One option: right or not, and why."""

    text: str
    right: bool
    why: str = ""


@dataclass
class Flat:
    """A question as platforms know it. `kind`: single, multiple, numeric, order, match or essay."""

    id: str
    kind: str
    text: str
    points: float
    code: str = ""
    options: list[FlatOption] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    answer: float = 0
    tolerance: float = 0
    feedback: str = ""
    #: YAML that is right, shown with the feedback.
    solution: str = ""


def flatten(question: AnyQuestion, seed: str, runner: Runner = engine_runner) -> Flat:
    """The question with its numbers drawn and its key computed. Raises InputError when the engine gives none."""
    question = instance(question, seed)
    shown = present(question, seed)
    flat = Flat(
        question.id, question.kind, str(question.text), question.points, code=shown.given or shown.start
    )
    corrected = [
        t(
            f"Often said: {c.source} Kubernetes 1.36: {c.fact}",
            f"常见说法：{c.source} Kubernetes 1.36：{c.fact}",
        )
        for c in question.corrections
    ]
    flat.feedback = "\n\n".join([*([str(question.explanation)] if question.explanation else []), *corrected])
    if isinstance(question, Single | Multiple):
        flat.options = [FlatOption(str(o.text), o.correct, str(o.explain)) for o in question.options]
    elif isinstance(question, Numeric):
        flat.answer, flat.tolerance = computed_answer(question, runner), question.tolerance
        for mistake in question.mistakes:
            value = parse_number(mistake.value)
            if value is not None:
                flat.options.append(FlatOption(f"{value:g}", False, str(mistake.explain)))
    elif isinstance(question, Order):
        flat.options = [FlatOption(str(i.text), True, str(i.explain or "")) for i in question.items]
    elif isinstance(question, Match):
        flat.pairs = [(str(p.left), str(p.right)) for p in question.pairs]
        # Platforms have no place for the reason of a pair.
        whys = "\n".join(f"{p.left}: {p.explain}" for p in question.pairs if p.explain is not None)
        flat.feedback = "\n\n".join(x for x in (whys, flat.feedback) if x)
    elif isinstance(question, PredictNode):
        flat.kind = "single"
        best, decision = predicted(question, runner)
        for choice in shown.choices:
            line = predict_line(choice.id, None, best, decision)
            flat.options.append(FlatOption(str(choice.text), choice.id in best, line.why))
        if len(best) > 1:
            flat.kind = "multiple"
    elif isinstance(question, FixYaml):
        flat.kind = "essay"
        flat.code = "\n".join(x for x in (scenario_text(question.scenario), question.start) if x)
        flat.solution = question.solution.rstrip()
    return flat


def export_bank(
    bank: Bank, format: str, seed: str, runner: Runner = engine_runner
) -> tuple[bytes, list[str]]:
    """The file's content, and a note for every question that had to change its kind. Raises InputError."""
    if format not in FORMATS:
        raise InputError(
            "is no export format", field="--format", value=format, hint="formats: " + ", ".join(FORMATS)
        )
    flats = [flatten(q, seed, runner) for q in bank.questions]
    notes = [
        t(
            f"question {f.id}: fix_yaml becomes a text answer marked by a person",
            f"问题 {f.id}：fix_yaml 变为人工评分的文本题",
        )
        for f in flats
        if f.kind == "essay"
    ]
    if format == "moodle-xml":
        from labkit.quiz.export_moodle import moodle_xml

        return moodle_xml(bank, flats), notes
    if format == "qti":
        from labkit.quiz.export_qti import qti_package

        return qti_package(bank, flats), notes
    notes += [
        t(
            f"question {f.id}: GIFT has no ordering; it becomes matching",
            f"问题 {f.id}：GIFT 没有排序题，改为配对题",
        )
        for f in flats
        if f.kind == "order"
    ]
    return gift(bank, flats).encode(), notes


def gift(bank: Bank, flats: list[Flat]) -> str:
    """Moodle's GIFT text format."""
    parts = [f"$CATEGORY: {_gift(bank.id)}\n"]
    for flat in flats:
        text = _gift(flat.text)
        if flat.code:
            text += _gift_code(flat.code)
        parts.append(f"::{_gift(bank.id)}-{_gift(flat.id)}::[markdown]{text} {{{_gift_answers(flat)}}}\n")
    return "\n".join(parts)


def _gift_answers(flat: Flat) -> str:
    lines: list[str] = []
    if flat.kind == "single":
        lines = [f"{'=' if o.right else '~'}{_gift(o.text)}{_gift_why(o.why)}" for o in flat.options]
    elif flat.kind == "multiple":
        rights = sum(o.right for o in flat.options)
        wrongs = len(flat.options) - rights
        for o in flat.options:
            share = 100 / rights if o.right else -100 / wrongs
            lines.append(f"~%{share:.5f}%{_gift(o.text)}{_gift_why(o.why)}")
    elif flat.kind == "numeric":
        lines = [f"#=%100%{flat.answer:g}:{flat.tolerance:g}"]
        lines += [f"=%0%{o.text}:0{_gift_why(o.why)}" for o in flat.options]
    elif flat.kind == "order":
        lines = [f"={number} -> {_gift(o.text)}" for number, o in enumerate(flat.options, 1)]
    elif flat.kind == "match":
        lines = [f"={_gift(left)} -> {_gift(right)}" for left, right in flat.pairs]
    if flat.feedback or flat.solution:
        lines.append(f"####{_gift(flat.feedback)}{_gift_code(flat.solution)}")
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def _gift_why(why: str) -> str:
    return f"#{_gift(why)}" if why else ""


def _gift_code(code: str) -> str:
    """Markdown keeps lines and indentation of what is indented by four."""
    return "\\n\\n" + "\\n".join(f"    {_gift_line(line)}" for line in code.splitlines()) if code else ""


def _gift(text: str) -> str:
    return _gift_line(text.strip()).replace("\n", "\\n")


def _gift_line(text: str) -> str:
    return "".join("\\" + ch if ch in "~=#{}:\\" else ch for ch in text)
