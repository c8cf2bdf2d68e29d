"""Checks of an arrangement with two schedulers: pods routed by a function, the second scheduler's configuration."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from typing import Any

from labkit.check.plugins import VISIBLE
from labkit.check.report import Case, Exercise, Words, show
from labkit.i18n import t

Json = dict[str, Any]
DEFAULT, BATCH = "default-scheduler", "batch-scheduler"
LABEL = ("workload", "batch")
_PLAIN, _LABELLED, _NAMED, _PLACED = "plain", "labelled", "named", "placed"


def pods(seed: int) -> list[tuple[str, Json]]:
    """(kind, pod): plain ones, some with the label of batch work, some that name a scheduler or a node already."""
    rng = random.Random(f"labkit-check/routing/{seed}")
    kinds = [_PLAIN, _LABELLED, _NAMED, _PLACED, *rng.choices((_PLAIN, _LABELLED, _NAMED), k=3)]
    rng.shuffle(kinds)
    made = []
    for i, kind in enumerate(kinds, 1):
        labels = {"app": rng.choice(("web", "api", "batch"))}
        spec: Json = {
            "containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "250m"}}}]
        }
        if kind != _PLAIN:
            labels[LABEL[0]] = LABEL[1]
        elif rng.random() < 0.5:
            labels[LABEL[0]] = rng.choice(("service", "Batch"))
        if kind == _NAMED:
            spec["schedulerName"] = DEFAULT
        if kind == _PLACED:
            spec["nodeName"] = "n1"
        meta: Json = {"name": f"pod-{i}", "namespace": "default", "labels": labels}
        if kind == _PLAIN and rng.random() < 0.4:
            del meta["labels"]
        made.append((kind, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}))
    return made


def routed(kind: str, pod: Json) -> Json:
    """The right answer: only labelled pods that name neither a scheduler nor a node go to the second one."""
    answer = copy.deepcopy(pod)
    if kind == _LABELLED:
        answer["spec"]["schedulerName"] = BATCH
    return answer


def routing(
    route: Callable[[Json], Any],
    config: Any,
    *,
    points: float,
    seeds: Iterable[int] = VISIBLE,
    hint: Words | None = None,
) -> Exercise:
    """`route(pod)` must give the pod for the right scheduler; with `config` (YAML text) the second one must take it.

    Both run with leader election, each with the lease that its configuration names.
    """
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        given = pods(seed)
        with exercise.case(f"cluster {number}: the manifests", f"集群 {number}：manifest", hint=hint) as case:
            for kind, pod in given:
                _manifest(case, route, kind, pod)
        with exercise.case(
            f"cluster {number}: who places the batch pods",
            f"集群 {number}：谁来放置批处理 Pod",
            hint=hint,
        ) as case:
            _run(case, given, config, seed)
    return exercise


def _manifest(case: Case, route: Callable[[Json], Any], kind: str, pod: Json) -> None:
    name, before = pod["metadata"]["name"], copy.deepcopy(pod)
    spec = pod["spec"]
    case.table(
        ["pod", "labels", "schedulerName", "nodeName"],
        [
            [
                name,
                show(pod["metadata"].get("labels")),
                spec.get("schedulerName", "–"),
                spec.get("nodeName", "–"),
            ]
        ],
    )
    got = route(pod)
    case.true(
        pod == before, f"route changed the pod {name} that it was given", f"route 改动了传入的 Pod {name}"
    )
    if type(got) is not dict or type(got.get("spec")) is not dict:
        case.fail(
            f"route({name}) returned {show(got)}, not a pod", f"route({name}) 返回 {show(got)}，不是 Pod"
        )
    wanted = routed(kind, before)
    why = {
        _PLAIN: (f"it has no label {LABEL[0]}={LABEL[1]}", f"它没有标签 {LABEL[0]}={LABEL[1]}"),
        _LABELLED: (f"it has the label {LABEL[0]}={LABEL[1]}", f"它有标签 {LABEL[0]}={LABEL[1]}"),
        _NAMED: ("it names a scheduler itself", "它自己指定了调度器"),
        _PLACED: ("it has a node already, no scheduler will look at it", "它已有节点，没有调度器会看它"),
    }[kind]
    have, want = got["spec"].get("schedulerName"), wanted["spec"].get("schedulerName")
    case.equal(
        have,
        want,
        f"schedulerName of {name} ({why[0]})",
        f"{name} 的 schedulerName（{why[1]}）",
    )
    case.equal(got, wanted, f"the rest of {name}", f"{name} 的其余部分")


def _run(case: Case, given: list[tuple[str, Json]], text: Any, seed: int) -> None:
    from labkit.config import check_config, load_config
    from labkit.errors import LabError
    from labkit.several import Member, SeveralSchedulers

    if type(text) is not str:
        case.fail("the configuration must be YAML text", "配置必须是 YAML 文本")
    try:
        check_config(text)
        config = load_config(text)
    except LabError as e:
        case.fail(f"kube-scheduler refuses the configuration: {e}", f"kube-scheduler 拒绝这个配置：{e}")
    profiles = [p.scheduler_name for p in config.profiles]
    names = ", ".join(profiles)
    case.true(
        BATCH in profiles,
        f"no profile answers to {BATCH}; there are: {names}",
        f"没有 profile 对应 {BATCH}；现有：{names}",
    )
    case.true(
        DEFAULT not in profiles,
        f"the second scheduler has a profile {DEFAULT} too: both would try the same pods",
        f"第二个调度器也有名为 {DEFAULT} 的 profile：两个都会去尝试同一批 Pod",
    )
    election = config.leader_election
    case.true(
        election.leader_elect,
        "leader election is off: two replicas of the second scheduler would collide",
        "leader election 关着：第二个调度器的两个副本会相互冲突",
    )
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "16", "memory": "32Gi", "pods": "110"}},
    }
    # Leases of different namespaces are different ones; here they all lie in one.
    lease = f"{election.resource_namespace}.{election.resource_name}"
    shown = f"{election.resource_namespace}/{election.resource_name}"
    lab = SeveralSchedulers(
        [node, *(routed(kind, pod) for kind, pod in given)],
        [
            Member(DEFAULT, "default", True, lease="kube-system.kube-scheduler"),
            Member(BATCH, "batch", True, config=text, lease=lease),
        ],
        seed=seed,
    )
    lab.run()
    by = {e.pod.removeprefix("default/"): e.member for e in lab.log if e.kind == "bound"}
    case.table(
        ["pod", t("bound by", "由谁绑定")],
        [[p["metadata"]["name"], by.get(p["metadata"]["name"], "–")] for _, p in given],
    )
    case.true(
        lab.state("batch") == "working",
        f"the second scheduler stands by for ever: the first one holds the lease {shown}",
        f"第二个调度器永远待命：Lease {shown} 被第一个持有",
    )
    for kind, pod in given:
        name = pod["metadata"]["name"]
        if kind != _PLACED:
            case.equal(
                by.get(name, ""),
                "batch" if kind == _LABELLED else "default",
                f"the scheduler that binds {name}",
                f"绑定 {name} 的调度器",
            )
