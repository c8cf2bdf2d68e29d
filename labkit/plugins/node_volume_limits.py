"""NodeVolumeLimits (spec 14 §3). In-tree volumes count where their CSI driver serves them on the node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod, Volume
from labkit.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from labkit.plugins._migration import TranslationError, csi_handle
from labkit.plugins._volumes import (
    MIGRATED,
    claim_name,
    class_of_claim,
    is_migratable_inline,
    not_found,
    ownership_problem,
    uses_claim,
)

_REJECTED = Status.unschedulable("node(s) exceed max volume count", plugin="NodeVolumeLimits")
#: Types whose migration counts as on for limits; provisioners by their in-tree name.
_COUNTED = ("aws_elastic_block_store", "gce_persistent_disk", "azure_disk", "cinder", "portworx_volume")
_IN_TREE_PROVISIONERS = {
    "kubernetes.io/aws-ebs": "aws_elastic_block_store",
    "kubernetes.io/gce-pd": "gce_persistent_disk",
    "kubernetes.io/azure-disk": "azure_disk",
    "kubernetes.io/azure-file": "azure_file",
    "kubernetes.io/cinder": "cinder",
    "kubernetes.io/portworx-volume": "portworx_volume",
    "kubernetes.io/vsphere-volume": "vsphere_volume",
}
#: Stands for the volumes of claims that have none yet; any text that no real handle has would do.
_PENDING = "pending-0123456789abcdef0123456789"


class _LookupFailed(Exception):
    """A claim of the incoming pod cannot be used; `code` tells how."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class NodeVolumeLimits(Plugin):
    """Rejects nodes where a CSI driver would exceed its number of attached volumes."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip for pods without claims and migratable inline volumes."""
        return None if _may_attach(pod) else Status.skip()

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Unschedulable when attached and new volumes of a driver exceed its limit."""
        assert self.handle is not None
        objects = self.handle.objects
        csi_node: CSINode | None = objects.get("CSINode", "", node.name)
        try:
            new = self._volumes(pod, csi_node, incoming=True)
        except _LookupFailed as e:
            return e.status
        if not new:
            return None
        limits = _limits(csi_node)
        if not limits:
            return None
        attached: dict[str, str] = {}
        for info in node.pods:
            if info.pod.spec.volumes:
                try:
                    attached.update(self._volumes(info.pod, csi_node, incoming=False))
                except _LookupFailed as e:
                    return e.status
        counts: dict[str, int] = {}
        for driver in attached.values():
            counts[driver] = counts.get(driver, 0) + 1
        for attachment in objects.list("VolumeAttachment"):
            if attachment.spec.node_name != node.name or not attachment.spec.attacher:
                continue
            name = attachment.spec.source.get("persistentVolumeName")
            volume: PersistentVolume | None = objects.get("PersistentVolume", "", name) if name else None
            if volume is None or volume.spec.csi is None:
                continue
            unique = f"{attachment.spec.attacher}/{volume.spec.csi.get('volumeHandle', '')}"
            if unique not in attached:
                counts[attachment.spec.attacher] = counts.get(attachment.spec.attacher, 0) + 1
        wanted: dict[str, int] = {}
        for unique, driver in new.items():
            if unique not in attached:
                wanted[driver] = wanted.get(driver, 0) + 1
        for driver, number in wanted.items():
            if driver in limits and counts.get(driver, 0) + number > limits[driver]:
                return _REJECTED
        return None

    def _volumes(self, pod: Pod, csi_node: CSINode | None, *, incoming: bool) -> dict[str, str]:
        """Unique volume name -> driver. _LookupFailed for claims of an incoming pod that are missing."""
        assert self.handle is not None
        found: dict[str, str] = {}
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name is None:
                try:
                    found |= _in_tree(volume, csi_node, {})
                except TranslationError as e:
                    text = f"converting volume({volume.name}) from inline to csi: {e}"
                    raise _LookupFailed(Status.as_error_of(text, plugin=self.name)) from e
                continue
            claim = self.handle.objects.get("PersistentVolumeClaim", pod.namespace, name)
            if claim is None:
                if incoming:
                    text = (
                        f"looking up PVC {pod.namespace}/{name}: {not_found('persistentvolumeclaim', name)}"
                    )
                    raise _LookupFailed(Status.unresolvable(text, plugin=self.name))
                continue
            if volume.ephemeral is not None:
                problem = ownership_problem(pod, claim)
                if problem:
                    raise _LookupFailed(Status.as_error_of(problem, plugin=self.name))
            driver, handle = self._driver_and_handle(claim, csi_node)
            if driver and handle:
                found[f"{driver}/{handle}"] = driver
        return found

    def _driver_and_handle(self, claim: PersistentVolumeClaim, csi_node: CSINode | None) -> tuple[str, str]:
        assert self.handle is not None
        objects = self.handle.objects
        volume: PersistentVolume | None = (
            objects.get("PersistentVolume", "", claim.spec.volume_name) if claim.spec.volume_name else None
        )
        if volume is not None:
            if volume.spec.csi is not None:
                return str(volume.spec.csi.get("driver", "")), str(volume.spec.csi.get("volumeHandle", ""))
            try:
                found = _in_tree(volume.spec, csi_node, volume.labels)
            except TranslationError:
                return "", ""
            return next(((d, u.removeprefix(d + "/")) for u, d in found.items()), ("", ""))
        class_name = class_of_claim(claim)
        storage_class = objects.get("StorageClass", "", class_name) if class_name else None
        if storage_class is None:
            return "", ""
        handle = f"{_PENDING}-{claim.namespace}/{claim.name}"
        in_tree = _IN_TREE_PROVISIONERS.get(storage_class.provisioner)
        if in_tree is None:
            return storage_class.provisioner, handle
        return (MIGRATED[in_tree], handle) if _migration_on(in_tree, csi_node) else ("", "")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Limits that rise, pods and attachments that go, claims that appear."""
        changed = ActionType.ADD | ActionType.UPDATE
        return [
            ClusterEventWithHint(ClusterEvent("storage.k8s.io/CSINode", changed), _limits_rose),
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.DELETE), _pod_gone),
            ClusterEventWithHint(ClusterEvent("PersistentVolumeClaim", ActionType.ADD), _claim_added),
            ClusterEventWithHint(
                ClusterEvent("storage.k8s.io/VolumeAttachment", ActionType.DELETE), _attachment_gone
            ),
        ]


