"""Pod groups behind their gates: all or nothing, placements, the exact texts (spec 15 §1)."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.status import Status

from tests.engine.world import Scripted, World

GANG = {"GenericWorkload": True, "GangScheduling": True}
TOPOLOGY = {**GANG, "TopologyAwareWorkloadScheduling": True}
UNFIT = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def group(w: World, policy: Any = None, name: str = "ga", **spec: Any) -> None:
    """A PodGroup; a gang of three unless told otherwise."""
    w.lab.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulingPolicy": policy or {"gang": {"minCount": 3}}, **spec},
        }
    )


def members(w: World, *names: str, of: str = "ga", **spec: Any) -> None:
    """Pods of a group."""
    for name in names:
        w.pod(name, schedulingGroup={"podGroupName": of}, **spec)


def world(cpu: str = "4", nodes: int = 3, gates: Any = GANG, **options: Any) -> World:
    """Nodes n0, n1, ... of so many CPUs."""
    w = World(gates=gates, **options)
    for i in range(nodes):
        w.node(f"n{i}", cpu=cpu)
    return w


def bound(w: World, *names: str) -> list[str]:
    """Which of the pods have a node."""
    return [n for n in names if str(w.where(n)).startswith("node ")]


def group_condition(w: World) -> Any:
    """(status, reason, message) of the group's condition."""
    (raw,) = w.lab.client.list("PodGroup")[0]
    found = (raw.get("status") or {}).get("conditions") or []
    return next(((c["status"], c["reason"], c["message"]) for c in found), None)


# --- PreEnqueue ---------------------------------------------------------------------------------------------


def test_pods_of_an_incomplete_gang_are_held_back_silently() -> None:
    """Two of three -> gated, no event, no condition; with the third all three are bound at once; the fourth alone."""
    w = world()
    group(w)
    members(w, "p1", "p2")
    assert w.lab.run() == []
    assert (w.where("p1"), w.where("p2"), w.events("p1"), w.condition("p1")) == ("gated", "gated", [], None)
    assert (
        w.lab.queue.gated[0].message == "waiting for minCount pods from a gang to appear in scheduling queue"
    )
    members(w, "p3")
    w.lab.run()
    assert bound(w, "p1", "p2", "p3") == ["p1", "p2", "p3"]
    assert group_condition(w) == ("True", "Scheduled", "")
    members(w, "p4")
    w.lab.run()
    assert bound(w, "p4") == ["p4"]


def test_pods_wait_for_their_group_to_exist() -> None:
    """No PodGroup -> gated with its name; it comes -> scheduled."""
    w = world()
    members(w, "p1", "p2", "p3")
    assert w.lab.queue.gated[0].message == (
        'waiting for pods\'s pod group "ga" to appear in scheduling queue'
    )
    group(w)
    w.lab.run()
    assert len(bound(w, "p1", "p2", "p3")) == 3


def test_a_pod_of_another_scheduler_does_not_count() -> None:
    """Two of ours, one of a scheduler that is not here -> held back for ever."""
    w = world()
    group(w)
    members(w, "p1", "p2")
    members(w, "p3", schedulerName="volcano")
    w.lab.advance(1000)
    assert (w.where("p1"), w.where("p2")) == ("gated", "gated")


def test_with_the_gates_off_the_group_means_nothing() -> None:
    """Defaults -> the field is dropped, each pod is scheduled alone."""
    w = world(gates=None)
    group(w)
    members(w, "p1")
    w.lab.run()
    assert bound(w, "p1") == ["p1"]
    assert "schedulingGroup" not in w.raw("p1")["spec"]


# --- the group cycle ----------------------------------------------------------------------------------------


def test_a_gang_without_room_takes_none() -> None:
    """Room for two of three -> nothing bound; the two get the group's text, the third its own; nothing assumed."""
    w = world(cpu="1", nodes=2)
    group(w)
    members(w, "p1", "p2", "p3")
    w.lab.run()
    assert bound(w, "p1", "p2", "p3") == []
    assert (w.assumed, w.lab.scheduler.waiting.list()) == (0, [])
    assert w.condition("p1") == w.condition("p2") == ("False", "Unschedulable", UNFIT)
    assert str(w.condition("p3")).startswith(
        "('False', 'Unschedulable', '0/2 nodes are available: 2 Insufficient cpu."
    )
    assert group_condition(w) == ("False", "Unschedulable", "pod group is unschedulable")


