"""Reserve to PostBind: spec 01 §4.7 to §4.13."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.cycle_state import CycleState
from labkit.framework.results import PreBindPreFlightResult
from labkit.framework.status import Code, Status

from tests.engine.helpers import fake, framework_of, make_pod

U = Status.unschedulable


def run(point: str, *plugins: Any, state: CycleState | None = None) -> Any:
    """Run an extension point for pod p on node a."""
    return getattr(framework_of(*plugins), f"run_{point}")(state or CycleState(), make_pod(), "a")


POINTS = [
    ("reserve", "Reserve"),
    ("pre_bind", "PreBind"),
    ("bind", "Bind"),
]


@pytest.mark.parametrize(("point", "label"), POINTS)
def test_rejection_keeps_its_code_and_gets_the_plugin(point: str, label: str) -> None:
    """First non-success stops; a rejection is attributed."""
    later = fake("B", **{point: None})
    status = run(point, fake("A", **{point: U("no")}), later)
    assert status == U("no", plugin="A")
    assert later.calls == []


@pytest.mark.parametrize(("point", "label"), POINTS)
def test_error_text(point: str, label: str) -> None:
    """`running Reserve plugin "A": boom` and its like."""
    status = run(point, fake("A", **{point: Status.as_error_of("boom")}))
    assert (status.code, status.message) == (Code.ERROR, f'running {label} plugin "A": boom')


def test_unreserve_runs_all_in_reverse() -> None:
    """All Reserve plugins, last first; one that raises does not stop the others."""
    order: list[str] = []
    plugins = [fake(n, reserve=None, unreserve=lambda *a, n=n: order.append(n)) for n in "AB"]
    broken = fake("X", reserve=None, unreserve=ValueError("boom"))
    problems = run("unreserve", plugins[0], broken, plugins[1])
    assert order == ["B", "A"]
    assert ["X.unreserve" in s.message and "boom" in s.message for s in problems] == [True]


# --- Permit -----------------------------------------------------------------------------------------------


def test_permit_without_plugins() -> None:
    """Nobody to ask: success."""
    assert run("permit") == (None, {})


def test_permit_waits_are_remembered_and_cut() -> None:
    """Wait counts per plugin, at most 15 minutes; success goes on."""
    status, waits = run(
        "permit",
        fake("A", permit=(Status.wait("slow"), 10.0)),
        fake("B", permit=(None, 99.0)),
        fake("C", permit=(Status.wait(), 3600)),
        fake("D", permit=None),
    )
    assert status.code == Code.WAIT
    assert waits == {"A": 10.0, "C": 900.0}


def test_permit_rejection_beats_waiting() -> None:
    """Rejected -> stop, with the plugin; nobody waits."""
    later = fake("C", permit=None)
    status, waits = run(
        "permit", fake("A", permit=(Status.wait(), 10.0)), fake("B", permit=(U("no"), 0.0)), later
    )
    assert (status, waits, later.calls) == (U("no", plugin="B"), {}, [])


def test_permit_error() -> None:
    """`running Permit plugin "A": boom`."""
    status, _ = run("permit", fake("A", permit=Status.as_error_of("boom")))
    assert (status.code, status.message) == (Code.ERROR, 'running Permit plugin "A": boom')


@pytest.mark.parametrize("timeout", ["10s", float("nan"), True], ids=repr)
def test_permit_with_a_nonsense_timeout(timeout: Any) -> None:
    """The time-out is seconds, as a number."""
    status, waits = run("permit", fake("A", permit=(Status.wait(), timeout)))
    assert (status.code, waits) == (Code.ERROR, {})
    assert "A.permit" in status.message
    assert "seconds" in status.message


# --- PreBind ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "code", "skipped"),
    [
        ([], Code.SKIP, set()),
        ([Status.skip(), Status.skip()], Code.SKIP, {"P0", "P1"}),
        ([Status.skip(), None], Code.SUCCESS, {"P0"}),
    ],
)
def test_pre_flight(answers: list[Any], code: Code, skipped: set[str]) -> None:
    """Success if any succeeded, else Skip; skippers' PreBind does not run."""
    state = CycleState()
    plugins = [fake(f"P{i}", pre_bind_pre_flight=a, pre_bind=None) for i, a in enumerate(answers)]
    framework = framework_of(*plugins)
    status = framework.run_pre_bind_pre_flights(state, make_pod(), "a")
    assert (status.code if status else Code.SUCCESS) == code
    assert state.skip_pre_bind_plugins == skipped
    assert framework.run_pre_bind(state, make_pod(), "a") is None
    assert {p.name for p in plugins if len(p.calls) == 1} == skipped


