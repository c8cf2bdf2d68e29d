"""What a test cell says: points as text, a readable report, nothing on stderr, no learner's `__eq__` asked."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import warnings
from typing import Any

import pytest
from labkit.check.report import Exercise, same, show
from labkit.i18n import language


class AlwaysEqual:
    """A learner's trick."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Sly(int):
    """An int that equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    ("actual", "expected", "equal"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (True, 1, False),
        (0.1 + 0.2, 0.3, True),
        ([1, "a"], [1, "a"], True),
        ([1], (1,), False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({1, 2}, {2, 1}, True),
        (AlwaysEqual(), 1, False),
        ([AlwaysEqual()], [1], False),
        ({"a": AlwaysEqual()}, {"a": 1}, False),
        (Sly(3), 4, False),
        ([Sly(3)], [4], False),
        (None, None, True),
    ],
)
def test_same_goes_by_plain_types(actual: Any, expected: Any, equal: bool) -> None:
    """Values of other types are never the same, whatever they claim."""
    assert same(actual, expected) is equal


def exercise() -> Exercise:
    """Four cases; the second and the fourth do not hold."""
    made = Exercise(2, name=("Adding", "加法"))
    with made.case("zero", "零") as case:
        case.equal(0, 0, "sum", "和")
    with made.case("one", "一", hint=("Use +.", "用 +。")) as case:
        case.table(["a", "b"], [[1, "<b>"]])
        case.equal(3, 1, "sum", "和")
    with made.case("two", "二") as case:
        case.true(True, "never", "从不")
    with made.case("three", "三") as case:
        raise ValueError("oops")
    return made


def test_the_text_is_the_points() -> None:
    """nbgrader reads a number within the maximum."""
    made = exercise()
    assert repr(made) == "1"
    assert made._repr_mimebundle_()["text/plain"] == "1"
    assert float(made) == 1.0


@pytest.mark.parametrize(("passed", "points"), [(0, 0.0), (1, 0.33), (2, 0.66), (3, 1.0)])
def test_partial_points_never_round_above(passed: int, points: float) -> None:
    """A third of one point is 0.33; all cases give exactly the maximum."""
    made = Exercise(1)
    for i in range(3):
        with made.case("x", "x") as case:
            case.true(i < passed, "no", "不")
    assert made.score == points


def test_an_exercise_without_cases_has_no_points() -> None:
    """An empty check is a mistake of the author, not a present."""
    assert Exercise(5).score == 0


def test_the_report_names_case_values_and_hint_in_the_learners_language() -> None:
    """What failed, with data, exception and hint; passing cases are folded away; HTML is escaped."""
    text = exercise().text()
    assert "2 of 4 cases pass, 1 / 2 points" in text
    assert "one: sum: expected 1, got 3" in text
    assert "three: Your code raised ValueError: oops" in text
    assert "Hint: Use +." in text
    with language("zh"):
        html = exercise().html()
    assert 'lang="zh-CN"' in html
    assert "和：应为 1，得到 3" in html
    assert "&lt;b&gt;" in html
    assert "<b>&lt;" not in html
    assert "<script" not in html


def test_an_unwritten_answer_is_called_that() -> None:
    """The stub's NotImplementedError is no traceback."""
    made = Exercise(1)
    with made.case("x", "x"):
        raise NotImplementedError
    assert made.cases[0].problem == "Not written yet."


def test_noise_of_the_learners_code_stays_away_from_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings, logging and prints to stderr inside a case cost no points."""
    made = Exercise(1)
    with made.case("x", "x"):
        warnings.warn("careful", stacklevel=1)
        logging.getLogger("learner").warning("hm")
        print("debug", file=sys.stderr)
    assert capsys.readouterr().err == ""
    assert made.score == 1


def test_exit_and_odd_reprs_are_survived() -> None:
    """`exit()` ends its case only; a `__repr__` that raises is described."""

    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    made = Exercise(1)
    with made.case("x", "x"):
        sys.exit(3)
    with made.case("y", "y") as case:
        case.equal(Odd(), 1, "value", "值")
    assert made.score == 0
    assert "Odd" in made.cases[1].problem
    assert show("x" * 500).endswith("…")


def test_the_line_of_the_test_itself_is_not_shown() -> None:
    """A hidden test's source must not appear in what a learner reads; their own lines do."""

    def learner() -> int:
        return {}["theirs"]  # type: ignore[no-any-return]

    made = Exercise(1)
    with made.case("x", "x") as case:
        case.equal(learner(), "SECRET", "value", "值")
    assert 'return {}["theirs"]' in made.text()
    assert "SECRET" not in made.text()
    assert "SECRET" not in made.html()


def test_two_exercises_become_one() -> None:
    """The cases of both; each keeps its share of its own points."""
    first, second = Exercise(2), Exercise(1)
    for passes in (True, False):
        with first.case("a", "甲") as case:
            case.true(passes, "no", "否")
    with second.case("b", "乙", weight=7):
        pass
    assert (first + second).score == 2
    assert "2 of 3 cases pass, 2 / 3 points" in (first + second).text()


def test_what_waits_for_ever_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that nobody gives back is a failed case, and the timers are off afterwards."""
    monkeypatch.setattr("labkit.check.report._ANY_S", 0.1)
    exercise = Exercise(1)
    lock = threading.Lock()
    lock.acquire()
    before = signal.getsignal(signal.SIGALRM)
    with exercise.case("a", "甲"):
        lock.acquire()
    assert "wait for ever" in exercise.cases[0].problem
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before
