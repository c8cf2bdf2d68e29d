"""What happens when a pod that has its node does not get there: unreserve, requeue, event, condition (spec 01 §9)."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.results import PreBindPreFlightResult
from labkit.framework.status import Status

from tests.engine.world import Scripted, World

Calls = list[tuple[str, str, str]]


def booking(name: str, calls: Calls, **answers: Any) -> Scripted:
    """A Reserve plugin that keeps what it is asked; other points answer as told."""
    plugin: Scripted = Scripted(name, calls, **{"reserve": None, "unreserve": None, **answers})
    return plugin


def world(*plugins: Any) -> World:
    """One node a, one pod p, tried once."""
    w = World(plugins=plugins)
    w.node()
    w.pod()
    w.step()
    return w


REJECT, ERROR = Status.unschedulable("no"), Status.as_error_of("broken")

FAILURES = [
    # point, answer, condition reason, message, queue
    ("reserve", REJECT, "Unschedulable", "0/1 nodes are available: 1 no.", "unschedulable"),
    ("reserve", ERROR, "SchedulerError", 'running Reserve plugin "B": broken', "error_backoff"),
    ("permit", REJECT, "Unschedulable", "0/1 nodes are available: 1 no.", "unschedulable"),
    ("permit", ERROR, "SchedulerError", 'running Permit plugin "B": broken', "error_backoff"),
    ("pre_bind", REJECT, "Unschedulable", "no", "error_backoff"),
    ("pre_bind", ERROR, "SchedulerError", 'running PreBind plugin "B": broken', "error_backoff"),
    ("bind", REJECT, "Unschedulable", "no", "error_backoff"),
    ("bind", ERROR, "SchedulerError", 'running Bind plugin "B": broken', "error_backoff"),
    ("pre_bind_pre_flight", ERROR, "SchedulerError", 'running PreBindPreFlight "B": broken', "error_backoff"),
    (
        "pre_bind_pre_flight",
        REJECT,
        "SchedulerError",
        'PreBindPreFlight B returned "Unschedulable", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status",
        "error_backoff",
    ),
]


@pytest.mark.parametrize(("point", "answer", "reason", "message", "queue"), FAILURES)
def test_a_failure_undoes_everything_and_says_why(
    point: str, answer: Status, reason: str, message: str, queue: str
) -> None:
    """Plugin B fails at a point -> A and B unreserved in reverse order, node free, event and condition, requeued."""
    calls: Calls = []
    extra = {"pre_bind": None} if point == "pre_bind_pre_flight" else {}
    failing = booking("B", calls, **{point: answer}, **extra)
    w = World(plugins=[booking("A", calls), failing])
    if point == "bind":
        w.lab.plugins.disable("DefaultBinder")
    w.node()
    w.pod()
    w.step()
    undone = [c[0] for c in calls if c[1] == "unreserve"]
    assert undone == ["B", "A"]
    assert (w.where(), w.assumed) == (queue, 0)
    assert w.condition() == ("False", reason, message)
    assert w.events() == [("Warning", "FailedScheduling", message)]
    assert w.lab.trace("p").message == message
    rejectors = {"B"} if queue == "unschedulable" else set()
    assert w.info().unschedulable_plugins == rejectors


def test_unreserve_reaches_plugins_whose_reserve_did_not_run() -> None:
    """A's Reserve refuses; B's never ran -> B is unreserved all the same, first."""
    calls: Calls = []
    world(booking("A", calls, reserve=REJECT), booking("B", calls))
    assert [c[:2] for c in calls] == [("A", "reserve"), ("B", "unreserve"), ("A", "unreserve")]


def test_an_unreserve_that_raises_does_not_stop_the_others() -> None:
    """B.unreserve raises -> A is unreserved; the trace tells of it."""
    calls: Calls = []
    w = world(booking("A", calls), booking("B", calls, unreserve=RuntimeError("jammed"), permit=REJECT))
    assert ("A", "unreserve", "p") in calls
    assert any("jammed" in note for note in w.lab.trace("p").notes)


def test_room_of_a_failed_binding_wakes_others_but_not_the_rejected_pod() -> None:
    """p holds the only CPU and PreBind rejects it -> q, waiting for room, is woken; p waits in error back-off."""
    w = World(
        plugins=[
            Scripted(
                "Gate",
                permit=lambda state, pod, node: (Status.wait("hold"), 60.0) if pod.name == "p" else None,
            )
        ]
    )
    w.node("a", cpu="1")
    w.pod("p"), w.pod("q")
    w.step(), w.step()
    assert (w.where("p"), w.where("q"), w.assumed) == ("in_flight", "unschedulable", 1)
    w.at(60)
    assert (w.where("p"), w.where("q"), w.assumed) == ("unschedulable", "active", 0)
    assert w.condition("p") == (
        "False",
        "Unschedulable",
        "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Gate.",
    )


def test_permit_time_outs_are_cut_to_fifteen_minutes() -> None:
    """Asked for two hours -> rejected after 900 s, with the text `15m0s`."""
    w = world(Scripted("Slow", permit=(Status.wait(), 7200.0)))
    w.at(899.9)
    assert w.where() == "in_flight"
    w.at(900)
    assert "after waiting 15m0s at plugin Slow" in str(w.condition())


def test_a_pod_waits_for_all_permit_plugins() -> None:
    """X (5 s) and Y (60 s) hold it; X allows -> still held; Y allows -> bound, X's timer no longer matters."""
    w = world(Scripted("X", permit=(Status.wait(), 5.0)), Scripted("Y", permit=(Status.wait(), 60.0)))
    (held,) = w.lab.scheduler.waiting.list()
    assert held.pending_plugins() == ["X", "Y"]
    held.allow("X")
    w.at(6)
    assert (w.where(), held.pending_plugins()) == ("in_flight", ["Y"])
    held.allow("Y")
    w.at(7)
    assert w.where() == "node a"
    w.at(100)
    assert w.where() == "node a"


