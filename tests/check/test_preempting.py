"""Checks of preemption: the right functions pass, each typical mistake fails with a message that says why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from labkit import check
from labkit.check import Plan, Running
from labkit.i18n import language

Fits = Callable[[Iterable[Running]], bool]


def right_victims(pod: Running, there: list[Running], fits: Fits) -> list[Running] | None:
    """All lower ones off, then back on, most important first."""
    kept = [p for p in there if p.priority >= pod.priority]
    lower = [p for p in there if p.priority < pod.priority]
    if not lower or not fits(kept):
        return None
    gone = []
    for p in sorted(lower, key=lambda p: (-p.priority, p.start)):
        if fits([*kept, p]):
            kept.append(p)
        else:
            gone.append(p)
    return gone


def least_important_first(pod: Running, there: list[Running], fits: Fits) -> list[Running] | None:
    """Typical mistake: take off from below until it fits, and never look back."""
    kept, gone = sorted(there, key=lambda p: -p.priority), []
    while kept and not fits(kept):
        gone.append(kept.pop())
    return gone if fits(kept) else None


def equals_too(pod: Running, there: list[Running], fits: Fits) -> list[Running] | None:
    """Typical mistake: `<=`."""
    kept: list[Running] = []
    gone = []
    for p in sorted(there, key=lambda p: (-p.priority, p.start)):
        if p.priority > pod.priority or fits([*kept, p]):
            kept.append(p)
        else:
            gone.append(p)
    return gone


def all_lower(pod: Running, there: list[Running], fits: Fits) -> list[Running] | None:
    """Typical mistake: nobody is put back."""
    kept = [p for p in there if p.priority >= pod.priority]
    return [p for p in there if p.priority < pod.priority] if fits(kept) else None


def names_only(pod: Running, there: list[Running], fits: Fits) -> list[str]:
    """Typical mistake: names instead of pods."""
    return [p.name for p in there]


def unwritten(*_: Any) -> None:
    """As released."""
    raise NotImplementedError


def right_node(plans: list[Plan]) -> str:
    """All criteria."""

    def cost(plan: Plan) -> Any:
        priorities = [v.priority for v in plan.victims]
        return plan.violations, priorities[0], sum(p + 2**31 for p in priorities), -plan.victims[0].start

    return min(plans, key=cost).node


def without(*left_out: int) -> Callable[[list[Plan]], str]:
    """A choice that forgets one of: 0 violations, 1 highest, 2 the sum, 3 the constant per victim, 4 the start."""

    def choose(plans: list[Plan]) -> str:
        def cost(plan: Plan) -> Any:
            priorities = [v.priority for v in plan.victims]
            extra = 0 if 3 in left_out else 2**31
            parts = [
                plan.violations,
                priorities[0],
                sum(p + extra for p in priorities),
                0,
                -plan.victims[0].start,
            ]
            return [0 if i in left_out else part for i, part in enumerate(parts)]

        return min(plans, key=cost).node

    return choose


@pytest.mark.parametrize("seeds", [check.VISIBLE, check.HIDDEN])
def test_the_right_functions_get_full_marks(seeds: range) -> None:
    """On what learners see and on the hidden cases."""
    for report in (
        check.victims(right_victims, points=2, seeds=seeds),
        check.pick_node(right_node, points=3, seeds=seeds),
    ):
        assert report.score == report.points, report.text()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (least_important_first, "could have stayed"),
        (equals_too, "only strictly lower priorities go"),
        (all_lower, "could have stayed"),
        (names_only, "a list of pods of the node is expected"),
        (unwritten, "Not written yet."),
        (None, ""),
    ],
)
def test_wrong_victims_are_told_why(function: Any, message: str) -> None:
    """On the visible cases already."""
    report = check.victims(function, points=2)
    assert report.score < 2
    assert message in report.text()


@pytest.mark.parametrize("forgotten", range(5))
def test_each_criterion_is_checked(forgotten: int) -> None:
    """A choice that leaves one out fails, in the case of that name."""
    report = check.pick_node(without(forgotten), points=3)
    assert 0 < report.score < 3
    case = ("PDB violations", "highest victim", "sum of", "number of victims", "start of")[forgotten]
    assert any(case in f.name for f in report.failures), report.text()


def test_the_largest_and_a_plan_are_no_answers() -> None:
    """`max` in the place of `min` gets next to nothing; a Plan is not the name of a node."""
    worst = check.pick_node(
        lambda plans: max(plans, key=lambda p: (p.violations, p.victims[0].priority)).node, points=3
    )
    assert worst.score < 1.5
    with language("zh"):
        assert "应返回节点名" in check.pick_node(lambda plans: plans[0], points=1).text()
    assert check.pick_node(unwritten, points=3).score == 0
