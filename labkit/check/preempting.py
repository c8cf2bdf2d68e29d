"""Checks of preemption in two plain functions: which pods leave a node, and which node is taken (spec 13 §5, §6).

The expected answers come from DefaultPreemption, run on the same pods.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.check.plugins import VISIBLE, run
from labkit.check.report import Case, Exercise, Words, show
from labkit.i18n import t

_PORT = 8080


@dataclass(frozen=True)
class Running:
    """A pod on a node, or the pod that wants to get there (`start` 0). CPU in cores, `start` in seconds."""

    name: str
    priority: int
    cpu: int
    start: int = 0
    port: bool = False


@dataclass(frozen=True)
class Plan:
    """A node that could be freed: who would have to go, and how many PodDisruptionBudgets that would break."""

    node: str
    victims: tuple[Running, ...]
    violations: int = 0


def pick_node(
    function: Any, *, points: float, seeds: Iterable[int] = VISIBLE, hint: Words | None = None
) -> Exercise:
    """`function(plans)` must name the node that DefaultPreemption takes; each seed gives six cases.

    One case for each criterion, where that criterion is the first to tell the nodes apart, and one at random.
    """
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        for criterion, (en, zh) in enumerate(_CRITERIA):
            plans = _plans(seed, criterion)
            with exercise.case(f"{en} ({number})", f"{zh}（{number}）", hint=hint) as case:
                _plan_table(case, plans)
                winners = _winners(plans)
                got = function(list(plans))
                if type(got) is not str:
                    case.fail(
                        f"the name of a node (str) is expected, got {show(got)}",
                        f"应返回节点名（str），得到 {show(got)}",
                    )
                if got not in winners:
                    case.fail(
                        f"expected {' or '.join(winners)}, got {got}",
                        f"应为 {' 或 '.join(winners)}，得到 {got}",
                    )
    return exercise


#: What decides in a generated case.
_CRITERIA: tuple[Words, ...] = (
    ("PDB violations", "违反的 PDB"),
    ("highest victim priority", "受害者的最高优先级"),
    ("sum of priorities", "优先级之和"),
    ("number of victims, negative priorities", "受害者数量，负优先级"),
    ("start of the most important victim", "最重要受害者的启动时间"),
    ("anything", "任意"),
)


def _plans(seed: int, criterion: int) -> tuple[Plan, ...]:
    rng = random.Random(f"labkit-check/plans/{seed}/{criterion}")
    top = rng.choice((20, 50, 80))
    names = [f"n{i + 1}" for i in range(4)]
    starts = rng.sample(range(100, 4000, 10), 40)
    # Per node: violations, then the victims' priorities.
    if criterion == 0:
        best = rng.randrange(4)
        shapes = [(0, [top + 10]) if i == best else (rng.randint(1, 2), [top - 10]) for i in range(4)]
    elif criterion == 1:
        best = rng.randrange(4)
        shapes = [(0, [top - 5, top - 6, top - 7]) if i == best else (0, [top]) for i in range(4)]
    elif criterion == 2:
        best = rng.randrange(4)
        shapes = [(0, [top, 1]) if i == best else (0, [top, 2 + i]) for i in range(4)]
    elif criterion == 3:
        best = rng.randrange(4)
        shapes = [(0, [-10]) if i == best else (0, [-10, -20 - i]) for i in range(4)]
    elif criterion == 4:
        shapes = [(0, [top, top, 5]) for _ in range(4)]
    else:
        shapes = [
            (
                rng.choice((0, 0, 1)),
                sorted((rng.choice((0, 10, 50)) for _ in range(rng.randint(1, 3))), reverse=True),
            )
            for _ in range(4)
        ]
    plans = []
    for node, (violations, priorities) in zip(names, shapes, strict=True):
        there = [(p, starts.pop()) for p in priorities]
        # Most important first: higher priority, then older.
        there.sort(key=lambda v: (-v[0], v[1]))
        victims = tuple(Running(f"{node}-{i + 1}", p, 1, s) for i, (p, s) in enumerate(there))
        plans.append(Plan(node, victims, violations))
    rng.shuffle(plans)
    return tuple(plans)


def _winners(plans: Sequence[Plan]) -> list[str]:
    from labkit.objects.codec import from_dict
    from labkit.plugins._preemption import Candidate, best_candidates

    made: list[Any] = [
        Candidate(p.node, [from_dict(_raw(v), "Pod") for v in p.victims], p.violations)  # type: ignore[misc]
        for p in plans
    ]
    return sorted(c.node for c in best_candidates(made)[-1][1])


def _raw(pod: Running) -> dict[str, Any]:
    return {
        "metadata": {"name": pod.name, "namespace": "default", "uid": pod.name},
        "spec": {"priority": pod.priority, "containers": [{"name": "c", "image": "a"}]},
        "status": {"startTime": _time(pod.start)},
    }


def _time(seconds: int) -> str:
    return f"2030-01-01T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}Z"


def _plan_table(case: Case, plans: Sequence[Plan]) -> None:
    head = [t("node", "节点"), "violations", t("victims: priority (start)", "受害者：优先级（启动时间）")]
    case.table(
        head,
        [[p.node, p.violations, ", ".join(f"{v.priority} ({v.start})" for v in p.victims)] for p in plans],
    )


def victims(
    function: Any, *, points: float, seeds: Iterable[int] = VISIBLE, hint: Words | None = None
) -> Exercise:
    """`function(pod, there, fits)` must give the pods that DefaultPreemption would remove, or None when that is no help.

    `there` are the pods on the node, `fits(some of them)` says whether `pod` can run beside those.
    """
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        for kind, (en, zh) in enumerate(_NODES):
            pod, there, cpu = _node(seed, kind)
            with exercise.case(f"{en} ({number})", f"{zh}（{number}）", hint=hint) as case:
                _victims_case(case, function, pod, there, cpu)
    return exercise


#: What a generated node is about.
_NODES: tuple[Words, ...] = (
    ("a big pod behind a small one", "小 Pod 后面的大 Pod"),
    ("equal priority", "优先级相同"),
    ("not even empty", "腾空也不够"),
    ("a host port", "主机端口"),
    ("a full node", "满的节点"),
)


def _node(seed: int, kind: int) -> tuple[Running, list[Running], int]:
    rng = random.Random(f"labkit-check/victims/{seed}/{kind}")
    starts = rng.sample(range(100, 4000, 10), 8)
    small = [Running(f"p{i + 1}", rng.choice((1, 5, 10, 20)), rng.randint(1, 2), starts[i]) for i in range(4)]
    if kind == 0:
        # The least important one is too small to help: taking it away first is in vain.
        there = [
            Running("small", 1, 1, starts[0]),
            Running("big", 10, 6, starts[1]),
            Running("mid", 50, 2, starts[2]),
        ]
        pod = Running("vip", 100, rng.randint(3, 6))
        cpu = 9
    elif kind == 1:
        there = [*small, Running("equal", 100, 2, starts[5])]
        # With an even seed only the equal one could make the room.
        lower = sum(p.cpu for p in small)
        pod = Running("vip", 100, lower + 1 if seed % 2 == 0 else min(3, lower))
        cpu = sum(p.cpu for p in there)
    elif kind == 2:
        there = [*small, Running("boss", 1000, 4, starts[5])]
        cpu = sum(p.cpu for p in there)
        pod = Running("vip", 100, cpu - 3)
    elif kind == 3:
        there = [*small, Running("holder", 30, 1, starts[5], port=True)]
        pod = Running("vip", 100, 1, port=True)
        cpu = 40
    else:
        there = small
        cpu = sum(p.cpu for p in there)
        pod = Running("vip", 100, rng.randint(2, cpu))
    rng.shuffle(there)
    return pod, there, cpu


def _fits(pod: Running, cpu: int) -> Callable[[Iterable[Running]], bool]:
    def fits(there: Iterable[Running]) -> bool:
        beside = list(there)
        return sum(p.cpu for p in beside) + pod.cpu <= cpu and not (pod.port and any(p.port for p in beside))

    return fits


def _victims_case(case: Case, function: Any, pod: Running, there: list[Running], cpu: int) -> None:
    head = ["pod", "priority", "cpu", "start", "port"]
    rows = [[p.name, p.priority, p.cpu, p.start, p.port] for p in (*there, pod)]
    case.table(head, rows)
    wanted = _expected(pod, there, cpu)
    got = function(pod, list(there), _fits(pod, cpu))
    if got is None:
        names = None
    else:
        found = list(got)
        if not all(type(p) is Running and p in there for p in found):
            case.fail(
                f"a list of pods of the node is expected, got {show(got)}",
                f"应返回由该节点上的 Pod 组成的列表，得到 {show(got)}",
            )
        names = sorted(p.name for p in found)
        equal = [p.name for p in found if p.priority >= pod.priority]
        if equal:
            case.fail(
                f"{equal[0]} is no less important than {pod.name} ({pod.priority}): only strictly lower priorities go",
                f"{equal[0]} 不比 {pod.name}（{pod.priority}）次要：只有优先级严格更低的才能移走",
            )
    if names == wanted:
        return
    if wanted is None:
        case.fail(
            f"removing pods does not help on this node: expected None, got {names}",
            f"在这个节点上移走 Pod 也没有用：应为 None，得到 {names}",
        )
    spare = sorted(set(names or ()) - set(wanted or ()))
    text_en, text_zh = f"expected {wanted}, got {names}", f"应为 {wanted}，得到 {names}"
    if spare:
        text_en += f"; {spare[0]} could have stayed"
        text_zh += f"；{spare[0]} 本可以留下"
    case.fail(text_en, text_zh)


def _expected(pod: Running, there: Sequence[Running], cpu: int) -> list[str] | None:
    placed = {p.name: {"node": "n1", **_short(p)} for p in there}
    made = {
        "nodes": {"n1": {"cpu": cpu, "memory": "16Gi"}},
        "placed": placed,
        "pods": {pod.name: _short(pod)},
    }
    result = run([], made, only=False)[pod.name].post_filter_result
    if result is None or not result.nominated_node_name:
        return None
    return sorted(v.removeprefix("default/") for v in result.victims)


def _short(pod: Running) -> dict[str, Any]:
    short: dict[str, Any] = {"cpu": pod.cpu, "priority": pod.priority}
    if pod.start:
        short["status"] = {"startTime": _time(pod.start)}
    if pod.port:
        container: dict[str, Any] = {
            "name": "app",
            "image": "app",
            "ports": [{"containerPort": _PORT, "hostPort": _PORT}],
        }
        container["resources"] = {"requests": {"cpu": str(pod.cpu)}}
        short["spec"] = {"containers": [container]}
    return short
