"""No shortcut changes a decision: whole histories, with answers kept from cycle to cycle and without.

The same history runs in three labs: one that keeps nothing and records everything, one that keeps answers about
nodes (as in a large cluster) and records, and one that keeps answers and records nothing. They must agree in every
attempt and leave the same pods, events and queue behind.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from labkit.engine.scheduler import Scheduler
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.lab import Lab
from labkit.objects.codec import from_dict
from labkit.objects.pod import Pod
from labkit.plugins._preemption import Candidate, best_candidates, winners

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
CONFIG: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            # So few candidates that preemption takes a sample of the nodes.
            "pluginConfig": [
                {
                    "name": "DefaultPreemption",
                    "args": {"minCandidateNodesAbsolute": 2, "minCandidateNodesPercentage": 10},
                }
            ]
        }
    ],
}


class EvenFirst(Plugin):
    """A learner's plugin, written node by node: some nodes are refused, the fuller ones get more points."""

    name = "EvenFirst"

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        """Pods labelled odd may not go to full nodes."""
        if pod.labels.get("app") == "b" and len(node.pods) > 3:
            return Status.unschedulable("node is crowded")
        return None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        """A point a pod."""
        return min(len(node.pods), 100)


def selected(**extra: Any) -> dict[str, Any]:
    """A term that selects the pods labelled app=a."""
    return {"labelSelector": {"matchLabels": {"app": "a"}}, **extra}


def spread(when: str, key: str) -> dict[str, Any]:
    """A spread constraint."""
    return {
        "topologySpreadConstraints": [selected(maxSkew=1, topologyKey=key, whenUnsatisfiable=when)],
    }


def affinity(side: str, key: str, *, required: bool) -> dict[str, Any]:
    """Pod affinity or anti-affinity to app=a."""
    term = selected(topologyKey=key)
    if required:
        return {"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    weighted = {"weight": 7, "podAffinityTerm": term}
    return {"affinity": {side: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}}


#: What pods ask for beside room; each is a way of its own through the plugins.
WISHES: list[dict[str, Any]] = [
    {},
    {},
    {"nodeSelector": {"disk": "ssd"}},
    {"tolerations": [{"key": "busy", "operator": "Exists"}]},
    {"hostPort": 80},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "nowhere"}}]},
    affinity("podAffinity", ZONE, required=True),
    affinity("podAffinity", ZONE, required=False),
    affinity("podAntiAffinity", HOST, required=True),
    affinity("podAntiAffinity", HOST, required=False),
    spread("DoNotSchedule", ZONE),
    spread("ScheduleAnyway", HOST),
]

pods = st.fixed_dictionaries(
    {
        "wish": st.integers(0, len(WISHES) - 1),
        "cpu": st.sampled_from(["100m", "1", "2"]),
        "priority": st.sampled_from([0, 0, 10, 100]),
        "app": st.sampled_from(["a", "b"]),
        "copies": st.integers(1, 4),
    }
)
nodes = st.fixed_dictionaries(
    {
        "node": st.integers(0, 6),
        "zone": st.sampled_from(["x", "y"]),
        "cpu": st.sampled_from(["2", "4"]),
        "disk": st.sampled_from(["ssd", "hdd"]),
        "taint": st.booleans(),
        "cordoned": st.sampled_from([False, False, True]),
    }
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("pods"), pods),
        st.tuples(st.just("pods"), pods),
        st.tuples(st.just("attempts"), st.integers(1, 6)),
        st.tuples(st.just("node"), nodes),
        st.tuples(st.just("node goes"), st.integers(0, 6)),
        st.tuples(st.just("pod goes"), st.integers(0, 30)),
        st.tuples(st.just("nominated"), st.integers(0, 6)),
        st.tuples(st.just("budget"), st.integers(0, 1)),
        st.tuples(st.just("time"), st.sampled_from([1, 5, 40])),
    ),
    min_size=4,
    max_size=14,
)


