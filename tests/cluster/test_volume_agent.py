"""Volumes in a lab: what VolumeBinding decides is bound, static and provisioned; what cannot be is told."""

from __future__ import annotations

from typing import Any

from labkit import Lab

CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: fast
  resources: {requests: {storage: 5Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: default}
spec:
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  containers: [{name: c, image: "a:1"}]
"""


def claims(lab: Lab) -> dict[str, tuple[Any, Any]]:
    """Claim -> its volume and phase."""
    return {
        c["metadata"]["name"]: (c["spec"].get("volumeName"), (c.get("status") or {}).get("phase"))
        for c in lab.look("PersistentVolumeClaim")
    }


def test_static_volumes_of_the_teaching_cluster() -> None:
    """Two claims wait for their pods, one is bound, one fits no disk."""
    lab = Lab("storage-zones")
    placed = {t.pod: t.node for t in lab.run()}
    assert placed == {
        "default/db-small": "a1",
        "default/db-large": "b1",
        "default/db-huge": None,
        "default/logger": "c1",
    }
    assert claims(lab)["small"] == ("disk-a", "Bound")
    assert claims(lab)["large"] == ("disk-b", "Bound")
    assert claims(lab)["huge"][0] is None
    phases = {v["metadata"]["name"]: v["status"]["phase"] for v in lab.look("PersistentVolume")}
    assert phases == {"disk-a": "Bound", "disk-b": "Bound", "disk-c": "Bound"}


def test_a_provisioner_makes_the_volume_that_the_scheduler_asks_for() -> None:
    """WaitForFirstConsumer and a class with a provisioner: the claim names its node, the volume its driver."""
    lab = Lab(CLASS)
    assert [t.node for t in lab.run()] == ["n1"]
    (claim,) = lab.look("PersistentVolumeClaim")
    (volume,) = lab.look("PersistentVolume")
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert (volume["spec"]["csi"]["driver"], volume["status"]["phase"]) == ("csi.example.com", "Bound")


def test_a_claim_of_another_uid_is_not_given_the_volume() -> None:
    """The volume is kept for a claim that is gone: its namesake stays unbound."""
    lab = Lab(CLASS)
    lab.delete("Pod", "db")
    lab.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "kept"},
            "spec": {
                "capacity": {"storage": "5Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "hostPath": {"path": "/data"},
                "claimRef": {"namespace": "default", "name": "data", "uid": "another"},
            },
        }
    )
    assert claims(lab)["data"][0] is None


def test_rewind_takes_bindings_back() -> None:
    """Time travel includes volumes."""
    lab = Lab(CLASS)
    lab.run()
    lab.rewind()
    assert claims(lab)["data"][0] is None
    assert lab.look("PersistentVolume") == []
