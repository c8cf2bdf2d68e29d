"""Pods held by Permit (spec 01 §9.3). Nothing here blocks: a verdict resumes the pod's binding later."""

from __future__ import annotations

import threading
from collections.abc import Callable

from labkit.framework.clock import Clock, Timer
from labkit.framework.status import Status
from labkit.objects.pod import Pod


def go_duration(seconds: float) -> str:
    """Seconds as Go prints a duration: `10s`, `1m30s`, `15m0s`, `1.5s`."""
    if seconds == 0:
        return "0s"
    if seconds < 1:
        millis = seconds * 1000
        return f"{millis:g}ms" if millis >= 1 else f"{millis * 1000:g}µs"
    hours, rest = divmod(seconds, 3600)
    minutes, secs = divmod(rest, 60)
    text = f"{secs:g}s"
    if hours:
        return f"{int(hours)}h{int(minutes)}m{text}"
    return f"{int(minutes)}m{text}" if minutes else text


class Waiting:
    """One held pod: the first verdict wins, and `resume` is told once. Verdicts may come from any thread.

    `timeouts`: plugin -> seconds.
    """

    def __init__(
        self, pod: Pod, timeouts: dict[str, float], clock: Clock, resume: Callable[[Waiting], None]
    ) -> None:
        self.pod = pod
        self.started = clock.now()
        self.deadlines = {plugin: clock.now() + seconds for plugin, seconds in timeouts.items()}
        self.verdict: Status | None = None
        self._pending = dict(timeouts)
        self._resume = resume
        self._lock = threading.Lock()
        self._timers: list[Timer] = [
            clock.call_at(clock.now() + seconds, self._on_timeout(plugin, seconds))
            for plugin, seconds in timeouts.items()
        ]

    def _on_timeout(self, plugin: str, seconds: float) -> Callable[[], None]:
        text = f"rejected due to timeout after waiting {go_duration(seconds)} at plugin {plugin}"
        return lambda: self.reject(plugin, text) if plugin in self._pending else None

    def pending_plugins(self) -> list[str]:
        """Plugins that have not allowed it yet, sorted."""
        return sorted(self._pending)

    def allow(self, plugin: str) -> None:
        """`plugin` lets it go; with the last one the pod is bound."""
        if self._pending.pop(plugin, None) is not None and not self._pending:
            self._decide(Status.success())

    def reject(self, plugin: str, message: str) -> None:
        """`plugin` rejects it."""
        self._decide(Status.unschedulable(message, plugin=plugin))

    def preempt(self, plugin: str, message: str) -> None:
        """Cancelled in memory by preemption."""
        self._decide(Status.as_error_of(message, plugin=plugin))

    def cancel(self) -> None:
        """Its wait is over without a verdict."""
        for timer in self._timers:
            timer.cancel()

    def _decide(self, status: Status) -> None:
        with self._lock:
            if self.verdict is not None:
                return
            self.verdict = status
        self.cancel()
        self._resume(self)


class WaitingPods:
    """All held pods, by UID, in order of arrival."""

    def __init__(self) -> None:
        self._pods: dict[str, Waiting] = {}

    def add(self, waiting: Waiting) -> None:
        """A pod begins to wait."""
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        """Its wait is over."""
        self._pods.pop(uid, None)

    def list(self) -> list[Waiting]:
        """All held pods without a verdict."""
        return [w for w in self._pods.values() if w.verdict is None]

    def get(self, uid: str) -> Waiting | None:
        """The held pod with this UID, or None."""
        found = self._pods.get(uid)
        return found if found is not None and found.verdict is None else None
