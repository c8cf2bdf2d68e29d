"""Preemption from the failed attempt to the bound preemptor: victims, nominations, events, conditions (spec 13 §8)."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.store_errors import ApiError
from labkit.framework.status import Status

from tests.engine.world import Scripted, World

FIT = "0/1 nodes are available: 1 Insufficient cpu."


def two_victims(*, grace: int = 30, **pod: Any) -> World:
    """Node a (2 CPU) with `v1` and `v2` (low), and `p` (high, 2 CPU), tried once."""
    w = World()
    w.node()
    for name in ("v1", "v2"):
        w.pod(name, priority="low", terminationGracePeriodSeconds=grace)
        w.step()
    w.pod(cpu="2", **{"priority": "high", **pod})
    return w


def test_victims_get_condition_event_and_grace_period() -> None:
    """p preempts -> both victims: DisruptionTarget True, `Preempted` with p's UID, deletion under way."""
    w = two_victims()
    w.step()
    uid = w.raw()["metadata"]["uid"]
    for name in ("v1", "v2"):
        assert w.condition(name, "DisruptionTarget") == (
            "True",
            "PreemptionByScheduler",
            "default-scheduler: preempting to accommodate a higher priority pod",
        )
        assert w.events(name)[-1] == ("Normal", "Preempted", f"Preempted by pod {uid} on node a")
        assert w.raw(name)["metadata"]["deletionTimestamp"]


def test_the_preemptor_s_message_speaks_of_the_fit_only() -> None:
    """Success -> event and condition without any word on preemption; nominated, in the pool."""
    w = two_victims()
    w.step()
    assert w.events() == [("Warning", "FailedScheduling", FIT)]
    assert w.condition() == ("False", "Unschedulable", FIT)
    assert (w.where(), w.raw()["status"]["nominatedNodeName"]) == ("unschedulable", "a")
    assert w.lab.queue.nominated == {"default/p": "a"}


def test_an_attempt_while_victims_terminate_does_not_preempt_again() -> None:
    """Tried again before the end -> `not eligible due to a terminating pod on the nominated node.`"""
    w = two_victims()
    w.step()
    w.lab.scheduler.queue.activate([w.info().pod])
    w.step()
    assert w.condition() == (
        "False",
        "Unschedulable",
        FIT
        + " no new claims to deallocate, preemption: not eligible due to a terminating pod on the nominated node.",
    )
    assert len([e for e in w.events("v1") if e[1] == "Preempted"]) == 1


def test_the_whole_story_ends_on_the_nominated_node() -> None:
    """30 s later both are gone -> p is bound to a, its nomination cleared."""
    w = two_victims()
    w.step()
    w.lab.advance(31)
    assert (w.where(), w.where("v1"), w.where("v2")) == ("node a", None, None)
    assert not w.raw()["status"].get("nominatedNodeName")
    assert w.lab.queue.nominated == {}


def test_the_nominated_room_is_kept_from_lower_priorities_and_not_from_higher() -> None:
    """While victims terminate, an equal or lower pod does not take the room; a higher one may."""
    w = two_victims(grace=0)
    w.step()
    w.pod("late")
    w.pod("vip", priority="higher", cpu="2")
    assert w.step().pod == "default/vip"  # type: ignore[union-attr]
    assert w.where("vip") == "node a"
    w.lab.run()
    assert (w.where(), w.where("late")) == ("unschedulable", "unschedulable")


def test_lower_nominations_on_the_node_are_cleared_first() -> None:
    """p (high) is nominated to a; vip (higher) preempts there too -> p's nomination is taken away."""
    w = two_victims()
    w.step()
    assert w.raw()["status"]["nominatedNodeName"] == "a"
    w.node("a", cpu="2")
    w.pod("vip", priority="higher", cpu="2")
    w.step()
    # The victims of p are on their way out already: vip picks them without a second deletion, so nothing is cleared.
    assert w.raw()["status"]["nominatedNodeName"] == "a"
    w = World()
    w.node("a", cpu="2")
    (
        w.pod("v1", priority="low", terminationGracePeriodSeconds=30),
        w.pod("v2", terminationGracePeriodSeconds=30),
    )
    w.step(), w.step()
    w.pod("p", priority="high", cpu="1")
    w.step()
    w.pod("vip", priority="higher", cpu="2")
    w.step()
    assert w.raw("v2")["metadata"].get("deletionTimestamp")
    assert not w.raw("p")["status"].get("nominatedNodeName")
    assert w.raw("vip")["status"]["nominatedNodeName"] == "a"


