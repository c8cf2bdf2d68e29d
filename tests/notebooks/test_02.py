"""Module 02: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.answers import Wrong, full_and_nothing

TAINTS = """
from labkit.framework.status import Status
class MyTaintToleration:
    def filter(self, state, pod, node):
        for taint in node.node.spec.taints:
            if taint.effect in {effects} and not any(self.tolerates(x, taint) for x in pod.spec.tolerations):
                return Status.{status}("node(s) had untolerated taint(s)")

    def tolerates(self, x, taint):
        return {tolerates}
"""
RIGHT = (
    "x.effect in ('', taint.effect) and x.key in ('', taint.key)"
    " and (x.operator == 'Exists' or (x.key != '' and x.value == taint.value))"
)
HARD = '("NoSchedule", "NoExecute")'
WRONG = [
    Wrong(
        "my-taints",
        TAINTS.format(effects=HARD, status="unschedulable", tolerates=RIGHT),
        0,
        0.53,
        "expected ✕ UnschedulableAndUnresolvable: node(s) had untolerated taint(s), got ✕ Unschedulable",
    ),
    Wrong(
        "my-taints",
        TAINTS.format(
            effects='("NoSchedule", "NoExecute", "PreferNoSchedule")',
            status="unresolvable",
            tolerates=RIGHT,
        ),
        1,
        0.73,
        "verdict of n4: expected ✓, got ✕ UnschedulableAndUnresolvable",
    ),
    # The toleration's effect and the empty key are left out.
    Wrong(
        "my-taints",
        TAINTS.format(
            effects=HARD,
            status="unresolvable",
            tolerates="x.key == taint.key and (x.operator == 'Exists' or x.value == taint.value)",
        ),
        1,
        1.73,
        "operator=Exists effect=NoSchedule].",
    ),
    Wrong("strict", "StrictTaints = LooseTaints", 0.66, 0, "verdict of n4: expected ✓, got ✕"),
    # Decides right and keeps the old message.
    Wrong(
        "strict",
        "class StrictTaints(MyTaintToleration):\n    pass",
        2,
        1,
        "expected ['untolerated taint team=db:NoSchedule']",
    ),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    full_and_nothing("02")


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_are_told_what_is_wrong(wrong: Wrong) -> None:
    """Partial credit for what holds, and a message that names the fault."""
    wrong.check("02")