def test_an_infeasible_gang_is_not_retried_in_a_tight_loop() -> None:
    """Nothing changes -> one attempt a pod, and the next after five minutes."""
    w = world(cpu="1", nodes=2)
    group(w)
    members(w, "p1", "p2", "p3")
    w.lab.run()
    w.lab.advance(200)
    assert [w.info(p).attempts for p in ("p1", "p2", "p3")] == [1, 1, 1]


def test_room_brings_the_whole_gang_back() -> None:
    """A third node comes -> the member that did not fit wakes, and takes the others along."""
    w = world(cpu="1", nodes=2)
    group(w)
    members(w, "p1", "p2", "p3")
    w.lab.run()
    w.lab.advance(20)
    w.node("n2", cpu="1")
    w.lab.run()
    assert len(bound(w, "p1", "p2", "p3")) == 3
    assert group_condition(w) == ("True", "Scheduled", "")


def test_more_than_min_count_may_run_and_the_rest_fails_alone() -> None:
    """Five pods, minCount 3, room for four -> four run, the fifth has its own message."""
    w = world(cpu="2", nodes=2)
    group(w)
    members(w, *[f"p{i}" for i in range(5)], schedulingGates=[{"name": "x"}])
    for i in range(5):
        w.lab.client.patch("Pod", f"p{i}", "default", {"spec": {"schedulingGates": None}}, "merge")
    w.lab.run()
    assert len(bound(w, *[f"p{i}" for i in range(5)])) == 4
    (left,) = {f"p{i}" for i in range(5)} - set(bound(w, *[f"p{i}" for i in range(5)]))
    assert "0/2 nodes are available: 2 Insufficient cpu." in str(w.condition(left))


def test_basic_groups_have_no_minimum() -> None:
    """Policy basic, one of two fits -> it runs, the other does not."""
    w = world(cpu="1", nodes=1)
    group(w, {"basic": {}})
    members(w, "p1", "p2")
    w.lab.run()
    assert len(bound(w, "p1", "p2")) == 1


def test_members_go_by_priority_first() -> None:
    """Room for three of four, the last made is the most important -> it is among those that run."""
    w = world(cpu="1", nodes=3)
    group(w)
    members(w, "p1", "p2")
    members(w, "p4", priority="high")
    members(w, "p3")
    w.lab.run()
    running = bound(w, "p1", "p2", "p3", "p4")
    assert (len(running), "p4" in running) == (3, True)


def test_different_schedulers_in_one_group_fail_together() -> None:
    """Two profiles of this process in one group -> the text with both names, for all."""
    profiles = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}],
    }
    w = world(config=profiles)
    group(w, {"gang": {"minCount": 2}})
    members(w, "p1", schedulerName="a")
    members(w, "p2", schedulerName="b")
    w.lab.run()
    text = 'all pods in a single pod group should have the same .spec.schedulerName set, got: "b" and "a"'
    assert {c[2] for c in (w.condition("p1"), w.condition("p2")) if c} == {text}


def test_an_error_of_one_is_the_error_of_all() -> None:
    """p2's Filter raises -> p1 hears of it, both wait in error back-off."""
    broken = Scripted(
        "Broken", pre_filter=lambda s, pod, n: Status.as_error_of("boom") if pod.name == "p2" else None
    )
    w = world(plugins=[broken])
    group(w, {"gang": {"minCount": 2}})
    members(w, "p1", "p2")
    w.step()
    assert "failed to schedule other pod from a pod group: " in str(w.condition("p1"))
    assert "boom" in str(w.condition("p1"))
    assert "boom" in str(w.condition("p2"))
    assert (w.where("p1"), w.where("p2")) == ("error_backoff", "error_backoff")
    assert group_condition(w)[:2] == ("False", "SchedulerError")


def test_what_was_tried_is_unreserved() -> None:
    """A plugin that reserves, a gang that does not fit -> every reservation of the attempt is taken back."""
    calls: list[tuple[str, str, str]] = []
    w = world(cpu="1", nodes=2, plugins=[Scripted("Books", calls, reserve=None, unreserve=None)])
    group(w)
    members(w, "p1", "p2", "p3")
    w.lab.run()
    assert sorted(pod for _, point, pod in calls if point == "reserve") == ["p1", "p2"]
    assert sorted(pod for _, point, pod in calls if point == "unreserve") == ["p1", "p2"]


