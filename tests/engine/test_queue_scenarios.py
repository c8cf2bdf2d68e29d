"""The queue's worked scenarios through a real scheduler on a virtual clock (spec 02 §13); times in seconds."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.store_errors import ApiError
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.status import Status

from tests.engine.world import Scripted, World


def full_node() -> World:
    """A node of one CPU that `old` fills, and P, which was refused at 10.2."""
    w = World()
    w.node("a", cpu="1")
    w.pod("old")
    assert w.step() is not None
    assert w.where("old") == "node a"
    w.at(10.2)
    w.pod()
    w.step()
    return w


def incoming(w: World, metrics: Any, queue: str, event: str) -> float:
    """Pods that `event` brought into `queue`."""
    found = metrics.registry.get_sample_value(
        "scheduler_queue_incoming_pods_total", {"queue": queue, "event": event}
    )
    return float(found or 0.0)


# --- A ------------------------------------------------------------------------------------------------------


def test_a_rejected_pod_waits_in_the_pool_with_its_rejectors() -> None:
    """t=10.2: rejected by NodeResourcesFit -> unschedulable, count 1."""
    w = full_node()
    assert w.where() == "unschedulable"
    assert (w.info().unschedulable_plugins, w.info().unschedulable_count) == ({"NodeResourcesFit"}, 1)


def test_a_pod_that_ends_sends_it_to_backoff_and_an_idle_scheduler_takes_it_from_there() -> None:
    """t=10.4: a placed pod is deleted -> back-off until 11; nothing active -> popped at once (PopFromBackoffQ)."""
    w = full_node()
    w.at(10.4)
    metrics = w.measured()
    w.delete("old")
    assert w.where() == "backoff"
    assert incoming(w, metrics, "backoff", "AssignedPodDelete") == 1
    w.step()
    assert (w.now, w.where()) == (10.4, "node a")
    assert incoming(w, metrics, "active", "PopFromBackoffQ") == 1


@pytest.mark.parametrize(("time", "queue"), [(11.0, "backoff"), (11.999, "backoff"), (12.0, "active")])
def test_a_backoff_ends_with_the_second_after_its_expiry(time: float, queue: str) -> None:
    """Expiry 11 is waited through: with others active, the flush at 12.0 moves it (BackoffComplete)."""
    w = full_node()
    w.at(10.4)
    metrics = w.measured()
    w.delete("old")
    w.at(time)
    assert w.where() == queue
    assert incoming(w, metrics, "active", "BackoffComplete") == (queue == "active")


def test_an_event_after_the_backoff_leads_straight_to_the_active_queue() -> None:
    """t=12.5: the same deletion -> active."""
    w = full_node()
    w.at(12.5)
    w.delete("old")
    assert w.where() == "active"


def test_an_active_pod_goes_before_one_in_backoff() -> None:
    """P waits in back-off; `next` of the same priority is active -> `next` is popped first."""
    w = full_node()
    w.at(10.4)
    w.delete("old")
    w.pod("next")
    assert [w.step().pod, w.step().pod] == ["default/next", "default/p"]  # type: ignore[union-attr]


# --- B ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("labels", "queue"), [({"disk": "ssd"}, "backoff"), ({}, "unschedulable")])
def test_an_event_during_scheduling_is_remembered(labels: dict[str, str], queue: str) -> None:
    """P wants disk=ssd; while filters run, node N is added -> back-off if N matches, else the pool."""
    w = World()
    w.node("a")

    def node_arrives(state: Any, pod: Any, nodes: Any) -> None:
        w.lab.client.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n", "labels": labels},
                "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"}},
            }
        )
        # A node's status is written by the kubelet, after it was made.
        w.lab.scheduler.pump()

    late = Scripted("Late", pre_filter=node_arrives)
    w.lab.plugins.enable(late)
    w.pod(nodeSelector={"disk": "ssd"})
    scheduler = w.lab.scheduler
    info = scheduler.queue.pop()
    assert info is not None
    scheduler._attempt(info)
    assert w.where() == queue


def test_events_are_dropped_when_nobody_in_flight_needs_them() -> None:
    """No pod in flight -> the list of in-flight events stays empty."""
    w = full_node()
    w.node("b", cpu="1")
    assert w.lab.scheduler.queue.in_flight.labels() == {}


# --- C ------------------------------------------------------------------------------------------------------


def test_a_gated_pod_waits_silently_until_its_last_gate_goes() -> None:
    """Two gates -> gated, no attempt, no event, no condition but SchedulingGated; one gate less -> no change;
    none left -> active, with the time stamp of its creation."""
    w = World()
    w.node()
    w.at(3.0)
    w.pod(schedulingGates=[{"name": "x"}, {"name": "y"}])
    added = w.info().timestamp
    assert (w.where(), w.info().attempts, w.step(), w.events()) == ("gated", 0, None, [])
    w.at(5.0)
    w.patch("Pod", "p", {"spec": {"schedulingGates": [{"name": "y"}]}}, "default")
    assert w.where() == "gated"
    w.at(7.0)
    w.patch("Pod", "p", {"spec": {"schedulingGates": None}}, "default")
    assert (w.where(), w.info().timestamp) == ("active", added)
    w.step()
    assert w.where() == "node a"


def test_gated_pods_stay_gated_over_the_five_minute_flush() -> None:
    """t=1000: still gated."""
    w = World()
    w.pod(schedulingGates=[{"name": "x"}])
    w.at(1000)
    assert w.where() == "gated"


# --- D ------------------------------------------------------------------------------------------------------


def test_errors_wait_longer_each_time_even_on_an_idle_scheduler() -> None:
    """A bind that always fails at x.0: tries after 2, 3, 5, 9, 11, 11 s (1, 2, 4, 8, 10, 10 rounded up)."""
    w = World(plugins=[Scripted("Broken", bind=Status.as_error_of("no route to host"))])
    w.lab.plugins.disable("DefaultBinder")
    w.node()
    w.pod()
    w.step()
    assert (w.where(), w.info().consecutive_errors_count, w.step()) == ("error_backoff", 1, None)
    assert w.info().unschedulable_plugins == set()
    tries = [round(t.time - w.lab.clock.start, 3) for t in w.lab.advance(60)]
    assert tries == [2, 5, 10, 19, 30, 41, 52]


# --- E ------------------------------------------------------------------------------------------------------


def test_a_preemptor_waits_for_its_victims_and_then_gets_their_node() -> None:
    """P evicts `old`: rejected, nominated to a; the victim's end wakes it, and it lands on a."""
    w = World()
    w.node("a", cpu="1")
    w.pod("old", priority="low", terminationGracePeriodSeconds=30)
    w.step()
    w.pod(priority="high")
    w.step()
    assert w.where() == "unschedulable"
    assert w.info().unschedulable_plugins == {"NodeResourcesFit"}
    assert w.raw()["status"]["nominatedNodeName"] == "a"
    assert w.raw("old")["metadata"]["deletionTimestamp"]
    w.at(29.9)
    assert w.where() == "unschedulable"
    w.at(30.0)
    assert w.where() == "active"
    assert w.raw("old") is None
    w.step()
    assert w.where() == "node a"


