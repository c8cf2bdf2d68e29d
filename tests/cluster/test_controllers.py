"""Deployment, ReplicaSet and Job in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from labkit import Lab
from labkit.cluster.store_times import seconds_of

from tests.cluster.workloads import get, lab, names, patch, phases, reasons, template, workload

ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def rollout_is_over(obj: dict[str, Any]) -> bool:
    """What `kubectl rollout status deployment` waits for."""
    spec, status = obj["spec"], obj["status"]
    updated = status.get("updatedReplicas", 0)
    return (
        status.get("observedGeneration", 0) >= obj["metadata"]["generation"]
        and updated >= spec["replicas"]
        and status.get("replicas", 0) <= updated
        and status.get("availableReplicas", 0) >= updated
    )


def test_a_deployment_runs() -> None:
    """Three pods, placed by the scheduler, started by kubelets; then nothing is written any more."""
    it = lab(workload("Deployment"))
    assert [p["spec"].get("nodeName") for p in it.pods()] == [None] * 3
    it.run()
    assert phases(it) == ["Pending"] * 3
    assert reasons(get(it, "Deployment"))["Available"] == ("False", "MinimumReplicasUnavailable")
    it.advance(2)
    assert phases(it) == ["Running"] * 3
    deployment = get(it, "Deployment")
    assert deployment["status"]["availableReplicas"] == 3
    assert "unavailableReplicas" not in deployment["status"]
    assert rollout_is_over(deployment)
    assert reasons(deployment) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    (one,) = it.client.list("ReplicaSet")[0]
    assert one["metadata"]["labels"]["pod-template-hash"] == one["metadata"]["name"].removeprefix("web-")
    version = it.store.version
    it.advance(5)
    assert it.store.version == version


def test_the_same_seed_gives_the_same_pods() -> None:
    """Names, nodes and times."""

    def run() -> list[Any]:
        it = lab(workload("Deployment"))
        it.advance(3)
        return [(p["metadata"]["name"], p["spec"]["nodeName"], p["status"]) for p in it.pods()]

    assert run() == run()


def test_scaling() -> None:
    """Up, down, to nothing; a pod that somebody deletes is replaced."""
    it = lab(workload("Deployment"))
    it.advance(2)
    patch(it, "Deployment", {"replicas": 5})
    it.advance(2)
    assert phases(it) == ["Running"] * 5
    victim = names(it)[0]
    it.delete("Pod", victim)
    it.advance(2)
    assert victim not in names(it)
    assert phases(it) == ["Running"] * 5
    patch(it, "Deployment", {"replicas": 2})
    assert len(names(it)) == 2
    it.advance(40)
    assert len(it.pods()) == 2
    patch(it, "Deployment", {"replicas": 0})
    it.advance(40)
    assert it.pods() == []
    assert get(it, "Deployment")["status"].get("replicas", 0) == 0


def test_a_set_gives_up_what_does_not_run_first() -> None:
    """Pods without a node go before those that run."""
    it = lab(workload("ReplicaSet", 2, pod={"containers": [_container("3")]}), nodes=1)
    it.advance(2)
    assert phases(it) == ["Pending", "Running"]
    running = next(p["metadata"]["name"] for p in it.pods() if p["status"]["phase"] == "Running")
    patch(it, "ReplicaSet", {"replicas": 1})
    assert names(it) == [running]


def _container(cpu: str) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "least"),
    [(1, 0, 5, 4), (0, 1, 4, 3), (2, 1, 6, 3), ("25%", "25%", 5, 3), ("100%", 0, 8, 4), (0, "1%", 4, 3)],
)
def test_a_rolling_update_keeps_its_bounds(surge: Any, unavailable: Any, most: int, least: int) -> None:
    """Never more pods than surge allows, never fewer available ones than promised; both bounds are used."""
    strategy = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }
    it = lab(workload("Deployment", 4, strategy=strategy))
    it.advance(3)
    patch(it, "Deployment", {"template": template("web:2")})
    seen_most = seen_least = 4
    for _ in range(60):
        it.advance(0.25)
        alive = [p for p in it.pods() if "deletionTimestamp" not in p["metadata"]]
        ready = [c for p in alive for c in p["status"].get("conditions", ()) if c["type"] == "Ready"]
        seen_most = max(seen_most, len(alive))
        seen_least = min(seen_least, sum(c["status"] == "True" for c in ready))
    assert (seen_most, seen_least) == (most, least)
    deployment = get(it, "Deployment")
    assert rollout_is_over(deployment)
    alive = [p for p in it.pods() if "deletionTimestamp" not in p["metadata"]]
    assert {p["spec"]["containers"][0]["image"] for p in alive} == {"web:2"}
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


def test_a_rollout_that_cannot_go_on_leaves_the_old_pods() -> None:
    """A template that fits nowhere: the old pods stay, and the deadline is reported."""
    it = lab(workload("Deployment", 3, strategy=ROLLING, progressDeadlineSeconds=60))
    it.advance(3)
    before = names(it)
    broken = template("web:2")
    broken["spec"]["nodeSelector"] = {"disk": "none"}
    patch(it, "Deployment", {"template": broken})
    it.advance(30)
    assert set(before) < set(names(it))
    assert reasons(get(it, "Deployment"))["Progressing"] == ("True", "ReplicaSetUpdated")
    it.advance(40)
    deployment = get(it, "Deployment")
    assert reasons(deployment)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert reasons(deployment)["Available"][0] == "True"
    patch(
        it,
        "Deployment",
        {"template": {**template("web:1"), "spec": {**template()["spec"], "nodeSelector": None}}},
    )
    it.advance(40)
    deployment = get(it, "Deployment")
    assert names(it) == before
    assert rollout_is_over(deployment)
    # The old set is the newest revision again, as after `kubectl rollout undo`.
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    assert len(it.client.list("ReplicaSet")[0]) == 2


def test_recreate_waits_for_the_old_pods() -> None:
    """No new pod before the last old one has gone."""
    it = lab(workload("Deployment", 2, strategy={"type": "Recreate"}))
    it.advance(3)
    patch(it, "Deployment", {"template": template("web:2")})
    it.advance(29)
    assert names(it) == []
    assert len(names(it, terminating=True)) == 2
    it.advance(5)
    assert {p["spec"]["containers"][0]["image"] for p in it.pods()} == {"web:2"}
    assert phases(it) == ["Running"] * 2


def test_a_paused_deployment_is_scaled_but_not_rolled() -> None:
    """Until it is resumed."""
    it = lab(workload("Deployment", 2))
    it.advance(3)
    patch(it, "Deployment", {"paused": True, "template": template("web:2"), "replicas": 3})
    it.advance(5)
    assert {p["spec"]["containers"][0]["image"] for p in it.pods()} == {"web:1"}
    assert len(names(it)) == 3
    assert reasons(get(it, "Deployment"))["Progressing"] == ("Unknown", "DeploymentPaused")
    patch(it, "Deployment", {"paused": None})
    it.advance(60)
    assert {p["spec"]["containers"][0]["image"] for p in it.pods()} == {"web:2"}


def test_scaling_in_the_middle_of_a_rollout_scales_both_sets() -> None:
    """In proportion; the number of pods stays within the new bounds."""
    it = lab(workload("Deployment", 4, minReadySeconds=20))
    it.advance(30)
    patch(it, "Deployment", {"template": template("web:2")})
    it.advance(5)
    sizes = sorted(s["spec"]["replicas"] for s in it.client.list("ReplicaSet")[0])
    assert sizes == [2, 3]
    patch(it, "Deployment", {"replicas": 8})
    sizes = sorted(s["spec"]["replicas"] for s in it.client.list("ReplicaSet")[0])
    assert sum(sizes) == 10
    assert min(sizes) >= 4
    it.advance(300)
    assert rollout_is_over(get(it, "Deployment"))
    assert len(names(it)) == 8


def test_old_revisions_are_forgotten() -> None:
    """`revisionHistoryLimit` empty sets stay."""
    it = lab(workload("Deployment", 1, revisionHistoryLimit=2))
    for number in range(2, 7):
        it.advance(40)
        patch(it, "Deployment", {"template": template(f"web:{number}")})
    it.advance(40)
    sets = it.client.list("ReplicaSet")[0]
    revisions = sorted(int(s["metadata"]["annotations"]["deployment.kubernetes.io/revision"]) for s in sets)
    assert revisions == [4, 5, 6]


def test_a_quota_is_reported_and_tried_again() -> None:
    """FailedCreate on the set and the deployment; when there is room, the pods come."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
    it = lab(quota, workload("Deployment", 2))
    it.advance(2)
    assert phases(it) == ["Running"]
    assert reasons(get(it, "Deployment"))["ReplicaFailure"] == ("True", "FailedCreate")
    patch(it, "ResourceQuota", {"hard": {"pods": "5"}}, "few")
    it.advance(20)
    assert phases(it) == ["Running"] * 2
    assert "ReplicaFailure" not in reasons(get(it, "Deployment"))


