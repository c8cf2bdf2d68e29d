"""The gang check: right plugins score full, each typical fault loses its cases and is named."""

from __future__ import annotations

from typing import Any

import pytest
from labkit import check
from labkit.check.gangs import gang
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.i18n import set_language
from labkit.plugins.course import GangPermit

TOGETHER, MORE, GIVES_UP, LATER, DELETED, APART = range(6)


def gang_of(pod: Any) -> str | None:
    """`namespace/gang`."""
    name = pod.labels.get("gang-id")
    return f"{pod.namespace}/{name}" if name else None


class Right(Plugin):
    """Reads who waits and who runs from the scheduler."""

    seconds = 60.0

    def waiting(self, name: str | None) -> list[Any]:
        """Held members."""
        assert self.handle is not None
        return [w for w in self.handle.waiting_pods() if gang_of(w.pod) == name]

    def running(self, name: str) -> int:
        """Members on nodes."""
        assert self.handle is not None
        held = {w.pod.uid for w in self.waiting(name)}
        pods = [p.pod for node in self.handle.snapshot.nodes for p in node.pods]
        return sum(gang_of(p) == name and p.uid not in held for p in pods)

    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        """Hold, or let all go."""
        name = gang_of(pod)
        if name is None:
            return None
        if self.count(name, pod) < int(pod.labels["gang-min-count"]):
            return Status.wait("not yet"), self.seconds
        for member in self.waiting(name):
            member.allow(self.name)
        return None

    def count(self, name: str, pod: Any) -> int:
        """Members that have room, this one included."""
        return len(self.waiting(name)) + self.running(name) + 1

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        """Here for Unreserve."""

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        """One gives up: all do."""
        if (name := gang_of(pod)) is not None:
            for member in self.waiting(name):
                member.reject(self.name, "a member gave up")


class NoUnreserve(Right):
    """Siblings go on waiting."""

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        """Forgotten."""


class Leaks(Right):
    """Counts on and on."""

    def __init__(self) -> None:
        super().__init__()
        self.ready: dict[str, int] = {}

    def count(self, name: str, pod: Any) -> int:
        """Never taken back."""
        self.ready[name] = self.ready.get(name, 0) + 1
        return self.ready[name]


class Copies(Right):
    """Counts in a copy."""

    ready: dict[str, int] = {}

    def count(self, name: str, pod: Any) -> int:
        """Never grows."""
        ready = dict(self.ready)
        ready[name] = ready.get(name, 0) + 1
        return ready[name]


class OneNamespace(Right):
    """Gangs of one name are one gang."""

    def count(self, name: str, pod: Any) -> int:
        """Forgets the namespace."""
        assert self.handle is not None
        here = sum(w.pod.labels["gang-id"] == pod.labels["gang-id"] for w in self.handle.waiting_pods())
        return 1 + int(here)


class Forgets(Right):
    """Who runs already does not count."""

    def running(self, name: str) -> int:
        """Nobody."""
        return 0


class Patient(Right):
    """Ten minutes."""

    seconds = 600.0


class Passes(Right):
    """Holds nobody."""

    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        """Always yes."""
        return None


class Raises(Right):
    """A bug."""

    def count(self, name: str, pod: Any) -> int:
        """Boom."""
        raise KeyError("readyPods")


class NotWritten(Right):
    """The stub."""

    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        """Nothing yet."""
        raise NotImplementedError


class HalfWritten(Right):
    """Unreserve is not written."""

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        """Nothing yet."""
        raise NotImplementedError


class NoReserve:
    """Unreserve would never be called."""

    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        """Whatever."""
        return None

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        """Whatever."""


@pytest.mark.parametrize("plugin", [Right, GangPermit])
def test_right_plugins_pass_every_case(plugin: type) -> None:
    """The short one and the course's, on visible and hidden seeds."""
    for seeds in (check.VISIBLE, check.HIDDEN[:2]):
        found = gang(plugin, points=3, seeds=seeds)
        assert found.text().count("✕") == 0
        assert found.score == 3


@pytest.mark.parametrize(
    ("plugin", "fails", "said"),
    [
        (NoUnreserve, {GIVES_UP, DELETED}, "Unreserve must reject all that wait"),
        (Leaks, {GIVES_UP, LATER, DELETED}, "members of default/train are bound"),
        (Copies, {TOGETHER, MORE, LATER, DELETED, APART}, "should be bound, but is not (Permit holds it)"),
        (OneNamespace, {MORE, APART}, "a gang starts whole or not at all"),
        (Forgets, {MORE}, "pod extra should be bound, but is not (Permit holds it)"),
        (Patient, {GIVES_UP}, "waits at most: expected 60.0, got 600.0"),
        (Passes, set(range(6)), "a gang starts whole or not at all"),
        (Raises, set(range(6)), "your plugin failed: KeyError: 'readyPods'"),
        (NotWritten, set(range(6)), "Not written yet."),
        (HalfWritten, {GIVES_UP, LATER, DELETED}, "Not written yet."),
        (NoReserve, set(range(6)), "Unreserve is only called for plugins that have a method `reserve`"),
        (GangPermit(), set(range(6)), "A class with a method `permit` is needed"),
        (int, set(range(6)), "A class with a method `permit` is needed"),
    ],
)
def test_a_fault_loses_its_cases_and_is_named(plugin: Any, fails: set[int], said: str) -> None:
    """By the place of the case in the story list."""
    found = gang(plugin, points=8, seeds=(0,))
    assert {i for i, c in enumerate(found.cases) if not c.passed} == fails
    assert said in found.text()
    if len(fails) == 6:
        assert found.score == 0


def test_a_failed_case_shows_who_is_where_and_where_it_happened() -> None:
    """A table of pods; the learner's line for an exception."""
    case, other = gang(NoUnreserve, points=1, seeds=(0,)).failures
    assert "was deleted while it waited" in other.problem
    assert case.columns[0] == "pod"
    assert [r for r in case.rows if r[0] == "web"] == [["web", "–", "in the queue"]]
    assert any("held on" in r[2] for r in case.rows)
    assert "in count" in gang(Raises, points=1, seeds=(0,)).failures[0].detail


def test_another_time_out_can_be_asked_for() -> None:
    """`timeout=600` is what Patient does."""
    assert gang(Patient, points=1, timeout=600, seeds=(0,)).score == 1


def test_what_the_broken_plugin_can_do_already_counts_a_fifth() -> None:
    """Leaks passes three cases of weight 1: handed in unchanged, it gets 0.6 of 7.6."""
    assert gang(Leaks, points=7.6, seeds=(0,), given=Leaks).score == 0.6
    assert gang(Right, points=7.6, seeds=(0,), given=Leaks).score == 7.6


class Endless(Right):
    """Go's blocked channel, in Python."""

    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        """Does not answer."""
        while True:
            pass


def test_a_plugin_that_never_answers_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every case ends, and the next one begins."""
    monkeypatch.setattr("labkit.check.report._BUSY_S", 0.1)
    found = gang(Endless, points=1, seeds=(0,))
    assert found.score == 0
    assert len(found.cases) == 6
    assert all("loop or wait for ever" in case.problem for case in found.failures)


def test_in_chinese() -> None:
    """Names and problems."""
    set_language("zh")
    try:
        text = gang(NoUnreserve, points=1, seeds=(0,)).text()
    finally:
        set_language("en")
    assert "缺一个：全部放弃" in text
    assert "Unreserve 必须拒绝所有等待的成员" in text