class History:
    """One lab that lives through the steps."""

    def __init__(self, large_from: int | None, trace: str, plugins: list[Any]) -> None:
        self.lab = Lab(config=CONFIG, trace=trace, plugins=plugins)
        self.scheduler: Scheduler = self.lab.scheduler
        self.scheduler.cache.large_from = large_from
        self.made = 0
        for i in range(5):
            node = {"node": i, "zone": "xy"[i % 2], "cpu": "4", "disk": "ssd", "taint": False}
            self._node({**node, "cordoned": False})

    def live(self, kind: str, what: Any) -> list[dict[str, Any]]:
        """One step; the records of the attempts that it led to."""
        if kind == "pods":
            for _ in range(what["copies"]):
                self._pod(what)
        elif kind == "node":
            self._node(what)
        elif kind == "node goes":
            if f"n{what}" in [n["metadata"]["name"] for n in self.lab.nodes()]:
                self.lab.delete("Node", f"n{what}")
        elif kind == "pod goes":
            if f"p{what}" in [p["metadata"]["name"] for p in self.lab.pods()]:
                self.lab.delete("Pod", f"p{what}")
        elif kind == "budget":
            spec = {"minAvailable": what, "selector": {"matchLabels": {"app": "a"}}}
            self._apply("PodDisruptionBudget", "budget", apiVersion="policy/v1", spec=spec)
        elif kind == "nominated":
            # A pod of the highest priority that waits for a gate, and is promised a node.
            self._pod({"wish": 0, "cpu": "2", "priority": 200, "app": "b", "gated": True})
            status = {"status": {"nominatedNodeName": f"n{what}"}}
            self.lab.client.patch_status("Pod", f"p{self.made - 1}", "default", status)
            self.scheduler.pump()
        elif kind == "promised":
            # Pods that want the node that they are promised, one a node.
            for node in what:
                self._pod({"wish": 0, "cpu": "2", "priority": 100, "app": "b"})
                status = {"status": {"nominatedNodeName": f"n{node}"}}
                self.lab.client.patch_status("Pod", f"p{self.made - 1}", "default", status)
        elif kind == "time":
            self.lab.clock.advance_to(self.lab.clock.now() + what)
            self.scheduler.pump()
        attempts = what if kind == "attempts" else 2
        traces = [self.scheduler.schedule_one() for _ in range(attempts)]
        return [record(t) for t in traces if t is not None]

    def end(self) -> dict[str, Any]:
        """Pods, events and the queue."""
        return {
            "pods": self.lab.pods(),
            "events": self.lab.look("Event"),
            "queue": self.lab.queue,
        }

    def _pod(self, what: dict[str, Any]) -> None:
        wish = dict(WISHES[what["wish"]])
        box: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": {"cpu": what["cpu"]}}}
        port = wish.pop("hostPort", None)
        if port:
            box["ports"] = [{"containerPort": port, "hostPort": port}]
        name = f"p{self.made}"
        self.made += 1
        self._apply("PriorityClass", f"c{what['priority']}", value=what["priority"])
        spec = {"terminationGracePeriodSeconds": 0, "containers": [box], **wish}
        if what.get("gated"):
            spec["schedulingGates"] = [{"name": "later"}]
        spec["priorityClassName"] = f"c{what['priority']}"
        self._apply("Pod", name, metadata={"labels": {"app": what["app"]}}, spec=spec)

    def _node(self, what: dict[str, Any]) -> None:
        name = f"n{what['node']}"
        spec: dict[str, Any] = {"unschedulable": what["cordoned"]}
        spec["taints"] = [{"key": "busy", "effect": "NoSchedule"}] if what["taint"] else []
        self._apply(
            "Node",
            name,
            metadata={"labels": {HOST: name, ZONE: what["zone"], "disk": what["disk"]}},
            spec=spec,
            status={"allocatable": {"cpu": what["cpu"], "memory": "8Gi", "pods": "6"}},
        )

    def _apply(self, kind: str, name: str, **fields: Any) -> None:
        groups = {"PriorityClass": "scheduling.k8s.io/v1"}
        obj = {"apiVersion": fields.pop("apiVersion", groups.get(kind, "v1")), "kind": kind, **fields}
        obj["metadata"] = {"name": name, **fields.get("metadata", {})}
        self.lab.apply(obj)


def record(trace: Any) -> dict[str, Any]:
    """An attempt without what it cost."""
    found: dict[str, Any] = trace.to_dict()
    found.pop("durations", None)
    return found


def agree(history: list[tuple[str, Any]], plugins: list[Any]) -> None:
    """Live through `history` three times."""
    plain = History(None, "on", plugins)
    kept = History(1, "on", plugins)
    silent = History(1, "off", plugins)
    for kind, what in history:
        expected = plain.live(kind, what)
        assert kept.live(kind, what) == expected
        silent.live(kind, what)
    assert kept.end() == plain.end()
    assert silent.end() == plain.end()


