"""The preemption explorer: who leaves, what decides, who is no candidate, and that nothing in the lab moves."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from labkit import Lab
from labkit.i18n import set_language
from labkit.objects.codec import from_dict
from labkit.objects.pod import Pod
from labkit.plugins._preemption import Candidate, best_candidates
from labkit.plugins.course.custom_post_filter import CustomPostFilter
from labkit.widgets import preemption_explorer
from labkit.widgets.preemption_explorer import PreemptionExplorerController
from labkit.widgets.preemption_tables import criteria

from tests.widgets.blocks import blocks_of, cells, controls, of_type, text_of, verdict


@pytest.fixture(params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both languages, one after the other."""
    set_language(request.param)
    yield request.param
    set_language("en")


def explorer(pod: str = "urgent-0") -> PreemptionExplorerController:
    """A pod of the full cluster."""
    return PreemptionExplorerController(Lab("full"), pod)


def rows(controller: PreemptionExplorerController, table: int) -> dict[str, list[str]]:
    """Rows by their first cell: 0 the candidates, 1 the criteria, then victims and other nodes."""
    return {r[0]: r[1:] for r in cells(of_type(controller.view(), "table")[table])}


def test_candidates_are_ranked_and_each_shows_where_it_lost() -> None:
    """One node falls out at each of criteria 1, 2, 3 and 5 of the full cluster."""
    found = rows(explorer(), 0)
    assert list(found) == ["w4", "w1", "w3", "w5", "w2"]
    assert found["w2"][1] == "fail 1"
    assert found["w5"][2] == "fail 0"
    assert found["w3"][3] == "fail -20 + 2 × 2³¹"
    assert found["w1"][5].startswith("fail 08:00")
    assert not any(cell.startswith("fail") for cell in found["w4"])
    assert found["w3"][0] == "batch-2 (-10), batch-3 (-10)"


def test_the_deciding_criterion_is_named_and_those_after_it_are_not_needed() -> None:
    """All five for the full cluster; when only w1 and w2 are left, the budget decides alone."""
    controller = explorer()
    assert "Decided by criterion 5" in text_of(controller.view())
    assert rows(controller, 1)["5 latest start of the most important victim"] == ["pass decides", "w4"]
    lab = Lab("full")
    for node in ("w3", "w4", "w5"):
        lab.delete("Node", node)
    controller = PreemptionExplorerController(lab, "urgent-0")
    assert "Decided by criterion 1" in text_of(controller.view())
    found = list(rows(controller, 1).values())
    assert found == [["pass decides", "w1"], *([["skip not needed", "–"]] * 4)]


def _big(node: str) -> dict[str, Any]:
    asked = {"requests": {"cpu": "4"}}
    return {"nodeName": node, "containers": [{"name": "c", "image": "a", "resources": asked}]}


def _vip(cpu: int) -> dict[str, Any]:
    container = {"name": "c", "image": "a", "resources": {"requests": {"cpu": str(cpu)}}}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "vip"}, "spec": spec}


def test_criteria_have_the_engines_names_in_its_order() -> None:
    """Candidates that are equal in everything go through all of them."""
    raw = {"metadata": {"name": "v", "namespace": "default"}, "spec": {"priority": 1, "containers": []}}
    raw["status"] = {"startTime": "2030-01-01T00:00:00Z"}
    victim = from_dict(raw, "Pod")
    assert isinstance(victim, Pod)
    equal = [Candidate(n, [victim], 0) for n in ("a", "b")]
    assert [name for name, _ in best_candidates(equal)] == list(criteria())


def test_a_lower_priority_has_fewer_victims() -> None:
    """At 0 only batch pods may go, at -10 nobody; the reasons are the scheduler's."""
    controller = explorer()
    controller.handle("priority", "0")
    assert list(rows(controller, 0)) == ["w4", "w1", "w3"]
    assert rows(controller, 3)["w2"][2] == "even without them: Insufficient cpu"
    controller.handle("priority", -10)
    assert verdict(controller.view()) == "urgent-0: no node fits"
    assert rows(controller, 0)["w1"][2] == "No preemption victims found for incoming pod"
    controller.handle("reset", None)
    assert list(rows(controller, 0)) == ["w4", "w1", "w3", "w5", "w2"]


def test_nodes_that_preemption_cannot_help_say_why() -> None:
    """A taint stays when pods leave; pods of higher priority stay too."""
    found = rows(explorer(), 3)
    assert found["w6"] == [
        "TaintToleration: node(s) had untolerated taint(s)",
        "UnschedulableAndUnresolvable",
        "removing pods changes nothing about this",
    ]
    assert found["w7"][2] == "No preemption victims found for incoming pod"


def test_never_and_back() -> None:
    """With preemptionPolicy Never no node is looked at."""
    controller = explorer()
    controller.handle("never", True)
    assert "preemptionPolicy=Never" in text_of(controller.view())
    assert rows(controller, 0)["w1"][2] == "PostFilter looked at no node"
    controller.handle("never", False)
    assert controller.found.nominated == "w4"
    assert explorer("batch-6").never


