"""Plugins of the caller: where they run, by whether the configuration names them."""

from __future__ import annotations

from typing import Any

import pytest
from labkit import Lab
from labkit.framework.status import Status

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {score: {enabled: [{name: Prefers, weight: 7}]}}
"""
OFF = CONFIG.replace(
    "{score: {enabled: [{name: Prefers, weight: 7}]}}", "{multiPoint: {disabled: [{name: Prefers}]}}"
)


class Prefers:
    """Scores and filters."""

    def __init__(self) -> None:
        self.handle: Any = None

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        """Nothing in zone c."""
        return Status.unschedulable("not here") if node.name.startswith("c") else None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        """All the same."""
        return 1


def points(lab: Lab) -> dict[str, int]:
    """Point -> weight where the plugin runs."""
    framework = next(iter(lab.scheduler.frameworks.values()))
    return {
        point: framework.weights().get("Prefers", 0) if point == "score" else 0
        for point in ("filter", "score")
        if any(type(p).__name__ == "Prefers" for p in framework.plugins(point))
    }


@pytest.mark.parametrize("plugin", [Prefers, Prefers()], ids=["class", "object"])
@pytest.mark.parametrize(
    ("config", "expected"),
    [(None, {"filter": 0, "score": 1}), (CONFIG, {"score": 7}), (OFF, {})],
    ids=["not named", "named at score", "disabled"],
)
def test_a_plugin_runs_where_the_configuration_says_or_everywhere(
    plugin: Any, config: str | None, expected: dict[str, int]
) -> None:
    """A class and an object alike."""
    assert points(Lab("three-zones", plugins=[plugin], config=config)) == expected


def test_a_class_that_nobody_names_decides() -> None:
    """It is not silently left out."""
    lab = Lab("three-zones", plugins=[Prefers])
    assert all(not (t.node or "").startswith("c") for t in lab.run())
    assert any("not here" in s.message for t in lab.traces for s in t.filter.values())


def test_an_object_in_the_configuration_gets_its_handle() -> None:
    """Also when it does not run everywhere."""
    plugin = Prefers()
    Lab("three-zones", plugins=[plugin], config=CONFIG)
    assert plugin.handle is not None
