"""PreScore, Score and NormalizeScore: spec 01 §4.5 and §4.6."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.cycle_state import CycleState
from labkit.framework.status import Code, Status

from tests.engine.helpers import attempt, fake, framework_of, make_pod


def by_name(**scores: Any) -> Any:
    """A `score` method from node names."""
    return lambda state, pod, node: scores[node.name]


def totals(*plugins: Any, **kwargs: Any) -> tuple[list[int], Status | None]:
    """Score nodes a, b, c."""
    framework = framework_of(*plugins, **kwargs)
    return framework.run_score(CycleState(), make_pod(), framework.snapshot.nodes)


def halve(state: Any, pod: Any, scores: list[Any]) -> None:
    """Normalise by halving."""
    for s in scores:
        s.score //= 2


def test_pre_score_skip_switches_score_off() -> None:
    """A skipped plugin contributes nothing at all, not 0 x weight entries."""
    result, trace = attempt(
        framework_of(
            fake("A", pre_score=Status.skip(), score=Exception("not called")),
            fake("B", score=by_name(a=1, b=2, c=3)),
        )
    )
    assert result.node == "c"
    assert {name: list(s.plugins) for name, s in trace.scores.items()} == {n: ["B"] for n in "abc"}
    assert trace.to_dict()["preScore"] == {"A": "Skip"}


@pytest.mark.parametrize(
    "answer", [Status.unschedulable("no"), Status.as_error_of("no"), Status.pending("no")]
)
def test_pre_score_failure_is_an_error(answer: Status) -> None:
    """Even Unschedulable fails the attempt as an error."""
    result, trace = attempt(framework_of(fake("A", pre_score=answer), fake("B", score=1)))
    assert result.status is not None
    assert (result.status.code, result.message) == (Code.ERROR, 'running PreScore plugin "A": no')
    assert (trace.scores, trace.message, trace.node) == ({}, 'running PreScore plugin "A": no', None)


def test_total_is_the_weighted_sum_after_normalising() -> None:
    """A (x3, halved) + B (x2, as it is)."""
    found, status = totals(
        fake("A", score=by_name(a=100, b=50, c=0), normalize_score=halve),
        fake("B", score=by_name(a=0, b=10, c=100)),
        weights={"A": 3, "B": 2},
    )
    assert status is None
    assert found == [150, 95, 200]


def test_trace_shows_raw_normalised_weighted() -> None:
    """The three numbers of each plugin, and a total that adds up."""
    _, trace = attempt(
        framework_of(fake("A", score=by_name(a=100, b=50, c=0), normalize_score=halve), weights={"A": 3})
    )
    assert trace.to_dict()["scores"]["a"] == {
        "plugins": {"A": {"raw": 100, "normalized": 50, "weighted": 150}},
        "total": 150,
    }


def test_score_failure() -> None:
    """`running Score plugins: plugin "A" failed with: boom`; a (score, status) pair is understood."""
    _, status = totals(fake("A", score=(0, Status.as_error_of("boom"))))
    assert status is not None
    assert (status.code, status.message) == (
        Code.ERROR,
        'running Score plugins: plugin "A" failed with: boom',
    )
    assert totals(fake("A", score=(7, None))) == ([7, 7, 7], None)


def test_node_by_node_the_first_failure_is_reported() -> None:
    """A fails on b, B on a: a comes first."""

    def fails_on(node_name: str) -> Any:
        return lambda s, p, n: (0, Status.as_error_of(f"on {n.name}")) if n.name == node_name else 1

    _, status = totals(fake("A", score=fails_on("b")), fake("B", score=fails_on("a")))
    assert status is not None
    assert status.message == 'running Score plugins: plugin "B" failed with: on a'


def test_normalise_failure_comes_before_the_range_check() -> None:
    """A is out of range, B's normaliser fails: all normalisers run first."""
    _, status = totals(fake("A", score=101), fake("B", score=1, normalize_score=Status.as_error_of("boom")))
    assert status is not None
    assert status.message == 'running Normalize on Score plugins: plugin "B" failed with: boom'


@pytest.mark.parametrize("score", [-1, 101, 2**40])
def test_range_check(score: int) -> None:
    """kube-scheduler's own words."""
    _, status = totals(fake("A", score=score))
    assert status is not None
    assert status.code == Code.ERROR
    assert status.message == (
        f'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score {score}, '
        "it should in the range of [0, 100] after normalizing"
    )


def test_out_of_range_is_fine_before_normalising() -> None:
    """Raw scores may be anything."""
    assert totals(fake("A", score=200, normalize_score=halve)) == ([100, 100, 100], None)


@pytest.mark.parametrize("value", [1.5, float("nan"), True, "7", None, [1]], ids=repr)
def test_nonsense_scores_say_what_to_do(value: Any) -> None:
    """Plugin, point, node, value, and what is expected."""
    _, status = totals(fake("A", score=value))
    assert status is not None
    assert status.code == Code.ERROR
    assert status.message == (
        f'running Score plugins: plugin "A" failed with: A.score returned {value!r} ({type(value).__name__}) '
        'for node "a"; return a whole number from 0 to 100'
    )


@pytest.mark.parametrize("value", [0.5, float("nan"), "7", None, False], ids=repr)
def test_nonsense_in_normalise(value: Any) -> None:
    """Same for what `normalize_score` writes."""

    def write(state: Any, pod: Any, scores: list[Any]) -> None:
        scores[1].score = value

    _, status = totals(fake("A", score=1, normalize_score=write))
    assert status is not None
    assert status.code == Code.ERROR
    for part in ("A.normalize_score", repr(value), 'node "b"', "whole numbers from 0 to 100"):
        assert part in status.message


def test_normaliser_that_loses_nodes() -> None:
    """A normaliser that empties the list is told so."""

    def clear(state: Any, pod: Any, scores: list[Any]) -> None:
        scores.clear()

    _, status = totals(fake("A", score=1, normalize_score=clear))
    assert status is not None
    assert status.code == Code.ERROR
    assert "A.normalize_score" in status.message
    assert "3" in status.message
