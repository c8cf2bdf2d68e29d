"""Module 05: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.support import SOLUTION, STUB, most_points, run_module

FROM_BELOW = """
def find_victims(pod, there, fits):
    kept, gone = sorted(there, key=lambda p: -p.priority), []
    while kept and not fits(kept):
        gone.append(kept.pop())
    return gone if fits(kept) else None
"""
EQUALS_TOO = """
def find_victims(pod, there, fits):
    kept = [p for p in there if p.priority > pod.priority]
    lower = [p for p in there if p.priority <= pod.priority]
    if not lower or not fits(kept):
        return None
    victims = []
    for p in sorted(lower, key=lambda p: (-p.priority, p.start)):
        (kept if fits([*kept, p]) else victims).append(p)
    return victims
"""
NO_CONSTANT = """
def pick_node(plans):
    def cost(plan):
        priorities = [v.priority for v in plan.victims]
        return plan.violations, priorities[0], sum(priorities), len(priorities), -plan.victims[0].start
    return min(plans, key=cost).node
"""
NO_BUDGETS = NO_CONSTANT.replace("plan.violations, ", "").replace(
    "sum(priorities)", "sum(p + 2**31 for p in priorities)"
)
UNMENDED = "class MendedPostFilter(RoughPostFilter): pass"
NOBODY = """
class MendedPostFilter(RoughPostFilter):
    def post_filter(self, state, pod, statuses):
        return None, Status.unschedulable("no")
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def mended(**change: str) -> str:
    """The right plugin with parts of its code exchanged."""
    parts = {
        "never": "pod.spec.preemption_policy == 'Never'",
        "nodes": "self.handle.dry_run_status_nodes(statuses)",
        "choice": "min",
        "lower": "<",
        "order": "-info.pod.priority",
        "fits": "is_success(self.handle.run_filter_with_nominated_pods(state, pod, node))",
        **change,
    }
    return f"""
class MendedPostFilter(RoughPostFilter):
    def post_filter(self, state, pod, statuses):
        if {parts["never"]}:
            return None, Status.unschedulable("no")
        plans = {{}}
        for node in {parts["nodes"]}:
            victims = self.victims(state.clone(), pod, node.clone())
            if victims:
                plans[node.name] = victims
        if not plans:
            return PostFilterResult(""), Status.unschedulable("nobody")
        cost = lambda n: (max(v.priority for v in plans[n]), len(plans[n]), n)
        chosen = {parts["choice"]}(plans, key=cost)
        return PostFilterResult(chosen, victims=[v.key for v in plans[chosen]]), Status.success()

    def victims(self, state, pod, node):
        lower = [info for info in node.pods if info.pod.priority {parts["lower"]} pod.priority]
        for info in lower:
            self.take_out(state, pod, node, info)
        if not self.fits(state, pod, node):
            return None
        victims = []
        for info in sorted(lower, key=lambda info: {parts["order"]}):
            self.put_back(state, pod, node, info)
            if not self.fits(state, pod, node):
                self.take_out(state, pod, node, info)
                victims.append(info.pod)
        return victims

    def fits(self, state, pod, node):
        return {parts["fits"]}
"""


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    right = run_module("05", SOLUTION)
    assert right.total == most_points("05") == 10
    assert not right.errors
    assert run_module("05", STUB).total == 0


@pytest.mark.parametrize(
    ("cell", "answer", "said"),
    [
        ("find-victims", FROM_BELOW, "small could have stayed"),
        ("find-victims", EQUALS_TOO, "only strictly lower priorities go"),
        ("pick-node", NO_CONSTANT, "number of victims, negative priorities"),
        ("pick-node", NO_BUDGETS, "PDB violations"),
    ],
)
def test_wrong_functions_get_part_of_the_points_and_are_told_why(cell: str, answer: str, said: str) -> None:
    """Visible and hidden cases both notice."""
    outcome = run_module("05", {cell: answer})
    assert 0 < outcome.points[f"{cell}-visible"] < 2
    assert 0 < outcome.points[f"{cell}-hidden"] < 1
    failed = "\n".join(line for line in outcome.reports[f"{cell}-visible"].splitlines() if "✕" in line)
    assert said in failed


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"never": "False"}, "visible"),
        ({"choice": "max"}, "visible"),
        ({"lower": "<="}, "hidden"),
        ({"order": "info.pod.priority"}, "visible"),
        ({"fits": "super().fits(state, pod, node)"}, "hidden"),
        ({"fits": "super().fits(state, pod, node)", "nodes": "self.handle.snapshot.nodes"}, "visible"),
    ],
)
def test_each_fault_that_is_left_costs_points(change: dict[str, str], seen: str) -> None:
    """By the visible check, or by the hidden one for what the visible cluster does not show."""
    outcome = run_module("05", {"mended": mended(**change)})
    assert outcome.points[f"mended-{seen}"] < 2


def test_leaving_it_as_it_is_or_doing_nothing_scores_little() -> None:
    """The broken plugin gets nothing; one that never preempts only what asks for nothing."""
    as_it_is = run_module("05", {"mended": UNMENDED})
    assert as_it_is.points["mended-visible"] + as_it_is.points["mended-hidden"] == 0
    assert "polite postFilter.nominatedNode" in as_it_is.reports["mended-visible"]
    nothing = run_module("05", {"mended": NOBODY})
    assert nothing.points["mended-visible"] + nothing.points["mended-hidden"] == 1


def test_the_right_plugin_written_otherwise_gets_full_marks() -> None:
    """Looking at all nodes is right as long as the filters are asked."""
    outcome = run_module("05", {"mended": mended(nodes="self.handle.snapshot.nodes")})
    assert outcome.points["mended-visible"] + outcome.points["mended-hidden"] == 4
