"""Every teaching cluster in clusters/ loads into a Lab and comes to rest."""

from __future__ import annotations

import pytest
from labkit import Lab
from labkit.places import data_dir

SCENARIOS = sorted(p.stem for p in data_dir("clusters").glob("*.yaml"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_loads_and_runs(name: str) -> None:
    """Objects are accepted, every waiting pod gets a decision, nothing is reported as malformed."""
    lab = Lab(name)
    lab.run()
    assert lab.nodes()
    waiting = [p for p in lab.pods() if not p["spec"].get("nodeName") and not p["spec"].get("schedulingGates")]
    tried = {trace.pod for trace in lab.traces}
    assert {f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in waiting} <= tried
    assert lab.scheduler.handlers.problems == []


def test_three_zones_is_the_playground() -> None:
    """Six nodes, 13 placed pods, four waiting: one gated, one too big."""
    lab = Lab("three-zones")
    assert len(lab.nodes()) == 6
    assert [e.pod for e in lab.queue.gated] == ["default/train-0"]
    lab.run()
    assert "Insufficient cpu" in (lab.trace("big-0").message or "")
    assert lab.trace("web-7").node is not None
