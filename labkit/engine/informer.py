"""Typed objects by kind, kept from notifications: what plugins read through `handle.objects`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from labkit.objects.codec import KINDS, drop_nulls
from labkit.objects.meta import KubeObject, RawObject

#: Two API groups have a PodGroup; `PodGroup` alone is the native one.
COSCHEDULING_POD_GROUP = "PodGroup.scheduling.x-k8s.io"
#: Kinds that the scheduler watches besides pods and nodes, with the resource name of their events.
WATCHED: dict[str, str] = {
    "PersistentVolume": "PersistentVolume",
    "PersistentVolumeClaim": "PersistentVolumeClaim",
    "StorageClass": "storage.k8s.io/StorageClass",
    "CSINode": "storage.k8s.io/CSINode",
    "CSIDriver": "storage.k8s.io/CSIDriver",
    "CSIStorageCapacity": "storage.k8s.io/CSIStorageCapacity",
    "VolumeAttachment": "storage.k8s.io/VolumeAttachment",
    "PodDisruptionBudget": "PodDisruptionBudget",
    "Namespace": "Namespace",
    "Service": "Service",
    "ReplicationController": "ReplicationController",
    "ReplicaSet": "ReplicaSet",
    "StatefulSet": "StatefulSet",
    "PriorityClass": "PriorityClass",
    "PodGroup": "scheduling.k8s.io/PodGroup",
    COSCHEDULING_POD_GROUP: "podgroups.v1alpha1.scheduling.x-k8s.io",
}
#: Everything a scheduler must be told of.
ALL_KINDS = ("Node", "Pod", *WATCHED)


def typed(raw: RawObject, kind: str) -> KubeObject:
    """The typed object behind `raw`, which stays reachable as `obj.__dict__["raw"]`. ValueError when malformed."""
    cls = KINDS[kind.partition(".")[0]]
    try:
        found = msgspec.convert(raw, cls)
    except msgspec.ValidationError:
        found = msgspec.convert(drop_nulls(raw), cls)
    found.__dict__["raw"] = raw
    return found


def kind_of(raw: RawObject) -> str:
    """The kind under which an object is kept."""
    kind = str(raw.get("kind", ""))
    foreign = kind == "PodGroup" and str(raw.get("apiVersion", "")).startswith("scheduling.x-k8s.io/")
    return COSCHEDULING_POD_GROUP if foreign else kind


class Informer:
    """The typed objects of the watched kinds. Implements ObjectLister."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[tuple[str, str], KubeObject]] = {}

    def put(self, kind: str, obj: KubeObject) -> None:
        """Add or replace; an object that is replaced keeps its place in the order."""
        self._objects.setdefault(kind, {})[(obj.namespace, obj.name)] = obj

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Forget."""
        self._objects.get(kind, {}).pop((namespace, name), None)

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """The object, or None."""
        return self._objects.get(kind, {}).get((namespace, name))

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All of a kind, in order of addition."""
        found = self._objects.get(kind, {})
        if namespace is None:
            return list(found.values())
        return [o for (ns, _), o in list(found.items()) if ns == namespace]
