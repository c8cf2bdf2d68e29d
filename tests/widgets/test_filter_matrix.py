"""The filter matrix: who rejects which node, and what if that plugin were off."""

from __future__ import annotations

import pytest
from labkit import Lab
from labkit.errors import LabError
from labkit.widgets import filter_matrix
from labkit.widgets.filter_matrix import FilterMatrixController

from tests.widgets.blocks import column, controls, of_type, text_of, verdict

POD = "default/web-7"


def matrix(pod: str = POD) -> FilterMatrixController:
    """A pod of the three-zones cluster: a1 is cordoned, b1 is full, c1 is tainted."""
    return FilterMatrixController(Lab("three-zones"), pod)


def test_each_node_says_who_rejects_it_and_why() -> None:
    """Marks in the plugins' columns, reasons in kube-scheduler's words."""
    table = of_type(matrix().view(), "table")[0]
    assert column(table, "TaintToleration")["c1"].startswith("fail")
    assert column(table, "TaintToleration")["b2"] == "pass"
    assert column(table, "NodeResourcesFit")["b1"].startswith("fail")
    reasons = column(table, "Reason")
    assert "Insufficient cpu" in reasons["b1"]
    assert "node(s) had untolerated taint(s)" in reasons["c1"]
    assert "node(s) were unschedulable" in reasons["a1"]


def test_every_plugin_that_rejects_is_shown_not_only_the_first() -> None:
    """a1 is cordoned and has the taint: both plugins reject, NodeUnschedulable first."""
    table = of_type(matrix().view(), "table")[0]
    assert column(table, "NodeUnschedulable")["a1"] == "fail first"
    assert column(table, "TaintToleration")["a1"] == "fail"


@pytest.mark.parametrize(("plugin", "left"), [("TaintToleration", 4), ("NodeResourcesFit", 4)])
def test_a_switch_lets_nodes_pass_and_back(plugin: str, left: int) -> None:
    """Without the plugin one more node passes; on again, three as before."""
    controller = matrix()
    controller.handle(f"on.{plugin}", False)
    assert controller.summary() == f"{POD}: {left} of 6 nodes pass"
    assert controls(controller.view())[f"on.{plugin}"]["value"] is False
    controller.handle(f"on.{plugin}", True)
    assert controller.summary() == f"{POD}: 3 of 6 nodes pass"


def test_all_on_undoes_every_switch() -> None:
    """One button for all; it is disabled when there is nothing to undo."""
    controller = matrix()
    assert controls(controller.view())["all"]["disabled"]
    for plugin in ("TaintToleration", "NodeResourcesFit", "NodeUnschedulable"):
        controller.handle(f"on.{plugin}", False)
    assert "6 of 6" in controller.summary()
    controller.handle("all", None)
    assert "3 of 6" in controller.summary()


def test_another_pod_can_be_picked() -> None:
    """big-0 fits nowhere; without NodeResourcesFit on four nodes."""
    controller = matrix()
    assert {o["value"] for o in controls(controller.view())["pod"]["options"]} >= {POD, "default/big-0"}
    controller.handle("pod", "default/big-0")
    assert verdict(controller.view()) == "big-0: no node fits"
    controller.handle("on.NodeResourcesFit", False)
    assert "4 of 6" in controller.summary()


def test_prefilter_verdicts_are_told() -> None:
    """A pod with a node affinity for names: PreFilter narrows the nodes, and the matrix says so."""
    pod = """
kind: Pod
metadata: {name: pinned}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a2]}]}]
  containers: [{name: c, image: app:v1}]
"""
    assert "PreFilter: NodeAffinity allows only a2" in text_of(matrix(pod).view())


def test_nothing_in_the_lab_changes() -> None:
    """No attempt, no switch, no pod in the lab afterwards."""
    lab = Lab("three-zones")
    controller = FilterMatrixController(
        lab, "kind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: a}]}"
    )
    controller.handle("on.NodeResourcesFit", False)
    assert (lab.history, lab.traces, len(lab.pods())) == (0, [], 17)
    assert "NodeResourcesFit" in lab.plugins.names("filter")


def test_an_unknown_pod_is_refused_with_the_waiting_ones() -> None:
    """The message names the pod and those that can be named."""
    with pytest.raises(LabError, match="there is no pod default/nobody") as e:
        matrix("nobody")
    assert "default/web-7" in str(e.value)


def test_search_at_a_thousand_nodes() -> None:
    """Top and bottom of the list, and a search that finds one node."""
    pod = "kind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: a}]}"
    controller = FilterMatrixController(Lab("nodes-1000"), pod)
    assert len(of_type(controller.view(), "table")[0]["rows"]) < 40
    name = controller.scene.nodes[777]["metadata"]["name"]
    controller.handle("search", name)
    assert list(column(of_type(controller.view(), "table")[0], "Reason")) == [name]


def test_as_a_widget_it_survives_nonsense() -> None:
    """A pod that is not there is a notice; the widget goes on."""
    widget = filter_matrix(Lab("three-zones"), "web-7")
    widget.set("pod", "default/nobody")
    assert of_type(widget.view["blocks"], "notice")[0]["status"] == "error"
    widget.set("on.Nonsense", False)
    assert "3 of 6" in repr(widget)
