"""Cases, points and what a learner reads about them."""

from __future__ import annotations

import contextlib
import copy
import html
import io
import math
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from labkit.i18n import t

Words = tuple[str, str]
_SHOWN_FAILURES = 4
#: Frames of these files are the lab's, not the learner's.
PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
_PLAIN = (str, int, float, bool, bytes, type(None))


#: Seconds of processor time, and of any time, that one case may take. Generous: a case takes a few at most.
_BUSY_S, _ANY_S = 30.0, 300.0
#: After a case that did not end, the others get this share of the time: they are likely to go the same way.
_IMPATIENT = 0.1


class Overtime(BaseException):
    """A case that does not end. Not an Exception: the engine takes those of plugins for answers."""


@contextlib.contextmanager
def time_limit(share: float = 1.0) -> Iterator[None]:
    """Raises Overtime in what runs too long: loops for ever, or waits for what never comes.

    By signals, so in the main thread only, where notebooks run their cells; elsewhere, and where the system has no
    such timers, there is no limit. When a grader has limited the cell, its limit stays, and a case that loops gets a
    third of what is left.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_number: int, _frame: Any) -> None:
        raise Overtime

    timers = [(signal.SIGPROF, signal.ITIMER_PROF, _BUSY_S), (signal.SIGALRM, signal.ITIMER_REAL, _ANY_S)]
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    if left > 0:
        timers = [(signal.SIGPROF, signal.ITIMER_PROF, min(_BUSY_S, left / 3))]
    before = {number: signal.signal(number, stop) for number, _, _ in timers}
    try:
        for _, timer, seconds in timers:
            signal.setitimer(timer, seconds * share)
        yield
    finally:
        for number, timer, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


class CheckFailed(Exception):
    """A case that did not hold; the text is for the learner."""


class Case:
    """One case of an exercise: a name, what went wrong, and the data that shows it."""

    def __init__(self, name: str, weight: float, hint: str) -> None:
        self.name = name
        self.weight = weight
        self.hint = hint
        self.problem = ""
        self.detail = ""
        self.columns: list[str] = []
        self.rows: list[list[str]] = []

    @property
    def passed(self) -> bool:
        """Nothing went wrong."""
        return not self.problem

    def fail(self, en: str, zh: str) -> None:
        """End the case: it does not hold."""
        raise CheckFailed(t(en, zh))

    def true(self, condition: Any, en: str, zh: str) -> None:
        """`condition` must be the bool True."""
        if condition is not True:
            self.fail(en, zh)

    def equal(self, actual: Any, expected: Any, en: str, zh: str) -> None:
        """`actual` must be of the same plain types and values as `expected`; `en` and `zh` say what it is."""
        if not same(actual, expected):
            got, wanted = show(actual), show(expected)
            self.fail(f"{en}: expected {wanted}, got {got}", f"{zh}：应为 {wanted}，得到 {got}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Data to show with the case when it fails."""
        self.columns = list(columns)
        self.rows = [[str(cell) for cell in row] for row in rows]