def test_pre_flight_parallel_is_remembered() -> None:
    """AllowParallel puts the plugin in the parallel set."""
    state = CycleState()
    plugin = fake("A", pre_bind_pre_flight=(PreBindPreFlightResult(allow_parallel=True), None), pre_bind=None)
    assert run("pre_bind_pre_flights", plugin, state=state) is None
    assert state.parallel_pre_bind_plugins == {"A"}


def test_pre_flight_errors() -> None:
    """Error text; any other code is unsupported."""
    status = run(
        "pre_bind_pre_flights", fake("A", pre_bind_pre_flight=Status.as_error_of("boom"), pre_bind=None)
    )
    assert (status.code, status.message) == (Code.ERROR, 'running PreBindPreFlight "A": boom')
    status = run("pre_bind_pre_flights", fake("A", pre_bind_pre_flight=U("no"), pre_bind=None))
    assert (status.code, status.message) == (
        Code.ERROR,
        'PreBindPreFlight A returned "Unschedulable", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status",
    )


# --- Bind, PostBind ---------------------------------------------------------------------------------------


def test_bind_skip_passes_on() -> None:
    """A skips, B binds, C is not asked."""
    second, third = fake("B", bind=None), fake("C", bind=None)
    assert run("bind", fake("A", bind=Status.skip()), second, third) is None
    assert (len(second.calls), third.calls) == (1, [])


def test_all_binders_skip() -> None:
    """Skip, which the caller treats as a failure."""
    assert run("bind", fake("A", bind=Status.skip())).code == Code.SKIP


def test_post_bind_runs_all() -> None:
    """A plugin that raises does not stop the next one."""
    second = fake("B", post_bind=None)
    problems = run("post_bind", fake("A", post_bind=ValueError("boom")), second)
    assert len(second.calls) == 1
    assert len(problems) == 1


# --- learners' mistakes -----------------------------------------------------------------------------------

MISTAKES = [
    ("filter", "run_filter", "node"),
    ("reserve", "run_reserve", "name"),
    ("pre_bind", "run_pre_bind", "name"),
    ("bind", "run_bind", "name"),
]


@pytest.mark.parametrize(("point", "method", "kind"), MISTAKES)
def test_exceptions_become_errors_with_traceback(point: str, method: str, kind: str) -> None:
    """Plugin, point, node and exception in the text; the traceback apart."""
    framework = framework_of(fake("Mine", **{point: ZeroDivisionError("division by zero")}))
    target = framework.snapshot.nodes[0] if kind == "node" else "a"
    status = getattr(framework, method)(CycleState(), make_pod(), target)
    assert status.code == Code.ERROR
    assert f'Mine.{point} on node "a" raised ZeroDivisionError: division by zero' in status.message
    assert "Traceback (most recent call last)" in status.traceback
    assert "Traceback" not in status.message


@pytest.mark.parametrize("value", ["no", True, False, 0, 3.5, ["no"], {}], ids=repr)
@pytest.mark.parametrize(("point", "method", "kind"), MISTAKES)
def test_wrong_types_become_errors_that_say_what_to_return(
    point: str, method: str, kind: str, value: Any
) -> None:
    """Plugin, point, node, value, and the fix."""
    framework = framework_of(fake("Mine", **{point: lambda *a: value}))
    target = framework.snapshot.nodes[0] if kind == "node" else "a"
    status = getattr(framework, method)(CycleState(), make_pod(), target)
    assert status.code == Code.ERROR
    assert f"Mine.{point} returned {value!r} ({type(value).__name__})" in status.message
    assert 'node "a"' in status.message
    assert "None for success, or a Status" in status.message


def test_sys_exit_in_a_plugin_does_not_end_the_lab() -> None:
    """`exit()` in a plugin is an error of the plugin."""
    framework = framework_of(fake("Mine", filter=SystemExit(3)))
    status = framework.run_filter(CycleState(), make_pod(), framework.snapshot.nodes[0])
    assert status is not None
    assert "raised SystemExit: 3" in status.message


# --- swapping ---------------------------------------------------------------------------------------------


def test_replace_swaps_in_place() -> None:
    """The new object serves where the old one did, with its weight, and also where the old one did not."""
    framework = framework_of(fake("A", score=1), fake("B", score=2), fake("C", score=3), weights={"B": 7})
    framework.replace(fake("B", score=50, filter=None))
    assert [p.name for p in framework.plugins("score")] == ["A", "B", "C"]
    assert framework.weights()["B"] == 7
    totals, _ = framework.run_score(CycleState(), make_pod(), framework.snapshot.nodes)
    assert totals == [1 + 50 * 7 + 3] * 3
    assert [p.name for p in framework.plugins("filter")] == ["B"]


def test_replace_drops_points_that_the_new_one_lacks() -> None:
    """A plugin without `score` scores no more."""
    framework = framework_of(fake("A", score=1, filter=None))
    framework.replace(fake("A", filter=U("no")))
    assert not framework.has("score")
    assert framework.has("filter")
