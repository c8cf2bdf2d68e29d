"""What the recorder remembers of events: enough for series, not everything for ever."""

from __future__ import annotations

from typing import Any

from labkit.engine.recorder import Recorder
from labkit.framework.clock import VirtualClock

from tests.engine.helpers import make_pod


class Silent:
    """A client that keeps nothing."""

    def create_event(self, event: Any) -> None:
        """Taken."""

    def patch(self, *args: Any) -> None:
        """Taken."""


def test_old_events_are_forgotten_at_a_cost_that_stays_small() -> None:
    """Many events at one time, then as many later: the first ones go, and each was gone over a few times at most."""
    clock = VirtualClock()
    recorder = Recorder(Silent(), clock)
    count = 40_000
    pod = make_pod("p")
    looked_at = 0
    for i in range(2 * count):
        if i == count:
            clock.advance(400)
        before = recorder._seen
        recorder._create(pod, (str(i),), "Normal", "Scheduled", "Binding", "n", "s", clock.now())
        if recorder._seen is not before:
            looked_at += len(before)
    assert looked_at < 5 * count
    assert len(recorder._seen) <= 2 * count
    assert (str(0),) not in recorder._seen
