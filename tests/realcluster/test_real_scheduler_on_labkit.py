"""The real kube-scheduler 1.36 on labkit's API server; each claim is made of the real API server as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .harness import Api, RealScheduler, make_node, make_pod, make_priority_class, wait_for

pytestmark = pytest.mark.realcluster

StartScheduler = Callable[..., RealScheduler]
# Its default limit of 50 requests a second would make the big test wait for nothing.
FAST: dict[str, Any] = {"clientConnection": {"qps": 2000, "burst": 2000}}


@pytest.fixture(params=["labkit", "real"])
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """Kubeconfig of an empty cluster: labkit's API server, then the real one."""
    fixture = "labkit_api_server" if request.param == "labkit" else "real_control_plane"
    path: Path = request.getfixturevalue(fixture).kubeconfig
    return path


@pytest.fixture
def api(kubeconfig: Path) -> Api:
    """Client of that cluster."""
    return Api(kubeconfig)


def test_two_hundred_pods(api: Api, kubeconfig: Path, start_real_scheduler: StartScheduler) -> None:
    """200 pods of 1 CPU, half of them older than the scheduler; 10 nodes of 20 CPUs -> 20 on each."""
    api.create_all(*(make_node(f"node-{i}", cpu="20") for i in range(10)))
    api.create_all(*(make_pod(f"pod-{i:03}", cpu="1") for i in range(100)))
    start_real_scheduler(kubeconfig, FAST)
    api.create_all(*(make_pod(f"pod-{i:03}", cpu="1") for i in range(100, 200)))

    wait_for(
        lambda: len(api.list("Pod", fieldSelector="spec.nodeName=")) == 0, 60, "every pod bound", every=0.2
    )
    assert Counter(api.placements().values()) == {f"node-{i}": 20 for i in range(10)}
    conditions = [pod["status"]["conditions"] for pod in api.list("Pod")]
    assert all(
        [(c["type"], c["status"]) for c in found] == [("PodScheduled", "True")] for found in conditions
    )

    def announced() -> set[str]:
        return {e["regarding"]["name"] for e in api.list("Event") if e["reason"] == "Scheduled"}

    wait_for(lambda: len(announced()) == 200, 30, "200 events Scheduled", every=0.2)


