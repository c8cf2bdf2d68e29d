"""`lab.metrics`: counted by kube-scheduler's names, also what happened before anybody asked (spec 01 §13, 02 §12)."""

from __future__ import annotations

from tests.engine.world import World


def test_metrics_count_what_happened_before_they_were_asked_for() -> None:
    """One pod scheduled, one rejected by NodeResourcesFit -> the counters say so; the lab's state is the same."""
    w = World()
    w.node("a", cpu="1")
    w.pod("p"), w.pod("q")
    w.lab.run()
    found = w.lab.metrics.samples()
    assert found['scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"}'] == 1
    assert found['scheduler_schedule_attempts_total{result="unschedulable",profile="default-scheduler"}'] == 1
    assert found['scheduler_pending_pods{queue="unschedulable"}'] == 1
    assert found['scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"}'] == 1
    assert found['scheduler_queue_incoming_pods_total{queue="active",event="UnschedulablePodAdd"}'] == 2
    assert (w.where("p"), w.where("q")) == ("node a", "unschedulable")


def test_metrics_go_on_counting() -> None:
    """A pod that comes after the first look -> counted; the text has the upstream names."""
    w = World()
    w.node()
    before = w.lab.metrics.value(
        "scheduler_schedule_attempts_total", result="scheduled", profile="default-scheduler"
    )
    w.pod()
    w.lab.run()
    after = w.lab.metrics.value(
        "scheduler_schedule_attempts_total", result="scheduled", profile="default-scheduler"
    )
    assert (before, after) == (0, 1)
    text = str(w.lab.metrics)
    assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0' in text
    assert "_created" not in text


def test_a_gated_pod_is_counted_as_gated() -> None:
    """Gate -> pending_pods gated 1, unschedulable_pods of SchedulingGates 1."""
    w = World()
    w.pod(schedulingGates=[{"name": "x"}])
    found = w.lab.metrics.samples()
    assert found['scheduler_pending_pods{queue="gated"}'] == 1
    assert found['scheduler_unschedulable_pods{plugin="SchedulingGates",profile="default-scheduler"}'] == 1
