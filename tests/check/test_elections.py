"""Leader election and routing: the right answer passes, each wrong one fails with a message that names its fault."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from labkit.check import elections, routing
from labkit.check.lease_race import Contender, Elector, Record, lease_race, written
from labkit.check.plugins import HIDDEN
from labkit.cluster.lease import LeaseHolder
from labkit.cluster.store_errors import ApiError
from labkit.i18n import language


class Holder:
    """client-go's protocol as the lab's schedulers run it, in the terms of an elector."""

    def __init__(self, identity: str) -> None:
        self.now = 0.0
        self.lease: Record | None = None
        self.answer: Record | None = None
        self._holder = LeaseHolder(self, identity, now=lambda: self.now, elapsed=lambda: self.now)

    def attempt(self, lease: Record | None, now: float) -> Record | None:
        """One try on a client that holds nothing but this lease."""
        self.now, self.lease, self.answer = now, lease, None
        return self.answer if self._holder.attempt() else None

    def get(self, *_: str) -> dict[str, Any]:
        """The lease."""
        if self.lease is None:
            raise ApiError(404, "NotFound", "no lease")
        return {"spec": copy.deepcopy(self.lease)}

    def create(self, raw: dict[str, Any]) -> None:
        """Write the first record."""
        self.answer = raw["spec"]

    def update(self, raw: dict[str, Any]) -> None:
        """Write the next record."""
        self.answer = raw["spec"]


class TakesRightAway(Elector):
    """Does not wait for anybody."""

    def attempt(self, lease: Record | None, now: float) -> Record | None:
        """Take it."""
        return written(self.identity, lease, now)


class HoldsForEver(Elector):
    """Never takes what somebody has held, and does not see a release."""

    def attempt(self, lease: Record | None, now: float) -> Record | None:
        """Only what is mine."""
        if lease is not None and lease["holderIdentity"] != self.identity:
            return None
        return written(self.identity, lease, now)


class TrustsClocks(Elector):
    """Compares the holder's clock with its own."""

    def attempt(self, lease: Record | None, now: float) -> Record | None:
        """By renewTime."""
        if lease is None or lease["holderIdentity"] in ("", self.identity):
            return written(self.identity, lease, now)
        if now < lease["renewTime"] + lease["leaseDurationSeconds"]:
            return None
        return written(self.identity, lease, now)


class CountsRenewals(Elector):
    """Every write is a transition to it."""

    def attempt(self, lease: Record | None, now: float) -> Record | None:
        """One more each time."""
        record = super().attempt(lease, now)
        if record and lease:
            record["leaseTransitions"] = lease["leaseTransitions"] + 1
        return record


@pytest.mark.parametrize("seed", range(12))
def test_the_rule_is_that_of_the_labs_schedulers(seed: int) -> None:
    """The same contenders with LeaseHolder lead at the same times."""
    given = elections.contenders(seed)
    right, other = lease_race(Elector, given, seed=seed), lease_race(Holder, given, seed=seed)
    assert [(w.time, w.identity) for w in right.writes] == [(w.time, w.identity) for w in other.writes]
    assert [w.identity for w in right.takes][:2] == ["a", right.takes[1].identity]
    assert len(right.takes) >= 2
    transitions = [(w.record["leaseTransitions"], w.identity) for w in right.writes]
    assert transitions == [(w.record["leaseTransitions"], w.identity) for w in other.writes]


def test_the_right_elector_passes() -> None:
    """Visible and hidden."""
    assert elections.elector(Elector, points=2).score == 2
    assert elections.elector(Elector, points=2, seeds=HIDDEN).score == 2


@pytest.mark.parametrize(
    ("make", "most", "said"),
    [
        (TakesRightAway, 0.5, "a had renewed it 0.25 s before and still works, so two lead at once"),
        (HoldsForEver, 0.5, "nobody ever did"),
        (TrustsClocks, 0.5, "still works"),
        (CountsRenewals, 1.5, "leaseTransitions must be 0, not 1"),
    ],
)
def test_wrong_electors_are_told_what_is_wrong(make: Any, most: float, said: str) -> None:
    """Points for what holds only."""
    report = elections.elector(make, points=2)
    assert report.score <= most
    assert said in report.text()
    assert elections.elector(make, points=2, seeds=HIDDEN).score <= most


def test_answers_that_are_no_records_are_named() -> None:
    """A bool, a record without fields, a record for somebody else."""

    class Says(Elector):
        answer: Any = True

        def attempt(self, lease: Record | None, now: float) -> Any:
            return self.answer

    assert "not a record" in elections.elector(Says, points=1, seeds=[0]).text()
    Says.answer = {"holderIdentity": "a"}
    assert "the record lacks leaseDurationSeconds" in elections.elector(Says, points=1, seeds=[0]).text()
    Says.answer = written("x", None, 0)
    assert "wrote the lease for 'x'" in elections.elector(Says, points=1, seeds=[0]).text()


