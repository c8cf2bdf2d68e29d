"""VolumeRestrictions (spec 14 §2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState, MissingStateError
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod
from labkit.plugins._volumes import conflicting_disks, disk_volumes, not_found, uses_claim

_KEY = "PreFilterVolumeRestrictions"
_DISK = Status.unschedulable("node(s) had no available disk", plugin="VolumeRestrictions")
_IN_USE = Status.unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    plugin="VolumeRestrictions",
)


class _State:
    __slots__ = ("claims", "conflicts")

    def __init__(self, claims: set[str], conflicts: int) -> None:
        self.claims = claims
        self.conflicts = conflicts

    def clone(self) -> _State:
        return _State(self.claims, self.conflicts)


class VolumeRestrictions(Plugin):
    """Rejects nodes where an inline disk is in use, and every node while a ReadWriteOncePod claim is in use."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Find ReadWriteOncePod claims that another pod uses; Skip when neither they nor disks matter."""
        assert self.handle is not None
        claims: set[str] = set()
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = self.handle.objects.get("PersistentVolumeClaim", pod.namespace, name)
            if claim is None:
                return Status.unresolvable(not_found("persistentvolumeclaim", name))
            if "ReadWriteOncePod" in claim.spec.access_modes:
                claims.add(name)
        conflicts = sum(_in_use(self.handle.snapshot.nodes, pod.namespace, name) for name in claims)
        if not conflicts and not disk_volumes(pod):
            return Status.skip()
        state.write(_KEY, _State(claims, conflicts))
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo) -> Status | None:
        """Count the claims of a hypothetical pod in."""
        self._change(state, added.pod, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo) -> Status | None:
        """Count the claims of a hypothetically removed pod out."""
        self._change(state, removed.pod, -1)
        return None

    @staticmethod
    def _change(state: CycleState, other: Pod, delta: int) -> None:
        found: _State = state.read(_KEY)
        for volume in other.spec.volumes:
            claim = volume.persistent_volume_claim
            # The reference compares claim names only, not namespaces.
            if claim is not None and claim.claim_name in found.claims:
                found.conflicts += delta

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Disks first, then claims; both may be helped by preemption."""
        disks = disk_volumes(pod)
        if disks and any(conflicting_disks(disks, info.pod.spec.volumes) for info in node.pods):
            return _DISK
        found: _State | None = state.get(_KEY)
        if found is None:
            raise MissingStateError(f'cannot read "{_KEY}" from cycleState')
        return _IN_USE if found.conflicts > 0 else None

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A pod that frees a disk or claim, a new node, a claim that appears."""
        return [
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.DELETE), _frees),
            ClusterEventWithHint(ClusterEvent("Node", ActionType.ADD)),
            ClusterEventWithHint(ClusterEvent("PersistentVolumeClaim", ActionType.ADD), _claim_added),
        ]


def _in_use(nodes: Sequence[NodeInfo], namespace: str, name: str) -> bool:
    key = f"{namespace}/{name}"
    return any(
        key in node.claim_counts
        and any(
            info.pod.namespace == namespace
            and any(
                v.persistent_volume_claim is not None and v.persistent_volume_claim.claim_name == name
                for v in info.pod.spec.volumes
            )
            for info in node.pods
        )
        for node in nodes
    )


def _frees(pod: Pod, old: Pod | None, new: Any) -> QueueingHint:
    if old is None or old.namespace != pod.namespace:
        return QueueingHint.SKIP
    if conflicting_disks(disk_volumes(pod), old.spec.volumes):
        return QueueingHint.QUEUE
    ours = {
        v.persistent_volume_claim.claim_name
        for v in pod.spec.volumes
        if v.persistent_volume_claim is not None
    }
    theirs = {
        v.persistent_volume_claim.claim_name
        for v in old.spec.volumes
        if v.persistent_volume_claim is not None
    }
    return QueueingHint.QUEUE if ours & theirs else QueueingHint.SKIP


def _claim_added(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return (
        QueueingHint.QUEUE if new is not None and uses_claim(pod, new, ephemeral=False) else QueueingHint.SKIP
    )
