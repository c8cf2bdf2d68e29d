"""Choosing the host: spec 01 §6.2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.engine.prioritize import pick
from labkit.framework.status import Status

from tests.engine.helpers import attempt, fake, framework_of


def index_of_pick(totals: list[int]) -> int:
    """Which of these totals wins."""
    return int(pick([(str(i), total, 0) for i, total in enumerate(totals)]))


@pytest.mark.parametrize(
    ("totals", "winner"),
    [
        ([7], 0),
        ([5, 5, 5, 5, 5], 0),
        ([90, 80, 90], 0),
        ([10, 90, 80, 90, 90], 1),
        ([80, 90, 90, 90], 1),
        ([1, 2, 5, 5], 3),
        ([10, 20, 90, 90, 90, 90], 3),
    ],
)
def test_ties_are_decided_by_the_heap(totals: list[int], winner: int) -> None:
    """The examples of the spec: not always the first."""
    assert index_of_pick(totals) == winner


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=60))
def test_the_winner_always_has_the_greatest_total(totals: list[int]) -> None:
    """Whatever the heap does with ties."""
    assert totals[index_of_pick(totals)] == max(totals)


def test_the_random_tie_break_orders_equal_totals() -> None:
    """Extender-scored nodes have one; it counts after the total."""
    assert pick([("a", 5, 1), ("b", 5, 9), ("c", 4, 99)]) == "b"


def test_equal_nodes_first_in_snapshot_order() -> None:
    """3 nodes, equal totals, no extender -> the first (spec 01 §16.1)."""
    result, trace = attempt(framework_of(fake("A", score=5)))
    assert (result.node, trace.best) == ("a", ["a", "b", "c"])


def test_without_score_plugins_totals_are_one() -> None:
    """The first node that fits; there is nothing to compare."""
    result, trace = attempt(framework_of(fake("A", filter=None)))
    assert (result.node, trace.scores) == ("a", {})


def test_one_feasible_node_is_taken_without_scoring() -> None:
    """PreScore and Score are not called at all."""
    pre, score = fake("A", pre_score=ValueError("called")), fake("B", score=ValueError("called"))
    only_b = fake("F", filter=lambda s, p, n: None if n.name == "b" else Status.unschedulable("no"))
    result, trace = attempt(framework_of(only_b, pre, score))
    assert (result.node, pre.calls, score.calls) == ("b", [], [])
    assert trace.notes == ["Score skipped: one feasible node"]
