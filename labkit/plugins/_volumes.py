"""What the volume plugins share: claims of a pod, classes, binding facts, node affinity of volumes (spec 14 §1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from labkit.objects.meta import ObjectMeta
from labkit.objects.node import Node
from labkit.objects.pod import NodeSelector, Pod, Volume
from labkit.objects.selectors import NodeSelectorMatcher
from labkit.objects.storage import PersistentVolume, PersistentVolumeClaim

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

#: In-tree volume type -> CSI driver that serves it now.
MIGRATED = {
    "aws_elastic_block_store": "ebs.csi.aws.com",
    "gce_persistent_disk": "pd.csi.storage.gke.io",
    "azure_disk": "disk.csi.azure.com",
    "azure_file": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "portworx_volume": "pxd.portworx.com",
    "vsphere_volume": "csi.vsphere.vmware.com",
}


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The claim behind a volume; None for other sources."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.name}-{volume.name}"
    return None


def claim_volumes(pod: Pod) -> Iterator[tuple[Volume, str]]:
    """(volume, claim name) of the pod's volumes that are claims."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield volume, name


def uses_claim(pod: Pod, claim: PersistentVolumeClaim, *, ephemeral: bool = True) -> bool:
    """The pod refers to `claim`."""
    return claim.namespace == pod.namespace and any(
        name == claim.name and (ephemeral or volume.persistent_volume_claim is not None)
        for volume, name in claim_volumes(pod)
    )


def ownership_problem(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Why an ephemeral claim is not this pod's; "" when it is."""
    owned = claim.namespace == pod.namespace and any(
        o.controller and o.uid == pod.uid for o in claim.metadata.owner_references
    )
    if owned:
        return ""
    return f"PVC {claim.namespace}/{claim.name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The claim's class; "" when it has none."""
    annotated = claim.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else (claim.spec.storage_class_name or "")


def class_of_volume(volume: PersistentVolume) -> str:
    """The volume's class; "" when it has none."""
    annotated = volume.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storage_class_name


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """The claim names its volume and binding is completed."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """The volume's claimRef means this claim."""
    ref = volume.spec.claim_ref
    return (
        ref is not None
        and (ref.name, ref.namespace) == (claim.name, claim.namespace)
        and ref.uid in ("", claim.uid)
    )


def not_found(kind: str, name: str) -> str:
    """`persistentvolumeclaim "x" not found`."""
    return f'{kind} "{name}" not found'


def volume_fits_node(volume: PersistentVolume, node: Node) -> bool:
    """The volume's node affinity against the node's labels; the node's name plays no part."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return _matcher(affinity.required).matches(_nameless(node))


def _matcher(selector: NodeSelector) -> NodeSelectorMatcher:
    return _compiled(msgspec.json.encode(selector))


@lru_cache(maxsize=4096)
def _compiled(encoded: bytes) -> NodeSelectorMatcher:
    return NodeSelectorMatcher(msgspec.json.decode(encoded, type=NodeSelector))


def _nameless(node: Node) -> Node:
    cached: Node | None = node.__dict__.get("_nameless")
    if cached is None:
        cached = node.__dict__["_nameless"] = Node(metadata=ObjectMeta(labels=node.labels))
    return cached


def is_migratable_inline(volume: Volume) -> bool:
    """An inline in-tree volume that a CSI driver serves."""
    return any(getattr(volume, field, None) is not None for field in MIGRATED)


def conflicting_disks(ours: Sequence[Volume], theirs: Iterable[Volume]) -> bool:
    """Some disk of ours cannot be used beside one of theirs (spec 14 §2)."""
    return any(_conflict(a, b) for b in theirs for a in ours)


def disk_volumes(pod: Pod) -> list[Volume]:
    """Inline disks that may conflict."""
    return [
        v
        for v in pod.spec.volumes
        if v.gce_persistent_disk is not None
        or v.aws_elastic_block_store is not None
        or v.iscsi is not None
        or v.rbd is not None
    ]


def _conflict(a: Volume, b: Volume) -> bool:
    def both_read_only(x: dict[str, object], y: dict[str, object]) -> bool:
        return bool(x.get("readOnly")) and bool(y.get("readOnly"))

    if a.gce_persistent_disk is not None and b.gce_persistent_disk is not None:
        x, y = a.gce_persistent_disk, b.gce_persistent_disk
        if x.get("pdName", "") == y.get("pdName", "") and not both_read_only(x, y):
            return True
    if a.aws_elastic_block_store is not None and b.aws_elastic_block_store is not None:
        x, y = a.aws_elastic_block_store, b.aws_elastic_block_store
        if x.get("volumeID", "") == y.get("volumeID", ""):
            return True
    if a.iscsi is not None and b.iscsi is not None:
        x, y = a.iscsi, b.iscsi
        if x.get("iqn", "") == y.get("iqn", "") and not both_read_only(x, y):
            return True
    if a.rbd is not None and b.rbd is not None:
        x, y = a.rbd, b.rbd
        same = (x.get("pool", ""), x.get("image", "")) == (y.get("pool", ""), y.get("image", ""))
        common = set(x.get("monitors") or ()) & set(y.get("monitors") or ())
        if same and common and not both_read_only(x, y):
            return True
    return False
