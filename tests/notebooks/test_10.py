"""Module 10: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.support import SOLUTION, STUB, most_points, run_module

HEAD = 'BATCH_CONFIG = """\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n'
SAME_LEASE = (
    HEAD
    + '''profiles: [{schedulerName: batch-scheduler}]
"""


def route(pod):
    if pod["metadata"].get("labels", {}).get("workload") == "batch":
        return {**pod, "spec": {**pod["spec"], "schedulerName": "batch-scheduler"}}
    return pod
'''
)
IN_PLACE = (
    HEAD
    + '''leaderElection: {resourceName: batch}
profiles: [{schedulerName: batch-scheduler}]
"""


def route(pod):
    if pod["metadata"].get("labels", {}).get("workload") == "batch" and not pod["spec"].keys() & {"nodeName", "schedulerName"}:
        pod["spec"]["schedulerName"] = "batch-scheduler"
    return pod
'''
)
BY_RENEW_TIME = """
def leader(looks, now):
    if not looks:
        return None
    record = looks[-1][1]
    return record["holderIdentity"] or None if now - record["renewTime"] < record["leaseDurationSeconds"] else None
"""
LAST_LOOK = """
def leader(looks, now):
    if not looks:
        return None
    clock, record = looks[-1]
    return record["holderIdentity"] or None if now - clock < record["leaseDurationSeconds"] else None
"""
FOR_EVER = """
class MendedElector:
    def __init__(self, identity):
        self.identity = identity

    def attempt(self, lease, now):
        if lease and lease["holderIdentity"] != self.identity:
            return None
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": 15,
            "acquireTime": lease["acquireTime"] if lease else now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    assert run_module("10", SOLUTION).total == most_points("10") == 10
    assert run_module("10", STUB).total == 0


@pytest.mark.parametrize(
    ("exercise", "answer", "points", "said"),
    [
        (
            "routing",
            SAME_LEASE,
            0,
            "stands by for ever: the first one holds the lease kube-system/kube-scheduler",
        ),
        ("routing", IN_PLACE, 1.5, "route changed the pod"),
        ("leader", BY_RENEW_TIME, 0.6, "was first seen"),
        ("leader", LAST_LOOK, 0.8, "was first seen 15 s ago, and it is good for 15 s"),
        ("mended", "MendedElector = HastyElector", 0, "still works, so two lead at once"),
        ("mended", FOR_EVER, 1, "nobody ever did"),
    ],
)
def test_typical_wrong_answers_are_told_what_is_wrong(
    exercise: str, answer: str, points: float, said: str
) -> None:
    """At most so many points, and a message that names the fault."""
    outcome = run_module("10", {exercise: answer})
    got = outcome.points[f"{exercise}-visible"] + outcome.points[f"{exercise}-hidden"]
    assert got <= points
    assert said in outcome.reports[f"{exercise}-visible"]
    assert outcome.total == 10 - most(exercise) + round(got, 4)


def most(exercise: str) -> int:
    """What an exercise is worth."""
    return {"routing": 3, "leader": 3, "mended": 4}[exercise]
