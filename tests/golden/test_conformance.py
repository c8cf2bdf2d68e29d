"""Recorded decisions of the real scheduler: every family agrees in every field (FORMAT.md beside this file)."""

from __future__ import annotations

from pathlib import Path

import pytest
from labkit.engine.conformance import check

HERE = Path(__file__).parent
FAMILIES = {
    "balanced": 32,
    "config-errors": 26,
    "gates": 24,
    "image": 32,
    "interpod": 48,
    "mixed": 32,
    "nodeaffinity": 44,
    "nodename": 32,
    "own-claims": 4,
    "own-config-errors": 17,
    "own-interpod": 7,
    "own-migrated": 5,
    "own-mixed": 3,
    "own-preemption": 12,
    "own-profiles": 11,
    "own-queuesort": 10,
    "own-spread": 9,
    "own-ties": 5,
    "own-volumes": 12,
    "ports": 32,
    "preemption": 52,
    "profiles": 44,
    "resources": 44,
    "spread": 48,
    "taints": 36,
    "textbook": 13,
    "volumes": 40,
}


def test_no_family_is_forgotten() -> None:
    """Each recording in this folder has its test."""
    assert {p.name.removesuffix(".jsonl.gz") for p in HERE.glob("*.jsonl.gz")} == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    """All scenarios of the family, field by field."""
    report = check([HERE / f"{family}.jsonl.gz"])
    assert [str(p) for p in report.problems] == []
    (result,) = report.families
    assert "\n".join(str(d) for d in result.differences[:5]) == ""
    assert (result.family, result.matched, result.total) == (family, FAMILIES[family], FAMILIES[family])
