"""Proofs about what the framework makes of a plugin's answer (spec 01 §4)."""

from __future__ import annotations

from typing import Any

from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.quiz.model import Scenario
from labkit.quiz.proof_world import World


def _statuses() -> dict[str, Any]:
    return {
        "success": None,
        "skip": Status.skip(),
        "unschedulable": Status.unschedulable("no"),
        "error": Status.as_error_of("broken"),
    }


class _Noting(Plugin):
    """Keeps a list of what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def note(self, call: str) -> None:
        """Add a call, once in a row."""
        if not self.calls or self.calls[-1] != call:
            self.calls.append(call)


class Checker(_Noting):
    """Says one thing at PreFilter; serves Filter and Score too."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self.answer = answer

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        """Say it."""
        self.note("pre_filter")
        return None, _statuses()[self.answer]

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        """Let pass."""
        self.note("filter")

    def score(self, state: Any, pod: Any, node: Any) -> int:
        """No points."""
        self.note("score")
        return 0


def pre_filter_answer(answer: str) -> dict[str, Any]:
    """What follows PreFilter's "success", "skip" or "unschedulable": the plugin's calls, is the pod placed."""
    world = World({"n1": {"cpu": 4}, "n2": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    plugin = Checker(answer)
    world.scheduler(plugin).run_until_idle()
    return {"calls": plugin.calls, "placed": world.nodes_of("web")[0] is not None}


class Generous(Plugin):
    """Gives n1 a fixed number of points."""

    def __init__(self, points: int) -> None:
        super().__init__()
        self.points = points

    def score(self, state: Any, pod: Any, node: Any) -> int:
        """The points, for n1 only."""
        return self.points if node.name == "n1" else 0


def score_answer(points: int) -> dict[str, Any]:
    """A Score plugin without NormalizeScore gives n1 so many points: is the pod placed, and the message."""
    world = World({"n1": {"cpu": 4}, "n2": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    scheduler = world.scheduler(Generous(points))
    trace = scheduler.schedule_one()
    return {"placed": world.nodes_of("web")[0] is not None, "message": str(trace.message or "")}


class Patient(Plugin):
    """Holds every pod for a time of its choice."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        """Wait."""
        return Status.wait("hold on"), self.seconds


def permit_timeout(asked: int) -> int:
    """After how many seconds a held pod is rejected when its Permit plugin asks for `asked` seconds."""
    world = World({"n1": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    scheduler = world.scheduler(Patient(asked))
    scheduler.schedule_one()
    seconds = 0
    first = scheduler.waiting.list()[0]
    while seconds <= asked and first in scheduler.waiting.list():
        seconds += 1
        world.advance(scheduler, 1)
    return seconds


def room_while_waiting() -> dict[str, Any]:
    """One node of 4 CPUs; a pod of 3 is held by Permit, then one of 2 and one of 1 come that nobody holds."""

    class HoldsBig(Plugin):
        def permit(self, state: Any, pod: Any, node_name: str) -> Any:
            return (Status.wait("hold on"), 60.0) if pod.name == "held" else (None, 0.0)

    world = World({"n1": {"cpu": 4}})
    scheduler = world.scheduler(HoldsBig())
    world.add(Scenario(pods={"held": {"cpu": 3}}))
    scheduler.run_until_idle()
    world.add(Scenario(pods={"two": {"cpu": 2}, "one": {"cpu": 1}}))
    scheduler.run_until_idle()
    nodes = world.nodes_of("held", "two", "one")
    return dict(zip(("held", "two", "one"), nodes, strict=True))


def reserve_fails() -> list[str]:
    """Reserve plugins A, B and C in this order; C refuses: their calls, in order."""
    calls: list[str] = []

    def made(name: str) -> Plugin:
        class Reserving(Plugin):
            def reserve(self, state: Any, pod: Any, node_name: str) -> Any:
                calls.append(f"Reserve {name}")
                return Status.unschedulable("no") if name == "C" else None

            def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
                calls.append(f"Unreserve {name}")

        Reserving.name = name
        return Reserving()

    world = World({"n1": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    world.scheduler(made("A"), made("B"), made("C")).schedule_one()
    return calls


class OwnBinder(_Noting):
    """A Bind plugin that says one thing and binds nothing, and listens at PostBind and Unreserve."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self.answer = answer

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        """Needed for Unreserve."""

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        """Only after a failure."""
        self.note("unreserve")

    def bind(self, state: Any, pod: Any, node_name: str) -> Any:
        """Say it."""
        self.note("bind")
        return _statuses()[self.answer]

    def post_bind(self, state: Any, pod: Any, node_name: str) -> None:
        """Only after a binding."""
        self.note("post_bind")


def bind_answer(answer: str) -> dict[str, Any]:
    """A Bind plugin in front of DefaultBinder says "success", "skip" or "error": its calls, and the pod's node."""
    calls: list[str] = []

    class Bound(OwnBinder):
        name = "OwnBinder"

        def __init__(self, args: Any = None, handle: Any = None) -> None:
            super().__init__(answer)
            self.calls = calls

    # A class, not an object: only a class can be named in the profile, and so stand before DefaultBinder.
    world = World({"n1": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    mine = {"name": "OwnBinder"}
    points = {"multiPoint": {"enabled": [mine]}, "bind": {"enabled": [mine, {"name": "DefaultBinder"}]}}
    world.scheduler(Bound, points=points).schedule_one()
    return {"calls": calls, "node": world.nodes_of("web")[0]}
