"""The volume that a provisioner makes for a claim."""

from __future__ import annotations

from labkit.cluster.controllers.world import Json

_ZONE = "topology.kubernetes.io/zone"


def volume_for(claim: Json, storage_class: Json, provisioner: str, node: Json | None) -> Json:
    """A PersistentVolume, given to the claim, in the zone of `node` if that has one."""
    meta, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{meta['uid']}"
    made: Json = {
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "csi": {"driver": provisioner, "volumeHandle": name},
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
    }
    zone = ((node or {}).get("metadata") or {}).get("labels", {}).get(_ZONE)
    if zone:
        term = {"matchExpressions": [{"key": _ZONE, "operator": "In", "values": [zone]}]}
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": provisioner}},
        "spec": made,
    }
