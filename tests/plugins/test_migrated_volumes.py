"""Node affinity of volumes whose in-tree plugin a node serves through its CSI driver (spec 14 §3.3, §4.4).

The verdicts were recorded from kube-scheduler 1.36.2.
"""

from __future__ import annotations

from typing import Any

import pytest
from labkit.engine.replay import replay

ZONE = "topology.kubernetes.io/zone"
BETA = "failure-domain.beta.kubernetes.io/zone"
EBS, PD = "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"
AWS = {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1"}}
GCE = {"gcePersistentDisk": {"pdName": "d"}}
AZURE = {"azureDisk": {"diskName": "z", "diskURI": "/z"}}
MISMATCH = ["node(s) didn't match PersistentVolume's node affinity"]


def affinity(key: str, *values: str) -> dict[str, Any]:
    """The volume is only reachable where the label `key` is one of `values`."""
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


def verdict(
    volume: dict[str, Any], node_labels: dict[str, str], migrated: str, labels: dict[str, str] | None = None
) -> list[str]:
    """Reasons of VolumeBinding on one node for a pod with this bound volume; empty when it passes."""
    bound = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "c", "uid": "u-c"}
    objects = [
        {
            "kind": "Node",
            "metadata": {"name": "n", "labels": node_labels},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {
                "name": "n",
                "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated},
            },
            "spec": {"drivers": []},
        },
        {
            "kind": "PersistentVolume",
            "metadata": {"name": "v", "labels": labels or {}},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "claimRef": bound,
                **volume,
            },
            "status": {"phase": "Bound"},
        },
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "c",
                "namespace": "default",
                "uid": "u-c",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "volumeName": "v",
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Bound"},
        },
    ]
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u-p"},
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": 0,
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        },
    }
    found = replay({"name": "volumes-own", "config": None, "objects": objects, "pods": [pod]})
    reasons: list[str] = found["expect"][0]["filterByPlugin"]["n"]["VolumeBinding"].get("reasons", [])
    return reasons


IN_A = affinity(ZONE, "a")
ON = "kubernetes.io/aws-ebs,kubernetes.io/gce-pd,kubernetes.io/azure-disk,kubernetes.io/cinder"


@pytest.mark.parametrize(
    ("volume", "labels", "node", "migrated", "expected"),
    [
        (AWS | IN_A, {}, {ZONE: "a"}, "", []),
        (AWS | IN_A, {}, {ZONE: "a"}, "kubernetes.io/gce-pd", []),
        (AWS | IN_A, {}, {ZONE: "a"}, ON, MISMATCH),
        (AWS | IN_A, {}, {EBS: "a"}, ON, []),
        (AWS | IN_A, {}, {EBS: "b"}, ON, MISMATCH),
        (GCE | IN_A, {}, {PD: "a"}, ON, []),
        (AZURE | IN_A, {}, {ZONE: "a"}, ON, []),
        ({"cinder": {"volumeID": "x"}} | IN_A, {}, {"topology.cinder.csi.openstack.org/zone": "a"}, ON, []),
        (AWS | affinity(BETA, "a"), {}, {EBS: "a"}, ON, []),
        (AWS, {ZONE: "a__b"}, {EBS: "b"}, ON, []),
        (AWS, {ZONE: "a__b"}, {ZONE: "b"}, ON, MISMATCH),
        (AWS, {BETA: "a"}, {EBS: "a"}, ON, []),
        (AWS, {ZONE: ""}, {}, ON, []),
        (AWS | affinity("disk", "x"), {ZONE: "a"}, {"disk": "x", EBS: "a"}, ON, []),
        (AWS | affinity("disk", "x"), {ZONE: "a"}, {"disk": "x"}, ON, MISMATCH),
        (
            GCE,
            {ZONE: "a__b"},
            {PD: "a"},
            ON,
            [
                "could not translate pv: failed to get region from zones: zone in unexpected format, expected: "
                "{locale}-{region}-{zone}, got: a"
            ],
        ),
        (
            {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/v1"}},
            {},
            {},
            ON,
            [
                "could not translate pv: failed to translate Kubernetes ID to EBS Volume ID "
                "Invalid format for AWS volume (aws://us-east-1a/v1)"
            ],
        ),
    ],
)
def test_the_drivers_zone_counts_where_the_plugin_is_migrated(
    volume: dict[str, Any], labels: dict[str, str], node: dict[str, str], migrated: str, expected: list[str]
) -> None:
    """The node says which plugins are migrated; there the volume's zone is the driver's label."""
    assert verdict(volume, node, migrated, labels) == expected
