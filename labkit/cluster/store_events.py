"""Events: one set of objects seen through two API groups, kept for an hour (spec 20 §8.8)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from labkit.cluster.store_types import EVENT, EVENTS_V1, ResourceType
from labkit.cluster.store_watch import DELETED, Change

if TYPE_CHECKING:
    from labkit.cluster.store import Store

TTL_SECONDS = 3600
#: core v1 field -> events.k8s.io/v1 field
_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_RENAMED_BACK = {new: old for old, new in _RENAMED.items()}


def as_seen_by(resource: ResourceType, stored: dict[str, Any]) -> dict[str, Any]:
    """The stored object as that resource's API group shows it."""
    if resource is not EVENTS_V1:
        return stored
    return _renamed(stored, _RENAMED, "events.k8s.io/v1", {"reportingInstance"})


def as_stored(resource: ResourceType, given: dict[str, Any]) -> dict[str, Any]:
    """An object of that resource as the store keeps it."""
    if resource is not EVENTS_V1:
        return given
    return _renamed(given, _RENAMED_BACK, "v1", {"reportingComponent", "reportingInstance"})


def _renamed(
    obj: dict[str, Any], names: dict[str, str], api_version: str, always: set[str]
) -> dict[str, Any]:
    found = {names.get(k, k): v for k, v in obj.items()}
    found["apiVersion"] = api_version
    if api_version == "v1":
        for key in always:
            found.setdefault(key, "")
        found.setdefault("involvedObject", {})
        found.setdefault("source", {})
        for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
            found.setdefault(key, None)
        return found
    for key in ("reportingController", "reportingInstance"):
        if not found.get(key):
            found.pop(key, None)
    return found


class Expiry:
    """Removes events an hour after they were last written, when later events come in."""

    def __init__(self, store: Store) -> None:
        self._store = store
        now = store.clock.now()
        self._order: deque[tuple[float, str]] = deque((now, key) for key in store.objects(EVENT))
        self._last = dict.fromkeys(store.objects(EVENT), now)

    def note(self, change: Change) -> None:
        """Take note of a written event, and remove those whose time is over."""
        meta = change.new["metadata"]
        key = f"{meta.get('namespace', 'default')}/{meta['name']}"
        if change.type == DELETED:
            self._last.pop(key, None)
            return
        now = self._store.clock.now()
        self._order.append((now, key))
        self._last[key] = now
        while self._order and self._order[0][0] <= now - TTL_SECONDS:
            written, old_key = self._order.popleft()
            if self._last.get(old_key) != written:
                continue  # written again since
            obj = self._store.objects(EVENT).get(old_key)
            if obj is not None:
                self._store.commit(EVENT, obj, {**obj, "metadata": dict(obj["metadata"])}, remove=True)
