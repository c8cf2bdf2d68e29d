"""Writing events, as kube-scheduler does (spec 01 §10)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from labkit.engine.notes import event_note
from labkit.framework.clock import Clock
from labkit.objects.pod import Pod

_SERIES_WINDOW = 360.0
#: From so many remembered events on, old ones are looked for.
_CROWDED = 8192


@lru_cache(maxsize=16)
def timestamp(seconds: float) -> str:
    """RFC 3339 with microseconds, as events carry it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


class Recorder:
    """Creates `events.k8s.io/v1` events; repeats within six minutes become a series."""

    def __init__(self, client: Any, clock: Clock, instance: str = "labkit") -> None:
        self._client = client
        self._clock = clock
        self._instance = instance
        self._seen: dict[tuple[str, ...], tuple[str, float, int]] = {}
        self._serial = 0
        self._crowded = _CROWDED

    def record(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Write one event about `pod`; what the API refuses is dropped, as events are best effort."""
        now = self._clock.now()
        controller = pod.spec.scheduler_name
        key = (type_, reason, action, controller, pod.uid, pod.metadata.resource_version)
        seen = self._seen.get(key)
        try:
            if seen is not None and now - seen[1] < _SERIES_WINDOW:
                self._repeat(pod, key, seen, now)
            else:
                self._create(pod, key, type_, reason, action, event_note(note), controller, now)
        except Exception:
            self._seen.pop(key, None)

    def _repeat(self, pod: Pod, key: tuple[str, ...], seen: tuple[str, float, int], now: float) -> None:
        name, _, count = seen
        self._seen[key] = (name, now, count + 1)
        if count == 1:
            series = {"series": {"count": 2, "lastObservedTime": timestamp(now)}}
            self._client.patch("Event", name, pod.namespace or "default", series, "merge")

    def _create(
        self,
        pod: Pod,
        key: tuple[str, ...],
        type_: str,
        reason: str,
        action: str,
        note: str,
        controller: str,
        now: float,
    ) -> None:
        self._serial += 1
        name = f"{pod.name}.{int(now * 1e9) + self._serial:x}"
        self._client.create_event(
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": pod.namespace or "default"},
                "eventTime": timestamp(now),
                "reportingController": controller,
                "reportingInstance": f"{controller}-{self._instance}",
                "action": action,
                "reason": reason,
                "regarding": {
                    "kind": "Pod",
                    "namespace": pod.namespace,
                    "name": pod.name,
                    "uid": pod.uid,
                    "apiVersion": "v1",
                    "resourceVersion": pod.metadata.resource_version,
                },
                "note": note,
                "type": type_,
            }
        )
        self._seen[key] = (name, now, 1)
        if len(self._seen) > self._crowded:
            self._seen = {k: v for k, v in self._seen.items() if now - v[1] < _SERIES_WINDOW}
            # Where few are old, the next look must be far away: each one goes over all of them.
            self._crowded = max(_CROWDED, 2 * len(self._seen))