def test_the_first_verdict_wins() -> None:
    """Rejected and then allowed -> rejected."""
    w = world(Scripted("X", permit=(Status.wait(), 5.0)))
    (held,) = w.lab.scheduler.waiting.list()
    held.reject("X", "too late")
    held.allow("X")
    w.at(1)
    assert w.condition() == ("False", "Unschedulable", "0/1 nodes are available: 1 too late.")


def test_one_permit_plugin_waits_and_another_rejects() -> None:
    """Wait, then a rejection -> rejected at once, nobody held."""
    w = world(Scripted("X", permit=(Status.wait(), 5.0)), Scripted("Y", permit=REJECT))
    assert (w.where(), w.lab.scheduler.waiting.list(), w.assumed) == ("unschedulable", [], 0)


def test_a_held_pod_that_is_deleted_frees_its_room() -> None:
    """Held, deleted -> gone, unreserved, no room taken, nothing requeued."""
    calls: Calls = []
    w = world(booking("X", calls, permit=(Status.wait(), 60.0)))
    assert w.assumed == 1
    w.delete("p")
    assert (w.where(), w.assumed, w.lab.scheduler.waiting.list()) == (None, 0, [])
    assert calls[-1][:2] == ("X", "unreserve")
    assert sum(w.lab.scheduler.queue.counts().values()) == 0
    assert len(w.lab.scheduler.queue.in_flight) == 0


def test_a_held_pod_collects_events_and_a_binding_one_does_not() -> None:
    """While Permit holds it, the pod is in flight; after it was let go, it is not."""
    w = world(Scripted("X", permit=(Status.wait(), 60.0)))
    assert w.raw()["metadata"]["uid"] in w.lab.scheduler.queue.in_flight
    w.lab.scheduler.waiting.list()[0].allow("X")
    w.at(1)
    assert len(w.lab.scheduler.queue.in_flight) == 0


def test_a_held_pod_announces_its_node() -> None:
    """NominatedNodeNameForExpectation: held by Permit -> status.nominatedNodeName a; bound -> cleared."""
    w = world(Scripted("X", permit=(Status.wait(), 60.0)))
    assert w.raw()["status"]["nominatedNodeName"] == "a"
    w.lab.scheduler.waiting.list()[0].allow("X")
    w.at(1)
    assert w.where() == "node a"
    assert not w.raw()["status"].get("nominatedNodeName")


