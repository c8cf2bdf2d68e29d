"""The same pods through labkit's scheduler and through kube-scheduler, both on the real kube-apiserver.

Each pod meets the cluster as it was in the beginning, for kube-scheduler takes any of several equal nodes and what
follows would depend on that. The conditions and events must be equal word for word, and each choice one of the best.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from labkit.cluster.live import connect
from labkit.cluster.live_scheduler import LiveScheduler
from labkit.config import load_config

from .harness import RealControlPlane, wait_for
from .random_clusters import RandomCluster
from .test_simulation_agrees import simulate

pytestmark = pytest.mark.realcluster
SEEDS = range(2000, 2004)


class Landed(NamedTuple):
    """What a scheduler made of a pod: condition without its times, event, and where it went."""

    condition: dict[str, Any]
    event: tuple[str, ...]
    node: str | None


@contextmanager
def _labkit(control_plane: RealControlPlane) -> Iterator[None]:
    live = LiveScheduler(connect(str(control_plane.kubeconfig)), load_config(None), identity="labkit")
    thread = threading.Thread(target=live.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        live.stop()
        thread.join(20)


@contextmanager
def _kube_scheduler(control_plane: RealControlPlane) -> Iterator[None]:
    scheduler = control_plane.start_scheduler()
    try:
        yield
    finally:
        scheduler.stop()


def _run(control_plane: RealControlPlane, cluster: RandomCluster, scheduler: Any) -> list[Landed]:
    api = control_plane.api
    control_plane.reset()
    api.create_all(*cluster.nodes, *cluster.residents)
    found = []
    with scheduler(control_plane):
        for pod in cluster.pods:
            api.create(pod)
            found.append(_landed(api, pod["metadata"]["name"]))
            api.delete("Pod", pod["metadata"]["name"])
    return found


def _landed(api: Any, name: str) -> Landed:
    condition = wait_for(lambda: api.condition(name), 30, f"{name} decided")
    bound = condition["status"] == "True"
    reason = "Scheduled" if bound else "FailedScheduling"
    event, *_ = wait_for(lambda: api.events(name, reason), 30, f"{name}: event {reason}")
    node = api.node_of(name) if bound else None
    note = event["note"] if node is None else re.sub(rf"\b{node}$", "<node>", event["note"])
    told = (event["type"], event["action"], note, event["reportingController"], event["regarding"]["name"])
    kept = {k: v for k, v in condition.items() if k != "lastTransitionTime"}
    return Landed(kept, told, node)


@pytest.mark.parametrize("seed", SEEDS)
def test_lands_alike(real_control_plane: RealControlPlane, seed: int) -> None:
    """Equal conditions and events; both choices are among the best of the simulation."""
    cluster = RandomCluster(seed)
    ours = _run(real_control_plane, cluster, _labkit)
    real = _run(real_control_plane, cluster, _kube_scheduler)
    assert [landed[:2] for landed in ours] == [landed[:2] for landed in real]
    for pod, *choices in zip(cluster.pods, ours, real, strict=True):
        trace = simulate(real_control_plane.api, pod).trace
        assert trace is not None
        nodes = {landed.node for landed in choices}
        assert nodes == {None} if trace.node is None else nodes <= set(trace.best), trace.to_text()