def test_a_gang_that_must_preempt_waits_for_it() -> None:
    """Two nodes, one full of low pods -> the gang of two is nominated, waits, and runs when the victim is gone."""
    w = world(cpu="1", nodes=2)
    w.pod("low", priority="low", nodeName="n0", terminationGracePeriodSeconds=30)
    group(w, {"gang": {"minCount": 2}})
    members(w, "p1", "p2", priority="high")
    w.lab.run()
    assert bound(w, "p1", "p2") == []
    waiting = "pod group is unschedulable, pod group is waiting for preemption to complete"
    assert group_condition(w) == ("False", "Unschedulable", waiting)
    assert w.raw("low")["metadata"]["deletionTimestamp"]
    assert {w.raw(p)["status"].get("nominatedNodeName") for p in ("p1", "p2")} == {"n0", "n1"}
    w.lab.advance(60)
    assert bound(w, "p1", "p2") == ["p1", "p2"]


# --- placements ---------------------------------------------------------------------------------------------


def racks(sizes: dict[str, int], cpu: str = "1", plugins: Any = ()) -> World:
    """Nodes of one CPU in racks, and the group ga, which must stay in one rack."""
    w = World(gates=TOPOLOGY, plugins=plugins)
    for rack, size in sizes.items():
        for i in range(size):
            w.node(f"{rack}{i}", cpu=cpu, labels={"rack": rack})
    group(w, schedulingConstraints={"topology": [{"key": "rack"}]})
    return w


def test_a_group_stays_within_one_domain() -> None:
    """Racks of two and three nodes, a gang of three -> all in the larger."""
    w = racks({"r": 2, "s": 3})
    members(w, "p1", "p2", "p3")
    w.lab.run()
    assert {str(w.where(p))[5] for p in ("p1", "p2", "p3")} == {"s"}


def test_no_domain_is_large_enough() -> None:
    """Two racks of two -> the text names how many placements there are; pods' messages count the placement's nodes."""
    w = racks({"r": 2, "s": 2})
    members(w, "p1", "p2", "p3")
    w.lab.run()
    assert bound(w, "p1", "p2", "p3") == []
    assert group_condition(w) == (
        "False",
        "Unschedulable",
        "0/2 placements are available, first placement status: pod group is unschedulable",
    )
    text = str(w.condition("p3"))
    assert "0/2 nodes are available: 2 Insufficient cpu." in text
    assert "preemption: not eligible due to placement-based pod group scheduling limitation" in text


def test_no_node_has_the_label() -> None:
    """Nodes without the label -> `no feasible placements found`."""
    w = racks({})
    w.node("x")
    members(w, "p1", "p2", "p3")
    w.lab.run()
    assert group_condition(w) == ("False", "Unschedulable", "no feasible placements found")


def test_later_members_follow_those_that_run() -> None:
    """Three run in s; a fourth fits only in r -> it stays out."""
    w = racks({"r": 2, "s": 3})
    members(w, "p1", "p2", "p3")
    w.lab.run()
    members(w, "p4")
    w.lab.run()
    assert bound(w, "p4") == []
    w.node("s9", cpu="1", labels={"rack": "s"})
    w.lab.advance(20)
    assert w.where("p4") == "node s9"


def test_members_in_two_domains_are_an_error() -> None:
    """Two members were put by hand into two racks -> the error says so."""
    w = racks({"r": 2, "s": 3})
    members(w, "p1", nodeName="r0")
    members(w, "p2", nodeName="s0")
    members(w, "p3")
    w.step()
    assert group_condition(w)[1] == "SchedulerError"
    assert "cannot determine domain for already scheduled pods: " in group_condition(w)[2]


@pytest.mark.parametrize(("small", "large"), [(3, 6), (4, 8)])
def test_the_fuller_domain_is_preferred(small: int, large: int) -> None:
    """Both racks take all three: equal counts, so MostAllocated prefers the smaller."""
    w = racks({"large": large, "small": small})
    members(w, "p1", "p2", "p3")
    w.lab.run()
    assert all("small" in str(w.where(p)) for p in ("p1", "p2", "p3"))


def test_more_pods_count_more() -> None:
    """minCount 3, five pods; rack r takes three, s five -> s: 100 for the count against 60, and fuller is r by less."""
    w = racks({"r": 3, "s": 5})
    members(w, *[f"p{i}" for i in range(5)], schedulingGates=[{"name": "x"}])
    for i in range(5):
        w.lab.client.patch("Pod", f"p{i}", "default", {"spec": {"schedulingGates": None}}, "merge")
    w.lab.run()
    assert all(str(w.where(f"p{i}")).startswith("node s") for i in range(5))
