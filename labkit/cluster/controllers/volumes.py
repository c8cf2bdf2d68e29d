"""Volumes and claims: binding, provisioning, and what happens to a volume whose claim has gone (spec 14 §4.8)."""

from __future__ import annotations

import msgspec

from labkit.cluster.controllers.volume_provisioning import volume_for
from labkit.cluster.controllers.world import Controller, Json, Key, key_of
from labkit.engine.informer import typed
from labkit.objects.node import Node
from labkit.objects.storage import PersistentVolume, PersistentVolumeClaim
from labkit.plugins._volume_binder import BinderError, find_volume
from labkit.plugins._volumes import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    class_of_claim,
)

SOURCE = "persistentvolume-controller"
_CLAIM, _VOLUME, _CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


class VolumeController(Controller):
    """Plays the volume controller and every provisioner. Keys are (kind, `namespace/name`).

    A claim of an Immediate class gets the smallest volume that fits, or a new one. With WaitForFirstConsumer nothing
    happens until the scheduler has chosen: a volume (its claimRef), or a node for which one is made.
    """

    kinds = (_CLAIM, _VOLUME, _CLASS, "Node")

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A claim or a volume; a class or a volume that claims may be waiting for."""
        obj = new if new is not None else old
        if obj is None or kind == "Node":
            return
        if kind == _CLAIM:
            self.mark(_key(kind, obj))
            for volume in self.world.all(_VOLUME):
                reference = volume["spec"].get("claimRef") or {}
                if (reference.get("namespace"), reference.get("name")) == key_of(obj):
                    self.mark(_key(_VOLUME, volume))
            return
        if kind == _VOLUME:
            self.mark(_key(kind, obj))
        for claim in self.world.all(_CLAIM):
            if not _bound(claim) or claim["spec"].get("volumeName") == obj["metadata"]["name"]:
                self.mark(_key(_CLAIM, claim))

    def reconcile(self, key: Key) -> None:
        """A claim, or a volume."""
        namespace, _, name = key[1].rpartition("/")
        obj = self.world.get(key[0], (namespace, name))
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        if key[0] == _VOLUME:
            self._volume(obj)
        elif _bound(obj):
            self._still_there(obj)
        else:
            self._claim(obj)

    # --- volumes --------------------------------------------------------------------------------------------

    def _volume(self, volume: Json) -> None:
        reference = volume["spec"].get("claimRef")
        if not reference:
            self.world.set_status(volume, {"phase": "Available"})
            return
        claim = self.world.get(_CLAIM, (reference.get("namespace") or "", reference["name"]))
        uid = reference.get("uid")
        if claim is None or (uid and uid != claim["metadata"]["uid"]):
            if uid:
                self._released(volume)
            else:
                # Kept for a claim that does not exist yet.
                self.world.set_status(volume, {"phase": "Available"})
        elif claim["spec"].get("volumeName") in (None, "", volume["metadata"]["name"]):
            self._complete(volume, claim)
        elif (volume["metadata"].get("annotations") or {}).get(BOUND_BY_CONTROLLER):
            # The claim has found another one meanwhile.
            self.world.patch(
                volume, {"metadata": {"annotations": {BOUND_BY_CONTROLLER: None}}, "spec": {"claimRef": None}}
            )

    def _released(self, volume: Json) -> None:
        self.world.set_status(volume, {"phase": "Released"})
        made = (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY)
        if made and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self.world.delete(volume)

    def _complete(self, volume: Json, claim: Json) -> None:
        meta, name = claim["metadata"], volume["metadata"]["name"]
        if volume["spec"]["claimRef"].get("uid") != meta["uid"]:
            self._take(volume, claim)
            return
        self.world.set_status(volume, {"phase": "Bound"})
        if not _bound(claim):
            annotations = {BIND_COMPLETED: "yes"}
            if not claim["spec"].get("volumeName"):
                annotations[BOUND_BY_CONTROLLER] = "yes"
            claim = self.world.patch(
                claim, {"metadata": {"annotations": annotations}, "spec": {"volumeName": name}}
            )
        self.world.set_status(
            claim,
            {
                "phase": "Bound",
                "capacity": volume["spec"].get("capacity") or {},
                "accessModes": volume["spec"].get("accessModes") or [],
            },
        )

    def _take(self, volume: Json, claim: Json) -> None:
        """Give a volume to a claim. Its version guards it from being given twice."""
        meta = claim["metadata"]
        reference = {
            "apiVersion": "v1",
            "kind": _CLAIM,
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        }
        patch: Json = {
            "metadata": {"resourceVersion": volume["metadata"]["resourceVersion"]},
            "spec": {"claimRef": reference},
        }
        if not volume["spec"].get("claimRef"):
            patch["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        self.world.patch(volume, patch)

    # --- claims ---------------------------------------------------------------------------------------------

    def _still_there(self, claim: Json) -> None:
        name = claim["spec"]["volumeName"]
        lost = (claim.get("status") or {}).get("phase") == "Lost"
        if not lost and self.world.get(_VOLUME, ("", name)) is None:
            self.world.set_status(claim, {"phase": "Lost"})
            note = "Bound claim has lost its PersistentVolume. Any data on the volume is lost!"
            self.world.event(claim, "ClaimLost", note, SOURCE, "Warning")

    def _claim(self, claim: Json) -> None:
        wanted = claim["spec"].get("volumeName")
        if wanted:
            volume = self.world.get(_VOLUME, ("", wanted))
            if volume is not None and not volume["spec"].get("claimRef"):
                self._take(volume, claim)
            return
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        one = msgspec.convert(claim, PersistentVolumeClaim)
        storage_class = self.world.get(_CLASS, ("", class_of_claim(one)))
        waits = (storage_class or {}).get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
        if waits and not node:
            return
        if not waits and (found := self._find(one)) is not None:
            self._take(found, claim)
            return
        provisioner = (storage_class or {}).get("provisioner") or NO_PROVISIONER
        if storage_class is None or provisioner == NO_PROVISIONER:
            return
        if self.world.get(_VOLUME, ("", f"pvc-{claim['metadata']['uid']}")) is not None:
            return
        place = self.world.get("Node", ("", node)) if node else None
        self.world.client.create(volume_for(claim, storage_class, provisioner, place))
        note = f"Successfully provisioned volume pvc-{claim['metadata']['uid']}"
        self.world.event(claim, "ProvisioningSucceeded", note, provisioner)

    def _find(self, claim: PersistentVolumeClaim) -> Json | None:
        volumes: list[PersistentVolume] = []
        for raw in self.world.all(_VOLUME):
            volume = typed(raw, _VOLUME)
            assert isinstance(volume, PersistentVolume)
            # Immediate binding asks no node.
            volumes.append(
                msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, node_affinity=None))
            )
        try:
            found = find_volume(claim, volumes, Node(), set())
        except BinderError:
            # A selector that cannot be read matches nothing.
            return None
        return self.world.get(_VOLUME, ("", found.name)) if found is not None else None


def _bound(claim: Json) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in annotations


def _key(kind: str, obj: Json) -> Key:
    namespace, name = key_of(obj)
    return kind, f"{namespace}/{name}"
