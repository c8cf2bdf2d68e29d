"""Does a whole bank hold? Schema, evidence, keys that the engine computes, solutions that must work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from labkit.errors import InputError, LabError
from labkit.places import data_dir
from labkit.quiz.bank import find_bank, read_bank
from labkit.quiz.evidence import Runner, check, computed_answer, engine_runner, predicted
from labkit.quiz.marking import mark, parse_number
from labkit.quiz.model import AnyQuestion, Bank, FixYaml, Numeric, PredictNode
from labkit.quiz.present import present
from labkit.quiz.scenario import instance

#: Parameterised questions are tried with this many learners' numbers.
SEEDS = 12


@dataclass
class BankReport:
    """What was checked and everything that does not hold, one line each."""

    name: str
    questions: int = 0
    runs: int = 0
    problems: list[str] = field(default_factory=list)


def verify_bank(name: str, *, run: bool = True, runner: Runner = engine_runner) -> BankReport:
    """Check a bank by name or file. Raises InputError only when there is no such bank."""
    report = BankReport(name)
    bank = _read(name, report)
    if bank is None:
        return report
    report.questions = len(bank.questions)
    if run:
        for question in bank.questions:
            verify_question(question, report, runner)
    return report


def _read(name: str, report: BankReport) -> Bank | None:
    path = Path(name) if name.endswith((".yaml", ".yml")) else data_dir("quizzes") / f"{name}.yaml"
    if not path.is_file():
        return find_bank(name)
    problems: list[InputError] = []
    bank = read_bank(path, problems)
    report.problems += [str(p) for p in problems]
    return bank


def verify_question(question: AnyQuestion, report: BankReport, runner: Runner) -> None:
    """Run everything that one question claims; failures go into the report."""

    def wrong(what: str) -> None:
        report.problems.append(f"question {question.id}: {what}")

    for number, evidence in enumerate(question.proofs):
        report.runs += 1
        for difference in check(evidence, runner).differences:
            wrong(f"evidence[{number}]: {difference}")
    for seed in [f"verify/{i}" for i in range(SEEDS)] if question.parameters else ["verify"]:
        try:
            _verify_key(instance(question, seed), seed, report, runner, wrong)
            present(question, seed)
        except LabError as e:
            wrong(f"seed {seed!r}: {e}")


def _verify_key(
    question: AnyQuestion, seed: str, report: BankReport, runner: Runner, wrong: Callable[[str], None]
) -> None:
    if isinstance(question, Numeric) and question.key is not None:
        report.runs += 1
        computed_answer(question, runner)
        for mistake in question.mistakes:
            value = parse_number(mistake.value)
            if value is None:
                wrong(f"seed {seed!r}: mistake {mistake.value!r} is no number")
    elif isinstance(question, Numeric):
        answer = float(question.answer or 0)
        if any(parse_number(m.value) == answer for m in question.mistakes):
            wrong("a mistake has the value of the right answer")
    elif isinstance(question, PredictNode):
        report.runs += 1
        predicted(question, runner)
    elif isinstance(question, FixYaml):
        report.runs += 2
        solved = mark(question, question.solution, seed, runner)
        if solved.fraction < 1:
            wrong("the solution does not work: " + "; ".join(x.why for x in solved.lines if x.why))
        if mark(question, question.start, seed, runner).fraction >= 1:
            wrong("the starting text works already")
