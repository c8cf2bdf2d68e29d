"""PrioritySort (spec 02 §3)."""

from __future__ import annotations

from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.plugin import Plugin


class PrioritySort(Plugin):
    """Higher priority first; among equals the one that has waited longer since it last entered the queue."""

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """True when `a` goes before `b`."""
        first, second = a.pod.spec.priority or 0, b.pod.spec.priority or 0
        return first > second or (first == second and a.timestamp < b.timestamp)
