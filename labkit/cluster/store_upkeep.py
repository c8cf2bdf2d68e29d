"""What the store keeps in step by itself after a write: quota usage, and deletions that waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.cluster import store_protection, store_quota
from labkit.cluster.store_types import POD, RESOURCE_QUOTA
from labkit.cluster.store_watch import DELETED, Change

if TYPE_CHECKING:
    from labkit.cluster.store import Store


def after(store: Store, change: Change) -> None:
    """React to a committed change."""
    if change.resource.namespaced and store.objects(RESOURCE_QUOTA):
        store_quota.refresh(store, change.new["metadata"]["namespace"])
    if change.resource is POD:
        ended = (change.new.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not ended and change.type != DELETED:
            return
    elif change.resource not in store_protection.FINALIZERS:
        return
    store_protection.release(store, change.resource)
