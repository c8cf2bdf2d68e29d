"""Corners that random scenarios against kube-scheduler 1.36.2 brought up; the texts are the real scheduler's."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.engine.replay import replay

from tests.engine.test_replay import node, pod, profile


def decided(config: Any, nodes: list[Any], pending: Any) -> dict[str, Any]:
    """What is recorded about one pending pod."""
    found = replay({"name": "own", "config": config, "objects": nodes, "pods": [pending]})
    entry: dict[str, Any] = found["expect"][0]
    return entry


def test_a_nominated_node_that_pre_filter_does_not_allow() -> None:
    """What rejects it is named among the plugins, but its verdict is not among the recorded ones."""
    tainted = {**node("a"), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    field = {"key": "metadata.name", "operator": "In", "values": ["ghost"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    entry = decided(None, [tainted, node("b")], pod("p", nominated="a", affinity=affinity))
    assert entry["filter"] == entry["filterByPlugin"] == {}
    assert entry["message"] == (
        "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration], "
        "1 node(s) had untolerated taint(s)."
    )


def test_every_node_passes_where_there_is_no_filter() -> None:
    """A recorded decision says so for each node."""
    entry = decided(profile(filter={"disabled": [{"name": "*"}]}), [node("a"), node("b")], pod("p", cpu="64"))
    assert entry["filter"] == {"a": {"code": "Success"}, "b": {"code": "Success"}}


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        ("DynamicResources", "not found"),
        ("VolumeBinding", "not found"),
        ("VolumeRestrictions", 'cannot read "PreFilterVolumeRestrictions" from cycleState'),
        ("VolumeZone", None),
        ("NodeAffinity", None),
    ],
)
def test_filters_whose_pre_filter_is_disabled(plugin: str, reason: str | None) -> None:
    """Each says in its own words that it misses its state, or finds out by itself; the error is that plugin's."""
    entry = decided(profile(preFilter={"disabled": [{"name": plugin}]}), [node("a")], pod("p"))
    verdict = entry["filterByPlugin"]["a"][plugin]
    if reason is None:
        assert verdict == {"code": "Success"}
    else:
        assert verdict == {"code": "Error", "reasons": [reason]}
        assert entry["filter"]["a"]["plugin"] == plugin
        assert entry["message"] == f'running "{plugin}" filter plugin: {reason}'
