"""check.reserving: plugins that book something outside the cluster -> which case holds, and what is said."""

from __future__ import annotations

from typing import Any

import pytest
from labkit import check
from labkit.framework.status import Status


class Right:
    """Books, takes, gives back."""

    def __init__(self, server: Any) -> None:
        self.server, self.booked = server, set()

    def reserve(self, state: Any, pod: Any, node: str) -> Status | None:
        """In memory."""
        if "ticket" not in pod.labels:
            return None
        if self.server.free - len(self.booked - self.server.holders) < 1:
            return Status.unschedulable("no ticket is free")
        self.booked.add(pod.uid)
        return None

    def pre_bind_pre_flight(self, state: Any, pod: Any, node: str) -> Status | None:
        """Only pods with the label."""
        return None if "ticket" in pod.labels else Status.skip()

    def pre_bind(self, state: Any, pod: Any, node: str) -> None:
        """The slow part."""
        self.server.take(pod.uid)

    def unreserve(self, state: Any, pod: Any, node: str) -> None:
        """Both."""
        self.booked.discard(pod.uid)
        self.server.give_back(pod.uid)


class Greedy(Right):
    """Takes a ticket for everybody."""

    def pre_bind_pre_flight(self, state: Any, pod: Any, node: str) -> None:
        """Never skips."""


class Leaks(Right):
    """Cancels the booking, keeps the ticket."""

    def unreserve(self, state: Any, pod: Any, node: str) -> None:
        """Half of it."""
        self.booked.discard(pod.uid)


class Raises(Right):
    """Has a fault."""

    def reserve(self, state: Any, pod: Any, node: str) -> None:
        """Divides by zero."""
        1 / 0  # noqa: B018


def test_the_right_plugin_gets_everything() -> None:
    """On many labs."""
    assert check.reserving(Right, points=4, seeds=range(20)).score == 4


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (Leaks, "is not bound and still holds a ticket: Unreserve must give it back"),
        (Greedy, "did not ask for a ticket and holds one"),
        (Raises, "ZeroDivisionError"),
        (lambda server: None, "Case"),
        (7, "a class is expected, got 7"),
    ],
    ids=["leaks", "greedy", "raises", "nothing", "no class"],
)
def test_a_wrong_one_hears_why(plugin: Any, said: str) -> None:
    """Never a full score."""
    report = check.reserving(plugin, points=4, seeds=range(4))
    assert report.score < 4
    if said != "Case":
        assert said in report.text()
