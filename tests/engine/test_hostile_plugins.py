"""Whatever plugins raise or answer: no pod is lost, bound twice, or put where there is no room (state machine)."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from labkit.framework.events import ClusterEventWithHint
from labkit.framework.plugin import Plugin
from labkit.framework.results import NodeScore, PostFilterResult, PreFilterResult
from labkit.framework.status import Status

from tests.engine.world import World

NODES = ("a", "b")
CPU = 3

#: What a plugin may do: anything that Python lets it.
ANSWERS: list[Any] = [
    None,
    Status.unschedulable("no"),
    Status.unresolvable("never"),
    Status.pending("later"),
    Status.as_error_of("broken"),
    Status.skip(),
    Status.wait("hold"),
    (Status.wait("hold"), 5.0),
    (Status.wait("hold"), float("nan")),
    (Status.wait("hold"), -1),
    (Status.wait("hold"), "soon"),
    (PreFilterResult({"a"}), None),
    (PreFilterResult(set()), None),
    (PreFilterResult({"nowhere"}), None),
    (PostFilterResult("a"), Status.success()),
    (PostFilterResult("nowhere"), Status.success()),
    RuntimeError("raised"),
    SystemExit(3),
    KeyError("x"),
    RecursionError(),
    42,
    -7,
    101,
    3.7,
    float("nan"),
    "yes",
    object,
    [],
    (1, 2, 3),
    [NodeScore("a", 1)],
]
POINTS = (
    "pre_enqueue",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "normalize_score",
    "reserve",
    "permit",
    "pre_bind_pre_flight",
    "pre_bind",
    "post_bind",
)


class Hostile(Plugin):
    """Serves every point, and answers what the machine has last set for it."""

    def __init__(self) -> None:
        super().__init__(None, None)
        self.answers: dict[str, Any] = dict.fromkeys(POINTS)
        self.answers["score"] = 1
        #: Pods with a booking; Unreserve must take each of them out.
        self.booked: set[str] = set()

    def _answer(self, point: str) -> Any:
        answer = self.answers[point]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def pre_enqueue(self, pod: Any) -> Any:
        return self._answer("pre_enqueue")

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        return self._answer("pre_filter")

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        return self._answer("filter")

    def post_filter(self, state: Any, pod: Any, statuses: Any) -> Any:
        return self._answer("post_filter")

    def pre_score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return self._answer("pre_score")

    def score(self, state: Any, pod: Any, node: Any) -> Any:
        return self._answer("score")

    def normalize_score(self, state: Any, pod: Any, scores: Any) -> Any:
        return self._answer("normalize_score")

    def reserve(self, state: Any, pod: Any, node_name: str) -> Any:
        self.booked.add(pod.uid)
        return self._answer("reserve")

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        self.booked.discard(pod.uid)
        raise RuntimeError("unreserve must not fail, but this one does")

    def permit(self, state: Any, pod: Any, node_name: str) -> Any:
        return self._answer("permit")

    def pre_bind_pre_flight(self, state: Any, pod: Any, node_name: str) -> Any:
        return self._answer("pre_bind_pre_flight")

    def pre_bind(self, state: Any, pod: Any, node_name: str) -> Any:
        return self._answer("pre_bind")

    def post_bind(self, state: Any, pod: Any, node_name: str) -> Any:
        self.booked.discard(pod.uid)
        return self._answer("post_bind")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [42]  # type: ignore[list-item]


class HostileCluster(RuleBasedStateMachine):
    """People create and delete pods and nodes, time passes, and one plugin does as it likes."""

    @initialize()
    def begin(self) -> None:
        """Two nodes of three CPUs."""
        self.plugin = Hostile()
        self.world = World(plugins=[self.plugin])
        for name in NODES:
            self.world.node(name, cpu=str(CPU))
        self.made = 0
        self.bindings: dict[str, str] = {}
        client = self.world.lab.scheduler.client
        real = client.bind

        def bind(namespace: str, name: str, uid: Any, node: str) -> None:
            real(namespace, name, uid, node)
            assert uid not in self.bindings, f"pod {name} is bound a second time"
            self.bindings[uid] = node

        client.bind = bind

    @rule(point=st.sampled_from(POINTS), answer=st.sampled_from(ANSWERS), others=st.booleans())
    def change_its_mind(self, point: str, answer: Any, others: bool) -> None:
        """The plugin answers differently from now on, at one point or at one more."""
        if not others:
            self.plugin.answers = {**dict.fromkeys(POINTS), "score": 1}
        self.plugin.answers[point] = answer

    @rule(cpu=st.sampled_from(["1", "2", "4"]), priority=st.sampled_from(["", "low", "high"]))
    def create(self, cpu: str, priority: str) -> None:
        """A new pod."""
        self.made += 1
        self.world.pod(f"p{self.made}", cpu=cpu, priority=priority)

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        """Some pod goes, wherever it is."""
        names = [p["metadata"]["name"] for p in self.world.lab.pods("default")]
        if names:
            self.world.delete(data.draw(st.sampled_from(names)))

    @rule(attempts=st.integers(1, 4))
    def try_some(self, attempts: int) -> None:
        """A few attempts; who is in back-off is waited for first."""
        for _ in range(attempts):
            if self.world.step() is None:
                self.world.at(self.world.now + 11)

    @rule(seconds=st.sampled_from([0.5, 5, 400, 10**8]))
    def wait(self, seconds: float) -> None:
        """Time passes, without attempts; 10**8 seconds are three years."""
        self.world.at(self.world.now + seconds)

    @rule(name=st.sampled_from(NODES))
    def touch(self, name: str) -> None:
        """A node's label changes, which is an event."""
        self.world.node(name, cpu=str(CPU), labels={"made": str(self.made)})

    @precondition(lambda self: self.world.lab.scheduler.waiting.list())
    @rule(allow=st.booleans())
    def decide(self, allow: bool) -> None:
        """Somebody decides about a held pod."""
        held = self.world.lab.scheduler.waiting.list()[0]
        if allow:
            held.allow("Hostile")
        else:
            held.reject("Hostile", "no")
        self.world.lab.scheduler.pump()

    @invariant()
    def every_pod_is_somewhere_once(self) -> None:
        """A pod of the API is on a node, or in exactly one place of the queue, or held by Permit."""
        queue = self.world.lab.queue
        places = [
            e.pod
            for n in ("active", "backoff", "error_backoff", "unschedulable", "gated")
            for e in getattr(queue, n)
        ]
        places += queue.in_flight
        waiting = [
            f"default/{p['metadata']['name']}"
            for p in self.world.lab.pods("default")
            if not p["spec"].get("nodeName")
        ]
        assert sorted(places) == sorted(waiting)

    @invariant()
    def no_node_is_overcommitted(self) -> None:
        """The requests of the pods on a node, and of those that Permit holds there, are at most its CPUs."""
        used: dict[str, int] = dict.fromkeys(NODES, 0)
        for pod in self.world.lab.pods("default"):
            node = pod["spec"].get("nodeName")
            if node:
                used[node] += int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for held in self.world.lab.scheduler.waiting.list():
            request = held.pod.spec.containers[0].resources.requests["cpu"]
            used[held.pod.spec.node_name] += int(str(request))
        assert all(cpu <= CPU for cpu in used.values()), used

    @invariant()
    def bookings_belong_to_held_pods(self) -> None:
        """Whoever is neither held nor bound has no booking, no assumed place and is not in flight."""
        scheduler = self.world.lab.scheduler
        held = {w.pod.uid for w in scheduler.waiting.list()}
        assert self.plugin.booked == held
        assert scheduler.cache.assumed_count == len(held)
        assert len(scheduler.queue.in_flight) == len(held)


HostileCluster.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestHostileCluster = HostileCluster.TestCase