@pytest.mark.parametrize(("flight", "ran"), [(Status.skip(), False), (None, True)])
def test_pre_bind_runs_only_if_its_pre_flight_says_so(flight: Status | None, ran: bool) -> None:
    """Skip -> PreBind is not called; Success -> it is."""
    calls: Calls = []
    w = world(Scripted("X", calls, pre_bind_pre_flight=flight, pre_bind=None))
    assert w.where() == "node a"
    assert (("X", "pre_bind", "p") in calls) == ran


def test_a_pre_flight_may_answer_with_a_result() -> None:
    """(PreBindPreFlightResult(allow_parallel=True), None) -> bound."""
    w = world(
        Scripted("X", pre_bind_pre_flight=(PreBindPreFlightResult(allow_parallel=True), None), pre_bind=None)
    )
    assert w.where() == "node a"


def test_bind_plugins_that_skip_pass_the_pod_on() -> None:
    """First Skip, then DefaultBinder -> bound; all Skip -> an error that says so."""
    assert world(Scripted("First", bind=Status.skip())).where() == "node a"
    w = World(plugins=[Scripted("Only", bind=Status.skip())])
    w.lab.plugins.disable("DefaultBinder")
    w.node()
    w.pod()
    w.step()
    assert w.condition() == ("False", "SchedulerError", "bind failed: all Bind plugins skipped")


def test_a_pod_bound_by_somebody_else_is_an_error_once_and_then_left_alone() -> None:
    """Between decision and Bind another scheduler binds it -> API conflict, and the pod is not requeued."""
    w = World()

    def steal(state: Any, pod: Any, node: str) -> None:
        w.lab.client.bind("default", pod.name, None, "b")

    w.lab.plugins.enable(Scripted("Thief", pre_bind=steal))
    w.node("a"), w.node("b")
    w.pod(nodeSelector=None)
    w.step()
    assert w.where() == "node b"
    assert w.assumed == 0
    assert sum(w.lab.scheduler.queue.counts().values()) == 0
    assert w.events()[-1][1] in ("FailedScheduling", "Scheduled")


def test_post_bind_runs_after_success_only_and_may_raise() -> None:
    """PostBind raises -> the pod is bound, the trace has the traceback; a failed bind -> PostBind is not called."""
    w = world(Scripted("X", post_bind=RuntimeError("after the fact")))
    assert w.where() == "node a"
    assert any("after the fact" in note for note in w.lab.trace("p").notes)
    calls: Calls = []
    world(Scripted("X", calls, pre_bind=ERROR, post_bind=None))
    assert [c[1] for c in calls] == ["pre_bind"]


def test_success_writes_one_event_and_the_true_condition() -> None:
    """Bound -> `Scheduled` with the exact text; PodScheduled True is the API server's."""
    w = world()
    assert w.events() == [("Normal", "Scheduled", "Successfully assigned default/p to a")]
    condition = w.condition()
    assert condition is not None
    assert condition[0] == "True"


def test_an_unchanged_failure_is_not_patched_twice() -> None:
    """Two attempts with the same message -> one condition, whose transition time is the first's."""
    w = world(Scripted("X", filter=REJECT))
    first = w.raw()["status"]["conditions"]
    version = w.raw()["metadata"]["resourceVersion"]
    w.lab.advance(400)
    assert w.lab.trace("p").attempt == 2
    assert w.raw()["status"]["conditions"] == first
    assert w.raw()["metadata"]["resourceVersion"] == version


def test_a_pod_that_is_being_deleted_is_skipped() -> None:
    """Popped while terminating -> the skip event, no attempt, out of the queue."""
    w = World()
    w.node()
    w.lab.apply(
        {
            "kind": "Pod",
            "metadata": {"name": "p", "finalizers": ["example.com/hold"]},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    )
    w.delete("p")
    assert w.step() is None
    assert w.events() == [("Warning", "FailedScheduling", "skip schedule deleting pod: default/p")]


def test_long_messages_are_cut_in_events_and_whole_in_conditions() -> None:
    """A text of 2000 bytes -> the event ends after 1020 with ` ...`; the condition has all of it."""
    w = world(Scripted("X", filter=Status.unschedulable("x" * 2000)))
    note = w.events()[0][2]
    assert (len(note), note[-4:]) == (1024, " ...")
    assert len(w.condition()[2]) > 2000  # type: ignore[index]
