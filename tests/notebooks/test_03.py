"""Module 03: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.answers import Wrong, full_and_nothing

PLUGIN = """
from labkit.framework.requests import NON_ZERO_DEFAULTS, pod_requests
class {name}:
    def pre_score(self, state, pod, nodes):
        requests = pod_requests(pod, pod_level=False, defaults=NON_ZERO_DEFAULTS)
        self.cpu = {cpu}
        self.memory = requests["memory"].value()

    def score(self, state, pod, node):
        rows = (
            (node.non_zero_cpu, self.cpu, node.allocatable.milli_cpu),
            (node.non_zero_memory, self.memory, node.allocatable.memory),
        )
        return {answer}
"""


def least(answer: str, cpu: str = 'requests["cpu"].milli_value()') -> str:
    """An answer to the first exercise."""
    return PLUGIN.format(name="MyLeastAllocated", answer=answer, cpu=cpu)


def most(answer: str) -> str:
    """An answer to the second."""
    return PLUGIN.format(name="MendedMostAllocated", answer=answer, cpu='requests["cpu"].milli_value()')


WRONG = [
    # Divides first.
    Wrong(
        "least-allocated",
        least("sum(max(total - used - asked, 0) // total * 100 for used, asked, total in rows) // 2"),
        0,
        0,
        "score of n1: expected 33, got 0 (3 of 4 nodes differ)",
    ),
    # Whole cores.
    Wrong(
        "least-allocated",
        least(
            "sum(max(total - used - asked, 0) * 100 // total for used, asked, total in rows) // 2",
            'requests["cpu"].value() * 1000',
        ),
        1.33,
        1.5,
        "score of n1: expected 72, got 70",
    ),
    # Rounds once at the end.
    Wrong(
        "least-allocated",
        least("int(sum(max(total - used - asked, 0) * 100 / total for used, asked, total in rows) / 2)"),
        1.33,
        2.3,
        "score of n4: expected 54, got 55 (1 of 4 nodes differ)",
    ),
    # No whole number at all.
    Wrong(
        "least-allocated",
        least("sum(max(total - used - asked, 0) * 100 / total for used, asked, total in rows) / 2"),
        0,
        0,
        'returned 33.154296875 (float) for node "n1"; return a whole number from 0 to 100',
    ),
    # Overcommitted resources are not 0.
    Wrong(
        "least-allocated",
        least("sum((total - used - asked) * 100 // total for used, asked, total in rows) // 2"),
        0,
        0.2,
        'plugin "MyLeastAllocated" returns an invalid score -63',
    ),
    Wrong(
        "mended",
        "class MendedMostAllocated(BrokenMostAllocated):\n    pass",
        0,
        0,
        'plugin "MendedMostAllocated" returns an invalid score 150',
    ),
    # Without the new pod.
    Wrong(
        "mended",
        most("sum(min(used, total) * 100 // total for used, asked, total in rows) // 2"),
        0,
        0,
        "score of n1: expected 66, got 30 (4 of 4 nodes differ)",
    ),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    full_and_nothing("03")


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_are_told_what_is_wrong(wrong: Wrong) -> None:
    """Partial credit for what holds, and a message that names the fault."""
    wrong.check("03")
