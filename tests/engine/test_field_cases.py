"""Cases that people reported about other tools: odd scores, one feasible node, half gangs, old anti-affinity."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.results import NodeScore
from labkit.framework.status import Status
from labkit.plugins.course import GangPermit

from tests.engine.world import Scripted, World

# --- T5: scores that are no scores --------------------------------------------------------------------------

WRONG = [
    (-8, "-8"),
    (101, "101"),
    (802, "802"),
    (None, "None"),
    (3.7, "3.7"),
    (float("nan"), "nan"),
]


def two_nodes(plugin: Any) -> World:
    """Nodes a and b, and a pod that was tried with the plugin."""
    w = World(plugins=[plugin])
    w.node("a"), w.node("b")
    w.pod()
    w.step()
    return w


@pytest.mark.parametrize(("score", "shown"), WRONG)
def test_t5_a_score_out_of_range_fails_the_attempt_and_names_everything(score: Any, shown: str) -> None:
    """Score returns -8, 101, 802, None, 3.7, nan -> not scheduled; plugin and value in the condition, the node as
    well in the trace."""
    w = two_nodes(Scripted("Odd", score=score))
    assert w.where() == "error_backoff"
    condition = w.condition()
    assert condition is not None
    message = condition[2]
    assert all(part in message for part in ("Odd", shown)), message
    shown_trace = str(w.lab.trace("p"))
    assert '"a"' in shown_trace or "node a" in shown_trace
    if isinstance(score, int):
        assert "in the range of [0, 100] after normalizing" in message
    assert condition[1] == "SchedulerError"


@pytest.mark.parametrize("score", [-8, 101, 802])
def test_t5_a_normaliser_may_bring_any_integer_into_range(score: int) -> None:
    """The same integers with a normaliser -> scheduled."""

    def fifty(state: Any, pod: Any, scores: list[NodeScore]) -> None:
        for s in scores:
            s.score = 50

    assert str(two_nodes(Scripted("Odd", score=score, normalize_score=fifty)).where()).startswith("node ")


@pytest.mark.parametrize("score", [-1, 101])
def test_t5_what_the_normaliser_leaves_is_checked(score: int) -> None:
    """A normaliser that leaves -1 or 101 -> not scheduled."""

    def spoil(state: Any, pod: Any, scores: list[NodeScore]) -> None:
        for s in scores:
            s.score = score

    w = two_nodes(Scripted("Odd", score=10, normalize_score=spoil))
    condition = w.condition()
    assert w.where() == "error_backoff"
    assert condition is not None
    assert "Odd" in condition[2]
    assert str(score) in condition[2]


@pytest.mark.parametrize("score", [None, 3.7, float("nan")])
def test_t5_a_normaliser_does_not_excuse_what_is_no_integer(score: Any) -> None:
    """None, 3.7 and nan are no scores, with or without a normaliser."""
    assert two_nodes(Scripted("Odd", score=score, normalize_score=None)).where() == "error_backoff"


# --- T6: one feasible node ----------------------------------------------------------------------------------


def test_t6_one_feasible_node_is_not_scored() -> None:
    """One of two nodes is feasible -> the Score plugin is never called, and the trace says why."""
    calls: list[tuple[str, str, str]] = []
    w = World(plugins=[Scripted("Counts", calls, pre_score=None, score=1)])
    w.node("a"), w.node("b", cpu="500m")
    w.pod()
    w.step()
    assert (w.where(), calls) == ("node a", [])
    trace = w.lab.trace("p")
    assert "Score skipped: one feasible node" in str(trace) + trace.why() + trace.verdict()


def test_t6_two_feasible_nodes_are() -> None:
    """Both feasible -> one call a node."""
    calls: list[tuple[str, str, str]] = []
    w = World(plugins=[Scripted("Counts", calls, score=1)])
    w.node("a"), w.node("b")
    w.pod()
    w.step()
    assert len(calls) == 2


# --- T8: a gang of ten, room for nine -----------------------------------------------------------------------


def test_t8_a_gang_that_cannot_start_gives_its_room_back() -> None:
    """10 members, room for 9: nine are held; `small` finds no room; at 60 s all nine are unreserved, `small` runs."""
    calls: list[tuple[str, str, str]] = []
    first = Scripted("First", calls, reserve=None, unreserve=None)
    last = Scripted("Last", calls, reserve=None, unreserve=None)
    w = World(plugins=[first, GangPermit(), last])
    for i in range(3):
        w.node(f"n{i}", cpu="3")
    for i in range(10):
        w.pod(f"g{i}", labels={"gang-id": "g", "gang-min-count": "10"})
    w.lab.run()
    assert len(w.lab.scheduler.waiting.list()) == 9
    assert w.assumed == 9
    w.pod("small")
    w.lab.run()
    assert w.where("small") == "unschedulable"
    w.at(59.9)
    assert len(w.lab.scheduler.waiting.list()) == 9
    calls.clear()
    w.at(60)
    assert w.lab.scheduler.waiting.list() == []
    assert w.assumed == 0
    undone = [(who, pod) for who, point, pod in calls if point == "unreserve"]
    assert len(undone) == 18
    # For each pod: the plugins in reverse order.
    assert [who for who, _ in undone] == ["Last", "First"] * 9
    assert len({pod for _, pod in undone}) == 9
    traces = w.lab.run()
    assert str(w.where("small")).startswith("node ")
    assert w.now == 60
    assert traces
    assert all(not str(w.where(f"g{i}")).startswith("node ") for i in range(10))
    assert w.assumed == 0


def test_t8_the_gang_starts_when_there_is_room() -> None:
    """A tenth place comes -> all ten run, at once."""
    w = World(plugins=[GangPermit()])
    w.node("a", cpu="9")
    for i in range(10):
        w.pod(f"g{i}", labels={"gang-id": "g", "gang-min-count": "10"})
    w.lab.run()
    assert len(w.lab.scheduler.waiting.list()) == 9
    w.node("b", cpu="1")
    w.lab.advance(5)
    assert sum(str(w.where(f"g{i}")).startswith("node ") for i in range(10)) == 10
    assert w.now == 5


# --- T12: an old pod's anti-affinity ------------------------------------------------------------------------


def test_t12_an_existing_pod_keeps_others_away() -> None:
    """`loner` wants no `custom-app=aj` near: a pod with that label is rejected, one without shares the node."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"custom-app": "aj"}}}
    w = World()
    w.node("a", cpu="4", labels={"kubernetes.io/hostname": "a"})
    w.pod(
        "loner",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    w.step()
    w.pod("aj", labels={"custom-app": "aj"})
    w.step()
    condition = w.condition("aj")
    assert condition is not None
    assert condition[2].startswith(
        "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."
    )
    assert w.info("aj").unschedulable_plugins == {"InterPodAffinity"}
    w.pod("other")
    w.step()
    assert w.where("other") == "node a"


def test_t12_the_other_direction() -> None:
    """A pod labelled aj is there; a newcomer that wants none near -> its own rule is named."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"custom-app": "aj"}}}
    w = World()
    w.node("a", cpu="4", labels={"kubernetes.io/hostname": "a"})
    w.pod("aj", labels={"custom-app": "aj"})
    w.step()
    w.pod(
        "loner",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    w.step()
    condition = w.condition("loner")
    assert condition is not None
    assert "1 node(s) didn't match pod anti-affinity rules" in condition[2]


def test_t12_the_trace_explains_both_directions() -> None:
    """`explain` names the pod that objects."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"custom-app": "aj"}}}
    w = World()
    w.node("a", cpu="4", labels={"kubernetes.io/hostname": "a"})
    w.pod(
        "loner",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    w.step()
    w.pod("aj", labels={"custom-app": "aj"})
    w.step()
    assert "existing pods anti-affinity" in w.lab.explain("aj")


def test_a_rejection_by_status_with_no_reason_is_still_told() -> None:
    """Status.unschedulable() without reasons -> rejected, the plugin remembered."""
    w = World(plugins=[Scripted("Mute", filter=Status.unschedulable())])
    w.node()
    w.pod()
    w.step()
    assert w.info().unschedulable_plugins == {"Mute"}
