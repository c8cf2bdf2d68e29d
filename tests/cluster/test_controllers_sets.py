"""StatefulSets in virtual time."""

from __future__ import annotations

from typing import Any

from tests.cluster.workloads import Json, get, lab, names, patch, phases, template, workload


def timeline(it: Any, seconds: int) -> list[list[str]]:
    """Names of the pods at the end of each second, without repetitions."""
    found: list[list[str]] = []
    for _ in range(seconds):
        it.advance(1)
        if not found or found[-1] != names(it):
            found.append(names(it))
    return found


def test_pods_come_in_order() -> None:
    """The next only when the last is ready; each has its name and number."""
    it = lab(workload("StatefulSet", serviceName="db"))
    assert names(it) == ["web-0"]
    assert timeline(it, 6) == [["web-0", "web-1"], ["web-0", "web-1", "web-2"]]
    assert phases(it) == ["Running"] * 3
    pod = get(it, "Pod", "web-1")
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "web-1"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "db")
    status = get(it, "StatefulSet")["status"]
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (3, 3, 3)
    assert status["currentRevision"] == status["updateRevision"]
    version = it.store.version
    it.advance(3)
    assert it.store.version == version


def test_an_unready_pod_holds_the_others_back() -> None:
    """OrderedReady: while web-0 finds no node there is no web-1. Parallel: there is."""
    nowhere = {"nodeSelector": {"disk": "none"}}
    it = lab(workload("StatefulSet", pod=nowhere))
    it.advance(20)
    assert names(it) == ["web-0"]
    it = lab(workload("StatefulSet", pod=nowhere, podManagementPolicy="Parallel"))
    it.advance(1)
    assert names(it) == ["web-0", "web-1", "web-2"]


def test_scaling_down_takes_the_highest_first() -> None:
    """One at a time, each gone before the next goes; then up again with the same names."""
    it = lab(workload("StatefulSet", pod={"terminationGracePeriodSeconds": 3}))
    it.advance(5)
    patch(it, "StatefulSet", {"replicas": 1})
    assert (names(it), names(it, terminating=True)) == (["web-0", "web-1"], ["web-2"])
    it.advance(2)
    assert (names(it), names(it, terminating=True)) == (["web-0", "web-1"], ["web-2"])
    it.advance(2)
    assert (names(it), names(it, terminating=True)) == (["web-0"], ["web-1"])
    it.advance(5)
    patch(it, "StatefulSet", {"replicas": 2})
    it.advance(2)
    assert names(it) == ["web-0", "web-1"]


def test_a_rolling_update_goes_backwards_and_stops_at_the_partition() -> None:
    """web-2, then web-1; web-0 keeps the old template, even when it is made anew."""
    it = lab(workload("StatefulSet", pod={"terminationGracePeriodSeconds": 1}))
    it.advance(5)
    spec: Json = {"updateStrategy": {"rollingUpdate": {"partition": 1}}, "template": template("web:2")}
    patch(it, "StatefulSet", spec)
    assert names(it, terminating=True) == ["web-2"]
    order = []
    for _ in range(40):
        it.advance(0.5)
        order += [n for n in names(it, terminating=True) if n not in order]
    assert order == ["web-2", "web-1"]

    def images() -> list[str]:
        return [get(it, "Pod", f"web-{n}")["spec"]["containers"][0]["image"] for n in range(3)]

    assert images() == ["web:1", "web:2", "web:2"]
    status = get(it, "StatefulSet")["status"]
    assert status["currentRevision"] != status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (1, 2)
    it.delete("Pod", "web-0")
    it.advance(5)
    assert images() == ["web:1", "web:2", "web:2"]
    patch(it, "StatefulSet", {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    it.advance(10)
    assert images() == ["web:2"] * 3
    status = get(it, "StatefulSet")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert len(it.client.list("ControllerRevision")[0]) == 2


def test_on_delete_waits_for_somebody() -> None:
    """Pods get the new template when they are deleted."""
    strategy = {"type": "OnDelete"}
    it = lab(workload("StatefulSet", 2, updateStrategy=strategy, pod={"terminationGracePeriodSeconds": 1}))
    it.advance(5)
    patch(it, "StatefulSet", {"template": template("web:2", terminationGracePeriodSeconds=1)})
    it.advance(10)
    assert get(it, "Pod", "web-1")["spec"]["containers"][0]["image"] == "web:1"
    it.delete("Pod", "web-1")
    it.advance(5)
    assert get(it, "Pod", "web-1")["spec"]["containers"][0]["image"] == "web:2"
    assert get(it, "Pod", "web-0")["spec"]["containers"][0]["image"] == "web:1"


def _claim(name: str = "data") -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**spec, "storageClassName": "fast"}}


FAST: Json = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "disk.example.com",
}


def claims(it: Any) -> dict[str, str]:
    """Name -> phase."""
    found = it.client.list("PersistentVolumeClaim")[0]
    return {c["metadata"]["name"]: c["status"]["phase"] for c in found}


def test_each_pod_keeps_its_claim() -> None:
    """Claims stay when the set is scaled down, and are found again."""
    it = lab(FAST, workload("StatefulSet", 2, volumeClaimTemplates=[_claim()]))
    it.advance(5)
    assert claims(it) == {"data-web-0": "Bound", "data-web-1": "Bound"}
    volume = get(it, "PersistentVolumeClaim", "data-web-1")["spec"]["volumeName"]
    mounted = get(it, "Pod", "web-1")["spec"]["volumes"][0]
    assert mounted["persistentVolumeClaim"]["claimName"] == "data-web-1"
    patch(it, "StatefulSet", {"replicas": 1})
    it.advance(40)
    assert names(it) == ["web-0"]
    patch(it, "StatefulSet", {"replicas": 2})
    it.advance(5)
    assert phases(it) == ["Running"] * 2
    assert get(it, "PersistentVolumeClaim", "data-web-1")["spec"]["volumeName"] == volume


def test_claims_go_where_the_policy_says_so() -> None:
    """whenScaled and whenDeleted: Delete."""
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    sets = workload(
        "StatefulSet", 3, volumeClaimTemplates=[_claim()], persistentVolumeClaimRetentionPolicy=policy
    )
    it = lab(FAST, sets)
    it.advance(10)
    patch(it, "StatefulSet", {"replicas": 2})
    it.advance(40)
    assert sorted(claims(it)) == ["data-web-0", "data-web-1"]
    assert len(it.client.list("PersistentVolume")[0]) == 2
    it.delete("StatefulSet", "web")
    it.advance(40)
    assert (it.pods(), claims(it)) == ([], {})
    assert it.client.list("PersistentVolume")[0] == []
