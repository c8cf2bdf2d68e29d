"""Checks of a whole scheduler by what it achieves: a generated workload is run, and the outcome is measured.

The cluster: three zones, in each two large nodes (16 CPUs) and two small ones (8 CPUs), with their price an hour
in the label `price`. The workload: replicas of `web`, `batch` jobs, and late `train` pods that need nearly a whole
large node.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labkit.check.plugins import VISIBLE, own_frames
from labkit.check.report import Case, Exercise, Words, show
from labkit.i18n import t

if TYPE_CHECKING:
    from labkit.lab import Lab

ZONE = "topology.kubernetes.io/zone"
_ZONES, _EACH = ("a", "b", "c"), 2
_LARGE, _SMALL = (16, 16), (8, 6)  # CPUs, price
_TRAIN_CPU = 14


@dataclass(frozen=True)
class Outcome:
    """What a run came to. `room`: how many more `train` pods would fit; `cost`: the price of all nodes in use.

    `skew`: `web` pods of the fullest zone minus those of the emptiest.
    """

    placed: int
    pods: int
    room: int
    skew: int
    cost: int

    def __str__(self) -> str:
        return t(
            f"{self.placed} of {self.pods} pods placed, room for {self.room} more train pods, "
            f"skew of web {self.skew}, cost {self.cost}",
            f"{self.pods} 个 Pod 中放置了 {self.placed} 个，还能放 {self.room} 个 train，web 的偏差 {self.skew}，成本 {self.cost}",
        )


@dataclass(frozen=True)
class Workload:
    """Objects to apply, wave after wave, and what a good scheduler achieves with them."""

    cluster: list[dict[str, Any]]
    waves: list[list[dict[str, Any]]]
    goal: Outcome


def workload(seed: int) -> Workload:
    """The workload of a seed: the same every time."""
    rng = random.Random(f"labkit-check/outcome/{seed}")
    web, batch, train = 3 * rng.randint(2, 3), rng.randint(12, 18), rng.randint(2, 4)
    cluster: list[dict[str, Any]] = [
        _node(f"{size}-{zone}{i + 1}", zone, *shape)
        for zone in _ZONES
        for size, shape in (("large", _LARGE), ("small", _SMALL))
        for i in range(_EACH)
    ]
    cluster.append(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        }
    )
    small = [_pod(f"web-{i + 1}", "web", 1) for i in range(web)]
    small += [_pod(f"batch-{i + 1}", "batch", 2) for i in range(batch)]
    rng.shuffle(small)
    half = len(small) // 2
    last = [_pod(f"train-{i + 1}", "train", _TRAIN_CPU) for i in range(train)]
    nodes = len(_ZONES) * _EACH
    pods = web + batch + train
    goal = Outcome(pods, pods, nodes - train, 1, nodes * _SMALL[1] + train * _LARGE[1])
    return Workload(cluster, [small[:half], small[half:], last], goal)


def play(seed: int, *, config: Any = None, plugins: Iterable[Any] = ()) -> Lab:
    """A lab in which the workload of `seed` has run under this configuration and these plugins."""
    from labkit.lab import Lab

    made = workload(seed)
    lab = Lab(made.cluster, config=config, plugins=list(plugins))
    for wave in made.waves:
        lab.apply(wave)
        lab.run()
        lab.advance(10)
    return lab


def measure(lab: Lab) -> Outcome:
    """What the lab has come to."""
    nodes = {n["metadata"]["name"]: n for n in lab.nodes()}
    used: dict[str, float] = {}
    zones = dict.fromkeys(_ZONES, 0)
    pods = lab.pods()
    for pod in pods:
        name = pod["spec"].get("nodeName")
        if not name:
            continue
        cpu = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        used[name] = used.get(name, 0) + float(cpu)
        if pod["metadata"]["labels"]["app"] == "web":
            zones[nodes[name]["metadata"]["labels"][ZONE]] += 1
    free = [float(n["status"]["allocatable"]["cpu"]) - used.get(name, 0) for name, n in nodes.items()]
    return Outcome(
        placed=sum(bool(p["spec"].get("nodeName")) for p in pods),
        pods=len(pods),
        room=sum(cpu >= _TRAIN_CPU for cpu in free),
        skew=max(zones.values()) - min(zones.values()),
        cost=sum(int(nodes[name]["metadata"]["labels"]["price"]) for name in used),
    )


def outcome(
    config: Any,
    plugins: Sequence[Any] = (),
    *,
    points: float,
    seeds: Iterable[int] = VISIBLE,
    hint: Words | None = None,
) -> Exercise:
    """Run the workloads of `seeds`; for each, four cases: pods placed (twice the weight), room left, spread, cost."""
    exercise = Exercise(points)
    for number, seed in enumerate(seeds, 1):
        goal = workload(seed).goal
        found: Outcome | Exception
        details = ""
        try:
            found, details = _run(seed, config, plugins)
        except Exception as e:
            found = e
        for en, zh, weight, field in _CASES:
            with exercise.case(
                f"{en}, workload {number}", f"{zh}，负载 {number}", weight=weight, hint=hint
            ) as case:
                if isinstance(found, Exception):
                    raise found
                case.detail = details
                _judge(case, field, found, goal)
    return exercise


def _run(seed: int, config: Any, plugins: Any) -> tuple[Outcome, str]:
    from labkit.errors import LabError

    if not isinstance(plugins, (list, tuple)):
        raise TypeError(
            t(f"a list of plugins is expected, got {show(plugins)}", f"应为插件列表，得到 {show(plugins)}")
        )
    try:
        lab = play(seed, config=config, plugins=plugins)
    except LabError as e:
        raise ValueError(str(e)) from None
    for trace in lab.traces:
        if trace.error is not None and trace.error.code.label == "Error":
            if "NotImplementedError" in (trace.message or ""):
                raise NotImplementedError
            return measure(lab), f"{trace.pod}: {trace.message}\n{own_frames(trace.error.traceback)}"
    return measure(lab), ""


def _judge(case: Case, field: str, found: Outcome, goal: Outcome) -> None:
    got, wanted = getattr(found, field), getattr(goal, field)
    case.table(
        [t("measure", "指标"), t("goal", "目标"), t("yours", "你的")],
        [[t(en, zh), getattr(goal, name), getattr(found, name)] for en, zh, _, name in _CASES],
    )
    if field != "placed" and found.placed < goal.placed:
        left = goal.placed - found.placed
        case.fail(
            f"counts only when all pods are placed: {left} wait",
            f"只有所有 Pod 都放置了才算：还有 {left} 个在等",
        )
    good = got >= wanted if field in ("placed", "room") else got <= wanted
    if not good:
        case.fail(
            f"{field}: {'at least' if field in ('placed', 'room') else 'at most'} {wanted} is the goal, you have {got}",
            f"{field}：目标是{'至少' if field in ('placed', 'room') else '至多'} {wanted}，你的是 {got}",
        )


#: English, Chinese, weight, field of Outcome.
_CASES = (
    ("pods placed", "放置的 Pod", 2, "placed"),
    ("room for train pods", "train 的剩余空间", 1, "room"),
    ("skew of web over zones", "web 的可用区偏差", 1, "skew"),
    ("cost of nodes in use", "在用节点的成本", 1, "cost"),
)


def _node(name: str, zone: str, cpu: int, price: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {ZONE: zone, "kubernetes.io/hostname": name, "price": str(price)},
        },
        "status": {"allocatable": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}},
    }


def _pod(name: str, app: str, cpu: int) -> dict[str, Any]:
    resources = {"requests": {"cpu": str(cpu), "memory": f"{2 * cpu}Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "app:v1", "resources": resources}]},
    }
