"""Learners' plugins against the engine: the right one passes, each wrong one fails with a message that says why."""

from __future__ import annotations

from typing import Any

import pytest
from labkit import check
from labkit.framework.plugin import Plugin
from labkit.framework.requests import non_zero_requests_of_placed_pod
from labkit.framework.status import Status
from labkit.i18n import language


class LeastAllocated(Plugin):
    """The right solution: what is free after the pod, in percent, mean of cpu and memory."""

    def free(self, capacity: int, used: int) -> Any:
        return (capacity - used) * 100 // capacity if used <= capacity else 0

    def score(self, state: Any, pod: Any, node: Any) -> Any:
        cpu, memory = non_zero_requests_of_placed_pod(pod)
        return (
            self.free(node.allocatable.milli_cpu, node.non_zero_cpu + cpu)
            + self.free(node.allocatable.memory, node.non_zero_memory + memory)
        ) // 2


class ForgetsThePod(LeastAllocated):
    """Typical mistake: the new pod is not counted."""

    def score(self, state: Any, pod: Any, node: Any) -> Any:
        return (
            self.free(node.allocatable.milli_cpu, node.non_zero_cpu)
            + self.free(node.allocatable.memory, node.non_zero_memory)
        ) // 2


class Fractions(LeastAllocated):
    """Typical mistake: a float between 0 and 1."""

    def free(self, capacity: int, used: int) -> float:
        return (capacity - used) / capacity


class Stub:
    """As released; also a class without args and handle."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        raise NotImplementedError


def test_the_right_score_plugin_gets_full_marks() -> None:
    """On the visible and on the hidden clusters."""
    for seeds in (check.VISIBLE, check.HIDDEN):
        report = check.score_plugin(LeastAllocated, like="NodeResourcesFit", points=2, seeds=seeds)
        assert report.score == 2, report.text()


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (ForgetsThePod, "score of n"),
        (Fractions, r"(float) for node"),
        (Stub, "Not written yet."),
        (object(), "A plugin with a method `score` is needed"),
        (None, "A plugin with a method `score` is needed"),
    ],
)
def test_wrong_score_plugins_are_told_why(plugin: Any, message: str) -> None:
    """No points, and a message that names the fault."""
    report = check.score_plugin(plugin, like="NodeResourcesFit", points=2)
    assert report.score < 2
    assert message in report.text()


def test_a_failed_case_shows_nodes_pod_and_both_scores() -> None:
    """The data with which a learner can check by hand."""
    with language("zh"):
        case = check.score_plugin(ForgetsThePod, like="NodeResourcesFit", points=2).failures[0]
    assert case.columns[0] == "节点"
    assert len(case.rows) == 4
    assert "Pod 请求" in case.problem


class Tolerates(Plugin):
    """Right: a node with an untolerated NoSchedule or NoExecute taint is out."""

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        from labkit.objects.selectors import find_untolerated_taint

        effects = ("NoSchedule", "NoExecute")
        taint = find_untolerated_taint(node.node.spec.taints, pod.spec.tolerations, effects)
        return None if taint is None else Status.unschedulable("taint")


class IgnoresNoExecute(Plugin):
    """Typical mistake: only NoSchedule counts."""

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        from labkit.objects.selectors import find_untolerated_taint

        taint = find_untolerated_taint(node.node.spec.taints, pod.spec.tolerations, ("NoSchedule",))
        return None if taint is None else Status.unschedulable("taint")


def test_filter_plugins() -> None:
    """Right passes all, the typical mistake some; with reasons the wording counts too."""
    seeds = check.HIDDEN
    right = check.filter_plugin(Tolerates, like="TaintToleration", points=3, seeds=seeds, taints=True)
    wrong = check.filter_plugin(IgnoresNoExecute, like="TaintToleration", points=3, seeds=seeds, taints=True)
    worded = check.filter_plugin(
        Tolerates, like="TaintToleration", points=3, seeds=seeds, taints=True, reasons=True
    )
    assert right.score == 3, right.text()
    assert 0 < wrong.score < 3
    assert worded.score < right.score


def test_decisions_of_a_scenario() -> None:
    """Facts of the trace, one case each; a plugin that raises fails them with its message."""
    given = {"nodes": {"n1": {"cpu": 4}, "n2": {"cpu": 4}}, "pods": {"web": {"cpu": 1}}}

    class OnlyN2(Plugin):
        def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
            return None if node.node.metadata.name == "n2" else Status.unschedulable("not n2")

    expect = {"web": {"bound": "n2", "filter.n1.plugin": "OnlyN2", "filter.n1.reasons": ["not n2"]}}
    assert check.scenario([OnlyN2], given, expect, points=3).score == 3
    assert check.scenario([Stub], given, expect, points=3).score == 0


def test_an_error_holds_no_fact_that_it_meets_by_chance() -> None:
    """A pod that an error keeps off is not placed either, which is no point; unless the error is what is asked for."""
    given = {"nodes": {"n1": {"cpu": 4}}, "pods": {"web": {"cpu": 1}}}

    class SaysFalse(Plugin):
        def filter(self, state: Any, pod: Any, node: Any) -> Any:
            return False

    report = check.scenario([SaysFalse], given, {"web": {"bound": None}}, points=1)
    assert report.score == 0
    assert "SaysFalse.filter returned False (bool)" in report.text()
    asked = {"web": {"bound": None, "filter.n1.code": "Error"}}
    assert check.scenario([SaysFalse], given, asked, points=1).score == 1


def test_tolerations_come_in_all_forms() -> None:
    """Right ones, and ones that miss by a key, a value or an effect: a careless comparison is found out."""
    seen = [
        x
        for s in (*check.VISIBLE, *check.HIDDEN)
        for x in check.cluster(s, taints=True)["pods"]["web"]["spec"]["tolerations"]
    ]
    assert {frozenset(x) for x in seen} == {
        frozenset(("key", "operator", "value", "effect")),
        frozenset(("key", "operator")),
        frozenset(("key", "value")),
        frozenset(("operator", "effect")),
    }
    assert any(x.get("value") == "other" for x in seen)


def test_generated_clusters_are_reproducible_and_varied() -> None:
    """The same seed, the same cluster; hidden ones are not the visible ones; some pods request nothing."""
    assert check.cluster(7) == check.cluster(7)
    seen = [check.cluster(s) for s in (*check.VISIBLE, *check.HIDDEN)]
    assert len({str(c) for c in seen}) == len(seen)
    assert any("cpu" not in c["pods"]["web"] for c in seen)


def test_the_traceback_shown_is_the_learners() -> None:
    """Frames of the lab itself are left out."""

    class Raises(Plugin):
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return {}["missing"]  # type: ignore[no-any-return]

    case = check.score_plugin(Raises, like="NodeResourcesFit", points=1).failures[0]
    assert "KeyError: 'missing'" in case.detail
    assert "scoring.py" not in case.detail
