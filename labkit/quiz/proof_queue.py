"""Proofs about what happens around an attempt: the queue, gates, retries, back-off, who is asked when (spec 02)."""

from __future__ import annotations

from typing import Any

from labkit.framework.plugin import EXTENSION_POINTS, Plugin
from labkit.framework.status import Status
from labkit.quiz.model import Scenario
from labkit.quiz.proof_world import World

#: How the world changes while a pod that needs 4 CPUs waits beside a node of 4 with 2 in use.
CHANGES = (
    "pod deleted",
    "big node added",
    "small node added",
    "label changed",
    "heartbeat",
    "allocatable grown",
    "pod labelled",
)


def _recorder() -> tuple[Plugin, list[str]]:
    calls: list[str] = []

    def noting(point: str, result: Any) -> Any:
        def method(self: Any, *args: Any) -> Any:
            if point not in calls:
                calls.append(point)
            return result

        return method

    answers: dict[str, Any] = {
        "score": 0,
        "permit": (None, 0.0),
        "bind": Status.skip(),
        "pre_filter": (None, None),
    }
    answers["post_filter"] = (None, Status.unschedulable("nothing to offer"))
    methods = {
        m: noting(point, answers.get(point)) for point, m in EXTENSION_POINTS.items() if point != "queue_sort"
    }
    methods["normalize_score"] = noting("normalize_score", None)
    methods["unreserve"] = noting("unreserve", None)
    return type("Recorder", (Plugin,), methods)(), calls


def calls_in_order(nodes: int = 2, pod_cpu: int = 1) -> list[str]:
    """The calls that a plugin at every extension point gets for one pod on so many nodes of 4 CPUs, each named once."""
    world = World({f"n{i}": {"cpu": 4} for i in range(1, nodes + 1)})
    world.add(Scenario(pods={"web": {"cpu": pod_cpu}}))
    recorder, calls = _recorder()
    scheduler = world.scheduler(recorder)
    scheduler.run_until_idle()
    return calls


def popped(pods: dict[str, int]) -> list[str]:
    """The order in which pods (name -> priority) are tried that were created in the order given, a second apart."""
    world = World({"n1": {"cpu": 100}})
    scheduler = world.scheduler()
    groups: set[str] = set()
    for name, priority in pods.items():
        world.clock.advance_to(world.clock.now() + 1)
        group = f"level-{priority}"
        if group not in groups:
            groups.add(group)
            world.client.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": group},
                    "value": priority,
                }
            )
        world.add(Scenario(pods={name: {"cpu": 1, "spec": {"priorityClassName": group}}}))
    found = []
    while (trace := scheduler.schedule_one()) is not None:
        found.append(str(trace.pod).removeprefix("default/"))
    return found


def gated() -> dict[str, Any]:
    """A pod with two gates beside a pod without: attempts for it, events, and where it is, as the gates go."""
    world = World({"n1": {"cpu": 4}})
    gates = [{"name": "example.com/a"}, {"name": "example.com/b"}]
    world.add(Scenario(pods={"held": {"cpu": 1, "spec": {"schedulingGates": gates}}, "other": {"cpu": 1}}))
    scheduler = world.scheduler()
    attempts = {"both gates": scheduler.run_until_idle() - 1}
    found: dict[str, Any] = {
        "other": world.nodes_of("other")[0],
        "place": scheduler.view().find("default/held"),
    }
    world.advance(scheduler, 600)
    found["place after 10 minutes"] = scheduler.view().find("default/held")
    for label, left in (("one gate", gates[:1]), ("no gate", [])):
        world.client.patch("Pod", "held", "default", {"spec": {"schedulingGates": left}}, "merge")
        attempts[label] = scheduler.run_until_idle()
    return {**found, "attempts": attempts, "node": world.nodes_of("held")[0]}


def retried(change: str) -> int:
    """How often a pod is tried again within a minute of a change; see CHANGES."""
    world = World({"n1": {"cpu": 4}})
    world.add(Scenario(placed={"old": {"node": "n1", "cpu": 2}}, pods={"big": {"cpu": 4}}))
    scheduler = world.scheduler()
    scheduler.run_until_idle()
    world.advance(scheduler, 30)
    before = len(scheduler.traces)
    if change == "pod deleted":
        world.client.delete("Pod", "old", "default", grace_period_seconds=0)
    elif change in ("big node added", "small node added"):
        world.add(Scenario(nodes={"n2": {"cpu": 4 if change.startswith("big") else 3}}))
    elif change == "label changed":
        world.client.patch("Node", "n1", None, {"metadata": {"labels": {"disk": "ssd"}}}, "merge")
    elif change == "pod labelled":
        world.client.patch("Pod", "old", "default", {"metadata": {"labels": {"tier": "web"}}}, "merge")
    elif change == "allocatable grown":
        world.client.patch("Node", "n1", None, {"status": {"allocatable": {"cpu": "8"}}}, "merge", "status")
    elif change == "heartbeat":
        beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        for _ in range(2):
            world.client.patch("Node", "n1", None, {"status": {"conditions": [beat]}}, "merge", "status")
            beat = {**beat, "lastHeartbeatTime": "2026-01-01T00:00:10Z"}
    else:
        raise TypeError(f"no such change: {change}")
    world.advance(scheduler, 60)
    return len(scheduler.traces) - before


def back_off(failures: int) -> float:
    """Seconds of back-off after so many failures in a row, with the default configuration."""
    from labkit.config import default_config
    from labkit.engine.backoff import Backoff
    from labkit.framework.clock import VirtualClock

    config = default_config()
    first, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    return Backoff(VirtualClock(), first, longest).duration(failures)


def queue_places() -> dict[str, str | None]:
    """Where four pods are: one just created, one that fits nowhere, one with a gate, one that Permit holds."""
    from labkit.quiz.proof_world import Verdict

    world = World({"n1": {"cpu": 4}})
    world.add(
        Scenario(
            pods={"too-big": {"cpu": 8}, "gated": {"cpu": 1, "spec": {"schedulingGates": [{"name": "a"}]}}}
        )
    )
    scheduler = world.scheduler(Verdict("wait"))
    scheduler.run_until_idle()
    world.add(Scenario(pods={"held": {"cpu": 1}}))
    scheduler.run_until_idle()
    world.add(Scenario(pods={"new": {"cpu": 1}}))
    view = scheduler.view()
    return {name: view.find(f"default/{name}") for name in ("new", "too-big", "gated", "held")}


def unknown_scheduler() -> dict[str, Any]:
    """A pod whose schedulerName nobody answers to: attempts, events about it, its node."""
    world = World({"n1": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1, "spec": {"schedulerName": "nobody"}}}))
    scheduler = world.scheduler()
    attempts = scheduler.run_until_idle()
    events = len(world.client.list("Event")[0])
    return {"attempts": attempts, "events": events, "node": world.nodes_of("web")[0]}


def after_placement() -> dict[str, Any]:
    """What a scheduler has changed after it placed a pod: the pod's node and phase, and whether the Node changed."""
    world = World({"n1": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    before = world.client.get("Node", "n1")
    world.scheduler().run_until_idle()
    pod = world.client.get("Pod", "web", "default")
    phase = pod.get("status", {}).get("phase", "Pending")
    same = world.client.get("Node", "n1") == before
    return {
        "node": pod["spec"]["nodeName"],
        "phase": phase,
        "node object": "unchanged" if same else "changed",
    }
