"""Volumes bound with a pod in a recorded scenario (`tests/golden/FORMAT.md`, "What happens between two pods")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from labkit.framework.cycle_state import CycleState
from labkit.framework.plugin import plugin_name
from labkit.objects.meta import ObjectMeta
from labkit.objects.pod import Pod
from labkit.objects.storage import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumePhase,
)

if TYPE_CHECKING:
    from labkit.engine.framework import Framework

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


def bind_claims(
    objects: Any, framework: Framework, state: CycleState, pod: Pod, node: str
) -> list[dict[str, str]] | None:
    """Bind what VolumeBinding decided for `node`; (claim, volume) pairs sorted by claim, None when there are none."""
    plugin = next((p for p in framework.plugins("reserve") if plugin_name(p) == "VolumeBinding"), None)
    if plugin is None:
        return None
    decided = plugin.decided_volumes(state, node)
    found: list[dict[str, str]] = []
    for claim, volume in decided.static:
        _bind(objects, claim, volume)
        found.append({"claim": claim.key, "volume": volume.name})
    for claim in decided.provision:
        volume = _provisioned(objects, claim)
        _bind(objects, claim, volume)
        found.append({"claim": claim.key, "volume": volume.name})
    return sorted(found, key=lambda f: f["claim"]) or None


def _provisioned(objects: Any, claim: PersistentVolumeClaim) -> PersistentVolume:
    name = f"pvc-{claim.namespace}-{claim.name}"
    annotation = claim.metadata.annotations.get("volume.beta.kubernetes.io/storage-class")
    class_name = annotation if annotation is not None else claim.spec.storage_class_name or ""
    storage_class = objects.get("StorageClass", "", class_name)
    return PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=ObjectMeta(name=name, uid=f"uid-{name}"),
        spec=PersistentVolumeSpec(
            capacity={"storage": claim.spec.resources.requests.get("storage", 0)},
            access_modes=claim.spec.access_modes,
            storage_class_name=class_name,
            volume_mode=claim.spec.volume_mode,
            csi={"driver": storage_class.provisioner, "volumeHandle": name},
        ),
    )


def _bind(objects: Any, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
    reference = ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
    )
    objects.add(
        msgspec.structs.replace(
            volume,
            spec=msgspec.structs.replace(volume.spec, claim_ref=reference),
            status=VolumePhase(phase="Bound"),
        ),
        "PersistentVolume",
    )
    metadata = msgspec.structs.replace(
        claim.metadata, annotations={**claim.metadata.annotations, _BIND_COMPLETED: "yes"}
    )
    objects.add(
        msgspec.structs.replace(
            claim,
            metadata=metadata,
            spec=msgspec.structs.replace(claim.spec, volume_name=volume.name),
            status=msgspec.structs.replace(claim.status, phase="Bound"),
        ),
        "PersistentVolumeClaim",
    )