def test_a_pod_that_never_preempts_says_so() -> None:
    """preemptionPolicy Never, by its class -> the text, no victim."""
    w = two_victims(priority="")
    w.delete("p")
    w.lab.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "polite"},
            "value": 5000,
            "preemptionPolicy": "Never",
        }
    )
    w.pod("polite", priority="polite", cpu="2")
    w.lab.run()
    text = FIT + " no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert w.condition("polite") == ("False", "Unschedulable", text)
    assert not w.raw("v1")["metadata"].get("deletionTimestamp")


def test_nobody_of_lower_priority_means_no_victims() -> None:
    """Equal priorities -> the nested message."""
    w = two_victims(priority="low")
    w.step()
    assert w.condition() == (
        "False",
        "Unschedulable",
        FIT + " no new claims to deallocate, preemption: 0/1 nodes are available: "
        "1 No preemption victims found for incoming pod.",
    )


def test_a_victim_that_permit_holds_is_rejected_in_memory() -> None:
    """`held` waits at Permit with the room; p preempts it -> no deletion, its error names the preemption."""
    w = World(
        plugins=[
            Scripted(
                "Hold",
                permit=lambda state, pod, node: (Status.wait(), 600.0) if pod.name == "held" else None,
            )
        ]
    )
    w.node("a", cpu="1")
    w.pod("held", priority="low")
    w.step()
    w.pod(priority="high")
    w.step()
    uid = w.raw()["metadata"]["uid"]
    note = f"Preempted by pod {uid} on node a (in kube-scheduler memory)."
    assert ("Normal", "Preempted", note) in w.events("held")
    assert not w.raw("held")["metadata"].get("deletionTimestamp")
    assert w.condition("held") == ("False", "SchedulerError", "waiting on permit for pod: preempted")
    w.lab.run()
    assert (w.where(), w.where("held")) == ("node a", "error_backoff")


def failing_delete(w: World, *names: str) -> list[str]:
    """The API refuses to delete these pods with 500; returns the list of the names that were asked for."""
    client, asked = w.lab.scheduler.client, []
    real = client.delete

    def delete(kind: str, name: str, *args: Any, **kwargs: Any) -> None:
        asked.append(name)
        if name in names:
            raise ApiError("the storage is down", reason="InternalError", code=500)
        real(kind, name, *args, **kwargs)

    client.delete = delete
    return asked


def test_a_failed_deletion_brings_the_preemptor_back_at_once() -> None:
    """v1's deletion fails -> v2, the last, is not touched; p is activated."""
    w = two_victims()
    asked = failing_delete(w, "v1")
    w.step()
    assert asked[:1] == ["v1"]
    assert "v2" not in asked
    assert w.where() == "active"


def test_the_last_deletion_fails() -> None:
    """v2's deletion fails -> v1 terminates, p is activated and meets the terminating pod."""
    w = two_victims()
    failing_delete(w, "v2")
    w.step()
    assert w.where() == "active"
    assert w.raw("v1")["metadata"].get("deletionTimestamp")


@pytest.mark.parametrize("grace", [0, 30])
def test_the_preemptor_is_held_back_until_deletions_are_issued(grace: int) -> None:
    """While the background task runs, DefaultPreemption gates p; afterwards it does not."""
    w = two_victims(grace=grace)
    seen: list[str | None] = []
    client = w.lab.scheduler.client
    real = client.delete

    def delete(kind: str, name: str, *args: Any, **kwargs: Any) -> None:
        executor = w.lab.scheduler._executor
        seen.append(str(executor.holds_back(w.info().pod)))
        real(kind, name, *args, **kwargs)

    client.delete = delete
    w.step()
    assert seen == ["True", "True"]
    assert w.lab.queue.gated == []


def test_disruption_budgets_choose_the_other_node() -> None:
    """v1 on a is protected by a budget of none, v2 on b is not -> v2 goes."""
    w = World()
    w.node("a", cpu="1"), w.node("b", cpu="1")
    for name, node in (("v1", "a"), ("v2", "b")):
        w.pod(name, priority="low", labels={"app": name}, nodeName=node)
    w.lab.apply(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "v1"}}},
        }
    )
    w.pod(priority="high")
    w.step()
    assert (w.where("v1"), w.where("v2")) == ("node a", None)
