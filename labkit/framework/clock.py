"""Time is an object: everything that waits takes a Clock.

The lab's clock is virtual, so back-off, permit time-outs, leases and graceful deletion happen when somebody
advances time. Real time is the special case.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time as _time
from collections.abc import Callable
from typing import Protocol

#: Where virtual time starts: 2030-01-01T00:00:00Z, in seconds since the Unix epoch.
VIRTUAL_START = 1893456000.0


class Timer(Protocol):
    """A scheduled call that can be called off."""

    def cancel(self) -> None:
        """Call it off; nothing happens when it ran already."""


class Clock(Protocol):
    """Now, and calls in the future. Seconds since the Unix epoch."""

    def now(self) -> float:
        """The time, in seconds since the Unix epoch."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once at `when` (or as soon as possible when that is past)."""


class _VirtualTimer:
    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualClock:
    """A clock that stands still until `advance`; timers then fire in order of time, ties in order of creation."""

    def __init__(self, start: float = VIRTUAL_START) -> None:
        self._now = start
        self.start = start
        self._timers: list[tuple[float, int, _VirtualTimer]] = []
        self._sequence = itertools.count()

    def now(self) -> float:
        """The virtual time, in seconds since the Unix epoch."""
        return self._now

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` when virtual time reaches `when`."""
        timer = _VirtualTimer(callback)
        heapq.heappush(self._timers, (max(when, self._now), next(self._sequence), timer))
        return timer

    def next_timer(self) -> float | None:
        """The time of the next timer, or None when nothing waits."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def advance(self, seconds: float) -> None:
        """Move time forward by `seconds`, firing what falls due on the way. ValueError when negative."""
        if seconds < 0:
            raise ValueError(f"time only moves forward: advance({seconds!r})")
        self.advance_to(self._now + seconds)

    def advance_to(self, when: float) -> None:
        """Move time forward to `when`; a `when` in the past leaves the time as it is."""
        while (due := self.next_timer()) is not None and due <= when:
            _, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            timer.callback()
        self._now = max(self._now, when)


class RealClock:
    """The machine's clock; timers run on daemon threads."""

    def now(self) -> float:
        """Wall-clock seconds since the Unix epoch."""
        return _time.time()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on a thread of its own at `when`."""
        timer = threading.Timer(max(0.0, when - self.now()), callback)
        timer.daemon = True
        timer.start()
        return timer
