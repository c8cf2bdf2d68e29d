"""What a wrong answer to one exercise scores, and what its visible check says."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.notebooks.support import SOLUTION, STUB, most_points, run_module


@dataclass
class Wrong:
    """An answer to `exercise`: the points of its visible and hidden checks, and words of the visible report."""

    exercise: str
    answer: str
    visible: float
    hidden: float
    said: str

    def check(self, module: str) -> None:
        """Run the module with this answer and the solutions of the other exercises before it."""
        outcome = run_module(module, {self.exercise: self.answer})
        got = [outcome.points[f"{self.exercise}-{part}"] for part in ("visible", "hidden")]
        assert got == pytest.approx([self.visible, self.hidden], abs=0.006)
        assert self.said in outcome.reports[f"{self.exercise}-visible"]


def full_and_nothing(module: str) -> None:
    """Solutions score 10 of 10, the module as released 0; neither leaves a cell in an error of its own."""
    solved = run_module(module, SOLUTION)
    assert solved.total == most_points(module) == 10
    assert not solved.errors
    released = run_module(module, STUB)
    assert released.total == 0
    assert not released.errors
    assert all("0 of" in report for report in released.reports.values() if report)