class Exercise:
    """Collects cases. As a cell's last expression it shows its report, and its text is the points."""

    def __init__(self, points: float, *, name: Words | None = None) -> None:
        if not points > 0:
            raise ValueError("points must be more than 0")
        self.points = points
        self.name = t(*name) if name else ""
        self.cases: list[Case] = []
        self._overtime = False

    @contextlib.contextmanager
    def case(self, en: str, zh: str, *, weight: float = 1, hint: Words | None = None) -> Iterator[Case]:
        """A case: what is raised inside, by the check or by the learner's code, is its failure."""
        case = Case(t(en, zh), weight, t(*hint) if hint else "")
        self.cases.append(case)
        noise = io.StringIO()
        try:
            # One line on stderr would make nbgrader give no points for the whole cell.
            with warnings.catch_warnings(), contextlib.redirect_stderr(noise):
                warnings.simplefilter("ignore")
                with time_limit(_IMPATIENT if self._overtime else 1.0):
                    yield case
        except Overtime:
            self._overtime = True
            case.problem = t(
                "No answer, and none to be expected: does your code loop or wait for ever?",
                "没有结果，也等不到结果：你的代码是不是在死循环，或者永远等待？",
            )
        except CheckFailed as e:
            case.problem = str(e)
        except NotImplementedError:
            case.problem = t("Not written yet.", "尚未完成。")
        except (Exception, SystemExit) as e:
            outside, case.detail = last_frames(e)
            what = f"{type(e).__name__}: {e}"
            case.problem = (
                t(f"Your code raised {what}", f"你的代码抛出 {what}")
                if outside
                else t(f"The check itself failed: {what}", f"检查程序自身出错：{what}")
            )
        if noise.getvalue() and case.problem and not case.detail:
            case.detail = noise.getvalue()[-2000:]

    def run(self, en: str, zh: str, function: Callable[[Case], None], **kwargs: Any) -> None:
        """A case from a function; for lists of them."""
        with self.case(en, zh, **kwargs) as case:
            function(case)

    def __add__(self, other: Exercise) -> Exercise:
        """One exercise of the cases and the points of both."""
        both = Exercise(self.points + other.points, name=None)
        for part in (self, other):
            total = sum(c.weight for c in part.cases)
            for case in part.cases:
                joined = copy.copy(case)
                joined.weight = case.weight / total * part.points
                both.cases.append(joined)
        return both

    @property
    def score(self) -> float:
        """Points from 0 to `points`: the weight of the cases that passed, rounded down to hundredths."""
        total = sum(c.weight for c in self.cases)
        if not total:
            return 0.0
        passed = sum(c.weight for c in self.cases if c.passed)
        if passed == total:
            return float(self.points)
        return math.floor(passed / total * self.points * 100 + 1e-9) / 100

    @property
    def failures(self) -> list[Case]:
        """Cases that did not hold."""
        return [c for c in self.cases if not c.passed]

    def __float__(self) -> float:
        return self.score

    def __repr__(self) -> str:
        # nbgrader takes the text of a cell's last expression for its points.
        return f"{self.score:g}"

    def headline(self) -> str:
        """How many cases, how many points."""
        done, all_ = len(self.cases) - len(self.failures), len(self.cases)
        points = f"{self.score:g} / {self.points:g}"
        name = f"{self.name}: " if self.name else ""
        return name + t(
            f"{done} of {all_} cases pass, {points} points", f"{done} / {all_} 个用例通过，{points} 分"
        )

    def text(self) -> str:
        """The report for a terminal."""
        lines = [self.headline()]
        for case in self.cases:
            lines.append(
                f"{'✓' if case.passed else '✕'} {case.name}" + (f": {case.problem}" if case.problem else "")
            )
            if case in self.failures[:_SHOWN_FAILURES]:
                lines += [
                    "    " + " | ".join(row) for row in ([case.columns] if case.columns else []) + case.rows
                ]
                lines += ["    " + line for line in case.detail.splitlines()]
                if case.hint:
                    lines.append(f"    {t('Hint', '提示')}: {case.hint}")
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.html()}

    def html(self) -> str:
        """The report for a notebook; no scripts, no links, colours of the page."""
        full = not self.failures
        glyph, color = (
            ("✓", "var(--jp-success-color0,#1b6e3c)") if full else ("✕", "var(--jp-error-color0,#b3261e)")
        )
        passed = [c for c in self.cases if c.passed]
        parts = [
            f'<p style="font-weight:650;font-size:16px;color:{color};margin:4px 0">{glyph} {_e(self.headline())}</p>'
        ]
        for case in self.failures[:_SHOWN_FAILURES]:
            parts.append(_failed_html(case))
        rest = self.failures[_SHOWN_FAILURES:]
        if rest:
            more = t(f"and {len(rest)} more cases fail", f"另有 {len(rest)} 个用例未通过")
            parts.append(f"<p>{_e(more)}</p>")
        if passed:
            items = "".join(f"<li>✓ {_e(c.name)}</li>" for c in passed)
            head = t(f"{len(passed)} cases pass", f"{len(passed)} 个用例通过")
            parts.append(
                f'<details><summary>{_e(head)}</summary><ul style="list-style:none;padding-left:12px">{items}</ul></details>'
            )
        lang = t("en", "zh-CN")
        return f'<div lang="{lang}" role="group" aria-label="{_e(self.headline())}">{"".join(parts)}</div>'


def _failed_html(case: Case) -> str:
    parts = [f"<p style='margin:2px 0'><b>✕ {_e(case.name)}</b><br/>{_e(case.problem)}</p>"]
    if case.rows:
        head = "".join(f'<th scope="col" style="text-align:left">{_e(c)}</th>' for c in case.columns)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{_e(cell)}</td>' for cell in row) + "</tr>"
            for row in case.rows
        )
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    if case.detail:
        head = t("Where it happened", "出错位置")
        parts.append(f"<details><summary>{_e(head)}</summary><pre>{_e(case.detail)}</pre></details>")
    if case.hint:
        parts.append(f"<details><summary>{_e(t('Hint', '提示'))}</summary><p>{_e(case.hint)}</p></details>")
    style = "border-left:3px solid var(--jp-error-color1,#b3261e);padding:2px 0 2px 10px;margin:8px 0"
    return f'<div style="{style}">{"".join(parts)}</div>'


def _e(text: str) -> str:
    return html.escape(text, quote=True)


def same(actual: Any, expected: Any) -> bool:
    """Equal by plain types only. An object of a learner's class is never equal to anything."""
    if type(actual) is not type(expected):
        return False
    if isinstance(expected, float):
        return math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-12)
    if type(expected) in (list, tuple):
        return len(actual) == len(expected) and all(same(a, e) for a, e in zip(actual, expected, strict=True))
    if type(expected) is dict:
        if not all(type(k) in _PLAIN for k in actual) or set(actual) != set(expected):
            return False
        return all(same(actual[k], e) for k, e in expected.items())
    if type(expected) in (set, frozenset):
        return all(type(k) in _PLAIN for k in actual) and bool(actual == expected)
    return type(expected) in _PLAIN and bool(actual == expected)


def show(value: Any, limit: int = 160) -> str:
    """A value with its type where that is not plain, shortened; a `__repr__` that raises is told."""
    try:
        text = repr(value)
    except Exception as e:
        text = f"({type(value).__name__}: {type(e).__name__} in __repr__)"
    if type(value) not in (*_PLAIN, list, tuple, dict, set, frozenset):
        text += f" ({type(value).__name__})"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def last_frames(error: BaseException) -> tuple[bool, str]:
    """Whether it happened outside labkit, and the learner's lines of the traceback.

    The line of the test cell itself is left out: it may belong to a hidden test.
    """
    skipped = (str(Path(__file__)), str(contextlib.__file__))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(skipped)]
    body = frames[:1]
    in_test_cell = bool(body) and not body[0].filename.startswith(PACKAGE)
    own = [f for f in frames if not f.filename.startswith(PACKAGE)]
    shown = own[1:] if in_test_cell else own
    lines = [f"line {f.lineno}, in {f.name}: {f.line or ''}".rstrip(": ") for f in shown[-4:]]
    return bool(own), "\n".join([*lines, f"{type(error).__name__}: {error}"]) if lines else ""
