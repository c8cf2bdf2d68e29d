"""Module 07: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.support import SOLUTION, STUB, most_points, run_module

NO_UNRESERVE = """
class MyGang(GangTools):
    def permit(self, state, pod, node_name):
        gang = gang_of(pod)
        if gang is None:
            return None
        held = self.waiting(gang)
        if len(held) + self.running(gang) + 1 < size_of(pod):
            return Status.wait("not yet"), self.timeout
        for member in held:
            member.allow(self.name)
"""
NEVER_ALLOWS = """
class MyGang(GangTools):
    def permit(self, state, pod, node_name):
        gang = gang_of(pod)
        if gang is not None and len(self.waiting(gang)) + self.running(gang) + 1 < size_of(pod):
            return Status.wait("not yet"), self.timeout

    def unreserve(self, state, pod, node_name):
        for member in self.waiting(gang_of(pod)):
            member.reject(self.name, "gave up")
"""
OTHERS_GO_ON = """
class MendedCountingGang(CountingGang):
    def permit(self, state, pod, node_name):
        self.uid = pod.uid
        return super().permit(state, pod, node_name)

    def unreserve(self, state, pod, node_name):
        if gang_of(pod):
            self.ready[gang_of(pod)] -= 1
"""
ONLY_THE_COPY = """
class MendedChannelGang(ChannelGang):
    def group_of(self, gang, size):
        return self.groups.setdefault(gang, Group(size))
"""
ONLY_THE_CHANNEL = """
class MendedChannelGang(ChannelGang):
    def release(self, gang):
        for member in self.waiting(gang):
            member.allow(self.name)
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    outcome = run_module("07", SOLUTION)
    assert outcome.errors == {}
    assert outcome.total == most_points("07") == 10
    stub = run_module("07", STUB)
    assert stub.total == 0
    assert "Not written yet." in stub.reports["my-gang-visible"]


@pytest.mark.parametrize(
    "answers",
    [
        {
            "my-gang": (NO_UNRESERVE, 2.5, "Unreserve must reject all that wait"),
            "mended-count": ("MendedCountingGang = CountingGang", 0.22, "members of default/train are bound"),
            "mended-channel": ("MendedChannelGang = ChannelGang", 0.14, "should be bound, but is not"),
        },
        {
            "my-gang": (NEVER_ALLOWS, 1.5, "a gang starts whole or not at all"),
            "mended-count": (OTHERS_GO_ON, 1.02, "Unreserve must reject all that wait"),
            "mended-channel": (ONLY_THE_COPY, 0.14, "nobody receives from this channel"),
        },
        {"mended-channel": (ONLY_THE_CHANNEL, 0.14, "should be bound, but is not (Permit holds it)")},
    ],
)
def test_wrong_answers_are_told_what_is_wrong(answers: dict[str, tuple[str, float, str]]) -> None:
    """Credit for what holds, a fifth of it where the broken plugin holds as well; the message names the fault."""
    outcome = run_module("07", {exercise: code for exercise, (code, _, _) in answers.items()})
    for exercise, (_, points, said) in answers.items():
        assert said in outcome.reports[f"{exercise}-visible"]
        got = outcome.points[f"{exercise}-visible"] + outcome.points[f"{exercise}-hidden"]
        assert round(got, 2) == points, exercise
