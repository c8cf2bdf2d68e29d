"""Proofs that need a running scheduler: a small cluster, one or two schedulers, virtual time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.quiz.model import Scenario
from labkit.quiz.scenario import API_VERSION, engine_input


class World:
    """A store, its nodes' agent, and schedulers on it, all on one virtual clock."""

    def __init__(self, nodes: dict[str, dict[str, Any]]) -> None:
        from labkit.cluster.client import StoreClient
        from labkit.cluster.store import Store
        from labkit.framework.clock import VirtualClock

        self.clock = VirtualClock()
        self.store = Store(self.clock)
        self.client = StoreClient(self.store)
        self.add(Scenario(nodes=nodes))

    def add(self, scenario: Scenario) -> None:
        """Create the scenario's objects."""
        raw = engine_input(scenario)
        for item in [*raw["objects"], *raw["pods"]]:
            item["metadata"].pop("uid", None)
            item.get("spec", {}).pop("priority", None)
            status = item.pop("status", None)
            made = self.client.create(item)
            if status:
                name = made["metadata"]["name"]
                self.client.patch(
                    item["kind"],
                    name,
                    made["metadata"].get("namespace"),
                    {"status": status},
                    "merge",
                    "status",
                )

    def scheduler(
        self,
        *plugins: Any,
        name: str = "default-scheduler",
        watch: bool = True,
        extenders: Any = (),
        points: dict[str, Any] | None = None,
    ) -> Any:
        """A scheduler that has read the cluster; without `watch` it learns nothing more, as if events were late.

        `points`: the profile's `plugins`.
        """
        from labkit.cluster.client import StoreClient
        from labkit.engine.scheduler import Scheduler

        config = {
            "apiVersion": API_VERSION,
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": name, "plugins": points or {}}],
        }
        client = _Counting(StoreClient(self.store))
        made = Scheduler(client, config, clock=self.clock, plugins=plugins, extenders=extenders)
        made.load()
        if watch:
            self.store.subscribe(lambda _, old, new: made.notify(old, new))
        return made

    def nodes_of(self, *pods: str) -> list[str | None]:
        """Where pods are."""
        return [self.client.get("Pod", p, "default").get("spec", {}).get("nodeName") for p in pods]

    def advance(self, scheduler: Any, seconds: float) -> None:
        """Let time pass, timer by timer."""
        target = self.clock.now() + seconds
        while (due := self.clock.next_timer()) is not None and due <= target:
            self.clock.advance_to(due)
            scheduler.pump()
        self.clock.advance_to(target)
        scheduler.run_until_idle()


