"""Queueing hints of VolumeBinding (spec 14 §4.9)."""

from __future__ import annotations

from typing import Any

from labkit.framework.events import QueueingHint
from labkit.objects.pod import Pod
from labkit.objects.quantity import value_of
from labkit.objects.storage import CSIStorageCapacity
from labkit.plugins._migration import MIGRATED_PLUGINS
from labkit.plugins._volumes import uses_claim


def _hint(queue: bool) -> QueueingHint:
    return QueueingHint.QUEUE if queue else QueueingHint.SKIP


def topologies_changed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """A class that is new or allows other topologies."""
    return _hint(old is None or new is None or old.allowed_topologies != new.allowed_topologies)


def claim_of_pod(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """A claim that the pod refers to."""
    return _hint(new is not None and uses_claim(pod, new))


def csi_node_changed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """A CSINode that is new or lists other migrated plugins."""
    if old is None or new is None:
        return QueueingHint.QUEUE
    before = old.metadata.annotations.get(MIGRATED_PLUGINS)
    return _hint(before != new.metadata.annotations.get(MIGRATED_PLUGINS))


def driver_changed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """A driver of an inline volume that no longer tracks capacity."""
    inline = any(
        v.csi is not None and new is not None and v.csi.get("driver") == new.name for v in pod.spec.volumes
    )
    dropped = (
        old is not None
        and new is not None
        and bool(old.spec.storage_capacity)
        and not new.spec.storage_capacity
    )
    return _hint(inline and dropped)


def capacity_rose(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> QueueingHint:
    """A capacity that is new, or whose limit appeared or grew."""
    if old is None or new is None:
        return QueueingHint.QUEUE
    before, after = _limit(old), _limit(new)
    return _hint(after is not None and (before is None or after > before))


def _limit(capacity: CSIStorageCapacity) -> int | None:
    given = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return None if given is None else value_of(given)
