"""DaemonSets in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from labkit import Lab

from tests.cluster.workloads import Json, get, lab, names, node, patch, phases, template, workload

KEYS = ("desired", "current", "updated", "ready", "available", "unavailable", "misscheduled")
_FIELDS = [
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "updatedNumberScheduled",
    "numberReady",
    "numberAvailable",
    "numberUnavailable",
    "numberMisscheduled",
]


def daemons(pod: Json | None = None, **spec: Any) -> Json:
    """A DaemonSet; `pod` is what its pods' spec has besides a container."""
    made = workload("DaemonSet", pod={"terminationGracePeriodSeconds": 1, **(pod or {})}, **spec)
    del made["spec"]["replicas"]
    return made


def status(it: Lab) -> dict[str, int]:
    """The numbers of its status, without zeros."""
    found = get(it, "DaemonSet")["status"]
    return {k: found[f] for k, f in zip(KEYS, _FIELDS, strict=True) if found.get(f)}


def placed(it: Lab, image: str = "") -> list[str]:
    """Nodes of the pods that are not being deleted, of one image."""
    return sorted(
        p["spec"].get("nodeName", "")
        for p in it.pods()
        if "deletionTimestamp" not in p["metadata"]
        and p["spec"]["containers"][0]["image"] in (image or p["spec"]["containers"][0]["image"])
    )