def test_a_budget_that_allows_a_disruption_is_not_violated() -> None:
    """w2 then loses by priority instead; the slider says how many of how many."""
    controller = explorer()
    assert controls(controller.view())["budget.default/db"]["figure"] == "0 / 1"
    controller.handle("budget.default/db", 1)
    assert rows(controller, 0)["w2"][1:3] == ["0", "fail 0"]
    controller.handle("budget.default/db", 0)
    assert rows(controller, 0)["w2"][1] == "fail 1"


def test_victims_are_shown_in_the_order_of_putting_back() -> None:
    """On w2 the guarded pod comes first, is in the way and leaves; on w3 the critical one is not touched."""
    controller = explorer()
    controller.handle("node", "w2")
    found = rows(controller, 2)
    assert found["1 db-0"][2:] == ["fail would be violated", "fail no: leaves"]
    assert found["2 batch-1"][2:] == ["–", "pass yes: stays"]
    controller.handle("node", "w3")
    assert rows(controller, 2)["dns-0"][3] == "skip not touched"


def test_marks_agree_with_the_victims(language: str) -> None:
    """Whoever is marked as leaving, in the picture and in the order, is a victim."""
    controller = explorer()
    for candidate in controller.found.candidates:
        controller.handle("node", candidate.node)
        leaving = {
            r[0].split(" ")[-1] for r in cells(of_type(controller.view(), "table")[2]) if "fail" in r[-1]
        }
        assert leaving == {p.name for p in candidate.victims}
        (card,) = [b for b in blocks_of(controller.view()) if b.get("name") == candidate.node]
        crossed = {p["text"].split(" ")[1] for p in card["meters"][0]["parts"] if p["kind"] == "leaves"}
        assert crossed == leaving
        assert card["meters"][0]["label"]


def test_a_pod_that_fits_preempts_nobody() -> None:
    """PostFilter does not run."""
    controller = PreemptionExplorerController(Lab("three-zones"), "web-7")
    assert "PostFilter does not run" in text_of(controller.view())
    assert not controller.found.ran


def test_nothing_in_the_lab_changes_even_with_an_own_post_filter() -> None:
    """A plugin that would delete pods is the lab's; the explorer leaves it alone."""
    lab = Lab("full")
    lab.plugins.replace(CustomPostFilter)
    lab.plugins.change(lambda f: f.remove("DefaultPreemption"))
    assert lab.plugins.names("post_filter")[-1] == "CustomPostFilter"
    before = copy.deepcopy(lab.pods())
    controller = PreemptionExplorerController(lab, "urgent-0")
    controller.handle("priority", 5)
    assert lab.pods() == before
    assert "DefaultPreemption is switched off" in text_of(controller.view())
    lab.schedule_one()
    assert lab.pods() != before


_HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def test_without_default_preemption_it_says_so(language: str) -> None:
    """No candidates, and no crash."""
    off = {"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}
    off["plugins"]["multiPoint"] = {"disabled": [{"name": "DefaultPreemption"}]}
    lab = Lab("full", config={**_HEAD, "profiles": [{"schedulerName": "default-scheduler", **off}]})
    view = PreemptionExplorerController(lab, "urgent-0").view()
    assert "DefaultPreemption" in of_type(view, "verdict")[0]["why"]


def test_the_same_as_the_scheduler_decides() -> None:
    """Candidates and victims are those of the lab's own attempt."""
    lab = Lab("full")
    controller = PreemptionExplorerController(lab, "urgent-0")
    trace = lab.schedule_one()
    assert trace is not None
    assert trace.post_filter_result is not None
    shown = {
        c.node: {"victims": [p.key for p in c.victims], "pdbViolations": c.violations}
        for c in controller.found.candidates
    }
    assert shown == trace.post_filter_result.candidates
    assert controller.found.nominated == trace.post_filter_result.nominated_node_name


def test_equals_are_called_equals() -> None:
    """Two nodes alike: any may be taken."""
    lab = Lab()
    for name in ("a", "b"):
        lab.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "status": {"allocatable": {"cpu": "4", "pods": "9"}},
            }
        )
        lab.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"old-{name}"}, "spec": _big(name)}
        )
    controller = PreemptionExplorerController(lab, _vip(4))
    controller.handle("priority", 9)
    assert controller.found.nominated == "a"
    assert "2 are equal in everything" in text_of(controller.view())


def test_it_is_a_widget_in_both_languages(language: str) -> None:
    """Labels on controls; nonsense becomes a notice."""
    widget = preemption_explorer(Lab("full"), "urgent-0")
    for id, value in (("priority", "much"), ("budget.default/db", None), ("pod", "nope"), ("node", "x")):
        widget.set(id, value)
    assert widget.view["blocks"]
    for block in blocks_of(widget.view):
        if block.get("kind") in ("range", "select", "check", "number"):
            assert block["text"]
    assert ("room is made" in repr(widget)) == (language == "en")
