"""Module 11: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.support import SOLUTION, STUB, most_points, run_module

HEAD = 'CONFIG = """\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n'
NO_STRATEGY = (
    HEAD
    + """profiles:
  - schedulerName: default-scheduler
    plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}
  - schedulerName: packer
    plugins:
      score:
        enabled: [{name: NodeResourcesFit, weight: 10}]
        disabled: [{name: PodTopologySpread}, {name: NodeResourcesBalancedAllocation}]
\"\"\""""
)
ONE_PROFILE = HEAD + 'profiles: [{schedulerName: packer}]\n"""'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    assert run_module("11", SOLUTION).total == most_points("11") == 10
    assert run_module("11", STUB).total == 0


@pytest.mark.parametrize(
    ("answer", "points", "said"),
    [
        (NO_STRATEGY, 3.89, "pod job goes to idle, not to busy"),
        (ONE_PROFILE, 0.83, "there is no profile default-scheduler; there are: packer"),
        ('CONFIG = "profiles: ["', 0, "kube-scheduler refuses it"),
        ("CONFIG = {}", 0, "must be YAML text"),
    ],
)
def test_wrong_configurations_are_told_what_is_wrong(answer: str, points: float, said: str) -> None:
    """Partial credit for what holds, and a message that names the fault."""
    outcome = run_module("11", {"two-profiles": answer})
    got = outcome.points["two-profiles-visible"] + outcome.points["two-profiles-hidden"]
    assert round(got, 2) == points
    assert said in outcome.reports["two-profiles-visible"]


def test_a_file_mended_half_is_told_what_kube_scheduler_says() -> None:
    """The next mistake shows itself."""
    half = "MENDED = BROKEN.replace('v1beta2', 'v1')"
    outcome = run_module("11", {"mended": half})
    assert outcome.points["mended-visible"] == outcome.points["mended-hidden"] == 0
    assert 'unknown field "profiles[0].plugins.score.enabled[0].weigth"' in outcome.reports["mended-visible"]
