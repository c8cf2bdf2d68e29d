"""Volumes, claims and classes (`core/v1`, `storage.k8s.io/v1`), spec 14."""

from __future__ import annotations

from typing import Any

import msgspec

from labkit.objects.meta import KubeObject, KubeStruct, LabelSelector, ResourceList
from labkit.objects.pod import NodeSelector, ResourceRequirements


class ObjectReference(KubeStruct):
    """`claimRef` and the like."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    api_version: str = ""


class VolumeNodeAffinity(KubeStruct):
    """`spec.nodeAffinity` of a PersistentVolume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(KubeStruct):
    """`spec` of a PersistentVolume."""

    capacity: ResourceList = {}
    access_modes: list[str] = []
    storage_class_name: str = ""
    volume_mode: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    volume_attributes_class_name: str | None = None
    csi: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    azure_file: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    local: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None


class VolumePhase(KubeStruct):
    """`status` of a volume or claim."""

    phase: str = ""
    capacity: ResourceList = {}


class PersistentVolume(KubeObject):
    """A PersistentVolume."""

    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: VolumePhase = msgspec.field(default_factory=VolumePhase)


class PersistentVolumeClaimSpec(KubeStruct):
    """`spec` of a claim. `storage_class_name` None means "the default class"."""

    access_modes: list[str] = []
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(KubeObject):
    """A PersistentVolumeClaim."""

    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: VolumePhase = msgspec.field(default_factory=VolumePhase)


class TopologySelectorLabelRequirement(KubeStruct):
    """`matchLabelExpressions[]`."""

    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(KubeStruct):
    """`allowedTopologies[]`."""

    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(KubeObject):
    """A StorageClass."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] = []
    parameters: dict[str, str] = {}


class CSINodeDriver(KubeStruct):
    """`spec.drivers[]` of a CSINode."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: list[str] = []
    allocatable: dict[str, Any] | None = None


class CSINodeSpec(KubeStruct):
    """`spec` of a CSINode."""

    drivers: list[CSINodeDriver] = []


class CSINode(KubeObject):
    """A CSINode."""

    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CSIDriverSpec(KubeStruct):
    """`spec` of a CSIDriver."""

    storage_capacity: bool | None = None


class CSIDriver(KubeObject):
    """A CSIDriver."""

    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(KubeObject):
    """A CSIStorageCapacity."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class VolumeAttachmentSpec(KubeStruct):
    """`spec` of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: dict[str, Any] = {}


class VolumeAttachment(KubeObject):
    """A VolumeAttachment."""

    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)