def by_records(seen: list[elections.Look], now: float) -> str | None:
    """The right answer: since when has the record not changed?"""
    if not seen or not seen[-1][1]["holderIdentity"]:
        return None
    last = seen[-1][1]
    since = seen[-1][0]
    for time, record in reversed(seen):
        if record != last:
            break
        since = time
    return last["holderIdentity"] if now - since < last["leaseDurationSeconds"] else None


@pytest.mark.parametrize(
    ("function", "least", "most"),
    [
        (by_records, 2, 2),
        (lambda seen, now: None, 0, 0),
        (lambda seen, now: seen[-1][1]["holderIdentity"] or None if seen else None, 0.3, 0.8),
        (
            lambda seen, now: (
                (seen[-1][1]["holderIdentity"] or None)
                if seen and now - seen[-1][1]["renewTime"] < 15
                else None
            ),
            0,
            1,
        ),
        (
            lambda seen, now: (
                (seen[-1][1]["holderIdentity"] or None) if seen and now - seen[-1][0] < 15 else None
            ),
            0.3,
            1.2,
        ),
    ],
)
def test_who_leads(function: Any, least: float, most: float) -> None:
    """Constants, the holder's clock and the time of the last look do not pass for the right answer."""
    assert least <= elections.leader(function, points=2, seeds=HIDDEN).score <= most
    assert least <= elections.leader(function, points=2).score <= most


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
%s
profiles: [{schedulerName: %s}]
"""
OWN_LEASE = "leaderElection: {resourceName: batch-scheduler}"


def route(pod: dict[str, Any]) -> dict[str, Any]:
    """The right answer."""
    spec = pod["spec"]
    if (pod["metadata"].get("labels") or {}).get("workload") != "batch":
        return pod
    if spec.get("schedulerName") or spec.get("nodeName"):
        return pod
    return {**pod, "spec": {**spec, "schedulerName": "batch-scheduler"}}


def in_place(pod: dict[str, Any]) -> dict[str, Any]:
    """Changes what it was given."""
    if route(pod) is not pod:
        pod["spec"]["schedulerName"] = "batch-scheduler"
    return pod


def overrides(pod: dict[str, Any]) -> dict[str, Any]:
    """Forgets that a pod may have chosen."""
    if (pod["metadata"].get("labels") or {}).get("workload") != "batch":
        return pod
    return {**pod, "spec": {**pod["spec"], "schedulerName": "batch-scheduler"}}


@pytest.mark.parametrize(
    ("function", "config", "score", "said"),
    [
        (route, CONFIG % (OWN_LEASE, "batch-scheduler"), 2, "6 of 6"),
        (route, CONFIG % ("", "batch-scheduler"), 1, "holds the lease kube-system/kube-scheduler"),
        (route, CONFIG % (OWN_LEASE, "batch"), 1, "no profile answers to batch-scheduler; there are: batch"),
        (
            route,
            CONFIG % ("leaderElection: {leaderElect: false}", "batch-scheduler"),
            1,
            "leader election is off",
        ),
        (
            route,
            CONFIG % (OWN_LEASE, "batch-scheduler}, {schedulerName: default-scheduler"),
            1,
            "both would try the same pods",
        ),
        (route, {}, 1, "must be YAML text"),
        (in_place, CONFIG % (OWN_LEASE, "batch-scheduler"), 1, "that it was given"),
        (lambda pod: None, CONFIG % (OWN_LEASE, "batch-scheduler"), 1, "not a pod"),
    ],
)
def test_routing(function: Any, config: Any, score: float, said: str) -> None:
    """Manifests and configuration are judged each for itself."""
    report = routing.routing(function, config, points=2)
    assert report.score == score
    assert said in report.text()


def test_routing_leaves_alone_who_has_chosen() -> None:
    """A pod with a schedulerName or a node keeps what it has."""
    report = routing.routing(overrides, CONFIG % (OWN_LEASE, "batch-scheduler"), points=2)
    assert report.score == 1
    assert "it names a scheduler itself" in report.text() or "it has a node already" in report.text()


def test_leases_of_other_namespaces_are_others() -> None:
    """The same name elsewhere does not make it stand by."""
    config = CONFIG % ("leaderElection: {resourceNamespace: batch}", "batch-scheduler")
    assert routing.routing(route, config, points=2).score == 2


def test_a_leader_that_lost_its_lease_ends_after_ten_seconds() -> None:
    """As kube-scheduler does; until then two work."""

    class Robber(Elector):
        def attempt(self, lease: Record | None, now: float) -> Record | None:
            if self.identity == "b" and lease and now < 5:
                return None
            return written("b", lease, now) if self.identity == "b" else super().attempt(lease, now)

    race = lease_race(Robber, [Contender("a"), Contender("b", start=0.25)], seconds=60)
    assert [w.identity for w in race.takes] == ["a", "b"]
    assert race.takes[1].before_alive
    assert "b steals the lease" in str(race)


def test_reports_in_chinese() -> None:
    """The names of fields stay."""
    with language("zh"):
        assert "leaseTransitions 应为 0，而不是 1" in elections.elector(CountsRenewals, points=1).text()
