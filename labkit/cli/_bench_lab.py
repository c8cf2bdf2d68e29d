"""`labkit bench lab`: what a lesson waits for (traces, what-if) and what a large cluster takes (memory)."""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable

from labkit.cli._bench_workloads import Json, Workload, cluster, node, pod
from labkit.progress import progress

_ROUNDS = 5


def trace_cost(nodes: int, pods: int = 200) -> Json:
    """How many times longer an attempt takes with its trace than without, and with every filter alone as well."""
    modes: dict[str, list[float]] = {"off": [], "on": [], "full": []}
    for _ in range(_ROUNDS):
        for mode, found in modes.items():
            found.append(_seconds_for(mode, nodes, pods))
    # The best of each: whatever disturbs a round makes it slower, never faster.
    off, on, full = (1e6 * min(modes[m]) / pods for m in ("off", "on", "full"))
    return {
        "what": "trace",
        "nodes": nodes,
        "off us": round(off),
        "on us": round(on),
        "full us": round(full),
        "on / off": round(on / off, 2),
        "full / off": round(full / off, 2),
    }


def _seconds_for(mode: str, nodes: int, pods: int) -> float:
    from labkit.cluster.client import StoreClient
    from labkit.cluster.store import Store
    from labkit.engine.scheduler import Scheduler
    from labkit.framework.clock import VirtualClock

    clock = VirtualClock()
    store = Store(clock)
    client = StoreClient(store)
    scheduler = Scheduler(client, clock=clock, trace=mode)
    store.subscribe(lambda _, old, new: scheduler.notify(old, new))
    for obj in cluster(Workload(lambda n: 0, lambda n: 0), nodes):
        client.create(obj)
    for i in range(pods):
        client.create(pod("basic", f"pod-{i:05d}"))
    scheduler.pump()
    started = time.perf_counter()
    scheduler.run_until_idle()
    return time.perf_counter() - started


def what_if_cost(nodes: int, pending: int) -> Json:
    """Seconds that `Lab.what_if` takes for a change of a weight."""
    from labkit.lab import Lab

    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}]}}}],
    }
    lab = Lab([node(i, 3) for i in range(nodes)])
    lab.apply([pod("spread" if i % 2 else "basic", f"pod-{i:05d}", "default") for i in range(pending)])
    times = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        lab.what_if(config=config)
        times.append(time.perf_counter() - started)
    return {
        "what": "what-if",
        "nodes": nodes,
        "pending": pending,
        "median s": round(statistics.median(times), 3),
        "worst s": round(max(times), 3),
    }


def memory(nodes: int, pods: int) -> Json:
    """Kibibytes that a node and a bound pod take, in store and scheduler together, and the process's peak in MiB."""
    from labkit.cluster.client import StoreClient
    from labkit.cluster.store import Store
    from labkit.engine.scheduler import Scheduler
    from labkit.framework.clock import VirtualClock

    clock = VirtualClock()
    store = Store(clock)
    client = StoreClient(store)
    scheduler = Scheduler(client, clock=clock, trace="off")
    store.subscribe(lambda _, old, new: scheduler.notify(old, new))
    empty = _resident()
    for obj in cluster(Workload(lambda n: 0, lambda n: 0), nodes):
        client.create(obj)
    scheduler.pump()
    with_nodes = _resident()
    with progress(pods, "memory") as step:
        for i in range(pods):
            client.create(pod("basic", f"pod-{i:06d}"))
            scheduler.schedule_one()
            step(1)
    with_pods = _resident()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "what": "memory",
        "nodes": nodes,
        "pods": pods,
        "KiB a node": round((with_nodes - empty) / nodes, 1),
        "KiB a pod": round((with_pods - with_nodes) / pods, 1),
        "peak MiB": round(peak / 1024),
    }


def _resident() -> int:
    """KiB of memory that this process holds now; where /proc is missing, its peak."""
    gc.collect()
    try:
        with open("/proc/self/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    except OSError:
        return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


#: What -> (measure, nodes, pods).
MEASURES: dict[str, tuple[Callable[[int, int], Json], int, int]] = {
    "trace": (trace_cost, 100, 200),
    "what-if": (what_if_cost, 1000, 200),
    "memory": (memory, 5000, 30_000),
}
