"""GangPermit and Coscheduling in a lab: all or nothing, virtual time-outs, no reservation left behind."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.status import Status
from labkit.plugins.course import Coscheduling, GangPermit

from tests.engine.world import Scripted, World

GROUP = "scheduling.x-k8s.io/pod-group"


def bound(w: World, *names: str) -> list[str]:
    """Which of the pods have a node."""
    return [n for n in names if str(w.where(n)).startswith("node ")]


def gang(w: World, names: str, size: str = "3", gang_id: str = "g", **spec: Any) -> None:
    """Pods by one-letter names, members of a gang."""
    for name in names:
        w.pod(name, labels={"gang-id": gang_id, "gang-min-count": size}, **spec)


def clean(w: World) -> bool:
    """Nobody is held, nothing is assumed, nobody is in flight."""
    scheduler = w.lab.scheduler
    return not scheduler.waiting.list() and not w.assumed and not len(scheduler.queue.in_flight)


# --- GangPermit ---------------------------------------------------------------------------------------------


def test_the_last_member_releases_all() -> None:
    """Two of three are held without a time limit being reached; the third -> all run, in one step."""
    w = World(plugins=[GangPermit()])
    w.node(cpu="3")
    gang(w, "ab")
    w.lab.run()
    assert (bound(w, "a", "b"), w.assumed) == ([], 2)
    gang(w, "c")
    w.lab.run()
    assert bound(w, "a", "b", "c") == ["a", "b", "c"]
    assert clean(w)


def test_a_held_member_says_how_many_there_are() -> None:
    """One of three held -> the trace has the plugin's name; the queue shows it in flight."""
    w = World(plugins=[GangPermit()])
    w.node(cpu="3")
    gang(w, "a")
    w.lab.run()
    assert w.where("a") == "in_flight"
    assert ("Permit", "waits for GangPermit") in w.lab.trace("a").steps


def test_after_the_time_out_the_gang_rests_and_then_tries_again() -> None:
    """60 s -> all let go; for 10 s a retry is refused; later room for all -> all run."""
    w = World(plugins=[GangPermit()])
    w.node(cpu="2")
    gang(w, "abc")
    w.lab.run()
    assert w.assumed == 2
    w.lab.advance(60)
    assert (bound(w, "a", "b", "c"), clean(w)) == ([], True)
    w.node("b", cpu="1")
    w.lab.advance(5)
    assert bound(w, "a", "b", "c") == []
    w.lab.advance(600)
    assert bound(w, "a", "b", "c") == ["a", "b", "c"]
    assert clean(w)


def test_one_member_s_failure_fails_all() -> None:
    """The last member passes GangPermit, but a later Permit plugin refuses it -> nobody is left half-way held."""
    later = Scripted(
        "Later", permit=lambda s, pod, n: Status.unschedulable("no c") if pod.name == "c" else None
    )
    w = World(plugins=[later, GangPermit()])
    w.node(cpu="3")
    gang(w, "abc")
    w.lab.run()
    w.lab.advance(61)
    assert (bound(w, "a", "b", "c"), w.assumed) == ([], 0)


def test_a_deleted_member_takes_the_others_places_with_it() -> None:
    """a and b are held, a is deleted -> b lets go as well."""
    w = World(plugins=[GangPermit()])
    w.node(cpu="3")
    gang(w, "ab")
    w.lab.run()
    w.delete("a")
    assert clean(w)
    assert w.where("b") in ("unschedulable", "backoff", "active")


def test_running_members_count() -> None:
    """Three run; one more of the same gang -> starts at once, without waiting for two others."""
    w = World(plugins=[GangPermit()])
    w.node(cpu="4")
    gang(w, "abc")
    w.lab.run()
    gang(w, "d")
    w.lab.run()
    assert bound(w, "d") == ["d"]


def test_gangs_of_different_namespaces_or_names_are_strangers() -> None:
    """g has two, h has one, all of size 3 -> nobody runs."""
    w = World(plugins=[GangPermit()])
    w.node(cpu="4")
    gang(w, "ab")
    gang(w, "c", gang_id="h")
    w.lab.run()
    assert (bound(w, "a", "b", "c"), w.assumed) == ([], 3)


@pytest.mark.parametrize("size", ["0", "many", "1.5"])
def test_a_size_that_is_no_number_is_named(size: str) -> None:
    """gang-min-count -> rejected, the label and value in the message."""
    w = World(plugins=[GangPermit()])
    w.node()
    gang(w, "a", size)
    w.lab.run()
    condition = w.condition("a")
    assert condition is not None
    assert "gang-min-count" in condition[2]
    assert size in condition[2]


def test_pods_without_a_gang_pass() -> None:
    """No label -> bound."""
    w = World(plugins=[GangPermit()])
    w.node()
    w.pod()
    w.lab.run()
    assert w.where() == "node a"


def test_two_gangs_that_hold_each_other_s_room_both_give_it_back() -> None:
    """Room for three, two gangs of three popped in turn -> never a part of a gang, and the room is free at the end."""
    w = World(plugins=[GangPermit()])
    w.node(cpu="3")
    for pair in ("ax", "by", "cz"):
        gang(w, pair[0], gang_id="g")
        gang(w, pair[1], gang_id="h")
    w.lab.run()
    w.lab.advance(360)
    assert all(len(bound(w, *names)) in (0, 3) for names in ("abc", "xyz"))


# --- Coscheduling -------------------------------------------------------------------------------------------


def group(w: World, members: int = 3, name: str = "g", **spec: Any) -> None:
    """A PodGroup."""
    w.lab.apply(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minMember": members, **spec},
        }
    )


