"""Validation of volumes, claims and storage classes."""

from __future__ import annotations

from typing import Any

from labkit.cluster.store_problems import Problems
from labkit.objects.quantity import parse_quantity

Json = dict[str, Any]
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def check_claim(obj: Json, problems: Problems) -> None:
    """Access modes and the size."""
    spec = obj["spec"]
    if not spec.get("accessModes"):
        problems.required("spec.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes") or ():
        problems.one_of("spec.accessModes", mode, _ACCESS_MODES)
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        problems.required("spec.resources[storage]")
    elif parse_quantity(storage).amount <= 0:
        problems.invalid("spec.resources[storage]", storage, "must be greater than zero")


def check_claim_update(old: Json, obj: Json, problems: Problems) -> None:
    """Only the request and the attributes class may change."""
    before, after = dict(old["spec"]), dict(obj["spec"])
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    for spec in (before, after):
        spec.pop("resources", None)
        spec.pop("volumeAttributesClassName", None)
    if before.get("storageClassName") is None:
        after.pop("storageClassName", None)
    if before != after:
        problems.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        )


def check_volume(obj: Json, problems: Problems) -> None:
    """Capacity, access modes and exactly one source."""
    spec = obj["spec"]
    if not spec.get("accessModes"):
        problems.required("spec.accessModes")
    if not spec.get("capacity"):
        problems.required("spec.capacity")
    sources = [k for k in spec if k in _VOLUME_SOURCES]
    if not sources:
        problems.required("spec", "must specify a volume type")
    elif len(sources) > 1:
        problems.forbidden(f"spec.{sources[1]}", "may not specify more than 1 volume type")
    if "local" in spec and not (spec.get("nodeAffinity") or {}).get("required"):
        problems.required("spec.nodeAffinity", "Local volume requires node affinity")


_VOLUME_SOURCES = frozenset(
    {
        "local",
        "hostPath",
        "nfs",
        "csi",
        "iscsi",
        "fc",
        "rbd",
        "cephfs",
        "awsElasticBlockStore",
        "gcePersistentDisk",
        "azureDisk",
        "azureFile",
        "vsphereVolume",
        "cinder",
        "glusterfs",
        "flexVolume",
        "portworxVolume",
        "scaleIO",
        "storageos",
        "quobyte",
        "flocker",
        "photonPersistentDisk",
    }
)


def check_storage_class(obj: Json, problems: Problems) -> None:
    """Provisioner and enumerations."""
    if not obj.get("provisioner"):
        problems.required("provisioner")
    problems.one_of("volumeBindingMode", obj.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer"))
    problems.one_of("reclaimPolicy", obj.get("reclaimPolicy"), ("Delete", "Retain"))


def check_storage_class_update(old: Json, obj: Json, problems: Problems) -> None:
    """Nothing of a class changes."""
    for field, label in (
        ("parameters", "updates to parameters are forbidden."),
        ("provisioner", "updates to provisioner are forbidden."),
        ("reclaimPolicy", "updates to reclaimPolicy are forbidden."),
    ):
        if old.get(field) != obj.get(field):
            problems.forbidden(field, label)
    if old.get("volumeBindingMode") != obj.get("volumeBindingMode"):
        problems.invalid("volumeBindingMode", obj.get("volumeBindingMode"), "field is immutable")
