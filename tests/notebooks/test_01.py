"""Module 01: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.answers import Wrong, full_and_nothing
from tests.notebooks.support import STUB, run_module

SHORTEST = """
from labkit.framework.node_info import pod_info
def cpu(entry):
    return pod_info(entry.pod).requested.milli_cpu
class ShortestFirst:
    def less(self, a, b):
        return {}
"""
FAIR = """
class MendedFairSort:
    def less(self, a, b):
        return {}
"""
WRONG = [
    # The time of arrival is forgotten.
    Wrong(
        "shortest",
        SHORTEST.format("(-a.pod.priority, cpu(a)) < (-b.pod.priority, cpu(b))"),
        2,
        1.26,
        "queue 1: who goes first: the order: expected ['pod-4', 'pod-3', 'pod-7', 'pod-8', 'pod-1',",
    ),
    # Not strict.
    Wrong(
        "shortest",
        SHORTEST.format("(-a.pod.priority, cpu(a), a.timestamp) <= (-b.pod.priority, cpu(b), b.timestamp)"),
        1.5,
        0.8,
        "pod-1 goes before itself: `less` must be strict",
    ),
    # A difference, as in other languages.
    Wrong("shortest", SHORTEST.format("cpu(a) - cpu(b)"), 0, 0, "less(pod-1, pod-1) returned a int"),
    Wrong(
        "mended",
        "MendedFairSort = FairSort",
        0.5,
        0.3,
        "pod-1 goes before pod-2, and pod-2 before pod-1: no heap can sort that",
    ),
    # Priority alone; and time left out for equal numbers.
    Wrong(
        "mended",
        FAIR.format("(-a.pod.priority, a.timestamp) < (-b.pod.priority, b.timestamp)"),
        1.5,
        1.4,
        "queue 1: who goes first: the order: expected ['pod-3',",
    ),
    Wrong(
        "mended",
        FAIR.format("a.pod.priority - 5 * a.timestamp > b.pod.priority - 5 * b.timestamp"),
        1.5,
        1.63,
        "queue 1: who goes first: the order: expected ['pod-3',",
    ),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    full_and_nothing("01")


def test_an_answer_that_is_not_written_yet_is_called_that() -> None:
    """In every case, also where the queue itself asks; and an exception is named."""
    assert "got [" not in run_module("01", STUB).reports["shortest-visible"]
    raising = "class ShortestFirst:\n    def less(self, a, b):\n        return a.cpu < b.cpu\n"
    report = run_module("01", {"shortest": raising}).reports["shortest-visible"]
    assert report.count(": Your code raised AttributeError") == 6


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_are_told_what_is_wrong(wrong: Wrong) -> None:
    """Partial credit for what holds, and a message that names the fault."""
    wrong.check("01")
