"""`labkit bench scheduler`: pods a second of the real engine over the embedded store."""

from __future__ import annotations

import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from labkit.cli._bench_workloads import WORKLOADS, Json, Workload, cluster, initial_pods, pod
from labkit.progress import progress

Told = Callable[[int], None]
#: Seconds between two preemptors of a workload with churn.
_CHURN = 0.2
#: At most so many preemptors go ahead of the measured ones: nodes that they have taken are missing later.
_WARM_UP = 50


def best_of(rounds: int, name: str, nodes: int, pods: int | None = None) -> Json:
    """The best of some rounds, with the median of their pods a second: what disturbs a round makes it slower."""
    if rounds == 1:
        return measure(name, nodes, pods)
    command = [sys.executable, "-c", "from labkit.cli import main; main()", "bench", "scheduler"]
    command += ["--workload", name, "--nodes", str(nodes), "--output", "json"]
    command += ["--pods", str(pods)] if pods is not None else []
    rows = [
        json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)[0]
        for _ in range(rounds)
    ]
    best: Json = max(rows, key=lambda r: r["pods_per_second"])
    del best["machine"]
    return {**best, "median_of_rounds": round(statistics.median(r["pods_per_second"] for r in rows), 1)}


def measure(name: str, nodes: int, pods: int | None = None) -> Json:
    """One row: pods created and bound a second, the time of an attempt in milliseconds, peak memory in MiB.

    `pods_per_cpu_second` leaves out what other processes took of the machine meanwhile.

    `pods` None takes as many as upstream does.
    """
    workload = WORKLOADS[name]
    count = workload.pods(nodes) if pods is None else pods
    with progress(workload.initial(nodes) + count, name) as step:
        return _measure(_Bench(workload, nodes, step), name, nodes, count)


def _measure(bench: _Bench, name: str, nodes: int, count: int) -> Json:
    warm = min(_WARM_UP, count // 10) if bench.workload.measured == "preemptor" else 0
    bench.run(warm)
    times: list[float] = []
    cpu = time.process_time()
    seconds = bench.run(count - warm, times)
    cpu = time.process_time() - cpu
    cuts = statistics.quantiles(times, n=100, method="inclusive") if len(times) > 1 else [0.0] * 99
    return {
        "workload": name,
        "nodes": nodes,
        "pods": bench.bound,
        "pods_per_second": round(bench.bound / seconds, 1) if bench.bound else 0.0,
        "pods_per_cpu_second": round(bench.bound / cpu, 1) if bench.bound else 0.0,
        "p50_ms": round(1000 * cuts[49], 3),
        "p90_ms": round(1000 * cuts[89], 3),
        "p99_ms": round(1000 * cuts[98], 3),
        "peak_mib": round(bench.grown(), 1),
    }


class _Bench:
    """A store with the workload's nodes and initial pods, and a scheduler that has placed these."""

    def __init__(self, workload: Workload, nodes: int, told: Told) -> None:
        from labkit.cluster.client import StoreClient
        from labkit.cluster.store import Store
        from labkit.engine.scheduler import Scheduler
        from labkit.framework.clock import VirtualClock

        self._before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.workload = workload
        self.clock = VirtualClock()
        self.bound = 0
        self._made = 0
        self._told = told
        store = Store(self.clock)
        self.client = StoreClient(store)
        for obj in cluster(workload, nodes):
            self.client.create(obj)
        self.scheduler = Scheduler(self.client, clock=self.clock, trace="off")
        self.scheduler.load()
        store.subscribe(self._changed)
        for obj in initial_pods(workload, nodes):
            self.client.create(obj)
        self.scheduler.run_until_idle()

    def run(self, pods: int, times: list[float] | None = None) -> float:
        """Create `pods` measured pods at once and schedule until all are bound, or nothing moves any more.

        Returns the seconds from the first creation until the last of them was bound.
        """
        gc.collect()
        gc.freeze()
        self.bound = 0
        started = self._last_bound = time.perf_counter()
        for _ in range(pods):
            self._create(self.workload.measured, "pod")
        self.scheduler.pump()
        begun, churned = self.clock.now(), 0
        while self.bound < pods:
            before = time.perf_counter()
            # The scheduler's time goes as fast as the real one, so that back-off means what it says.
            self.clock.advance_to(max(self.clock.now(), begun + before - started))
            if self.workload.churn and before - started >= churned * _CHURN:
                churned += 1
                self._create("preemptor", "churn")
            if self.scheduler.schedule_one() is not None:
                if times is not None:
                    times.append(time.perf_counter() - before)
            elif not self._skip_waiting():
                break
        return self._last_bound - started

    def grown(self) -> float:
        """Mebibytes by which the process has grown at most since before there was a cluster."""
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self._before) / 1024

    def _create(self, kind: str, prefix: str) -> None:
        self._made += 1
        self.client.create(pod(kind, f"{prefix}-{self._made:06d}"))

    def _skip_waiting(self) -> bool:
        due = self.clock.next_timer()
        if due is None or not self.scheduler.handlers.pending:
            return False
        self.clock.advance_to(due)
        return True

    def _changed(self, _: str, old: Any, new: Any) -> None:
        self.scheduler.notify(old, new)
        if new is None or new["kind"] != "Pod" or not new["spec"].get("nodeName"):
            return
        if old is None or not old["spec"].get("nodeName"):
            self._told(1)
            if new["metadata"]["name"].startswith("pod-"):
                self.bound += 1
                self._last_bound = time.perf_counter()