def members(w: World, names: str, of: str = "g", **spec: Any) -> None:
    """Pods that carry the group's label."""
    for name in names:
        w.pod(name, labels={GROUP: of}, **spec)


def test_sorting_keeps_two_groups_out_of_each_other_s_way() -> None:
    """Room for three, two groups of three made in turn -> one of them runs at once, nothing of the other."""
    w = World(plugins=[Coscheduling()])
    w.node(cpu="3")
    group(w)
    w.at(1)
    group(w, name="h")
    for pair in ("ax", "by", "cz"):
        members(w, pair[0])
        members(w, pair[1], of="h")
    w.lab.run()
    assert bound(w, *"abcxyz") == ["a", "b", "c"]
    assert clean(w)


def test_a_complete_group_runs_together() -> None:
    """minMember 3, three pods, room -> all three."""
    w = World(plugins=[Coscheduling()])
    w.node(cpu="3")
    group(w)
    members(w, "abc")
    w.lab.run()
    assert bound(w, "a", "b", "c") == ["a", "b", "c"]
    assert clean(w)


def test_too_few_siblings_are_told_and_a_new_one_wakes_them() -> None:
    """Two of three -> the text with both numbers; the third comes -> all run."""
    w = World(plugins=[Coscheduling()])
    w.node(cpu="3")
    group(w)
    members(w, "ab")
    w.lab.run()
    condition = w.condition("a")
    assert condition is not None
    assert (
        "pre-filter pod a cannot find enough sibling pods, current pods number: 2, minMember of group: 3"
        in condition[2]
    )
    w.lab.advance(20)
    members(w, "c")
    w.lab.advance(5)
    assert bound(w, "a", "b", "c") == ["a", "b", "c"]


def test_gated_siblings_hold_the_group_up() -> None:
    """One of three is gated -> the text; nobody runs."""
    w = World(plugins=[Coscheduling()])
    w.node(cpu="3")
    group(w)
    members(w, "a", schedulingGates=[{"name": "x"}])
    members(w, "bc")
    w.lab.run()
    assert "cannot proceed due to gated pods in the same PodGroup" in str(w.condition("b"))
    assert bound(w, "a", "b", "c") == []


def test_a_resource_gap_is_named_before_room_is_taken() -> None:
    """minResources 4 CPUs, 3 there -> `resource gap: cpu 1000`, nobody held."""
    w = World(plugins=[Coscheduling()])
    w.node(cpu="3")
    group(w, minResources={"cpu": "4"})
    members(w, "abc")
    w.lab.run()
    assert "resource gap: cpu 1000" in str(w.condition("a"))
    assert clean(w)


def test_the_group_is_given_up_when_a_member_fits_nowhere() -> None:
    """Room for one of three -> the second fails, and PostFilter lets the first go at once."""
    w = World(plugins=[Coscheduling()])
    w.node(cpu="1")
    group(w)
    members(w, "abc")
    w.step()
    assert w.assumed == 1
    w.step()
    assert clean(w)
    assert "PodGroup default/g gets rejected due to Pod b is unschedulable even after PostFilter" in str(
        w.condition("b")
    )
    assert "optimistic rejection in PostFilter" in str(w.condition("a")) or "rejection in Unreserve" in str(
        w.condition("a")
    )


def test_a_label_without_a_group_object_is_refused_by_permit() -> None:
    """Label, no PodGroup -> `PodGroup not found`; the object comes -> runs."""
    w = World(plugins=[Coscheduling()])
    w.node(cpu="3")
    members(w, "a")
    w.lab.run()
    assert "PodGroup not found" in str(w.condition("a"))
    w.lab.advance(20)
    group(w, 1)
    w.lab.advance(5)
    assert bound(w, "a") == ["a"]


def test_the_group_s_time_out_is_the_object_s() -> None:
    """scheduleTimeoutSeconds 5, the third member stuck at another Permit plugin's no -> after 5 s all let go."""
    no_c = Scripted(
        "Later", pre_filter=lambda s, pod, n: Status.unresolvable("no c") if pod.name == "c" else None
    )
    w = World(plugins=[no_c, Coscheduling({"podGroupRejectPercentage": 100})])
    w.node(cpu="3")
    group(w, scheduleTimeoutSeconds=5)
    members(w, "abc")
    w.lab.run()
    assert w.assumed == 2
    w.at(4.9)
    assert w.assumed == 2
    w.at(5)
    assert clean(w)
    assert "rejected due to timeout after waiting 5s at plugin Coscheduling" in str(w.condition("a"))


def test_one_member_s_end_is_the_end_of_all() -> None:
    """a and b are held; a is deleted -> b is rejected at once, by Unreserve."""
    no_c = Scripted(
        "Later", pre_filter=lambda s, pod, n: Status.unresolvable("no c") if pod.name == "c" else None
    )
    w = World(plugins=[no_c, Coscheduling({"podGroupRejectPercentage": 100})])
    w.node(cpu="3")
    group(w)
    members(w, "abc")
    w.lab.run()
    w.delete("a")
    assert clean(w)
    assert "rejection in Unreserve" in str(w.condition("b"))


def test_members_of_a_group_stand_together_in_the_queue() -> None:
    """Group made first; pods a, x, b in this order -> popped a, b, x: the group is older than x."""
    w = World(plugins=[Coscheduling()])
    w.node(cpu="4")
    group(w, 2)
    w.at(1)
    members(w, "a")
    w.pod("x")
    w.at(2)
    members(w, "b")
    assert [t.pod for t in w.lab.run()] == ["default/a", "default/b", "default/x"]
