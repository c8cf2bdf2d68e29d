"""The volume controller of the lab's cluster, as far as scheduling waits for it: what VolumeBinding began is completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.cluster.store import Store

Json = dict[str, Any]

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class VolumeAgent:
    """Binds a claim to the volume that names it, and makes volumes for claims with a selected node; both at once.

    It plays the PersistentVolume controller and every provisioner (Kubernetes: Persistent Volumes, Binding).
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        store.subscribe(self._on_change)

    def _on_change(self, type_: str, old: Json | None, new: Json | None) -> None:
        if new is None or "deletionTimestamp" in new["metadata"]:
            return
        if new["kind"] == "PersistentVolume" and (new.get("spec") or {}).get("claimRef"):
            if (new.get("status") or {}).get("phase") != "Bound":
                _quietly(lambda: self._complete(new))
        elif new["kind"] == "PersistentVolumeClaim" and not (new.get("spec") or {}).get("volumeName"):
            node = (new["metadata"].get("annotations") or {}).get(_SELECTED_NODE)
            if node:
                _quietly(lambda: self._provision(new))

    def _complete(self, volume: Json) -> None:
        reference = volume["spec"]["claimRef"]
        claim = self._store.get("PersistentVolumeClaim", reference["name"], reference.get("namespace"))
        meta, spec = claim["metadata"], claim["spec"]
        if reference.get("uid") not in (None, "", meta["uid"]):
            return
        if spec.get("volumeName") not in (None, "", volume["metadata"]["name"]):
            return
        name, namespace = meta["name"], meta["namespace"]
        bound = {
            "metadata": {"annotations": {_BIND_COMPLETED: "yes"}},
            "spec": {"volumeName": volume["metadata"]["name"]},
        }
        self._store.patch("PersistentVolumeClaim", name, namespace, bound, "merge")
        status = {
            "phase": "Bound",
            "capacity": volume["spec"].get("capacity") or {},
            "accessModes": volume["spec"].get("accessModes") or [],
        }
        self._store.patch("PersistentVolumeClaim", name, namespace, {"status": status}, "merge", "status")
        phase = {"status": {"phase": "Bound"}}
        self._store.patch("PersistentVolume", volume["metadata"]["name"], None, phase, "merge", "status")

    def _provision(self, claim: Json) -> None:
        meta, spec = claim["metadata"], claim["spec"]
        storage_class = self._store.get("StorageClass", spec.get("storageClassName") or "")
        provisioner = storage_class.get("provisioner") or _NO_PROVISIONER
        if provisioner == _NO_PROVISIONER:
            return
        name = f"pvc-{meta['uid']}"
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {_PROVISIONED_BY: provisioner}},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
                "storageClassName": spec.get("storageClassName") or "",
                "volumeMode": spec.get("volumeMode") or "Filesystem",
                "csi": {"driver": provisioner, "volumeHandle": name},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": meta["namespace"],
                    "name": meta["name"],
                    "uid": meta["uid"],
                },
            },
        }
        self._store.create(volume)


def _quietly(call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception as e:
        # Claim, class or volume is gone, somebody else was faster, or the API refuses the volume: it stays unbound.
        if getattr(e, "code", None) not in (403, 404, 409, 422):
            raise
