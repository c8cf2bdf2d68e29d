"""Pods that are being scheduled, and what happened meanwhile (spec 02 §5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from labkit.framework.events import ClusterEvent


@dataclass(slots=True)
class RecordedEvent:
    """An event that arrived while some pod was in flight."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Markers of popped pods and events in one list, in order of arrival."""

    def __init__(self) -> None:
        self._items: list[RecordedEvent | str] = []
        self._pods: set[str] = set()

    def start(self, uid: str) -> bool:
        """Mark a pod as popped; False when it is in flight already."""
        if uid in self._pods:
            return False
        self._pods.add(uid)
        self._items.append(uid)
        return True

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event, if any pod is in flight."""
        if self._pods:
            self._items.append(RecordedEvent(event, old, new))

    def events_for(self, uid: str) -> list[RecordedEvent]:
        """Events since the pod was popped."""
        if uid not in self._pods:
            return []
        start = self._items.index(uid)
        return [e for e in self._items[start + 1 :] if isinstance(e, RecordedEvent)]

    def done(self, uid: str) -> None:
        """The pod is no longer in flight; events that nobody needs any more are dropped. Idempotent."""
        if uid not in self._pods:
            return
        self._pods.discard(uid)
        self._items.remove(uid)
        keep = next((i for i, item in enumerate(self._items) if isinstance(item, str)), len(self._items))
        del self._items[:keep]

    def labels(self) -> Counter[str]:
        """How many entries of which kind are kept: event labels, and `PodPopped` for pods."""
        items = list(self._items)
        return Counter("PodPopped" if isinstance(i, str) else i.event.label for i in items)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)