def _job(name: str = "web", *, exit_code: int = 0, **spec: Any) -> dict[str, Any]:
    pod = template(restartPolicy="Never")
    pod["metadata"]["annotations"] = {
        "lab.kubernetes.io/run-seconds": "5",
        "lab.kubernetes.io/exit-code": str(exit_code),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": pod, **spec},
    }


def test_a_job_completes() -> None:
    """Five pods, two at a time."""
    it = lab(_job(completions=5, parallelism=2))
    it.advance(3)
    assert phases(it) == ["Running"] * 2
    assert get(it, "Job")["status"]["active"] == 2
    it.advance(30)
    status = get(it, "Job")["status"]
    assert (status["succeeded"], status.get("active", 0)) == (5, 0)
    assert reasons(get(it, "Job"))["Complete"] == ("True", "CompletionsReached")
    assert phases(it) == ["Succeeded"] * 5


def test_a_job_fails_after_its_backoff_limit() -> None:
    """One try and two more, after 10 and 20 seconds."""
    it = lab(_job(exit_code=3, backoffLimit=2))
    it.advance(200)
    starts = sorted(seconds_of(p["metadata"]["creationTimestamp"]) - it.clock.start for p in it.pods())
    # One second to start, five to run.
    assert starts == [0, 6 + 10, 16 + 6 + 20]
    assert phases(it) == ["Failed"] * 3
    assert reasons(get(it, "Job"))["Failed"] == ("True", "BackoffLimitExceeded")


