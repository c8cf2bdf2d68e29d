"""Playground, queue view, filter matrix, score explorer, plugin editor, cluster map: control -> what is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from labkit import Lab
from labkit.errors import LabError
from labkit.i18n import set_language
from labkit.widgets import (
    cluster_map,
    filter_matrix,
    playground,
    plugin_editor,
    queue_view,
    score_explorer,
)
from labkit.widgets.filter_matrix import FilterMatrixController
from labkit.widgets.playground import PlaygroundController
from labkit.widgets.plugin_editor import PluginEditorController
from labkit.widgets.queue_view import QueueViewController
from labkit.widgets.score_explorer import ScoreExplorerController

from tests.widgets.test_controllers import blocks_of

PREFER = (
    'class Prefer:\n    def score(self, state, pod, node):\n        return 100 if node.name == "c2" else 0\n'
)


@pytest.fixture(params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both languages, one after the other."""
    set_language(request.param)
    yield request.param
    set_language("en")


def buttons_of(view: Any) -> dict[str, dict[str, Any]]:
    """Buttons by id."""
    return {b["id"]: b for b in blocks_of(view) if b.get("type") == "button"}


def texts(view: Any) -> str:
    """Everything that is written."""
    return json.dumps(view, ensure_ascii=False)


def where(lab: Lab) -> dict[str, str | None]:
    """Pod -> node."""
    return {p["metadata"]["name"]: p["spec"].get("nodeName") for p in lab.pods()}


def widgets() -> list[Any]:
    """One of each kind."""
    lab = Lab("three-zones")
    return [
        cluster_map(lab),
        filter_matrix(lab, "web-7"),
        score_explorer(lab, "web-7"),
        playground(lab),
        queue_view(lab),
        plugin_editor(lab, PREFER),
    ]


def test_every_control_has_a_name_and_every_picture_words(language: str) -> None:
    """Labels on controls, text on buttons, `label` on meters and stacks."""
    for widget in widgets():
        for block in blocks_of(widget.view):
            if block.get("kind") in ("range", "select", "check", "code", "text", "weight"):
                assert block["text"]
            if block.get("type") == "button":
                assert block["text"]
            if "parts" in block or "stack" in block:
                assert block["label"]


@pytest.mark.parametrize(
    ("control", "value"),
    [
        ("time", "x"),
        ("weight.Nope", 3),
        ("weight.NodeResourcesFit", None),
        ("strategy", "Best"),
        ("pod", "nope"),
    ],
)
def test_nonsense_never_kills_a_widget(control: str, value: Any) -> None:
    """Refused or shown as a notice; the next control works."""
    for widget in widgets():
        widget.set(control, value)
        widget.set("refresh")
        assert widget.view["blocks"]


def test_playground_steps_and_goes_back() -> None:
    """A step places the next pod; Back takes it off again; forward puts it where it was."""
    lab = Lab("three-zones")
    p = PlaygroundController(lab)
    p.handle("step", None)
    placed = where(lab)["web-7"]
    assert placed is not None
    p.handle("back", None)
    assert where(lab)["web-7"] is None
    p.handle("time", 1)
    assert where(lab)["web-7"] == placed


def test_back_takes_back_one_step_of_many() -> None:
    """Each step back is one step, whatever the steps were; forward again ends where it was."""
    lab = Lab("three-zones")
    p = PlaygroundController(lab)
    seen = [where(lab)]
    for control in ("step", "step", "advance.10", "step"):
        p.handle(control, None)
        seen.append(where(lab))
    for at in (3, 2, 4, 0, 1, 4):
        p.handle("time", at)
        assert where(lab) == seen[at]


def test_playground_weights_and_switches_are_the_labs_own() -> None:
    """What is moved here runs in the lab; what is switched off can be switched on again, also after going back."""
    lab = Lab("three-zones")
    p = PlaygroundController(lab)
    p.handle("weight.PodTopologySpread", 7)
    assert lab.plugins.weights()["PodTopologySpread"] == 7
    p.handle("weight.PodTopologySpread.on", False)
    assert "PodTopologySpread" not in lab.plugins.weights()
    p.handle("weight.PodTopologySpread.on", True)
    assert lab.plugins.weights()["PodTopologySpread"] == 7
    p.handle("time", 0)
    assert lab.plugins.weights()["PodTopologySpread"] == 2
    p.handle("time", 3)
    p.handle("run", None)
    assert where(lab)["web-7"] is not None


def test_playground_strategy_changes_the_decision() -> None:
    """MostAllocated scores full nodes higher."""
    totals = {}
    for strategy in ("LeastAllocated", "MostAllocated"):
        lab = Lab("three-zones")
        p = PlaygroundController(lab)
        p.handle("strategy", strategy)
        p.handle("step", None)
        totals[strategy] = {n: s.plugins["NodeResourcesFit"].raw for n, s in lab.traces[-1].scores.items()}
        assert p.strategy == strategy
    assert totals["LeastAllocated"] != totals["MostAllocated"]


def test_playground_runs_a_learners_plugin() -> None:
    """Code from the editor decides; a syntax error is told with its line."""
    lab = Lab("three-zones")
    p = PlaygroundController(lab)
    p.handle("code", "class X\n    pass\n")
    p.handle("apply", None)
    assert "1" in p.problem
    p.handle("code", PREFER)
    p.handle("apply", None)
    p.handle("step", None)
    assert p.problem == ""
    assert lab.traces[-1].scores["c2"].plugins["Prefer"].raw == 100


