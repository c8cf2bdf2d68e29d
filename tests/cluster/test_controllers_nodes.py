"""Nodes that die, taints and evictions, garbage: in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from labkit import Lab
from labkit.cluster.client import StoreClient
from labkit.cluster.controllers.manager import ControllerManager
from labkit.cluster.controllers.node_lifecycle import GRACE_SECONDS
from labkit.cluster.controllers.pod_garbage import PodGarbageCollector
from labkit.cluster.controllers.world import World
from labkit.errors import LabError

from tests.cluster.workloads import Json, get, lab, names, node, patch, phases, template, workload

UNREACHABLE = "node.kubernetes.io/unreachable"


def ready(it: Lab, name: str) -> str:
    """The status of the node's condition Ready."""
    conditions = it.client.get("Node", name)["status"]["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == "Ready"))


def taints(it: Lab, name: str) -> set[tuple[str, str]]:
    """(key, effect) of its taints."""
    return {(t["key"], t["effect"]) for t in it.client.get("Node", name)["spec"].get("taints") or ()}


def on(it: Lab, name: str) -> list[str]:
    """Names of the pods on a node that are not being deleted."""
    found = [p for p in it.pods() if p["spec"].get("nodeName") == name]
    return [p["metadata"]["name"] for p in found if "deletionTimestamp" not in p["metadata"]]


def test_a_new_node_is_tainted_until_it_is_ready() -> None:
    """Its kubelet says so at once, and renews its lease."""
    it = lab(nodes=1)
    assert ready(it, "n0") == "True"
    assert taints(it, "n0") == set()
    first = it.client.get("Lease", "n0", "kube-node-lease")["spec"]["renewTime"]
    it.advance("2m")
    assert it.client.get("Lease", "n0", "kube-node-lease")["spec"]["renewTime"] > first
    assert ready(it, "n0") == "True"


def test_a_node_dies_and_its_pods_move() -> None:
    """Unknown and tainted after the grace; evicted after 300 s; replaced elsewhere at once."""
    it = lab(workload("Deployment", 6))
    it.advance(5)
    lost = on(it, "n1")
    assert len(lost) == 2
    it.stop_node("n1")
    it.advance(GRACE_SECONDS - 11)
    assert ready(it, "n1") == "True"
    it.advance(12)
    assert ready(it, "n1") == "Unknown"
    assert taints(it, "n1") == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert get(it, "Deployment")["status"]["availableReplicas"] == 4
    assert on(it, "n1") == lost
    it.advance(290)
    assert on(it, "n1") == lost
    it.advance(15)
    assert on(it, "n1") == []
    assert names(it, terminating=True) == sorted(lost)
    assert len(names(it)) == 6
    assert get(it, "Deployment")["status"]["availableReplicas"] == 6
    assert phases(it) == ["Running"] * 6
    told = [e["reason"] for name in lost for e in it.events(name)]
    assert told.count("TaintManagerEviction") == 2
    it.start_node("n1")
    it.advance(60)
    assert ready(it, "n1") == "True"
    assert taints(it, "n1") == set()
    # Its kubelet ends what was to be ended.
    assert names(it, terminating=True) == []


def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    """The time of the eviction ends with the taint."""
    it = lab(workload("Deployment", 3))
    it.advance(5)
    before = names(it)
    it.stop_node("n1")
    it.advance(200)
    assert ready(it, "n1") == "Unknown"
    it.start_node("n1")
    it.advance(200)
    assert names(it) == before
    assert ready(it, "n1") == "True"
    it.stop_node("n1")
    it.advance(GRACE_SECONDS + 200)
    assert names(it) == before


def test_nobody_is_evicted_while_all_nodes_are_away() -> None:
    """It is the network then; when one comes back, the others are judged."""
    it = lab(workload("Deployment", 2), nodes=2)
    it.advance(5)
    before = names(it)
    it.stop_node("n0")
    it.stop_node("n1")
    it.advance(1000)
    assert taints(it, "n0") == taints(it, "n1") == {(UNREACHABLE, "NoSchedule")}
    assert names(it) == before
    it.start_node("n1")
    it.advance(1)
    assert taints(it, "n0") == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    it.advance(400)
    assert len(on(it, "n1")) == 2


@pytest.mark.parametrize(
    ("tolerations", "leaves_after"),
    [
        ([], 0),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}], 20),
        ([{"key": "k", "value": "v", "effect": "NoExecute"}], None),
        ([{"key": "k", "value": "other", "effect": "NoExecute"}], 0),
        ([{"operator": "Exists", "effect": "NoSchedule"}], 0),
        ([{"operator": "Exists"}], None),
    ],
)
def test_no_execute(tolerations: list[Json], leaves_after: int | None) -> None:
    """A taint that somebody sets: pods leave at once, later, or not at all."""
    it = lab(_pod("p", tolerations=tolerations), nodes=1)
    it.advance(5)
    tainted = [{"key": "k", "value": "v", "effect": "NoExecute"}]
    it.client.patch("Node", "n0", None, {"spec": {"taints": tainted}}, "merge")
    if leaves_after:
        it.advance(leaves_after - 1)
        assert names(it) == ["p"]
        it.advance(1)
    else:
        it.advance(0)
    assert names(it) == ([] if leaves_after is not None else ["p"])
    it.advance(1000)
    assert names(it) == ([] if leaves_after is not None else ["p"])


def _pod(name: str, namespace: str = "default", owners: list[Json] | None = None, **spec: Any) -> Json:
    meta: Json = {"name": name, "namespace": namespace}
    if owners:
        meta["ownerReferences"] = owners
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**template()["spec"], **spec}}