# --- F ------------------------------------------------------------------------------------------------------


def test_a_dropped_nomination_wakes_pods_of_lower_or_equal_priority() -> None:
    """Q (priority 0) was nominated to a; the nomination is cleared -> Q and P (0) move, `big` (high) does not."""
    w = full_node()
    for name, priority in (("q", ""), ("big", "high")):
        w.pod(name, priority=priority, cpu="2")
        w.step()
    w.lab.client.patch_status("Pod", "q", "default", {"status": {"nominatedNodeName": "a"}})
    w.lab.scheduler.pump()
    assert w.lab.queue.nominated == {"default/q": "a"}
    w.at(20)
    w.lab.client.patch_status("Pod", "q", "default", {"status": {"nominatedNodeName": None}})
    w.lab.scheduler.pump()
    assert (w.where("q"), w.where(), w.where("big")) == ("active", "active", "unschedulable")


# --- G ------------------------------------------------------------------------------------------------------


def test_uncordoning_wakes_whoever_waits_for_nodes() -> None:
    """`spec.unschedulable` goes: rejected by NodeUnschedulable -> active; so is a pod that NodePorts rejected."""
    w = World()
    w.node("a", spec={"unschedulable": True})
    w.node("b")
    ports = [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    w.pod("holder", containers=ports)
    w.step()
    w.pod("second", containers=ports)
    w.pod("cordoned", nodeSelector={"kubernetes.io/hostname": "a"})
    w.node("a", spec={"unschedulable": True}, labels={"kubernetes.io/hostname": "a"})
    w.step(), w.step()
    assert (w.where("second"), w.where("cordoned")) == ("unschedulable", "unschedulable")
    w.at(20)
    w.patch("Node", "a", {"spec": {"unschedulable": None}})
    assert (w.where("second"), w.where("cordoned")) == ("active", "active")


# --- H ------------------------------------------------------------------------------------------------------


def test_without_nodes_every_attempt_is_an_error_and_a_new_node_shortens_nothing() -> None:
    """No nodes -> `no nodes available to schedule pods`, error back-off; node at 0.5 -> still waiting until 2.0."""
    w = World()
    w.pod()
    w.step()
    assert w.where() == "error_backoff"
    assert w.condition() == ("False", "Unschedulable", "no nodes available to schedule pods")
    w.at(0.5)
    w.node()
    assert (w.where(), w.step()) == ("error_backoff", None)
    w.at(1.999)
    assert w.where() == "error_backoff"
    w.at(2.0)
    w.step()
    assert w.where() == "node a"


# --- §5, §6, §7, §10: what the scenarios do not show ----------------------------------------------------------


@pytest.mark.parametrize(("failed", "ready"), [(0.0, 2.0), (0.3, 2.0), (0.999, 2.0), (1.0, 3.0)])
def test_effective_backoff_is_between_d_and_d_plus_one(failed: float, ready: float) -> None:
    """First failure at `failed` -> active at the whole second `ready`, not a millisecond earlier."""
    w = World()
    w.at(failed)
    w.pod()
    w.step()
    w.at(ready - 0.001)
    assert w.where() == "error_backoff"
    w.at(ready)
    assert w.where() == "active"


def test_pods_without_news_are_tried_after_five_minutes() -> None:
    """Rejected at 10.2 -> 310.2 is over five minutes; the flush runs every 30 s -> active at 330."""
    w = full_node()
    metrics = w.measured()
    w.at(329.9)
    assert w.where() == "unschedulable"
    w.at(330.0)
    assert (w.where(), w.info().was_flushed) == ("active", True)
    assert incoming(w, metrics, "active", "UnschedulableTimeout") == 1


def test_a_condition_patch_alone_does_not_bring_a_pod_back() -> None:
    """A generic Update of the waiting pod interests no rejector -> it stays."""
    w = full_node()
    w.at(60)
    w.patch("Pod", "p", {"metadata": {"annotations": {"a": "b"}}}, "default")
    assert w.where() == "unschedulable"


def test_activation_ignores_backoff() -> None:
    """A plugin activates a pod in back-off and one in the pool -> both active; a pod nobody knows -> ignored."""
    w = full_node()
    w.pod("q")
    w.step()
    queue = w.lab.scheduler.queue
    queue.activate([w.info().pod, w.info("q").pod])
    assert (w.where(), w.where("q")) == ("active", "active")


def test_activation_of_a_pod_in_flight_brings_it_back_after_backoff() -> None:
    """Activated while it is being scheduled and rejected -> back-off instead of the pool."""
    w = full_node()
    w.at(50)
    w.lab.scheduler.queue.activate([w.info().pod])
    info = w.lab.scheduler.queue.pop()
    assert info is not None
    w.lab.scheduler.queue.activate([info.pod])
    w.lab.scheduler._attempt(info)
    assert w.where() == "backoff"


def test_a_pending_plugin_s_event_skips_backoff() -> None:
    """Rejected as Pending; its event -> active at once, although back-off is not over."""
    waits = Scripted("Waits", filter=Status.pending("not yet"))
    waits.events_to_register = lambda: [ClusterEventWithHint(ClusterEvent("Node", ActionType.ADD))]
    w = World(plugins=[waits])
    w.node("a")
    w.pod()
    w.step()
    assert (w.where(), w.info().pending_plugins) == ("unschedulable", {"Waits"})
    w.node("b")
    assert w.where() == "active"


def test_a_hint_that_raises_counts_as_queue() -> None:
    """The hint of the rejector raises -> the pod is requeued."""

    def broken(pod: Any, old: Any, new: Any) -> QueueingHint:
        raise RuntimeError("oops")

    waits = Scripted("Waits", pre_filter=Status.unresolvable("no"))
    waits.events_to_register = lambda: [ClusterEventWithHint(ClusterEvent("Node", ActionType.ADD), broken)]
    w = World(plugins=[waits])
    w.node("a")
    w.pod()
    w.step()
    w.node("b")
    assert w.where() == "backoff"


def test_a_deleted_pod_leaves_every_queue() -> None:
    """Deleted in the pool, in error back-off, and in the active queue -> nowhere."""
    w = full_node()
    w.pod("q")
    w.delete("p"), w.delete("q")
    assert sum(w.lab.scheduler.queue.counts().values()) == 0


def test_a_pod_that_comes_back_twice_is_refused_by_name() -> None:
    """add_unschedulable of a pod that is in the pool / active / back-off says where it is."""
    w = full_node()
    queue = w.lab.scheduler.queue
    info = w.info()
    assert queue.add_unschedulable(info) == "Pod default/p is already present in unschedulable queue"
    queue.activate([info.pod])
    assert queue.add_unschedulable(info) == "Pod default/p is already present in the active queue"


def test_years_of_backoff_take_no_steps() -> None:
    """A gated pod and one that errs, for ten years: the clock meets one timer a retry, not one a second."""
    w = World(plugins=[Scripted("Broken", pre_filter=Status.as_error_of("broken"))])
    w.lab.scheduler.queue._backoff._maximum = 30 * 24 * 3600.0
    w.node()
    w.pod("gated", schedulingGates=[{"name": "x"}])
    w.pod()
    w.step()
    tries = w.lab.advance("87600h")
    # 1, 2, 4, ... s up to 30 days, and then one a month.
    assert 130 < len(tries) < 150
    assert (w.where(), w.where("gated")) == ("error_backoff", "gated")


def test_api_errors_of_the_test_world_are_real() -> None:
    """Binding a pod that is bound -> 409 from the store, as the API server would answer."""
    w = World()
    w.node()
    w.pod()
    w.step()
    with pytest.raises(ApiError) as e:
        w.lab.client.bind("default", "p", None, "a")
    assert e.value.code == 409
