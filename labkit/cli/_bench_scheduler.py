"""Workloads of the scheduler benchmark, after the shapes of upstream's scheduler_perf."""

from __future__ import annotations

import gc
import resource
import statistics
import time
from typing import Any

Json = dict[str, Any]
WORKLOADS = ("basic", "anti-affinity", "affinity", "spread", "preemption", "mixed")
_ZONES = 3
_WARM_UP = 50


def node(i: int) -> Json:
    """4 CPU, 32 Gi, 110 pods, one of three zones."""
    name = f"node-{i:05d}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{i % _ZONES}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
    }


def pod(workload: str, i: int) -> Json:
    """Pod `i` of a workload: 100m and 500Mi, with the affinity or spreading that it is about."""
    kind = WORKLOADS[i % 4] if workload == "mixed" else workload
    spec: Json = {
        "containers": [
            {"name": "c", "image": "app:v1", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}
        ]
    }
    labels = {"color": {"anti-affinity": "green", "affinity": "blue", "spread": "red"}.get(kind, "none")}
    selector = {"labelSelector": {"matchLabels": {"color": labels["color"]}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if kind == "anti-affinity":
        term = {"topologyKey": "kubernetes.io/hostname", **selector}
        spec["affinity"] = {"podAntiAffinity": {required: [term]}}
    elif kind == "affinity":
        term = {"topologyKey": "topology.kubernetes.io/zone", **selector}
        spec["affinity"] = {"podAffinity": {required: [term]}}
    elif kind == "spread":
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 5,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                **selector,
            }
        ]
    elif kind == "preemption":
        spec["priority"] = 1000
        spec["containers"][0]["resources"]["requests"] = {"cpu": "3", "memory": "500Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{i:06d}", "namespace": "default", "labels": labels},
        "spec": spec,
    }


def _filler(i: int, node_name: str) -> Json:
    made = pod("basic", i)
    made["metadata"]["name"] = f"low-{i:06d}"
    made["spec"]["nodeName"] = node_name
    made["spec"]["priority"] = 0
    made["spec"]["terminationGracePeriodSeconds"] = 0
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "900m", "memory": "500Mi"}
    return made


def measure(workload: str, nodes: int, pods: int) -> Json:
    """One row: pods a second, latency of an attempt in milliseconds, peak memory in MiB."""
    from labkit.cluster.client import StoreClient
    from labkit.cluster.store import Store
    from labkit.engine.scheduler import Scheduler
    from labkit.framework.clock import VirtualClock

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock = VirtualClock()
    store = Store(clock, admission=workload != "preemption")
    client = StoreClient(store)
    for i in range(nodes):
        client.create(node(i))
    if workload == "preemption":
        for i in range(nodes * 4):
            client.create(_filler(i, f"node-{i // 4:05d}"))
    scheduler = Scheduler(client, clock=clock, trace="off")
    scheduler.load()
    store.subscribe(lambda _, old, new: scheduler.notify(old, new))
    warm = min(_WARM_UP, pods // 10)
    for i in range(warm):
        client.create(pod(workload, i))
    _run(scheduler, clock, warm)
    for i in range(warm, pods):
        client.create(pod(workload, i))
    scheduler.pump()
    gc.collect()
    gc.freeze()
    times: list[float] = []
    started = time.perf_counter()
    _run(scheduler, clock, pods - warm, times)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    cuts = statistics.quantiles(times, n=100, method="inclusive") if len(times) > 1 else [0.0] * 99
    return {
        "workload": workload,
        "nodes": nodes,
        "pods": pods - warm,
        "pods_per_second": round((pods - warm) / seconds, 1),
        "p50_ms": round(1000 * cuts[49], 3),
        "p90_ms": round(1000 * cuts[89], 3),
        "p99_ms": round(1000 * cuts[98], 3),
        "peak_mib": round(peak / 1024, 1),
    }


def _run(scheduler: Any, clock: Any, pods: int, times: list[float] | None = None) -> None:
    """Attempts until nothing is ready; time passes only for pods that wait for their victims to go."""
    for _ in range(20):
        while True:
            started = time.perf_counter()
            if scheduler.schedule_one() is None:
                break
            if times is not None:
                times.append(time.perf_counter() - started)
        due = clock.next_timer()
        if not scheduler.handlers.pending or due is None:
            return
        clock.advance_to(due)