def test_queue_view_shows_where_each_pod_is() -> None:
    """Ready, unschedulable with its plugins, gated with its reason; events are listed; time moves."""
    lab = Lab("three-zones")
    q = QueueViewController(lab)
    assert buttons_of(q.view())["back"]["disabled"]
    q.handle("run", None)
    shown = texts(q.view())
    assert "NodeResourcesFit" in shown
    assert "lab.example/quota" in shown
    assert "FailedScheduling" in shown
    assert "NodeAdd" in shown
    q.handle("advance.10", None)
    assert lab.now == 10
    q.handle("time", 1)
    assert lab.now == 0
    q.handle("time", 2)
    assert lab.now == 10


def test_filter_matrix_names_all_who_reject_and_who_decides() -> None:
    """The cordoned node is refused by two plugins; without the first the second decides."""
    m = FilterMatrixController(Lab("three-zones"), "web-7")
    assert m.trace.filter["a1"].plugin == "NodeUnschedulable"
    assert "TaintToleration: node(s) had untolerated taint(s)" in texts(m.view())
    m.handle("on.NodeUnschedulable", False)
    assert m.trace.filter["a1"].plugin == "TaintToleration"
    m.handle("on.TaintToleration", False)
    assert m.trace.filter["a1"].is_success
    m.handle("all", None)
    assert not m.trace.filter["a1"].is_success


def test_filter_matrix_takes_a_manifest() -> None:
    """Defaults are set as the API server sets them; a pod that PreFilter rejects is told so."""
    lab = Lab("three-zones")
    m = FilterMatrixController(
        lab, "metadata: {name: new}\nspec: {nodeName: '', containers: [{name: c, image: a}]}\nkind: Pod"
    )
    assert m.pod["spec"]["schedulerName"] == "default-scheduler"
    with pytest.raises(LabError, match="waiting"):
        FilterMatrixController(lab, "nobody")
    assert "new" not in where(lab)


def test_score_explorer_weights_decide() -> None:
    """With the spread plugin off another node wins, as the verdict says; the lab is left alone."""
    lab = Lab("three-zones")
    s = ScoreExplorerController(lab, "web-7")
    first = s.trace.node
    decisive = s.trace.decisive_plugin()
    assert decisive is not None
    s.handle(f"weight.{decisive[0]}.on", False)
    assert s.trace.node == decisive[1] != first
    s.handle("reset", None)
    assert s.trace.node == first
    s.handle("strategy", "MostAllocated")
    assert s.trace.scores["b2"].plugins["NodeResourcesFit"].raw != 0
    assert where(lab)["web-7"] is None


def test_plugin_editor_compares_before_and_after() -> None:
    """A plugin that loves c2 moves a pod there; the lab itself does not move."""
    lab = Lab("three-zones")
    e = PluginEditorController(lab, PREFER)
    assert e.result is not None
    assert [d.nodes for d in e.result.changed] == [("a2", "c2")]
    assert where(lab)["web-8"] is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("class X:\n    def score(self, state, pod, node)\n        return 1\n", "line 2"),
        ("x = 1\n", "class"),
        ("class X:\n    pass\n", "filter, score"),
        (
            "class X:\n    def __init__(self):\n        1 / 0\n    def score(self, s, p, n):\n        return 1\n",
            "line 3",
        ),
        ("import nosuchmodule\nclass X:\n    pass\n", "line 1"),
    ],
)
def test_plugin_editor_says_what_is_wrong_and_where(code: str, said: str) -> None:
    """The fault with its line, the old comparison stays."""
    e = PluginEditorController(Lab("three-zones"), PREFER)
    e.handle("code", code)
    e.handle("apply", None)
    assert said in e.problem
    assert e.result is not None


def test_a_plugin_that_raises_is_shown_with_its_line() -> None:
    """The decision ends in an error, and the learner's own lines are shown."""
    e = PluginEditorController(
        Lab("three-zones"), "class X:\n    def score(self, state, pod, node):\n        return node.nope\n"
    )
    shown = texts(e.view())
    assert "nope" in shown
    assert "line 3" in shown


@pytest.mark.parametrize(
    "body", ["while True: pass", "for i in iter(int, 1): pass", "return self.score(state, pod, node)"]
)
def test_an_endless_plugin_comes_back(body: str) -> None:
    """Loops and recursion without an end become an error of the decision, not a dead widget."""
    e = PluginEditorController(
        Lab("three-zones"), f"class X:\n    def score(self, state, pod, node):\n        {body}\n"
    )
    assert e.result is not None
    (web,) = [d.after for d in e.result.differences if d.pod == "default/web-7"]
    assert web is not None
    assert web.error is not None


def test_large_clusters_get_a_search_box_instead_of_cards() -> None:
    """The fullest, the emptiest, and a search; never a card a node."""
    widget = cluster_map(Lab("nodes-200"))
    assert not [b for b in blocks_of(widget.view) if b.get("type") == "nodes"]
    (table,) = [b for b in blocks_of(widget.view) if b.get("type") == "table"]
    assert len(table["rows"]) < 40
    widget.set("search", "00123")
    (table,) = [b for b in blocks_of(widget.view) if b.get("type") == "table"]
    assert [r["cells"][0] for r in table["rows"]] == ["node-00123"]


def test_the_lab_opens_its_playground() -> None:
    """`lab.playground()`."""
    assert "Playground" in repr(Lab("small").playground())