def test_unschedulable_pod(api: Api, kubeconfig: Path, start_real_scheduler: StartScheduler) -> None:
    """No node fits -> condition and event count the reasons; a fitting node comes -> bound."""
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    api.create_all(make_node("small", cpu="1"), make_node("tainted", cpu="8", taints=[taint]))
    start_real_scheduler(kubeconfig)
    api.create(make_pod("big", cpu="4"))

    condition = wait_for(lambda: api.condition("big"), 20, "a PodScheduled condition")
    expected = (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to "
        "deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == expected
    (event,) = wait_for(lambda: api.events("big", "FailedScheduling"), 10, "event FailedScheduling")
    assert (event["type"], event["note"]) == ("Warning", expected)

    api.create(make_node("large", cpu="8"))
    assert wait_for(lambda: api.node_of("big"), 20, "bound after the node came") == "large"
    assert api.condition("big")["status"] == "True"


def test_preemption(api: Api, kubeconfig: Path, start_real_scheduler: StartScheduler) -> None:
    """Two full nodes, victims of priority 20 and 10 -> only the cheaper one is evicted."""
    api.create_all(
        make_priority_class("low", 10), make_priority_class("middle", 20), make_priority_class("high", 99)
    )
    api.create_all(make_node("a", cpu="2"), make_node("b", cpu="2"))
    api.create(make_pod("on-a", cpu="2", priorityClassName="middle", nodeName="a"))
    api.create(make_pod("on-b", cpu="2", priorityClassName="low", nodeName="b"))
    start_real_scheduler(kubeconfig)
    uid = api.create(make_pod("urgent", cpu="1", priorityClassName="high"))["metadata"]["uid"]

    assert wait_for(lambda: api.node_of("urgent"), 30, "urgent bound") == "b"
    assert api.placements() == {"on-a": "a", "urgent": "b"}
    (event,) = wait_for(lambda: api.events("on-b", "Preempted"), 10, "event Preempted")
    assert event["note"] == f"Preempted by pod {uid} on node b"
    assert not api.get("Pod", "urgent")["status"].get("nominatedNodeName")


def test_victim_with_a_grace_period(api: Api, kubeconfig: Path, start_real_scheduler: StartScheduler) -> None:
    """A victim that may take 30 s -> nomination at once, bound only when the victim is gone."""
    api.create_all(
        make_priority_class("low", 10), make_priority_class("high", 99), make_node("only", cpu="2")
    )
    api.create(make_pod("victim", cpu="2", priorityClassName="low", nodeName="only", grace=30))
    start_real_scheduler(kubeconfig)
    api.create(make_pod("urgent", cpu="2", priorityClassName="high"))

    wait_for(
        lambda: api.get("Pod", "victim")["metadata"].get("deletionTimestamp"), 20, "victim being deleted"
    )
    assert api.condition("victim", "DisruptionTarget")["reason"] == "PreemptionByScheduler"
    nominated = wait_for(
        lambda: api.get("Pod", "urgent")["status"].get("nominatedNodeName"), 20, "a nomination"
    )
    assert (nominated, api.node_of("urgent")) == ("only", "")
    api.delete("Pod", "victim")
    assert wait_for(lambda: api.node_of("urgent"), 20, "urgent bound") == "only"


def test_freed_and_relabelled_nodes(api: Api, kubeconfig: Path, start_real_scheduler: StartScheduler) -> None:
    """What the watches tell moves waiting pods: pod deleted, taint removed, label set, gate lifted."""
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    api.create_all(make_node("full", cpu="1"), make_node("tainted", cpu="1", taints=[taint]))
    api.create(make_pod("resident", cpu="1", nodeName="full"))
    start_real_scheduler(kubeconfig)
    api.create(make_pod("for-full", cpu="1", nodeSelector={"kubernetes.io/hostname": "full"}))
    api.create(make_pod("for-tainted", cpu="1", nodeSelector={"kubernetes.io/hostname": "tainted"}))
    api.create(make_pod("for-label", nodeSelector={"disk": "ssd"}))
    api.create(make_pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    for pod in ("for-full", "for-tainted", "for-label"):
        wait_for(lambda pod=pod: api.condition(pod), 20, f"{pod} tried")  # type: ignore[misc]
    assert api.condition("gated")["reason"] == "SchedulingGated"

    api.delete("Pod", "resident")
    api.patch("Node", "tainted", {"spec": {"taints": None}})
    api.patch("Node", "full", {"metadata": {"labels": {"disk": "ssd"}}})
    remove = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    api.call("PATCH", api.path("Pod", "gated"), remove, "application/json-patch+json")
    for pod, node in (("for-full", "full"), ("for-tainted", "tainted"), ("for-label", "full")):
        assert wait_for(lambda pod=pod: api.node_of(pod), 30, f"{pod} bound") == node  # type: ignore[misc]
    assert wait_for(lambda: api.node_of("gated"), 30, "gated bound") in {"full", "tainted"}


def test_leader_election(api: Api, kubeconfig: Path, start_real_scheduler: StartScheduler) -> None:
    """With leader election (its default) -> it holds the lease kube-system/kube-scheduler and schedules."""
    api.create(make_node("only"))
    start_real_scheduler(kubeconfig, {"leaderElection": {"leaderElect": True}})
    api.create(make_pod("p", cpu="1"))
    assert wait_for(lambda: api.node_of("p"), 30, "p bound") == "only"
    lease = api.get("Lease", "kube-scheduler", "kube-system")
    assert lease["spec"]["holderIdentity"]
    renewed = lease["spec"]["renewTime"]
    wait_for(
        lambda: api.get("Lease", "kube-scheduler", "kube-system")["spec"]["renewTime"] > renewed,
        15,
        "a renewal",
    )


@pytest.mark.parametrize("content_type", ["application/json", "application/vnd.kubernetes.protobuf"])
def test_both_encodings(
    api: Api, kubeconfig: Path, start_real_scheduler: StartScheduler, content_type: str
) -> None:
    """Requests in JSON and in protobuf -> bound, with a well-formed event."""
    api.create(make_node("only"))
    start_real_scheduler(kubeconfig, {"clientConnection": {"contentType": content_type}})
    api.create(make_pod("p", cpu="1"))
    assert wait_for(lambda: api.node_of("p"), 20, "p bound") == "only"
    (event,) = wait_for(lambda: api.events("p", "Scheduled"), 10, "event Scheduled")
    regarding = event["regarding"]
    assert (regarding["kind"], regarding["name"], regarding["uid"]) == (
        "Pod",
        "p",
        api.get("Pod", "p")["metadata"]["uid"],
    )
    assert (event["note"], event["action"]) == ("Successfully assigned default/p to only", "Binding")
    assert len(event["eventTime"]) == len("2026-01-01T00:00:00.123456Z")


def test_volume_binding(api: Api, kubeconfig: Path, start_real_scheduler: StartScheduler) -> None:
    """A claim that waits for a consumer, a local volume on one node -> that node, volume claimed."""
    api.create_all(make_node("a"), make_node("b"))
    api.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    on_b = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}
    api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk"},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "local": {"path": "/mnt"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [on_b]}},
            },
        }
    )
    api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "resources": {"requests": {"storage": "5Gi"}},
            },
        }
    )
    # The controller-manager would do this, and further down complete the binding.
    api.patch("PersistentVolume", "disk", {"status": {"phase": "Available"}}, subresource="status")
    start_real_scheduler(kubeconfig)
    api.create(make_pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))

    claimed = wait_for(
        lambda: api.get("PersistentVolume", "disk")["spec"].get("claimRef"), 20, "volume claimed"
    )
    assert (claimed["name"], claimed["namespace"]) == ("data", "default")
    api.patch("PersistentVolumeClaim", "data", {"spec": {"volumeName": "disk"}})
    completed = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    api.patch("PersistentVolumeClaim", "data", completed)
    api.patch("PersistentVolumeClaim", "data", {"status": {"phase": "Bound"}}, subresource="status")
    assert wait_for(lambda: api.node_of("p"), 20, "p bound") == "b"
