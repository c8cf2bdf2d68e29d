"""The score explorer: weights and strategies move the pod, and the deciding plugin is named."""

from __future__ import annotations

import pytest
from labkit import Lab
from labkit.widgets import score_explorer
from labkit.widgets.score_explorer import ScoreExplorerController

from tests.widgets.blocks import cells, column, controls, of_type, text_of, verdict


def explorer(pod: str = "web-7") -> ScoreExplorerController:
    """A pod of the three-zones cluster that three nodes can take."""
    return ScoreExplorerController(Lab("three-zones"), pod)


def test_the_deciding_plugin_is_named_with_both_totals() -> None:
    """web-7 goes to b2 because of PodTopologySpread: without it a2 would win, 429 to 421."""
    view = explorer().view()
    assert verdict(view) == "web-7 → b2"
    assert "PodTopologySpread decided: without it a2 would win, 429 to 421" in text_of(view)


def test_switching_the_deciding_plugin_off_moves_the_pod() -> None:
    """Exactly to the node and total that the verdict had promised; and back."""
    controller = explorer()
    controller.handle("weight.PodTopologySpread.on", False)
    assert controller.summary() == "default/web-7 → a2 (429 points)"
    assert not controls(controller.view())["weight.PodTopologySpread"]["on"]
    controller.handle("weight.PodTopologySpread.on", True)
    assert controller.summary() == "default/web-7 → b2 (621 points)"


def test_a_weight_multiplies_the_normalised_score() -> None:
    """With weight 5, PodTopologySpread's part is five times its normalised score, and totals follow."""
    controller = explorer()
    before = {n: s.total for n, s in controller.trace.scores.items()}
    controller.handle("weight.PodTopologySpread", 5)
    for node, scores in controller.trace.scores.items():
        part = scores.plugins["PodTopologySpread"]
        assert part.weighted == 5 * part.normalized
        assert scores.total == before[node] + 3 * part.normalized


def test_bars_add_up_to_the_total_shown() -> None:
    """Each bar's label is a sum, and its result is the Total column."""
    table = of_type(explorer().view(), "table")[0]
    totals = column(table, "Total")
    for node, label in column(table, "Score by plugin").items():
        if "=" in label:
            parts, _, total = label.partition(" = ")
            assert (
                sum(int(p.rsplit(" ", 1)[1]) for p in parts.split(" + ")) == int(total) == int(totals[node])
            )


def test_the_strategy_turns_the_preference_round() -> None:
    """MostAllocated scores the fullest node highest, LeastAllocated lowest; reset restores the lab's profile."""
    controller = explorer()
    least = {n: s.plugins["NodeResourcesFit"].raw for n, s in controller.trace.scores.items()}
    controller.handle("strategy", "MostAllocated")
    most = {n: s.plugins["NodeResourcesFit"].raw for n, s in controller.trace.scores.items()}
    assert max(most, key=lambda n: most[n]) == min(least, key=lambda n: least[n])
    controller.handle("weight.ImageLocality", 9)
    controller.handle("reset", None)
    assert controller.summary() == "default/web-7 → b2 (621 points)"
    assert controls(controller.view())["strategy"]["value"] == "LeastAllocated"


def test_raw_normalised_and_weighted_are_on_demand() -> None:
    """The numbers are in a fold, one row a node and plugin."""
    fold = of_type(explorer().view(), "details")[0]
    rows = cells(of_type(fold, "table")[0])
    assert ["b2", "TaintToleration", "0", "100", "300"] in rows


def test_another_pod_and_one_that_fits_nowhere() -> None:
    """big-0 has no scores, and the verdict says that no node fits."""
    controller = explorer()
    controller.handle("pod", "default/big-0")
    assert verdict(controller.view()) == "big-0: no node fits"
    assert controller.summary() == "default/big-0 → nowhere"


def test_search_narrows_a_large_cluster() -> None:
    """At 100 nodes the table is cut, and a search finds one."""
    pod = "kind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: a}]}"
    controller = ScoreExplorerController(Lab("nodes-100"), pod)
    assert len(of_type(controller.view(), "table")[0]["rows"]) < 40
    name = controller.scene.nodes[77]["metadata"]["name"]
    controller.handle("search", name)
    assert list(column(of_type(controller.view(), "table")[0], "Total")) == [name]


def test_nothing_in_the_lab_changes() -> None:
    """The lab's weights are its own."""
    lab = Lab("three-zones")
    controller = ScoreExplorerController(lab, "web-7")
    controller.handle("weight.NodeResourcesFit", 9)
    controller.handle("weight.TaintToleration.on", False)
    assert lab.plugins.weights()["NodeResourcesFit"] == 1
    assert "TaintToleration" in lab.plugins.weights()
    assert lab.history == 0


@pytest.mark.parametrize(
    ("control", "value"),
    [
        ("weight.NodeResourcesFit", "x"),
        ("weight.Nobody", 3),
        ("strategy", "Best"),
        ("pod", "a/b"),
        ("", None),
    ],
)
def test_nonsense_from_the_page_leaves_the_decision(control: str, value: object) -> None:
    """Refused, or shown as a notice."""
    widget = score_explorer(Lab("three-zones"), "web-7")
    widget.set(control, value)
    assert "b2 (621 points)" in repr(widget)
