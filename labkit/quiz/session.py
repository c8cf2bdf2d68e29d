"""A learner at a bank: questions shown, answers stored, and, in practice, marked at once."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from labkit.errors import InputError, LabError
from labkit.i18n import LANGUAGE_FILE, t
from labkit.quiz.answers import Answers, Attempt
from labkit.quiz.bank import find_bank, load_bank
from labkit.quiz.evidence import Outcome, Runner, check, engine_runner
from labkit.quiz.graded import (
    GRADED,
    PRACTICE,
    Terms,
    course_around,
    course_bank,
    revealed,
    terms_of,
    variant,
)
from labkit.quiz.marking import Mark, is_answered, mark
from labkit.quiz.model import AnyQuestion, Bank
from labkit.quiz.present import Shown, ShownBank, present, read_shown

__all__ = ["GRADED", "PRACTICE", "QuestionScore", "Session", "question_scores", "score"]

_NOBODY = "learner"


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
        if self.shown_bank is not None and self.shown_bank.parameters and self.student == _NOBODY:
            raise InputError(
                t("must be your name in the course", "必须是你在课程中的名字"),
                file=LANGUAGE_FILE,
                field="student",
                hint=t(
                    'every learner has own numbers here: write {"language": "en", "student": "..."} into lab.json '
                    "beside the notebook, or set LABKIT_STUDENT",
                    '每位学生的数字不同：请在 notebook 旁的 lab.json 中写入 {"language": "zh", "student": "..."}，'
                    "或设置 LABKIT_STUDENT",
                ),
            )
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
        if self.shown_bank is not None:
            # The grader draws the same; what the answers file claims does not matter.
            return self.shown_bank.seed or f"{self.student}/{self.id}/0"
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
        return variant(self.shown_bank, id, self.seed(id))

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
            [(str(e.about), check(e, self.runner)) for e in question.proofs] if question is not None else []
        )


def _find(bank: str | Bank | ShownBank, folder: Path) -> tuple[Bank | None, ShownBank | None]:
    if isinstance(bank, Bank):
        return bank, None
    if isinstance(bank, ShownBank):
        return None, bank
    released = folder / f"quiz-{bank}.json"
    if released.is_file():
        return None, read_shown(released)
    own = folder / f"quiz-{bank}.yaml"
    if own.is_file():
        return msgspec.structs.replace(load_bank(own), id=bank), None
    return find_bank(bank), None


def _student(folder: Path) -> str:
    """Who answers: LABKIT_STUDENT, `student` in lab.json here or one above, the JupyterHub user, else "learner"."""
    named = os.environ.get("LABKIT_STUDENT", "")
    for place in (folder.resolve(), folder.resolve().parent):
        if named:
            break
        try:
            content = json.loads((place / LANGUAGE_FILE).read_text(encoding="utf-8"))
            named = str(content.get("student") or "") if isinstance(content, dict) else ""
        except (OSError, ValueError):
            continue
    return named or os.environ.get("JUPYTERHUB_USER", "") or _NOBODY


@dataclass(frozen=True)
class QuestionScore:
    """What one question of a graded cell gives, and why not more."""

    id: str
    fraction: float
    points: float
    note: str = ""


def score(
    bank: str,
    *ids: str | int,
    points: float | None = None,
    folder: Path | None = None,
    student: str | None = None,
    course: Path | None = None,
) -> float:
    """Points of the stored answers, for a graded cell: its last expression.

    Marked anew from the instructor's bank; what the file claims does not count. Where there is no key (a
    learner's machine in graded mode) the answer is 0 and the instructor's run decides. `points` scales the sum.
    """
    folder = folder or Path()
    scores = question_scores(bank, *ids, folder=folder, student=student, course=course)
    if scores is None:
        if not os.environ.get("NBGRADER_EXECUTION"):
            print(
                t(
                    "Your answers are stored; they are marked after the deadline. Until then this cell shows 0.",
                    "答案已保存，截止后评分；在此之前本单元显示 0。",
                )
            )
        return 0.0
    total = sum(s.points for s in scores)
    got = sum(s.fraction * s.points for s in scores)
    return round(min(got / total, 1.0) * (total if points is None else points), 4)


def question_scores(
    bank: str,
    *ids: str | int,
    folder: Path,
    student: str | None = None,
    course: Path | None = None,
) -> list[QuestionScore] | None:
    """The same by question; None where there is no key.

    `course` and `student` are found where the folder lies in a course, as under `nbgrader autograde`. In graded
    mode parameterised questions count only with the numbers that this learner was to have.
    """
    around = course_around(folder)
    if course is None and around is not None:
        course = around[0]
        student = student or around[1]
    terms = terms_of(course) if course is not None else Terms()
    try:
        # Only outside a course what lies beside the notebook may be the bank: a learner could have put it there.
        source = course_bank(bank, course) if course is not None else _find(bank, folder)[0]
    except LabError:
        return None
    if source is None:
        return None
    unknown = [str(i) for i in ids if all(q.id != str(i) for q in source.questions)]
    if unknown:
        raise InputError("is no question", file=bank, field="question", value=unknown[0])
    stored = Answers(source.id, folder / "answers").read()
    wanted = [source.question(str(i)) for i in ids] if ids else source.questions
    return [_question_score(source.id, q, stored.last(q.id), terms, student) for q in wanted]


def _question_score(
    bank: str, question: AnyQuestion, last: Attempt | None, terms: Terms, student: str | None
) -> QuestionScore:
    if last is None or not is_answered(last.response):
        return QuestionScore(question.id, 0.0, question.points, t("not answered", "未作答"))
    seed, response = last.seed, last.response
    foreign = False
    if terms.quiz == GRADED:
        seed = terms.seed(bank, student or "")
        response = revealed(question, response, terms)
        foreign = last.seed != seed
    if foreign and question.parameters:
        said = last.seed[:60]
        note = t(f"answered with the numbers of {said}", f"作答时使用的是 {said} 的数字")
        return QuestionScore(question.id, 0.0, question.points, note)
    return QuestionScore(question.id, mark(question, response, seed).fraction, question.points)
