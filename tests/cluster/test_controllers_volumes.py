"""Volumes with controllers: bound, provisioned, released; in virtual time."""

from __future__ import annotations

from typing import Any

from labkit import Lab

from tests.cluster.workloads import Json, get, lab, node, template

DRIVER = "disk.example.com"


def storage_class(name: str, *, waits: bool, provisioner: str = DRIVER) -> Json:
    """A StorageClass."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }


def claim(name: str, class_name: str, storage: str = "1Gi", **spec: Any) -> Json:
    """A claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": class_name,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
            **spec,
        },
    }


def volume(name: str, class_name: str, storage: str = "1Gi", zone: str = "", **spec: Any) -> Json:
    """A volume that somebody made beforehand."""
    if zone:
        term = {
            "matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]
        }
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": class_name,
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": storage},
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": DRIVER, "volumeHandle": name},
            **spec,
        },
    }


def pod(name: str, claim_name: str, **spec: Any) -> Json:
    """A pod with a claim."""
    mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}]
    spec = {**template()["spec"], "volumes": mounted, **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def bound_to(it: Lab, name: str) -> str | None:
    """The volume of a claim that is bound; None when it is not."""
    found = get(it, "PersistentVolumeClaim", name)
    assert (found["status"]["phase"] == "Bound") == bool(found["spec"].get("volumeName"))
    text: str | None = found["spec"].get("volumeName")
    return text


def test_an_immediate_claim_takes_the_smallest_volume_that_fits() -> None:
    """Without any pod; the volume says whose it is."""
    it = lab(
        storage_class("fast", waits=False, provisioner="kubernetes.io/no-provisioner"),
        volume("small", "fast", "1Gi"),
        volume("large", "fast", "100Gi"),
        volume("middle", "fast", "10Gi"),
        volume("other", "slow", "5Gi"),
    )
    it.apply(claim("c", "fast", "5Gi"))
    assert bound_to(it, "c") == "middle"
    taken = it.client.get("PersistentVolume", "middle")
    assert taken["spec"]["claimRef"]["uid"] == get(it, "PersistentVolumeClaim", "c")["metadata"]["uid"]
    assert taken["status"]["phase"] == "Bound"
    it.apply(claim("d", "fast", "5Gi"))
    it.apply(claim("e", "fast", "5Gi"))
    assert (bound_to(it, "d"), bound_to(it, "e")) == ("large", None)
    it.apply(volume("late", "fast", "7Gi"))
    assert bound_to(it, "e") == "late"


def test_an_immediate_claim_is_provisioned() -> None:
    """A new volume of its size; it goes with the claim."""
    it = lab(storage_class("fast", waits=False), claim("c", "fast", "3Gi"))
    name = bound_to(it, "c")
    assert name is not None
    made = it.client.get("PersistentVolume", name)
    assert made["spec"]["capacity"] == {"storage": "3Gi"}
    assert made["spec"]["csi"]["driver"] == DRIVER
    it.delete("PersistentVolumeClaim", "c")
    it.advance(1)
    assert it.client.list("PersistentVolume")[0] == []


def test_a_retained_volume_is_released() -> None:
    """And not given to anybody else."""
    it = lab(storage_class("fast", waits=False, provisioner="kubernetes.io/no-provisioner"))
    it.apply([volume("v", "fast"), claim("c", "fast")])
    assert bound_to(it, "c") == "v"
    it.delete("PersistentVolumeClaim", "c")
    it.apply(claim("d", "fast"))
    it.advance(5)
    assert it.client.get("PersistentVolume", "v")["status"]["phase"] == "Released"
    assert bound_to(it, "d") is None


def test_the_scheduler_chooses_the_node_and_the_provisioner_makes_the_volume() -> None:
    """WaitForFirstConsumer: nothing before there is a pod; then a volume in the zone of its node."""
    zones = [node(f"z{z}", labels={"topology.kubernetes.io/zone": z}) for z in "ab"]
    it = lab(*zones, storage_class("late", waits=True), claim("c", "late"), nodes=0)
    it.advance(60)
    assert bound_to(it, "c") is None
    assert it.client.list("PersistentVolume")[0] == []
    it.apply(pod("p", "c", nodeSelector={"topology.kubernetes.io/zone": "b"}))
    it.advance(2)
    assert get(it, "Pod", "p")["spec"]["nodeName"] == "zb"
    assert get(it, "Pod", "p")["status"]["phase"] == "Running"
    name = bound_to(it, "c")
    made = it.client.get("PersistentVolume", str(name))
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["b"]
    selected = get(it, "PersistentVolumeClaim", "c")["metadata"]["annotations"]
    assert selected["volume.kubernetes.io/selected-node"] == "zb"
    # A second pod with this claim has to follow it.
    it.apply(pod("q", "c"))
    it.advance(2)
    assert get(it, "Pod", "q")["spec"]["nodeName"] == "zb"


def test_the_scheduler_chooses_a_volume_that_is_there() -> None:
    """Of the zone in which the pod has to run."""
    zones = [node(f"z{z}", labels={"topology.kubernetes.io/zone": z}) for z in "ab"]
    late = storage_class("late", waits=True, provisioner="kubernetes.io/no-provisioner")
    there = [volume("va", "late", zone="a"), volume("vb", "late", "2Gi", zone="b")]
    it = lab(*zones, late, *there, claim("c", "late"), nodes=0)
    it.advance(5)
    assert bound_to(it, "c") is None
    it.apply(pod("p", "c", nodeSelector={"topology.kubernetes.io/zone": "b"}))
    it.advance(2)
    assert bound_to(it, "c") == "vb"
    assert get(it, "Pod", "p")["spec"]["nodeName"] == "zb"


def test_a_claim_that_names_its_volume_gets_it() -> None:
    """And no other."""
    it = lab(storage_class("fast", waits=False), volume("big", "fast", "9Gi"), volume("v", "fast"))
    it.apply(claim("c", "fast", volumeName="big"))
    it.advance(1)
    assert get(it, "PersistentVolumeClaim", "c")["status"]["phase"] == "Bound"
    assert it.client.get("PersistentVolume", "v")["status"]["phase"] == "Available"


def test_a_lost_volume_is_told() -> None:
    """The claim is Lost when its volume has been removed."""
    it = lab(storage_class("fast", waits=False), claim("c", "fast"))
    name = str(bound_to(it, "c"))
    it.client.patch("PersistentVolume", name, None, {"metadata": {"finalizers": None}}, "merge")
    it.delete("PersistentVolume", name)
    it.advance(1)
    assert get(it, "PersistentVolumeClaim", "c")["status"]["phase"] == "Lost"