RULES = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@RULES
@given(steps)
def test_kept_answers_change_nothing(history: list[tuple[str, Any]]) -> None:
    """The default plugins."""
    agree(history, [])


@RULES
@given(steps)
def test_kept_answers_change_nothing_beside_a_learners_plugin(history: list[tuple[str, Any]]) -> None:
    """A plugin without quick methods stands between the others."""
    agree(history, [EvenFirst])


def many(copies: int, **what: Any) -> tuple[str, Any]:
    """Plain pods of one core."""
    return "pods", {"wish": 0, "cpu": "1", "priority": 0, "app": "a", "copies": copies, **what}


#: Five nodes full of pods that may go, half of them more important; then a preemptor that has looked at all nodes.
FULL = [many(10), many(10, priority=10), ("attempts", 20)]
FIRST = [many(1, cpu="2", priority=100, app="b"), ("attempts", 2)]
SECOND = [many(2, cpu="2", priority=100, app="b"), ("attempts", 4)]
BETWEEN: dict[str, list[tuple[str, Any]]] = {
    "nothing": [],
    "a budget": [("budget", 1)],
    "a budget comes and changes": [("budget", 1), *SECOND, ("budget", 0)],
    "another priority": [many(2, cpu="2", priority=10, app="b"), ("attempts", 4)],
    "another size": [many(2, cpu="4", priority=100, app="b"), ("attempts", 4)],
    "nominations": [("nominated", i) for i in range(5)],
    "a pod goes": [("pod goes", 3), ("pod goes", 14)],
    "a node grows": [
        ("node", {"node": 3, "zone": "y", "cpu": "5", "disk": "ssd", "taint": False, "cordoned": False})
    ],
    "a node goes": [("node goes", 2)],
    "time": [("time", 5)],
}


class Particular(Plugin):
    """Its PreFilter extension says no to every other preemptor: nothing that a pod's shape tells."""

    name = "Particular"

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> None:
        """Nothing."""

    def add_pod(self, state: Any, pod: Any, added: Any, node: Any) -> None:
        """Nothing."""

    def remove_pod(self, state: Any, pod: Any, removed: Any, node: Any) -> Status | None:
        """An error for pods with an odd number."""
        return Status.as_error_of("not for me") if int(pod.name[1:]) % 2 else None


class Choosy(Plugin):
    """Its PreFilter extension does not let every pod of a shape be tried beside nominated pods."""

    name = "Choosy"

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> None:
        """Nothing."""

    def add_pod(self, state: Any, pod: Any, added: Any, node: Any) -> Status | None:
        """A rejection for pods with an odd number."""
        return Status.unschedulable("not beside others") if int(pod.name[1:]) % 2 else None


@pytest.mark.parametrize(
    "plugins",
    [[], [EvenFirst], [Particular], [Choosy]],
    ids=["default", "learner's", "removes", "adds"],
)
@pytest.mark.parametrize("between", BETWEEN)
def test_dry_runs_do_not_outlive_what_they_rest_on(between: str, plugins: list[Any]) -> None:
    """Something changes between two preemptors that are alike."""
    agree([*FULL, *FIRST, *BETWEEN[between], *SECOND, ("time", 1), *SECOND], plugins)


#: Pods that meet the nominations of others: of lower, equal and higher priority, alike and not.
NEWCOMERS = {
    "equal": many(2, cpu="2", priority=200, app="b"),
    "higher": many(2, cpu="2", priority=300, app="b"),
    "lower": many(2, cpu="2", priority=100, app="b"),
    "spread": many(2, wish=10, priority=100),
    "ports": many(2, wish=4, priority=100),
}


@pytest.mark.parametrize("newcomer", NEWCOMERS)
@pytest.mark.parametrize("between", ["nominations", "a pod goes", "a node grows", "another priority", "time"])
def test_verdicts_do_not_outlive_nominations(between: str, newcomer: str) -> None:
    """Nominations come, go and move between pods that are alike; nobody finds room that is promised."""
    come = NEWCOMERS[newcomer]
    promises: list[tuple[str, Any]] = [("nominated", 0), ("nominated", 3)]
    agree([many(6), *promises, come, *BETWEEN[between], come, ("pod goes", 6), come, ("time", 1)], [])