def test_each_node_gets_one() -> None:
    """The scheduler binds each to the node that its affinity by name leaves; then all is quiet."""
    it = lab(daemons())
    it.advance(3)
    assert placed(it) == ["n0", "n1", "n2"]
    assert phases(it) == ["Running"] * 3
    assert status(it) == {"desired": 3, "current": 3, "updated": 3, "ready": 3, "available": 3}
    for pod in it.pods():
        affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        field = {"key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]]}
        assert affinity == {"nodeSelectorTerms": [{"matchFields": [field]}]}
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
        assert pod["metadata"]["labels"]["pod-template-generation"] == "1"
        assert "node.kubernetes.io/unschedulable" in [t["key"] for t in pod["spec"]["tolerations"]]
    reasons = {e["reason"] for e in it.client.list("Event")[0] if e["involvedObject"]["kind"] == "DaemonSet"}
    assert reasons == {"SuccessfulCreate"}
    version = it.store.version
    it.advance(5)
    assert it.store.version == version


def test_nodes_come_and_go() -> None:
    """A new node gets a pod; one that loses the label gives its pod up; with a node that is deleted the pod goes."""
    it = lab(daemons(pod={"nodeSelector": {"disk": "ssd"}}), nodes=0)
    for name in ("a", "b", "c"):
        it.apply(node(name, labels={"disk": "ssd"} if name != "c" else {}))
    it.advance(3)
    assert placed(it) == ["a", "b"]
    it.client.patch("Node", "c", None, {"metadata": {"labels": {"disk": "ssd"}}}, "merge")
    it.client.patch("Node", "a", None, {"metadata": {"labels": {"disk": None}}}, "merge")
    it.advance(4)
    assert placed(it) == ["b", "c"]
    it.delete("Node", "b")
    it.advance(60)
    assert placed(it) == ["c"]
    assert status(it) == {"desired": 1, "current": 1, "updated": 1, "ready": 1, "available": 1}


def test_taints() -> None:
    """NoSchedule: nobody new, but who runs there stays, misscheduled. NoExecute: gone. Cordoned: all the same."""

    def taint(name: str, *taints: Json) -> None:
        it.client.patch("Node", name, None, {"spec": {"taints": list(taints) or None}}, "merge")
        it.advance(4)

    it = lab(daemons())
    it.advance(3)
    taint("n0", {"key": "k", "effect": "NoSchedule"})
    assert placed(it) == ["n0", "n1", "n2"]
    assert status(it)["misscheduled"] == 1
    taint("n1", {"key": "k", "effect": "NoExecute"})
    assert placed(it) == ["n0", "n2"]
    it.delete("Pod", next(p["metadata"]["name"] for p in it.pods() if p["spec"]["nodeName"] == "n0"))
    it.advance(4)
    assert placed(it) == ["n2"]
    taint("n0")
    taint("n1")
    assert placed(it) == ["n0", "n1", "n2"]
    it.client.patch("Node", "n2", None, {"spec": {"unschedulable": True}}, "merge")
    it.delete("Pod", next(p["metadata"]["name"] for p in it.pods() if p["spec"]["nodeName"] == "n2"))
    it.advance(4)
    assert placed(it) == ["n0", "n1", "n2"]


def test_a_full_node_keeps_its_daemon_waiting() -> None:
    """The pod for a full node is Pending and says so; the other nodes are no help."""
    it = lab(daemons(), nodes=2)
    it.advance(3)
    small = node("n9")
    small["status"]["allocatable"]["cpu"] = "50m"
    it.apply(small)
    it.advance(3)
    waiting = [p for p in it.pods() if not p["spec"].get("nodeName")]
    assert len(waiting) == 1
    condition = next(c for c in waiting[0]["status"]["conditions"] if c["type"] == "PodScheduled")
    assert "1 Insufficient cpu" in condition["message"]
    assert "2 node(s) didn't satisfy plugin(s) [NodeAffinity]" in condition["message"]
    assert status(it) == {
        "desired": 3, "current": 3, "updated": 3, "ready": 2, "available": 2, "unavailable": 1
    }  # fmt: skip
    # Nobody collects a pod that was never bound: with the node it goes, too.
    it.delete("Node", "n9")
    it.advance(3)
    assert placed(it) == ["n0", "n1"]


@pytest.mark.parametrize(
    ("strategy", "fewest", "most"),
    [
        ({"maxUnavailable": 1}, 2, 3),
        ({"maxUnavailable": "60%"}, 1, 3),
        ({"maxSurge": 1, "maxUnavailable": 0}, 3, 4),
    ],
)
def test_a_rolling_update_keeps_within_its_bounds(strategy: Json, fewest: int, most: int) -> None:
    """Every node ends with the new image; never are fewer available, never more there than the strategy allows."""
    it = lab(daemons(updateStrategy={"type": "RollingUpdate", "rollingUpdate": strategy}))
    it.advance(5)
    patch(it, "DaemonSet", {"template": template("web:2", terminationGracePeriodSeconds=1)})
    seen = []
    for _ in range(80):
        it.advance(0.25)
        seen.append((len([p for p in phases(it) if p == "Running"]), len(names(it))))
    assert placed(it, "web:2") == placed(it) == ["n0", "n1", "n2"]
    assert min(running for running, _ in seen) == fewest
    assert max(there for _, there in seen) == most
    assert status(it)["updated"] == 3


def test_on_delete_waits_for_somebody() -> None:
    """Pods get the new template when they are deleted, and not before."""
    it = lab(daemons(updateStrategy={"type": "OnDelete"}))
    it.advance(5)
    patch(it, "DaemonSet", {"template": template("web:2", terminationGracePeriodSeconds=1)})
    it.advance(10)
    assert placed(it, "web:1") == ["n0", "n1", "n2"]
    it.delete("Pod", next(p["metadata"]["name"] for p in it.pods() if p["spec"]["nodeName"] == "n1"))
    it.advance(5)
    assert (placed(it, "web:1"), placed(it, "web:2")) == (["n0", "n2"], ["n1"])
    assert status(it)["updated"] == 1


def test_revisions_are_patches_that_replace() -> None:
    """What `kubectl rollout undo` applies takes away what the newer template had added; history is kept short."""
    it = lab(daemons(revisionHistoryLimit=1))
    it.advance(3)
    for image in ("web:2", "web:3", "web:4"):
        patch(
            it, "DaemonSet", {"template": template(image, terminationGracePeriodSeconds=1, hostNetwork=True)}
        )
        it.advance(12)
    revisions = sorted(it.client.list("ControllerRevision")[0], key=lambda r: r["revision"])
    assert [r["data"]["spec"]["template"]["spec"]["containers"][0]["image"] for r in revisions] == [
        "web:3", "web:4"
    ]  # fmt: skip
    it.client.patch("DaemonSet", "web", "default", revisions[0]["data"], "strategic")
    it.advance(12)
    assert placed(it, "web:3") == ["n0", "n1", "n2"]
    assert [r["revision"] for r in it.client.list("ControllerRevision")[0]] in ([5, 4], [4, 5])


def test_pods_that_end_are_replaced_with_patience() -> None:
    """Failed pods are replaced after waits that double; a pod too many goes, the oldest stays."""
    it = lab(daemons(), nodes=1)
    it.advance(3)
    made = []
    for _ in range(80):
        for pod in it.pods():
            if pod["status"]["phase"] == "Running":
                it.client.patch_status(
                    "Pod", pod["metadata"]["name"], "default", {"status": {"phase": "Failed"}}
                )
        it.advance(0.5)
        made += [n for n in names(it) if n not in made]
    # After 0, 1, 2, 4, 8, 16 seconds, and the time that it takes to start.
    assert 4 <= len(made) <= 7


def test_it_goes_with_its_pods() -> None:
    """Deleted in the background: no pod and no revision stays."""
    it = lab(daemons())
    it.advance(3)
    it.delete("DaemonSet", "web")
    it.advance(5)
    assert names(it) == []
    assert it.client.list("ControllerRevision")[0] == []
