"""A learner at a bank: questions shown, answers stored, and, in practice, marked at once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from labkit.errors import InputError
from labkit.i18n import LANGUAGE_FILE
from labkit.quiz.answers import Answers, Attempt
from labkit.quiz.bank import find_bank
from labkit.quiz.evidence import Outcome, Runner, check, engine_runner
from labkit.quiz.marking import Mark, is_answered, mark
from labkit.quiz.model import AnyQuestion, Bank
from labkit.quiz.present import Shown, ShownBank, present, read_shown

PRACTICE, GRADED = "practice", "graded"


class Session:
    """Questions and answers of one bank. In graded mode there is no key here, and `mark` gives None."""

    def __init__(
        self,
        bank: str | Bank | ShownBank,
        ids: list[str] | None = None,
        *,
        folder: Path | None = None,
        student: str | None = None,
        runner: Runner = engine_runner,
    ) -> None:
        self.bank, self.shown_bank = _find(bank, folder or Path())
        self.mode = PRACTICE if self.bank is not None else GRADED
        whole: Bank | ShownBank = self.bank or self.shown_bank  # type: ignore[assignment]  # one of them is there
        self.id, self.title = whole.id, whole.title
        self.student = student or _student(folder or Path())
        self.runner = runner
        self.answers = Answers(self.id, (folder or Path()) / "answers")
        known = [q.id for q in whole.questions]
        for id in ids or []:
            if id not in known:
                raise InputError(
                    "is no question",
                    file=self.id,
                    field="question",
                    value=id,
                    hint="ids: " + ", ".join(known),
                )
        self.ids = ids or known
        self._variant: dict[str, int] = {}

    def seed(self, id: str) -> str:
        """What the question's numbers come from. Stays the same until `another` is asked for."""
        last = self.answers.read().last(id)
        if id not in self._variant and last is not None and last.seed.startswith(f"{self.student}/"):
            return last.seed
        return f"{self.student}/{self.id}/{self._variant.get(id, 0)}"

    def another(self, id: str) -> None:
        """New numbers for a parameterised question (practice only)."""
        if self.mode == PRACTICE:
            last = self.seed(id).rsplit("/", 1)[1]
            self._variant[id] = int(last) + 1 if last.isdigit() else 1

    def shown(self, id: str) -> Shown:
        """The question as this learner sees it."""
        if self.bank is not None:
            return present(self.bank.question(id), self.seed(id))
        assert self.shown_bank is not None
        return next(q for q in self.shown_bank.questions if q.id == id)

    def question(self, id: str) -> AnyQuestion | None:
        """The question with its key, None in graded mode."""
        return self.bank.question(id) if self.bank is not None else None

    def submit(self, id: str, response: Any) -> Attempt:
        """Store an answer, marked where the key is at hand. Raises InputError for no answer at all."""
        if not is_answered(response):
            raise InputError("has no answer yet", object=f"question {id}")
        result = self.mark(id, response)
        return self.answers.add(
            id, response, self.seed(id), None if result is None else round(result.fraction, 4)
        )

    def mark(self, id: str, response: Any) -> Mark | None:
        """How right a response is; None in graded mode."""
        question = self.question(id)
        return None if question is None else mark(question, response, self.seed(id), self.runner)

    def last(self, id: str) -> Attempt | None:
        """The latest stored attempt with the current numbers."""
        found = self.answers.read().last(id)
        return found if found is not None and found.seed == self.seed(id) else None

    def evidence(self, id: str) -> list[tuple[str, Outcome]]:
        """Run a question's evidence; (what it shows, outcome)."""
        question = self.question(id)
        return (
            [(str(e.about), check(e, self.runner)) for e in question.evidence] if question is not None else []
        )


def _find(bank: str | Bank | ShownBank, folder: Path) -> tuple[Bank | None, ShownBank | None]:
    if isinstance(bank, Bank):
        return bank, None
    if isinstance(bank, ShownBank):
        return None, bank
    released = folder / f"quiz-{bank}.json"
    if released.is_file():
        return None, read_shown(released)
    return find_bank(bank), None


def _student(folder: Path) -> str:
    """Who answers: LABKIT_STUDENT, `student` in lab.json (an instructor's variant), else "learner"."""
    named = os.environ.get("LABKIT_STUDENT", "")
    if not named:
        try:
            content = json.loads((folder / LANGUAGE_FILE).read_text(encoding="utf-8"))
            named = str(content.get("student") or "") if isinstance(content, dict) else ""
        except (OSError, ValueError):
            named = ""
    return named or "learner"


def score(
    bank: str,
    *ids: str | int,
    points: float | None = None,
    folder: Path | None = None,
    student: str | None = None,
) -> float:
    """Points of the stored answers, for a graded cell: its last expression.

    Marked anew from the instructor's bank; what the file claims does not count. Where there is no key (a
    learner's machine in graded mode) the answer is 0 and the instructor's run decides. `points` scales the sum.
    With `student`, answers to parameterised questions count only for that learner's own numbers.
    """
    folder = folder or Path()
    try:
        source = find_bank(bank)
    except InputError:
        return 0.0
    names = [str(i) for i in ids] or [q.id for q in source.questions]
    stored = Answers(source.id, folder / "answers").read()
    got = total = 0.0
    for id in names:
        question = source.question(id)
        total += question.points
        last = stored.last(id)
        foreign = student is not None and question.parameters and last is not None
        if foreign and last is not None and not last.seed.startswith(f"{student}/"):
            continue
        if last is not None and is_answered(last.response):
            got += mark(question, last.response, last.seed).fraction * question.points
    return round(min(got / total, 1.0) * (total if points is None else points), 4)
