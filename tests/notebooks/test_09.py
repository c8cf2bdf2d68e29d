"""Module 09: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.support import SOLUTION, STUB, Outcome, most_points, run_module

#: Rejects in the right places, but says that preemption might help; rounds the share as labkit will again.
RESOLVABLE = """
class Budget:
    def filter(self, state, pod, node):
        allowed, cents = pod.labels.get("max-cents"), node.node.labels.get("cents")
        if allowed is None:
            return None
        if cents is None:
            return Status.unschedulable("price unknown")
        if int(cents) > int(allowed):
            return Status.unschedulable(f"costs {cents} cents, {allowed} allowed")

    def score(self, state, pod, node):
        allowed, cents = pod.labels.get("max-cents"), node.node.labels.get("cents")
        if not allowed or not cents or allowed == "0":
            return 0
        return 100 * (int(allowed) - int(cents)) // int(allowed)
"""
TEN = RESOLVABLE.replace("unschedulable", "unresolvable").replace("return 100 *", "return 10 *")
DIVIDES_BY_ZERO = RESOLVABLE.replace("unschedulable", "unresolvable").replace(' or allowed == "0"', "")

NAMES = """
def my_filter(request):
    names = request["NodeNames"] or [n["metadata"]["name"] for n in request["Nodes"]["items"]]
    refused = {n: MAINTENANCE[n] for n in names if n in MAINTENANCE}
    kept = [n for n in names if n not in MAINTENANCE]
    answer = {"FailedAndUnresolvableNodes": refused}
    if request["NodeNames"]:
        return {**answer, "NodeNames": kept}
    return {**answer, "Nodes": {"items": [n for n in request["Nodes"]["items"] if n["metadata"]["name"] in kept]}}


def my_prioritize(request):
    names = request["NodeNames"] or [n["metadata"]["name"] for n in request["Nodes"]["items"]]
    return [{"Host": n, "Score": max(0, 10 - AGE.get(n, 5))} for n in names]
"""
NO_REASONS = NAMES.replace('{"FailedAndUnresolvableNodes": refused}', "{}")
HUNDRED = NAMES.replace("max(0, 10 - AGE.get(n, 5))", "100 - 10 * AGE.get(n, 5)")
ONLY_NODES = NAMES.replace('request["NodeNames"] or ', "").replace('if request["NodeNames"]', "if False")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def both(outcome: Outcome, *tests: str) -> float:
    """Points of some test cells."""
    return round(sum(outcome.points[t] for t in tests), 2)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    outcome = run_module("09", SOLUTION)
    assert outcome.total == most_points("09") == 10, outcome.reports
    assert outcome.errors == {}
    assert run_module("09", STUB).total == 0


@pytest.mark.parametrize(
    ("answer", "visible", "hidden", "said"),
    [
        (RESOLVABLE, 2.5, 2, "No preemption victims found"),
        (TEN, 2, 1.52, "job points.cheap: points.cheap: expected 70, got 10"),
        (DIVIDES_BY_ZERO, 3, 1.5, ""),
        (
            "class Budget:\n    def filter(self, s, p, n):\n        return False",
            0,
            0,
            "returned False (bool)",
        ),
    ],
)
def test_wrong_budgets(answer: str, visible: float, hidden: float, said: str) -> None:
    """Points for what holds, and a message that names the fault."""
    outcome = run_module("09", {"budget": answer})
    assert (outcome.points["budget-visible"], outcome.points["budget-hidden"]) == (visible, hidden)
    assert said in outcome.reports["budget-visible"]


@pytest.mark.parametrize(
    ("answer", "protocol", "decisions", "said"),
    [
        (
            NAMES,
            1.75,
            3,
            "filter, empty list: Your code raised TypeError: 'NoneType' object is not subscriptable",
        ),
        (NO_REASONS, 1.75, 1.54, "filter, empty list"),
        (
            HUNDRED,
            1.27,
            1.9,
            "Score 50 is outside 0..10 and is used as it is. Then: it is multiplied by weight",
        ),
        (ONLY_NODES, 0.55, 1, "filter, NodeNames: Your code raised TypeError"),
        ("my_filter = my_prioritize = None", 0, 0, "there is no function for filter"),
        (
            "def my_filter(request):\n    raise NotImplementedError\nmy_prioritize = my_filter",
            0,
            0,
            "Not written",
        ),
    ],
)
def test_wrong_handlers(answer: str, protocol: float, decisions: float, said: str) -> None:
    """The protocol's cases and the scheduler's decisions, each for itself."""
    outcome = run_module("09", {"mended": answer})
    assert outcome.points["mended-protocol"] == protocol, outcome.reports["mended-protocol"]
    assert both(outcome, "mended-visible", "mended-hidden") == decisions, outcome.reports
    assert said in outcome.reports["mended-protocol"]
