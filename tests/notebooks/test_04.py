"""Module 04: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.answers import Wrong, full_and_nothing

SCORE = """
from labkit.objects.selectors import tolerates
class MySoftTaints:
    def score(self, state, pod, node):
        return sum({} for x in node.node.spec.taints)
"""
SOFT = 'x.effect == "PreferNoSchedule" and not any(tolerates(y, x) for y in pod.spec.tolerations)'
NORMALIZE = """
    def normalize_score(self, state, pod, scores):
        highest = max(entry.score for entry in scores)
        for entry in scores:
            entry.score = {}
"""
RIGHT = "100 - (100 * entry.score // highest if highest else 0)"
FREE_IF_UNKNOWN = """
class MendedCheapNodes:
    def score(self, state, pod, node):
        return int(node.node.labels.get("price", 0))

    def normalize_score(self, state, pod, scores):
        low, high = min(e.score for e in scores), max(e.score for e in scores)
        for e in scores:
            e.score = 100 * (high - e.score) // (high - low) if high > low else 100
"""
WRONG = [
    # No normalisation: more taints are better.
    Wrong("soft-taints", SCORE.format(SOFT), 0, 0, "score of n1: expected 0, got 1 (4 of 4 nodes differ)"),
    Wrong(
        "soft-taints",
        SCORE.format(SOFT) + NORMALIZE.format("100 - 100 * entry.score // highest"),
        2,
        1.53,
        "MySoftTaints.normalize_score raised ZeroDivisionError",
    ),
    # Taints that Filter has dealt with are counted; tolerations are forgotten.
    Wrong(
        "soft-taints",
        SCORE.format("not any(tolerates(y, x) for y in pod.spec.tolerations)") + NORMALIZE.format(RIGHT),
        0,
        0.6,
        "score of n2: expected 100, got 50",
    ),
    Wrong(
        "soft-taints",
        SCORE.format('x.effect == "PreferNoSchedule"') + NORMALIZE.format(RIGHT),
        1,
        1.73,
        "score of n2: expected 100, got 0",
    ),
    Wrong(
        "mended",
        "class MendedCheapNodes(CheapNodes):\n    pass",
        1.5,
        0,
        "scores.fair.plugins.MendedCheapNodes.normalized: expected 66, got 100",
    ),
    Wrong(
        "mended",
        FREE_IF_UNKNOWN,
        0.75,
        1,
        "scores.unknown.plugins.MendedCheapNodes.normalized: expected 0, got 100",
    ),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    full_and_nothing("04")


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_are_told_what_is_wrong(wrong: Wrong) -> None:
    """Partial credit for what holds, and a message that names the fault."""
    wrong.check("04")
