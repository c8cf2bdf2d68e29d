"""Module 00: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.answers import Wrong, full_and_nothing

MAINTENANCE = """
from labkit.framework.status import Status
class NotInMaintenance:
    def filter(self, state, pod, node):
        labels = node.node.labels
        {}
"""
SLOW = """
class MendedNoSlowDisks:
    def filter(self, state, pod, node):
        disk = node.node.labels.get("disk")
        {}
"""
NO = 'return Status.unschedulable("node is in maintenance")'
WRONG = [
    Wrong(
        "not-in-maintenance",
        MAINTENANCE.format('return labels.get("maintenance") != "planned"'),
        0,
        0,
        'NotInMaintenance.filter returned False (bool) for node "a"; return None for success, or a Status',
    ),
    Wrong(
        "not-in-maintenance",
        MAINTENANCE.format(f'if "maintenance" in labels: {NO}'),
        2.25,
        2,
        "web bound: bound: expected 'b', got 'c'",
    ),
    Wrong(
        "not-in-maintenance",
        MAINTENANCE.format(f'if labels["maintenance"] == "planned": {NO}'),
        0,
        2,
        "NotInMaintenance.filter on node \"c\" raised KeyError: 'maintenance'",
    ),
    Wrong("mended", "MendedNoSlowDisks = NoSlowDisks", 0, 0, "NoSlowDisks.filter returned True (bool)"),
    Wrong(
        "mended",
        SLOW.format('return None if disk == "ssd" else Status.unresolvable("slow disk")'),
        2.25,
        2,
        "filter.bare.code: expected 'Success', got 'UnschedulableAndUnresolvable'",
    ),
    Wrong(
        "mended",
        SLOW.format('return Status.unschedulable("slow disk") if disk == "hdd" else None'),
        2.25,
        1.33,
        "filter.slow.code: expected 'UnschedulableAndUnresolvable', got 'Unschedulable'",
    ),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    full_and_nothing("00")


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_are_told_what_is_wrong(wrong: Wrong) -> None:
    """Partial credit for what holds, and a message that names the fault."""
    wrong.check("00")
