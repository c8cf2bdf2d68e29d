"""VolumeZone (spec 14 §5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod
from labkit.objects.storage import PersistentVolume, StorageClass
from labkit.plugins._volumes import WAIT_FOR_FIRST_CONSUMER, class_of_claim, not_found, uses_claim

_KEY = "PreFilterVolumeZone"
_BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
_BETA_REGION = "failure-domain.beta.kubernetes.io/region"
_LABELS = (_BETA_ZONE, _BETA_REGION, "topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_GA = {_BETA_ZONE: "topology.kubernetes.io/zone", _BETA_REGION: "topology.kubernetes.io/region"}
_REJECTED = Status.unresolvable("node(s) had no available volume zone", plugin="VolumeZone")

Topology = list[tuple[str, frozenset[str]]]


class VolumeZone(Plugin):
    """Keeps a pod in the zones of its bound volumes, as the volumes' labels say."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Collect the zones of bound volumes; Skip when there are none."""
        found, problem = self._topologies(pod)
        if problem:
            return Status.unresolvable(problem)
        if not found:
            return Status.skip()
        state.write(_KEY, found)
        return None

    def _topologies(self, pod: Pod) -> tuple[Topology, str]:
        found: Topology = []
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                problem = self._collect(pod, volume.persistent_volume_claim.claim_name, found)
                if problem:
                    return [], problem
        return found, ""

    def _collect(self, pod: Pod, name: str, found: Topology) -> str:
        assert self.handle is not None
        objects = self.handle.objects
        if not name:
            return "PersistentVolumeClaim had no name"
        claim = objects.get("PersistentVolumeClaim", pod.namespace, name)
        if claim is None:
            return not_found("persistentvolumeclaim", name)
        if not claim.spec.volume_name:
            class_name = class_of_claim(claim)
            if not class_name:
                return "PersistentVolumeClaim had no pv name and storageClass name"
            storage_class: StorageClass | None = objects.get("StorageClass", "", class_name)
            if storage_class is None:
                return not_found("storageclass.storage.k8s.io", class_name)
            if storage_class.volume_binding_mode is None:
                return f'VolumeBindingMode not set for StorageClass "{class_name}"'
            if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
                return ""
            return "PersistentVolume had no name"
        volume = objects.get("PersistentVolume", "", claim.spec.volume_name)
        if volume is None:
            return not_found("persistentvolume", claim.spec.volume_name)
        found += topology_of(volume)
        return ""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Nodes without any zone or region label pass. Where PreFilter is disabled the zones are found here."""
        wanted: Topology | None = state.get(_KEY)
        if wanted is None:
            wanted, problem = self._topologies(pod)
            if problem:
                return Status.unresolvable(problem)
        labels = node.node.metadata.labels
        if not any(label in labels for label in _LABELS):
            return None
        for label, values in wanted:
            value = labels.get(label)
            if value is None and label in _GA:
                value = labels.get(_GA[label])
            if value is None or value not in values:
                return _REJECTED
        return None

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Classes, nodes, claims and volumes that come or change."""
        changed = ActionType.ADD | ActionType.UPDATE
        node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [
            ClusterEventWithHint(ClusterEvent("storage.k8s.io/StorageClass", ActionType.ADD), _class_added),
            ClusterEventWithHint(ClusterEvent("Node", node)),
            ClusterEventWithHint(ClusterEvent("PersistentVolumeClaim", changed), _claim_changed),
            ClusterEventWithHint(ClusterEvent("PersistentVolume", changed), _volume_changed),
        ]


def topology_of(volume: PersistentVolume) -> Topology:
    """(label, values) of a volume's zone and region labels; a label with an empty piece is ignored."""
    found: Topology = []
    for label in _LABELS:
        value = volume.labels.get(label)
        if value is not None:
            pieces = [piece.strip() for piece in value.split("__")]
            if all(pieces):
                found.append((label, frozenset(pieces)))
    return found


def _class_added(pod: Pod, old: Any, new: Any) -> QueueingHint:
    waits = new is not None and new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return QueueingHint.QUEUE if waits else QueueingHint.SKIP


def _claim_changed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return (
        QueueingHint.QUEUE if new is not None and uses_claim(pod, new, ephemeral=False) else QueueingHint.SKIP
    )


def _volume_changed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    if old is None or new is None:
        return QueueingHint.QUEUE
    return QueueingHint.SKIP if topology_of(old) == topology_of(new) else QueueingHint.QUEUE
