"""Module 06: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.support import SOLUTION, STUB, Outcome, most_points, run_module

LOOK_UP = """
    def filter(self, state, pod, node):
        if any(pair in state.read("KeepApart") for pair in node.node.labels.items()):
            return Status.unschedulable("apart")
"""
OWN_ONLY = (
    """
class KeepApart:
    def pre_filter(self, state, pod, nodes):
        pairs = set()
        for node in nodes:
            for entry in node.pods:
                for x in anti_terms(pod):
                    if means(x, pod, entry.pod) and x.topology_key in node.node.labels:
                        pairs.add((x.topology_key, node.node.labels[x.topology_key]))
        state.write("KeepApart", pairs)
"""
    + LOOK_UP
)
SAME_NODE = """
class KeepApart:
    def filter(self, state, pod, node):
        for entry in node.pods:
            other = entry.pod
            if any(means(x, pod, other) for x in anti_terms(pod)) or any(
                means(x, other, pod) for x in anti_terms(other)
            ):
                return Status.unschedulable("apart")
"""
SWAPPED_OWNER = OWN_ONLY.replace(
    "                for x in anti_terms(pod):\n                    if means(x, pod, entry.pod) and",
    "                for x in [*anti_terms(pod), *anti_terms(entry.pod)]:\n"
    "                    if (means(x, pod, entry.pod) or means(x, entry.pod, pod)) and",
)
NOTHING = "class {name}:\n    def filter(self, state, pod, node):\n        return None\n"

SPREAD = """
class MendedSpread:
    def pre_filter(self, state, pod, nodes):
        rule = pod.spec.topology_spread_constraints[0]
        selector = compile_label_selector(rule.label_selector)
        counts = Counter()
        for node in nodes:
            zone = node.node.labels.get(rule.topology_key)
            if zone is None:
                continue
            counts[zone] += sum(
                entry.pod.namespace == pod.namespace
                and not entry.pod.metadata.deletion_timestamp
                and selector.matches(entry.pod.labels)
                for entry in node.pods
            )
        state.write("counts", (counts, int(selector.matches(pod.labels))))

    def filter(self, state, pod, node):
        rule = pod.spec.topology_spread_constraints[0]
        counts, own = state.read("counts")
        zone = node.node.labels.get(rule.topology_key)
        if zone is None or counts[zone] + own - min(counts.values()) > rule.max_skew:
            return Status.unschedulable("no")
"""
#: What is wrong -> (the same answer with that one fault, the case that must fail, its hint).
FAULTS = {
    "average": ("min(counts.values())", "sum(counts.values()) / len(counts)", "the smallest count"),
    "namespaces": ("entry.pod.namespace == pod.namespace\n", "True\n", "namespaces"),
    "leaving": (
        "                and not entry.pod.metadata.deletion_timestamp\n",
        "",
        "pods that are leaving",
    ),
    "empty zone": (
        "            counts[zone] += ",
        "            if node.pods: counts[zone] += ",
        "a zone without such pods",
    ),
    "itself": ("int(selector.matches(pod.labels))", "1", "a pod that its selector does not mean"),
    "no label": ("zone is None or ", "", "nodes without the label"),
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def scored(outcome: Outcome, cell: str) -> tuple[float, float]:
    """Points of the visible and of the hidden checks."""
    return outcome.points[f"{cell}-visible"], outcome.points[f"{cell}-hidden"]


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points; no cell of the module fails."""
    outcome = run_module("06", SOLUTION)
    assert outcome.total == most_points("06") == 10
    assert outcome.errors == {}
    assert run_module("06", STUB).total == 0


def test_a_plugin_that_rejects_nothing_scores_nothing() -> None:
    """Every case has a node that must be rejected."""
    answers = {"keep-apart": NOTHING.format(name="KeepApart"), "mended": NOTHING.format(name="MendedSpread")}
    assert run_module("06", answers).total == 0


def test_forgetting_the_pods_that_are_there_is_named() -> None:
    """Own terms only: one of six cases fails, by name and with a hint."""
    outcome = run_module("06", {"keep-apart": OWN_ONLY})
    assert scored(outcome, "keep-apart") == (2.5, 1.66)
    report = outcome.reports["keep-apart-visible"]
    assert "terms of pods that are there" in report
    assert "there they are the owner" in report


def test_looking_at_one_node_only_is_named() -> None:
    """Zones are missed; by host it is right."""
    outcome = run_module("06", {"keep-apart": SAME_NODE})
    report = outcome.reports["keep-apart-visible"]
    assert "a pod on another node of the same zone counts too" in report
    assert 0 < sum(scored(outcome, "keep-apart")) < 2.5


def test_mixing_up_the_owner_of_a_term_costs_points() -> None:
    """Both sides' terms tried both ways round: pods are kept out that nobody objects to."""
    outcome = run_module("06", {"keep-apart": SWAPPED_OWNER})
    assert sum(scored(outcome, "keep-apart")) < 5
    assert "must be let through" in outcome.reports["keep-apart-visible"]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_the_spread_is_named(fault: str) -> None:
    """One fault, one case lost of six, and the case says which."""
    right, wrong, case = FAULTS[fault]
    assert right in SPREAD
    outcome = run_module("06", {"mended": SPREAD.replace(right, wrong)})
    visible, hidden = scored(outcome, "mended")
    assert (visible, hidden) == (2.5, 1.66)
    (line,) = [x for x in outcome.reports["mended-visible"].splitlines() if x.startswith("✕")]
    assert line.startswith(f"✕ {case}: ")


def test_the_broken_plugin_as_it_is_scores_little() -> None:
    """Renaming it is no answer."""
    outcome = run_module("06", {"mended": "class MendedSpread(AverageSpread):\n    pass\n"})
    assert sum(scored(outcome, "mended")) <= 1
