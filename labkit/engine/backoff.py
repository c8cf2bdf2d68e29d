"""How long a pod that failed must wait (spec 02 §7). Times are Clock seconds."""

from __future__ import annotations

import math

from labkit.framework.clock import Clock
from labkit.framework.node_info import QueuedPodInfo


class Backoff:
    """Doubles from `initial` to `maximum` seconds; a `maximum` of 0 switches back-off off.

    Ends are cut to whole seconds, and a pod waits through the second of its end: it waits between d and d + 1.
    """

    def __init__(self, clock: Clock, initial: float = 1.0, maximum: float = 10.0) -> None:
        self._clock = clock
        self._initial = initial
        self._maximum = maximum

    def duration(self, failures: int) -> float:
        """Seconds after so many failures: 1, 2, 4, 8, 10, 10, ... with the defaults."""
        if failures < 1 or self._maximum == 0:
            return 0.0
        return min(self._initial * 2.0 ** min(failures - 1, 64), self._maximum)

    def expiry(self, info: QueuedPodInfo) -> float:
        """The second in which the pod's back-off ends; 0 when it has none."""
        failures = info.consecutive_errors_count or info.unschedulable_count
        if self._maximum == 0 or failures == 0:
            return 0.0
        if info.backoff_expiration is None:
            info.backoff_expiration = math.floor(info.timestamp + self.duration(failures))
        return info.backoff_expiration

    def is_waiting(self, info: QueuedPodInfo) -> bool:
        """True until the second after `expiry` begins."""
        return self.expiry(info) >= math.floor(self._clock.now())