def _may_attach(pod: Pod) -> bool:
    return any(
        v.persistent_volume_claim is not None or v.ephemeral is not None or is_migratable_inline(v)
        for v in pod.spec.volumes
    )


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for driver in csi_node.spec.drivers if csi_node is not None else ():
        count = (driver.allocatable or {}).get("count")
        if count is not None:
            found[driver.name] = int(count)
    return found


def _migration_on(field: str, csi_node: CSINode | None) -> bool:
    return csi_node is not None and field in _COUNTED


def _in_tree(source: Any, csi_node: CSINode | None, labels: dict[str, str]) -> dict[str, str]:
    """Unique name -> driver of an in-tree volume that counts; TranslationError when its handle cannot be told."""
    for field in _COUNTED:
        details: dict[str, Any] | None = getattr(source, field, None)
        if details is not None and _migration_on(field, csi_node):
            return {f"{MIGRATED[field]}/{csi_handle(field, details, labels)}": MIGRATED[field]}
    return {}


def _limits_rose(pod: Pod, old: CSINode | None, new: CSINode | None) -> QueueingHint:
    if old is None or new is None:
        return QueueingHint.QUEUE
    before, after = _limits(old), _limits(new)
    rose = any(count > before.get(driver, 0) for driver, count in after.items())
    return QueueingHint.QUEUE if rose else QueueingHint.SKIP


def _pod_gone(pod: Pod, old: Pod | None, new: Any) -> QueueingHint:
    if old is None or not (old.spec.node_name or old.status.nominated_node_name):
        return QueueingHint.SKIP
    return QueueingHint.QUEUE if _may_attach(old) else QueueingHint.SKIP


def _claim_added(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if new is not None and uses_claim(pod, new) else QueueingHint.SKIP


def _attachment_gone(pod: Pod, old: Any, new: Any) -> QueueingHint:
    if any(v.persistent_volume_claim is not None for v in pod.spec.volumes):
        return QueueingHint.QUEUE
    attacher = old.spec.attacher if old is not None else ""
    mine = any(_inline_driver(v) == attacher for v in pod.spec.volumes if attacher)
    return QueueingHint.QUEUE if mine else QueueingHint.SKIP


def _inline_driver(volume: Volume) -> str | None:
    return next(
        (driver for field, driver in MIGRATED.items() if getattr(volume, field, None) is not None), None
    )
