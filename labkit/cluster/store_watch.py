"""What changed, in order: a bounded history for each resource, and watches that read it (spec 20 §7.2).

A watch is a cursor into the history, so a thousand idle ones cost nothing and a slow reader holds nothing
back: when what it has not read yet falls out of the history, it gets an ERROR event with Status 410.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from labkit.cluster.store_errors import expired
from labkit.cluster.store_selectors import Match
from labkit.cluster.store_types import ResourceType

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"


class WatchEvent(NamedTuple):
    """One event of a watch; for ERROR the object is a Status."""

    type: str
    object: dict[str, Any]


class Change:
    """One committed write. `old` and `new` are the store's own objects: read, never write them."""

    __slots__ = ("new", "old", "resource", "type", "version", "wire")

    def __init__(
        self, version: int, type: str, resource: ResourceType, old: dict[str, Any] | None, new: dict[str, Any]
    ) -> None:
        self.version = version
        self.type = type
        self.resource = resource
        self.old = old
        self.new = new
        #: Encoded forms, kept so that many watchers share one encoding.
        self.wire: dict[Any, bytes] | None = None

    def seen_by(self, namespace: str | None, match: Match | None) -> str | None:
        """The event type for a watcher of that namespace and selector, None when it does not concern it."""
        if namespace and self.new["metadata"].get("namespace") != namespace:
            return None
        if match is None:
            return self.type
        was = self.old is not None and match(self.old)
        if self.type == DELETED:
            return DELETED if was or match(self.new) else None
        if match(self.new):
            return MODIFIED if was else ADDED
        return DELETED if was else None


class History:
    """The latest changes of one resource. Bounded: `capacity` changes."""

    __slots__ = ("changes", "first", "lost_version")

    def __init__(self, capacity: int, version: int) -> None:
        self.changes: deque[Change] = deque(maxlen=capacity)
        #: Sequence number of the oldest change held.
        self.first = 0
        #: Version of the newest change that is no longer held: watches from before it are too late.
        self.lost_version = version

    def append(self, change: Change) -> None:
        """Add the newest change; the oldest one goes when the history is full."""
        if len(self.changes) == self.changes.maxlen:
            self.lost_version = self.changes[0].version
            self.first += 1
        self.changes.append(change)

    @property
    def end(self) -> int:
        """The sequence number that the next change will have."""
        return self.first + len(self.changes)

    def position_after(self, version: int) -> int | None:
        """The sequence number of the first change after a version; None when that is lost."""
        if version < self.lost_version:
            return None
        position = self.end
        for change in reversed(self.changes):
            if change.version <= version:
                break
            position -= 1
        return position

    def read(self, position: int, limit: int = 1000) -> list[Change] | None:
        """Up to `limit` changes from a position on; None when some of them are lost."""
        if position < self.first:
            return None
        start = position - self.first
        count = min(limit, len(self.changes) - start)
        if count <= 0:
            return []
        if start > len(self.changes) // 2:
            # A deque is slow in its middle, quick from its end: most readers are close to it.
            tail: list[Change] = []
            for change in reversed(self.changes):
                tail.append(change)
                if len(tail) == len(self.changes) - start:
                    break
            tail.reverse()
            return tail[:count]
        return [self.changes[start + i] for i in range(count)]


class Watch:
    """Events of one resource, in-process. Iterate, or take them with `next_event` or `poll`.

    After an ERROR event the watch is over: list again and watch from there.
    """

    def __init__(
        self,
        lock: threading.Condition,
        histories: list[History],
        positions: list[int | None],
        current_version: Callable[[], int],
        initial: list[WatchEvent],
        *,
        namespace: str | None = None,
        match: Match | None = None,
        convert: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        self._lock = lock
        self._histories = histories
        self._positions = positions
        self._version = current_version
        self._ready: deque[WatchEvent] = deque(initial)
        self._namespace = namespace
        self._match = match
        self._convert = convert
        self.closed = False

    def poll(self) -> list[WatchEvent]:
        """The events that are there now, without waiting."""
        with self._lock:
            self._fill()
            found = list(self._ready)
            self._ready.clear()
        return found

    def next_event(self, timeout: float | None = None) -> WatchEvent | None:
        """The next event; None after `timeout` seconds of real time, or when the watch is closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while True:
                if self._ready:
                    return self._ready.popleft()
                if self.closed:
                    return None
                self._fill()
                if self._ready:
                    continue
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._lock.wait(left)

    def _fill(self) -> None:
        if self.closed:
            return
        found: list[Change] = []
        for i, history in enumerate(self._histories):
            position = self._positions[i]
            changes = None if position is None else history.read(position, limit=1 << 30)
            if changes is None:
                self._end_too_old(history)
                return
            self._positions[i] = history.end
            found.extend(changes)
        if len(self._histories) > 1:
            found.sort(key=lambda change: change.version)
        for change in found:
            kind = change.seen_by(self._namespace, self._match)
            if kind is not None:
                self._ready.append(WatchEvent(kind, self._convert(change.new)))

    def _end_too_old(self, history: History) -> None:
        error = expired(f"too old resource version: {history.lost_version} ({self._version()})")
        self._ready.append(WatchEvent(ERROR, error.to_status()))
        self.closed = True

    def close(self) -> None:
        """End the watch; a waiting `next_event` returns None."""
        with self._lock:
            self.closed = True
            self._lock.notify_all()

    def __iter__(self) -> Iterator[WatchEvent]:
        while (event := self.next_event()) is not None:
            yield event

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
