"""Module 13: what designs and mended plugins score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.support import SOLUTION, STUB, most_points, run_module

HEAD = 'PLUGINS = []\nCONFIG = """\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n'
PACKS = (
    HEAD
    + """profiles:
  - plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 5}], disabled: [{name: PodTopologySpread}]}}
    pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
\"\"\""""
)
DEFAULT = HEAD + '"""'
FILTER = """
WEIGHT = 50
class RatherNotLarge:
    def filter(self, state, pod, node):
        if node.allocatable.milli_cpu >= 16_000:
            return Status.unschedulable("kept")
    def score(self, state, pod, node):
        return 100
"""
LIGHT = """
WEIGHT = 1
class RatherNotLarge:
    def score(self, state, pod, node):
        return 0 if node.allocatable.milli_cpu >= 16_000 else 100
"""
BY_NAME = """
WEIGHT = 50
class RatherNotLarge:
    def score(self, state, pod, node):
        return 0 if node.name.startswith("large") else 100
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    assert run_module("13", SOLUTION).total == most_points("13") == 10
    assert run_module("13", STUB).total == 0


@pytest.mark.parametrize(
    ("answer", "points", "said"),
    [
        (DEFAULT, 0, "placed: at least 29 is the goal, you have 25"),
        (PACKS, 3.2, "skew: at most 1 is the goal, you have"),
        ("CONFIG, PLUGINS = 'profiles: [', []", 0, "yaml"),
        (DEFAULT + "\nPLUGINS = 3", 0, "a list of plugins is expected, got 3"),
    ],
    ids=["default", "packs only", "no YAML", "no list"],
)
def test_designs_are_paid_by_what_they_reach(answer: str, points: float, said: str) -> None:
    """The visible half of the design, worth 4."""
    outcome = run_module("13", {"design": answer})
    assert outcome.points["design-visible"] == pytest.approx(points, abs=0.8)
    assert said in outcome.reports["design-visible"]


@pytest.mark.parametrize(
    ("answer", "visible", "hidden", "said"),
    [
        (FILTER, 0, 0, "pods on large nodes: expected 0, got"),
        (LIGHT, 2, 0.67, "pods on large nodes: expected 0, got"),
        (BY_NAME, 3, 0, ""),
    ],
    ids=["still a Filter", "weight 1", "by name"],
)
def test_mended_plugins(answer: str, visible: float, hidden: float, said: str) -> None:
    """3 visible points and 1 hidden."""
    outcome = run_module("13", {"mended": answer})
    assert said in outcome.reports["mended-visible"]
    assert outcome.points["mended-visible"] == visible
    assert outcome.points["mended-hidden"] <= hidden
