"""Workloads of the scheduler benchmark, after the shapes of upstream's scheduler_perf.

Each has nodes of 4 CPU, 32 Gi and 110 pods, initial pods that are there before the clock starts, and measured pods
of 100m and 500Mi (preemptors: 3 CPU).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
#: Namespaces that (anti-)affinity terms look at; initial pods live in the first, measured ones in the second.
NAMESPACES = ("sched-0", "sched-1")
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 10,
}


@dataclass(frozen=True)
class Workload:
    """`initial` and `pods` give how many pods there are for a number of nodes; `kinds` what the initial ones are."""

    initial: Callable[[int], int]
    pods: Callable[[int], int]
    measured: str = "basic"
    kinds: tuple[str, ...] = ()
    zones: int = 0
    #: Every 200 ms of the measurement a preemptor comes between the measured pods.
    churn: bool = False


WORKLOADS: dict[str, Workload] = {
    "basic": Workload(lambda n: min(n, 1000), lambda n: 10_000 if n >= 5000 else 1000),
    "anti-affinity": Workload(lambda n: n // 5, lambda n: min(n - n // 5, 1000), "anti-affinity"),
    "affinity": Workload(lambda n: n, lambda n: 1000, "affinity", zones=1),
    "spread": Workload(
        lambda n: max(n, 1000), lambda n: 2000 if n >= 5000 else 1000, "spread", ("basic",), zones=3
    ),
    "preemption": Workload(lambda n: 4 * n, lambda n: n, "preemptor", ("low",)),
    "preemption-async": Workload(lambda n: 4 * n, lambda n: n, "basic", ("low",), churn=True),
    "mixed": Workload(
        lambda n: 2 * n,
        lambda n: 1000,
        "basic",
        ("basic", "affinity", "anti-affinity", "prefers", "avoids"),
        zones=1,
    ),
}


def node(i: int, zones: int) -> Json:
    """Node `i`; with `zones`, in one of them."""
    name = f"node-{i:05d}"
    labels = {_HOST: name}
    if zones:
        labels[_ZONE] = f"zone-{i % zones}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
    }


def pod(kind: str, name: str, namespace: str = NAMESPACES[1]) -> Json:
    """A pod of one kind: `basic`, `low`, `preemptor`, or with the affinity or spreading that its kind names."""
    colour = {"affinity": "blue", "anti-affinity": "green", "prefers": "red", "avoids": "yellow"}.get(kind)
    amounts = {"cpu": {"low": "900m", "preemptor": "3"}.get(kind, "100m"), "memory": "500Mi"}
    box = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10",
        "ports": [{"containerPort": 80}],
        "resources": {"limits": amounts, "requests": amounts},
    }
    spec: Json = {"containers": [box]}
    labels = {"color": colour} if colour else {}
    term = {"labelSelector": {"matchLabels": labels}, "namespaces": list(NAMESPACES)}
    if kind == "affinity":
        spec["affinity"] = {"podAffinity": {_REQUIRED: [{"topologyKey": _ZONE, **term}]}}
    elif kind == "anti-affinity":
        spec["affinity"] = {"podAntiAffinity": {_REQUIRED: [{"topologyKey": _HOST, **term}]}}
    elif kind in ("prefers", "avoids"):
        weighted = {"weight": 1, "podAffinityTerm": {"topologyKey": _HOST, **term}}
        side = "podAffinity" if kind == "prefers" else "podAntiAffinity"
        spec["affinity"] = {side: {_PREFERRED: [weighted]}}
    elif kind == "spread":
        labels = {"color": "blue"}
        constraint = {"maxSkew": 5, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": {"matchLabels": labels}}]
    elif kind == "preemptor":
        spec["priorityClassName"] = "high"
    elif kind == "low":
        spec["terminationGracePeriodSeconds"] = 0
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


def cluster(workload: Workload, nodes: int) -> Iterator[Json]:
    """What is there before any pod."""
    for name in NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield _HIGH
    for i in range(nodes):
        yield node(i, workload.zones)


def initial_pods(workload: Workload, nodes: int) -> Iterator[Json]:
    """The pods before the measured ones. Those that fill the nodes (`low`) are placed already, four on each."""
    kinds = workload.kinds or (workload.measured,)
    count = workload.initial(nodes)
    for i in range(count):
        kind = kinds[i * len(kinds) // count]
        made = pod(kind, f"initial-{i:06d}", NAMESPACES[0])
        if kind == "low":
            made["spec"]["nodeName"] = f"node-{i // 4:05d}"
        yield made