class _Counting:
    """A client that counts what is asked of the API."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return found(*args, **kwargs)

        return call


def two_schedulers_one_node() -> dict[str, Any]:
    """Two schedulers, a pod each, one node with room for one: both bind, the node is overcommitted."""
    world = World({"n1": {"cpu": 4, "memory": "8Gi"}})
    world.add(
        Scenario(
            pods={
                "first": {"cpu": 3, "spec": {"schedulerName": "one"}},
                "second": {"cpu": 3, "spec": {"schedulerName": "two"}},
            }
        )
    )
    schedulers = [world.scheduler(name=name, watch=False) for name in ("one", "two")]
    for scheduler in schedulers:
        scheduler.run_until_idle()
    bound = world.nodes_of("first", "second")
    return {"bound": bound, "requested": 3 * sum(n == "n1" for n in bound), "allocatable": 4}


def two_schedulers_one_pod() -> dict[str, Any]:
    """Two schedulers that answer to the same name take the same pod: one binding, one refusal."""
    world = World({"n1": {"cpu": 4}, "n2": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    first, second = (world.scheduler(watch=False) for _ in range(2))
    first.run_until_idle()
    trace = second.schedule_one()
    return {"bound": world.nodes_of("web")[0] is not None, "second": str(trace.message)}


def writes_per_pod() -> dict[str, int]:
    """Requests that a scheduler makes for one pod, by verb, beside its watches."""
    world = World({"n1": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    scheduler = world.scheduler()
    scheduler.client.calls.clear()
    scheduler.run_until_idle()
    return dict(sorted(scheduler.client.calls.items()))


class Verdict(Plugin):
    """A Permit plugin that says one thing."""

    def __init__(self, verdict: str) -> None:
        super().__init__()
        self.verdict = verdict

    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        """Let through, reject, or hold for a minute."""
        if self.verdict == "reject":
            return Status.unschedulable("not today"), 0.0
        return (Status.wait("hold on"), 60.0) if self.verdict == "wait" else (None, 0.0)


def permit(verdict: str, nodes: int = 1) -> dict[str, Any]:
    """What becomes of a pod that a Permit plugin allows, rejects, or lets wait: at once, and once it is allowed."""
    world = World({f"n{i}": {"cpu": 4} for i in range(1, nodes + 1)})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    scheduler = world.scheduler(Verdict(verdict))
    scheduler.run_until_idle()
    found: dict[str, Any] = {"node": world.nodes_of("web")[0], "waiting": len(scheduler.waiting.list())}
    if verdict == "wait":
        scheduler.waiting.list()[0].allow("Verdict")
        scheduler.run_until_idle()
        found["after allow"] = world.nodes_of("web")[0]
    return found


class Gang(Plugin):
    """Holds every pod until `size` of them have a node; then lets all go."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        """Wait for the others."""
        assert self.handle is not None
        held = self.handle.waiting_pods()
        if len(held) + 1 < self.size:
            return Status.wait(f"{len(held) + 1} of {self.size}"), 30.0
        for other in held:
            other.allow("Gang")
        return None, 0.0


def gang(members: int, room: int, together: bool) -> int:
    """How many of `members` pods run on a node with room for `room`, with or without the gang plugin."""
    world = World({"n1": {"cpu": room}})
    names = [f"worker-{i}" for i in range(members)]
    world.add(Scenario(pods={n: {"cpu": 1} for n in names}))
    scheduler = world.scheduler(*([Gang(members)] if together else []))
    scheduler.run_until_idle()
    return sum(n is not None for n in world.nodes_of(*names))


class FailsBeforeBinding(Plugin):
    """Reserves, then fails in PreBind; remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        """Book."""
        self.calls.append("reserve")

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        """Unbook."""
        self.calls.append("unreserve")

    def pre_bind(self, state: Any, pod: Any, node_name: str) -> Status:
        """The volume does not attach."""
        self.calls.append("pre_bind")
        return Status.as_error_of("volume is not ready")

    def post_bind(self, state: Any, pod: Any, node_name: str) -> None:
        """Only after a binding."""
        self.calls.append("post_bind")


def pre_bind_fails() -> dict[str, Any]:
    """PreBind fails: the calls that a plugin gets, and where the pod is."""
    world = World({"n1": {"cpu": 4}})
    world.add(Scenario(pods={"web": {"cpu": 1}}))
    plugin = FailsBeforeBinding()
    world.scheduler(plugin).schedule_one()
    return {"calls": plugin.calls, "node": world.nodes_of("web")[0]}


def api_answer(kind: str, name: str, spec: dict[str, Any]) -> str:
    """What the API says to creating an object: "created", or its refusal."""
    world = World({"n1": {"cpu": 4}})
    try:
        metadata = {"name": name} if kind == "Node" else {"name": name, "namespace": "default"}
        world.client.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})
    except Exception as e:
        return str(getattr(e, "message", e))
    return "created"


def pod_with_node_name() -> dict[str, Any]:
    """A pod that names its node is in no queue, and runs on a node that is full and tainted."""
    world = World({"n1": {"cpu": 1, "taints": [{"key": "a", "effect": "NoSchedule"}]}})
    world.add(Scenario(placed={"web": {"node": "n1", "cpu": 8}}))
    scheduler = world.scheduler()
    return {"attempts": scheduler.run_until_idle(), "node": world.nodes_of("web")[0]}