@pytest.mark.parametrize("plugins", [[], [EvenFirst]], ids=["default", "learner's"])
def test_a_pods_own_nomination_does_not_stand_in_its_way(plugins: list[Any]) -> None:
    """Pods that are alike and promised different nodes: each reckons with the others there, and not with itself."""
    again: list[tuple[str, Any]] = [("attempts", 6), ("time", 1), ("attempts", 6)]
    agree([*FULL, ("promised", [3, 1, 0, 2]), *again, ("promised", [1, 4]), *again], plugins)


class Careless:
    """An extender that spoils the candidates it was given."""

    name, ignorable, weight = "careless", False, 1
    is_filter = is_prioritizer = is_binder = False
    supports_preemption = True

    def is_interested(self, pod: Any) -> bool:
        """In the first preemptor."""
        return bool(pod.name == "p20")

    def process_preemption(self, pod: Any, candidates: list[Any], snapshot: Any) -> list[Any]:
        """Half of the victims are enough, it thinks."""
        for candidate in candidates:
            del candidate.victims[1:]
        return candidates


def test_an_extender_may_do_with_candidates_what_it_likes() -> None:
    """The next preemptor's candidates are whole again."""
    steps = [*FULL, *FIRST, *SECOND, ("time", 1), *SECOND]
    plain, kept = History(None, "on", []), History(1, "on", [])
    for history in (plain, kept):
        history.scheduler.services.extenders.append(Careless())
    for kind, what in steps:
        assert kept.live(kind, what) == plain.live(kind, what)
    assert kept.end() == plain.end()


class Talkative(Plugin):
    """Says something else of each node each time: no two of its statuses are alike."""

    name = "Talkative"

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        """Small pods only."""
        if pod.priority < 100:
            return None
        return Status.unschedulable(f"{node.name} has {len(node.pods)} pods, {pod.name} is one too many")

    def sign_pod(self, pod: Any) -> str:
        """It looks at the name and the priority."""
        return f"{pod.name} {pod.priority}"


def test_texts_may_differ_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of verdicts begins anew when it has heard too many different ones, and says what it is told."""
    monkeypatch.setattr("labkit.engine.verdicts._SPARE_STATUSES", 2)
    again: list[tuple[str, Any]] = []
    for i in range(15):
        node = {"node": i % 5, "zone": "x", "cpu": str(4 + i), "disk": "ssd", "taint": False}
        again += [("node", {**node, "cordoned": False}), many(1), ("time", 40)]
    agree([many(2, priority=100), *again], [Talkative])


waits = st.sampled_from(["", "", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])
victims = st.lists(st.tuples(st.sampled_from([0, 0, 0, 5]), waits), min_size=1, max_size=2)


@RULES
@given(st.lists(st.tuples(st.sampled_from([0, 0, 0, 1]), victims), min_size=1, max_size=9))
def test_winners_are_what_the_criteria_leave(found: list[tuple[int, list[tuple[int, str]]]]) -> None:
    """The choice among candidates, made at once, step by step, and with a clock that ticks at each look."""
    candidates = [
        Candidate(f"n{i}", [victim(*v) for v in sorted(each, reverse=True)], violations)
        for i, (violations, each) in enumerate(found)
    ]
    best = winners(candidates)
    assert best == best_candidates(candidates)[-1][1]
    lowest = min(c.cost for c in candidates)
    equal = [c for c in candidates if c.cost == lowest]
    ticks = itertools.count()
    starts = []
    for candidate in equal:
        top = [v for v in candidate.victims if v.priority == candidate.victims[0].priority]
        starts.append(min(v.status.start_time or f"now {next(ticks):03}" for v in top))
    assert best == [c for c, start in zip(equal, starts, strict=True) if start == max(starts)]


def victim(priority: int, start: str) -> Pod:
    """A pod that started then, or has not."""
    raw = {"metadata": {"name": "v"}, "spec": {"priority": priority}, "status": {"startTime": start or None}}
    made = from_dict({"kind": "Pod", **raw}, "Pod")
    assert isinstance(made, Pod)
    return made


def test_the_histories_preempt() -> None:
    """The comparison above is about something: victims went, and nodes were nominated."""
    history = History(1, "on", [])
    records = [r for kind, what in [*FULL, *FIRST, *SECOND] for r in history.live(kind, what)]
    assert sum(bool(r["postFilter"] and r["postFilter"]["nominatedNode"]) for r in records) >= 3
