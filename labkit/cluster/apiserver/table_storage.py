"""Tables of volumes, storage classes and claims of devices (spec 20 §4.3)."""

from __future__ import annotations

from typing import Any

from labkit.cluster.apiserver.table_text import (
    Cells,
    Json,
    age,
    columns,
    name_of,
    spec_of,
    status_of,
)


def _storage_class(obj: Json, now: float) -> list[Any]:
    name = name_of(obj)
    if (obj["metadata"].get("annotations") or {}).get(
        "storageclass.kubernetes.io/is-default-class"
    ) == "true":
        name += " (default)"
    return [
        name,
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "<unset>",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: Any) -> str:
    return ",".join(_MODES.get(m, m) for m in _MODES if m in (modes or ()))


def _claim(obj: Json, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase") or ""
    bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        phase,
        spec.get("volumeName") or "",
        (status.get("capacity") or {}).get("storage", "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _volume(obj: Json, now: float) -> list[Any]:
    spec, claim = spec_of(obj), spec_of(obj).get("claimRef") or {}
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status_of(obj).get("phase") or ""
    return [
        name_of(obj),
        (spec.get("capacity") or {}).get("storage", ""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        phase,
        f"{claim.get('namespace', '')}/{claim['name']}" if claim.get("name") else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        status_of(obj).get("reason") or "",
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _csi_driver(obj: Json, now: float) -> list[Any]:
    spec = spec_of(obj)
    tokens = ",".join(t.get("audience", "") for t in spec.get("tokenRequests") or ()) or "<unset>"
    return [
        name_of(obj),
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        tokens,
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ("Persistent",)),
        age(obj, now),
    ]


def _resource_claim(obj: Json, now: float) -> list[Any]:
    status = status_of(obj)
    states = [w for k, w in (("allocation", "allocated"), ("reservedFor", "reserved")) if status.get(k)]
    if "deletionTimestamp" in obj["metadata"]:
        states.insert(0, "deleted")
    return [name_of(obj), ",".join(states) or "pending", age(obj, now)]


def _resource_slice(obj: Json, now: float) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("nodeName") or "",
        spec.get("driver") or "",
        (spec.get("pool") or {}).get("name") or "",
        age(obj, now),
    ]


STORAGE: dict[tuple[str, str], Cells] = {
    ("storage.k8s.io", "StorageClass"): Cells(
        columns("Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age"),
        _storage_class,
    ),
    ("storage.k8s.io", "CSINode"): Cells(
        columns("Name, Drivers, Age"),
        lambda o, now: [name_of(o), str(len(spec_of(o).get("drivers") or ())), age(o, now)],
    ),
    ("storage.k8s.io", "CSIDriver"): Cells(
        columns(
            "Name, AttachRequired:boolean, PodInfoOnMount:boolean, StorageCapacity:boolean, TokenRequests, "
            "RequiresRepublish:boolean, Modes, Age"
        ),
        _csi_driver,
    ),
    ("resource.k8s.io", "ResourceClaim"): Cells(columns("Name, State, Age"), _resource_claim),
    ("resource.k8s.io", "ResourceSlice"): Cells(columns("Name, Node, Driver, Pool, Age"), _resource_slice),
    ("resource.k8s.io", "DeviceClass"): Cells(columns("Name, Age"), lambda o, now: [name_of(o), age(o, now)]),
    ("resource.k8s.io", "ResourceClaimTemplate"): Cells(
        columns("Name, Age"), lambda o, now: [name_of(o), age(o, now)]
    ),
    ("", "PersistentVolumeClaim"): Cells(
        columns(
            "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode*"
        ),
        _claim,
    ),
    ("", "PersistentVolume"): Cells(
        columns(
            "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, VolumeMode*"
        ),
        _volume,
    ),
}
