"""Every teaching cluster in clusters/ loads into a Lab and comes to rest."""

from __future__ import annotations

import itertools

import pytest
from labkit import Lab
from labkit.errors import LabError
from labkit.places import data_dir

SCENARIOS = sorted(p.stem for p in data_dir("clusters").glob("*.yaml"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_loads_and_runs(name: str) -> None:
    """Objects are accepted, every waiting pod gets a decision, nothing is reported as malformed."""
    lab = Lab(name)
    lab.run()
    assert lab.nodes()
    waiting = [
        p
        for p in lab.pods()
        if not p["spec"].get("nodeName")
        and not p["spec"].get("schedulingGates")
        and p["spec"]["schedulerName"] == "default-scheduler"
    ]
    tried = {trace.pod for trace in lab.traces}
    assert {f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in waiting} <= tried
    assert lab.scheduler.handlers.problems == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_is_described_in_both_languages(name: str) -> None:
    """The comment at its head: English, then Chinese."""
    lines = (data_dir("clusters") / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    head = list(itertools.takewhile(lambda line: line.startswith("#"), lines))
    chinese = [any("\u4e00" <= c <= "\u9fff" for c in line) for line in head]
    assert set(chinese) == {False, True}
    assert chinese == sorted(chinese)


def test_there_are_ten_scenarios_and_a_generated_one() -> None:
    """At least ten teaching clusters; the large one is made when it is asked for."""
    assert len(SCENARIOS) >= 10
    assert len(Lab("nodes-5000", trace="off").nodes()) == 5000


def test_three_zones_is_the_playground() -> None:
    """Six nodes, 13 placed pods, four waiting: one gated, one too big."""
    lab = Lab("three-zones")
    assert len(lab.nodes()) == 6
    assert [e.pod for e in lab.queue.gated] == ["default/train-0"]
    lab.run()
    assert "Insufficient cpu" in (lab.trace("big-0").message or "")
    assert lab.trace("web-7").node is not None


def decided(name: str, pod: str) -> str | None:
    """The node that the first attempt for a pod chose; None when there was none or none fitted."""
    lab = Lab(name)
    lab.run()
    return next((trace.node for trace in lab.traces if trace.pod == f"default/{pod}"), None)


@pytest.mark.parametrize(
    ("scenario", "pod", "node"),
    [
        ("storage-zones", "db-huge", None),
        ("storage-zones", "logger", "c1"),
        ("images", "train", "n1"),
        ("two-schedulers", "batch-1", None),
        ("spread", "near-cache", "c1"),
        ("spread", "alone", None),
    ],
)
def test_scenarios_teach_what_they_say(scenario: str, pod: str, node: str | None) -> None:
    """The point of each scenario, decided by the scheduler."""
    assert decided(scenario, pod) == node


def test_a_cluster_of_any_size_is_generated() -> None:
    """`nodes-N`: N nodes in three zones, the same every time; a size out of range is no scenario."""
    first, again = Lab("nodes-60").nodes(), Lab("nodes-60").nodes()
    assert len(first) == 60
    assert [n["metadata"]["labels"] for n in first] == [n["metadata"]["labels"] for n in again]
    assert {n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in first} == {
        "zone-a",
        "zone-b",
        "zone-c",
    }
    assert sum(bool(n["spec"].get("taints")) for n in first) == 1
    with pytest.raises(LabError, match="nodes-N"):
        Lab("nodes-0")


@pytest.mark.parametrize(("pod", "nodes"), [("db-small", ["a1", "b1"]), ("db-large", ["b1"])])
def test_volumes_decide_where_a_pod_may_go(pod: str, nodes: list[str]) -> None:
    """VolumeBinding passes the nodes whose zone has a volume large enough."""
    lab = Lab("storage-zones")
    lab.run()
    assert sorted(n for n, s in lab.trace(pod).filter.items() if s.is_success) == nodes
