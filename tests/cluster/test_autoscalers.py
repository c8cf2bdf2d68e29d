"""HorizontalPodAutoscalers in virtual time: bounds hold, and without metrics nothing else moves."""

from __future__ import annotations

from typing import Any

from tests.cluster.workloads import Json, get, lab, names, patch, reasons, workload


def autoscaler(least: int, most: int, **target: Any) -> Json:
    """An autoscaler of the Deployment `web`."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", **target}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": reference, "minReplicas": least, "maxReplicas": most},
    }


def test_bounds_hold_and_metrics_are_missed() -> None:
    """Below the least it scales up, above the most down; in between it says that nothing is measured."""
    it = lab(workload("Deployment", 1), autoscaler(2, 4))
    it.advance(3)
    assert len(names(it)) == 2
    scaler = get(it, "HorizontalPodAutoscaler")
    assert scaler["spec"]["metrics"][0]["resource"]["target"] == {
        "type": "Utilization",
        "averageUtilization": 80,
    }
    assert reasons(scaler) == {
        "AbleToScale": ("True", "SucceededGetScale"),
        "ScalingActive": ("False", "FailedGetResourceMetric"),
    }
    assert (scaler["status"]["currentReplicas"], scaler["status"]["desiredReplicas"]) == (2, 2)
    patch(it, "Deployment", {"replicas": 9})
    it.advance(3)
    assert get(it, "Deployment")["spec"]["replicas"] == 4
    told = [e["message"] for e in it.client.list("Event")[0] if e["reason"] == "SuccessfulRescale"]
    assert told == [
        "New size: 2; reason: Current number of replicas below Spec.MinReplicas",
        "New size: 4; reason: Current number of replicas above Spec.MaxReplicas",
    ]
    before = [
        get(it, kind)["metadata"]["resourceVersion"] for kind in ("HorizontalPodAutoscaler", "Deployment")
    ]
    it.advance(60)
    after = [
        get(it, kind)["metadata"]["resourceVersion"] for kind in ("HorizontalPodAutoscaler", "Deployment")
    ]
    assert after == before


def test_zero_replicas_switch_it_off() -> None:
    """A workload that somebody scaled to nothing stays there."""
    it = lab(workload("Deployment", 0), autoscaler(2, 4))
    it.advance(3)
    assert names(it) == []
    assert reasons(get(it, "HorizontalPodAutoscaler"))["ScalingActive"] == ("False", "ScalingDisabled")


def test_a_target_that_is_not_there() -> None:
    """It says so, and takes the workload up when it comes."""
    it = lab(autoscaler(3, 4))
    it.advance(1)
    assert reasons(get(it, "HorizontalPodAutoscaler")) == {"AbleToScale": ("False", "FailedGetScale")}
    it.apply(workload("Deployment", 1))
    it.advance(3)
    assert len(names(it)) == 3
