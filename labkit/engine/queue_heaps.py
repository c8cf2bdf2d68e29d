"""The heaps of the scheduling queue: keyed, with removal, and ordered by QueueSort."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.plugin import plugin_name

#: Gives a sortable key for a pod.
KeyFunction = Callable[[QueuedPodInfo], Any]


class _ByLess:
    """Orders by a plugin's `less`; a `less` that raises leaves the order of arrival."""

    __slots__ = ("info", "less")

    def __init__(self, info: QueuedPodInfo, less: Callable[[QueuedPodInfo, QueuedPodInfo], bool]) -> None:
        self.info = info
        self.less = less

    def __lt__(self, other: _ByLess) -> bool:
        try:
            return bool(self.less(self.info, other.info))
        except Exception:
            return False

    def __eq__(self, other: object) -> bool:
        # Neither before the other: the tie is decided by the order of arrival, which follows in the heap's key.
        return isinstance(other, _ByLess) and not self < other and not other < self


def sort_key(queue_sort: Any) -> KeyFunction:
    """The key of a QueueSort plugin; PrioritySort's is a plain tuple."""
    if queue_sort is None or plugin_name(queue_sort) == "PrioritySort":
        return lambda info: (-(info.pod.spec.priority or 0), info.timestamp)
    return lambda info: _ByLess(info, queue_sort.less)


class Heap:
    """Pods by key, smallest first; ties in order of arrival, which a change of the pod does not alter."""

    def __init__(self, key: KeyFunction) -> None:
        self._key = key
        #: (key, arrival, version, pod); entries whose version is not the pod's are dead.
        self._entries: list[tuple[Any, int, int, str]] = []
        self._infos: dict[str, tuple[int, int, QueuedPodInfo]] = {}
        self._sequence = itertools.count()

    def push(self, info: QueuedPodInfo) -> None:
        """Add or re-sort."""
        version = next(self._sequence)
        key = info.pod.key
        held = self._infos.get(key)
        arrival = version if held is None else held[0]
        self._infos[key] = (arrival, version, info)
        heapq.heappush(self._entries, (self._key(info), arrival, version, key))

    def sort_again(self) -> None:
        """The order itself changed."""
        self._entries = [
            (self._key(info), arrival, version, key) for key, (arrival, version, info) in self._infos.items()
        ]
        heapq.heapify(self._entries)

    def pop(self) -> QueuedPodInfo | None:
        """Take the first."""
        first = self.peek()
        if first is not None:
            heapq.heappop(self._entries)
            del self._infos[first.pod.key]
        return first

    def peek(self) -> QueuedPodInfo | None:
        """The first, left in place."""
        while self._entries:
            _, _, version, key = self._entries[0]
            if self._is_live(version, key):
                return self._infos[key][2]
            heapq.heappop(self._entries)
        return None

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take out by `namespace/name`."""
        held = self._infos.pop(key, None)
        return held[2] if held is not None else None

    def get(self, key: str) -> QueuedPodInfo | None:
        """Look up by `namespace/name`."""
        held = self._infos.get(key)
        return held[2] if held is not None else None

    def ordered(self) -> list[QueuedPodInfo]:
        """All pods in the order in which they would be taken."""
        live = sorted(e for e in self._entries if self._is_live(e[2], e[3]))
        return [self._infos[key][2] for _, _, _, key in live]

    def _is_live(self, version: int, key: str) -> bool:
        held = self._infos.get(key)
        return held is not None and held[1] == version

    def __len__(self) -> int:
        return len(self._infos)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (info for _, _, info in self._infos.values())
