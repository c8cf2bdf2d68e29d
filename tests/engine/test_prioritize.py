"""Choosing the host: spec 01 §6.2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.engine.prioritize import pick
from labkit.framework.status import Status

from tests.engine.helpers import attempt, fake, framework_of


def heap_root(totals: list[int]) -> int:
    """The reference: a max-heap built in place, as kube-scheduler's, and the index on its top."""
    heap = [(total, i) for i, total in enumerate(totals)]
    n = len(heap)
    for start in range(n // 2 - 1, -1, -1):
        i = start
        while (j := 2 * i + 1) < n:
            if j + 1 < n and heap[j + 1][0] > heap[j][0]:
                j += 1
            if heap[j][0] <= heap[i][0]:
                break
            heap[i], heap[j] = heap[j], heap[i]
            i = j
    return heap[0][1]


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
    assert pick(totals) == winner


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=300))
def test_the_winner_is_the_root_of_the_heap(totals: list[int]) -> None:
    """Without building the heap: many ties, few ties, any length."""
    assert pick(totals) == heap_root(totals)


def test_the_random_tie_break_orders_equal_totals() -> None:
    """Extender-scored nodes have one; it counts after the total."""
    assert pick([5, 5, 4], [1, 9, 99]) == 1


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