def test_conditions_and_cordons_taint() -> None:
    """Pressure and unschedulable; both come off again."""
    it = lab(nodes=1)
    pressure = {
        "type": "DiskPressure",
        "status": "True",
        "lastHeartbeatTime": None,
        "reason": "r",
        "message": "",
    }
    it.client.patch_status("Node", "n0", None, {"status": {"conditions": [pressure]}})
    it.client.patch("Node", "n0", None, {"spec": {"unschedulable": True}}, "merge")
    it.advance(0)
    assert taints(it, "n0") == {
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    }
    own = {"key": "mine", "effect": "NoSchedule"}
    kept = it.client.get("Node", "n0")["spec"]["taints"]
    it.client.patch("Node", "n0", None, {"spec": {"unschedulable": None, "taints": [own, *kept]}}, "merge")
    it.client.patch_status("Node", "n0", None, {"status": {"conditions": [{**pressure, "status": "False"}]}})
    it.advance(0)
    assert taints(it, "n0") == {("mine", "NoSchedule")}


def test_pods_of_a_deleted_node_go_after_the_quarantine() -> None:
    """40 s; a node that is back by then keeps them."""
    it = lab(workload("Deployment", 4), nodes=2)
    it.advance(5)
    lost = on(it, "n1")
    it.delete("Node", "n1")
    it.advance(39)
    assert set(lost) <= set(names(it))
    it.advance(2)
    assert not set(lost) & {p["metadata"]["name"] for p in it.pods()}
    it.advance(5)
    assert len(on(it, "n0")) == 4
    with pytest.raises(Exception, match="not found"):
        it.client.get("Lease", "n1", "kube-node-lease")


def test_ended_pods_do_not_pile_up() -> None:
    """Above the limit the oldest go."""
    it = Lab([node("n0")])
    client = StoreClient(it.store)

    def collector(world: World) -> PodGarbageCollector:
        return PodGarbageCollector(world, terminated_limit=3)

    manager = ControllerManager(client, it.clock, controllers=[collector])
    for number in range(5):
        client.create(_pod(f"p{number}", restartPolicy="Never"))
        client.patch_status("Pod", f"p{number}", "default", {"status": {"phase": "Succeeded"}})
        it.advance(1)
        manager.step()
    assert names(it) == ["p2", "p3", "p4"]


def test_a_lab_without_kubelets_has_no_node_to_stop() -> None:
    """LabError, as for a node that does not exist."""
    with pytest.raises(LabError):
        Lab([node("n0")]).stop_node("n0")
    with pytest.raises(LabError):
        lab().stop_node("n9")


# --- garbage ------------------------------------------------------------------------------------------------


def test_a_deleted_deployment_takes_everything_along() -> None:
    """Background deletion: sets, then pods."""
    it = lab(workload("Deployment"))
    it.advance(5)
    it.delete("Deployment", "web")
    assert it.client.list("ReplicaSet")[0] == []
    assert names(it) == []
    it.advance(31)
    assert it.pods() == []


def test_foreground_deletion_waits_for_what_is_owned() -> None:
    """The deployment goes last."""
    it = lab(workload("Deployment"))
    it.advance(5)
    it.client.delete("Deployment", "web", "default", propagation="Foreground")
    it.advance(5)
    assert "deletionTimestamp" in get(it, "Deployment")["metadata"]
    assert len(names(it, terminating=True)) == 3
    it.advance(30)
    assert it.pods() == it.client.list("ReplicaSet")[0] == it.client.list("Deployment")[0] == []


def test_orphans_stay() -> None:
    """Without the owner, and without its reference."""
    it = lab(workload("ReplicaSet"))
    it.advance(5)
    it.client.delete("ReplicaSet", "web", "default", propagation="Orphan")
    it.advance(5)
    assert it.client.list("ReplicaSet")[0] == []
    assert len(names(it)) == 3
    assert all("ownerReferences" not in p["metadata"] for p in it.pods())


def _owner(obj: Json) -> Json:
    meta = obj["metadata"]
    return {"apiVersion": "v1", "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"]}


def test_an_object_with_two_owners_outlives_the_first() -> None:
    """It loses the reference to the one that has gone."""
    it = lab(nodes=0)
    maps = [
        it.client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n, "namespace": "default"}}
        )
        for n in ("a", "b")
    ]
    secret: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default", "ownerReferences": [_owner(m) for m in maps]},
    }
    it.apply(secret)
    it.delete("ConfigMap", "a")
    assert [o["name"] for o in get(it, "Secret", "s")["metadata"]["ownerReferences"]] == ["b"]
    it.delete("ConfigMap", "b")
    assert [s["metadata"]["name"] for s in it.client.list("Secret")[0]] == []


def test_owners_that_never_were() -> None:
    """An absent owner of a known kind: deleted. One of a foreign kind: nobody can tell."""
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "no-such-uid"}
    foreign = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "other"}
    it = lab(_pod("a", owners=[gone]), _pod("b", owners=[foreign]), nodes=1)
    it.advance(60)
    assert names(it) == ["b"]


def test_nothing_is_left_of_a_scaled_rollout() -> None:
    """After many changes only what is wanted exists."""
    it = lab(workload("Deployment", 3))
    for number in range(2, 5):
        patch(it, "Deployment", {"template": template(f"web:{number}"), "replicas": number})
        it.advance(3)
    it.advance(120)
    assert len(it.pods()) == 4
    assert {p["spec"]["containers"][0]["image"] for p in it.pods()} == {"web:4"}
