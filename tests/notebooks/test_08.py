"""Module 08: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.support import SOLUTION, STUB, most_points, run_module

HEAD = """
class Tickets:
    def __init__(self, server):
        self.server = server
        self.booked = set()
    def pre_bind_pre_flight(self, state, pod, node_name):
        return None if "ticket" in pod.labels else Status.skip()
    def pre_bind(self, state, pod, node_name):
        self.server.take(pod.uid)
"""
BOOKS = """
    def reserve(self, state, pod, node_name):
        if "ticket" in pod.labels:
            if self.server.free - len(self.booked - self.server.holders) < 1:
                return Status.unschedulable("no ticket is free")
            self.booked.add(pod.uid)
"""
BOOKS_NOT = """
    def reserve(self, state, pod, node_name):
        return None
"""
GIVES_BACK = """
    def unreserve(self, state, pod, node_name):
        self.booked.discard(pod.uid)
        self.server.give_back(pod.uid)
"""
EARLY = """
    def reserve(self, state, pod, node_name):
        if "ticket" in pod.labels:
            if self.server.free < 1:
                return Status.unschedulable("no ticket is free")
            self.server.take(pod.uid)
"""
BIND = """
class MendedLedgerBind:
    def __init__(self, doorman):
        self.doorman, self.ledger, self.handle = doorman, [], None
    def bind(self, state, pod, node_name):
"""
WRITES_FIRST = (
    BIND
    + """
        if "ledger" not in pod.labels:
            return Status.skip()
        self.ledger.append((pod.name, node_name))
        try:
            self.doorman.bind(self.handle.client, pod, node_name)
        except RuntimeError as e:
            return Status.as_error_of(e)
"""
)
BINDS_ALL = (
    BIND
    + """
        try:
            self.doorman.bind(self.handle.client, pod, node_name)
        except RuntimeError as e:
            return Status.as_error_of(e)
        self.ledger.append((pod.name, node_name))
"""
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    assert run_module("08", SOLUTION).total == most_points("08") == 10
    assert run_module("08", STUB).total == 0


@pytest.mark.parametrize(
    ("answer", "points", "said"),
    [
        (HEAD + BOOKS, 0, "A booking that is never cancelled keeps others away"),
        (HEAD + EARLY + GIVES_BACK, 1.5, "server.take was called during Reserve"),
        (HEAD + BOOKS_NOT + GIVES_BACK, 1.5, "no attempt may end in an error when tickets run out"),
        ("Tickets = 3", 0, "a class is expected, got 3"),
    ],
    ids=["no Unreserve", "takes in Reserve", "does not book", "no class"],
)
def test_wrong_tickets_are_told_what_is_wrong(answer: str, points: float, said: str) -> None:
    """The visible half of the first exercise, worth 3."""
    outcome = run_module("08", {"tickets": answer})
    assert outcome.points["tickets-visible"] == points
    assert said in outcome.reports["tickets-visible"]


@pytest.mark.parametrize(
    ("answer", "points", "said"),
    [
        (WRITES_FIRST, 2, "the ledger: expected [('web', 'n1')], got [('web', 'n1'), ('web', 'n1')]"),
        (
            BINDS_ALL,
            2,
            "nodes and ledger: expected ({'web': 'n1'}, []), got ({'web': 'n1'}, [('web', 'n1')])",
        ),
    ],
    ids=["writes before it binds", "binds everybody"],
)
def test_wrong_binds_are_told_what_is_wrong(answer: str, points: float, said: str) -> None:
    """The visible half of the second exercise, worth 3."""
    outcome = run_module("08", {"mended": answer})
    assert outcome.points["mended-visible"] == points
    assert said in outcome.reports["mended-visible"]
