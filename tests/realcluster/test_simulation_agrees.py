"""Random clusters on the real control plane: kube-scheduler and `labkit simulate` decide alike, word for word.

Before each pod is created the cluster is read back and simulated with the pod as it was written, so that API
defaulting is compared, too. kube-scheduler takes any of several equal nodes, hence "one of the best".
"""

from __future__ import annotations

import copy
import json
import os
from typing import Any

import pytest
from labkit.engine.manifests import read_manifests
from labkit.engine.simulation import PodOutcome, Simulation

from .harness import RealControlPlane, wait_for
from .random_clusters import RandomCluster

pytestmark = pytest.mark.realcluster
#: More on demand: LABKIT_RANDOM_CLUSTERS=500 pytest tests/realcluster/test_simulation_agrees.py
KINDS = ("Node", "Pod", "Namespace", "PriorityClass", "PodDisruptionBudget")
SEEDS = range(int(os.environ.get("LABKIT_RANDOM_CLUSTERS", "16")))


def simulate(api: Any, pod: dict[str, Any]) -> PodOutcome:
    """What labkit says about `pod` in the present cluster."""
    items = [{**item, "kind": kind} for kind in KINDS for item in api.list(kind)]
    items.append(copy.deepcopy(pod))
    manifests = read_manifests([("cluster.json", json.dumps({"kind": "List", "items": items}))])
    assert [p.message for p in manifests.problems] == []
    (found,) = Simulation(manifests).run().pods
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_random_cluster(real_control_plane: RealControlPlane, seed: int) -> None:
    """Node among our best, or the same FailedScheduling message."""
    api, cluster = real_control_plane.api, RandomCluster(seed)
    api.create_all(*cluster.nodes, *cluster.residents)
    real_control_plane.start_scheduler()
    for pod in cluster.pods:
        _compare(api, pod)


def _compare(api: Any, pod: dict[str, Any]) -> None:
    name = pod["metadata"]["name"]
    ours = simulate(api, pod)
    api.create(pod)
    condition = wait_for(lambda: api.condition(name), 20, f"{name} decided")
    trace = ours.trace
    assert trace is not None
    if condition["status"] == "True":
        node = wait_for(lambda: api.node_of(name), 10, f"{name} bound")
        assert node in trace.best, trace.to_text()
    else:
        assert condition["message"] == trace.full_message
        api.delete("Pod", name)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_preemption(real_control_plane: RealControlPlane, seed: int) -> None:
    """Full nodes, priorities, budgets: the same message, one of our equally good nodes, and its victims."""
    api, cluster = real_control_plane.api, RandomCluster(1000 + seed, crowded=True)
    api.create_all(*cluster.priority_classes, *cluster.budgets, *cluster.nodes, *cluster.residents)
    for i, resident in enumerate(cluster.residents):
        started = {"status": {"phase": "Running", "startTime": f"2026-01-01T00:00:{i:02d}Z"}}
        api.patch("Pod", resident["metadata"]["name"], started, subresource="status")
    for budget in cluster.budgets:
        allowed = {"status": {"disruptionsAllowed": cluster.rng.randint(0, 2)}}
        api.patch("PodDisruptionBudget", budget["metadata"]["name"], allowed, subresource="status")
    real_control_plane.start_scheduler()
    for pod in cluster.pods:
        _compare_preemption(api, pod)


def _compare_preemption(api: Any, pod: dict[str, Any]) -> None:
    name, before = pod["metadata"]["name"], set(api.placements())
    trace = simulate(api, pod).traces[0]
    api.create(pod)
    if trace.node is not None:
        assert wait_for(lambda: api.node_of(name), 20, f"{name} bound") in trace.best, trace.to_text()
        return
    event, *_ = wait_for(lambda: api.events(name, "FailedScheduling"), 20, f"{name} failed")
    assert event["note"] == trace.full_message
    result, status = trace.post_filter_result, trace.post_filter_status
    assert status is not None
    if not status.is_success:
        api.delete("Pod", name)
        return
    assert result is not None
    node = wait_for(lambda: api.node_of(name), 20, f"{name} bound after preemption")
    assert node in result.ties, trace.to_text()
    victims = {key.removeprefix("default/") for key in result.candidates[node]["victims"]}  # type: ignore[attr-defined]
    assert before - set(api.placements()) == victims, trace.to_text()