def test_an_indexed_job_gives_each_index_once() -> None:
    """And it goes after its time to live, with its pods."""
    it = lab(_job(completions=3, parallelism=3, completionMode="Indexed", ttlSecondsAfterFinished=60))
    it.advance(10)
    found = [p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for p in it.pods()]
    assert sorted(found) == ["0", "1", "2"]
    assert reasons(get(it, "Job"))["Complete"][0] == "True"
    it.advance(60)
    assert it.client.list("Job")[0] == []
    assert it.pods() == []


def test_a_suspended_job_waits() -> None:
    """No pods until it is resumed."""
    it = lab(_job(suspend=True))
    it.advance(5)
    assert it.pods() == []
    patch(it, "Job", {"suspend": False})
    it.advance(10)
    assert phases(it) == ["Succeeded"]


def test_rewind_takes_back_what_controllers_did() -> None:
    """The lab begins anew and comes to the same state."""
    it = lab(workload("Deployment"))
    it.advance(3)
    before = it.pods()
    patch_by = {**workload("Deployment"), "spec": {**workload("Deployment")["spec"], "replicas": 1}}
    it.apply(patch_by)
    it.advance(40)
    assert len(it.pods()) == 1
    it.rewind(2)
    assert it.pods() == before


def test_without_controllers_a_deployment_is_only_an_object() -> None:
    """The default lab."""
    it = Lab([workload("Deployment")])
    it.advance(10)
    assert it.pods() == []
