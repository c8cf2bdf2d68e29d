"""Controllers without kernel or browser: what is moved -> what is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from labkit import Lab
from labkit.i18n import set_language
from labkit.widgets import resources_explorer, trace_explorer
from labkit.widgets.resources import ResourcesExplorerController
from labkit.widgets.trace import TraceExplorerController
from labkit.widgets.view import STATUSES


def blocks_of(view: Any) -> list[dict[str, Any]]:
    """Every dict in a view, depth first."""
    if isinstance(view, dict):
        return [view, *(b for v in view.values() for b in blocks_of(v))]
    return [b for v in view for b in blocks_of(v)] if isinstance(view, list) else []


def explorer() -> ResourcesExplorerController:
    """Three nodes: 8 cores and 16 Gi, 2 and 4, 4 and 32."""
    return ResourcesExplorerController(Lab("small"), cpu="1", memory="1Gi")


def test_more_cpu_moves_the_pod_until_nothing_fits() -> None:
    """The winner follows the request; past the largest node there is none, and each node says why."""
    controller = explorer()
    controller.handle("cpu", 3000)
    assert controller.trace.node in ("big", "mem")
    controller.handle("cpu", 9000)
    assert controller.trace.node is None
    tags = [b["tag"] for b in blocks_of(controller.view()) if "tag" in b]
    assert tags == ["Insufficient cpu"] * 3


def test_strategy_and_weights_change_the_scores() -> None:
    """MostAllocated prefers the smallest node that fits; weights shift the mean."""
    controller = explorer()
    least = {n: s.plugins["NodeResourcesFit"].raw for n, s in controller.trace.scores.items()}
    controller.handle("strategy", "MostAllocated")
    most = {n: s.plugins["NodeResourcesFit"].raw for n, s in controller.trace.scores.items()}
    assert max(most, key=lambda n: most[n]) == "small"
    assert least != most
    controller.handle("weight.cpu", 10)
    assert {n: s.plugins["NodeResourcesFit"].raw for n, s in controller.trace.scores.items()} != most


@pytest.mark.parametrize(
    ("control", "value"),
    [("cpu", -5), ("memory", "x"), ("strategy", "Nonsense"), ("weight.cpu", 10**9), ("", None)],
)
def test_nonsense_from_the_page_never_kills_the_widget(control: str, value: Any) -> None:
    """A bad value is refused or shown as a notice; the widget goes on."""
    widget = resources_explorer(Lab("small"))
    widget.set(control, value)
    widget.set("cpu", 500)
    assert "500m CPU" in repr(widget)


def test_a_view_is_plain_json_with_names_for_everything() -> None:
    """Views survive JSON; every bar and stack has a label in words; statuses are known ones."""
    controller = explorer()
    view = json.loads(json.dumps(controller.view()))
    for block in blocks_of(view):
        if "parts" in block or "stack" in block:
            assert block["label"]
        if isinstance(block.get("status"), str):
            assert block["status"] in STATUSES
    sums = [b for b in blocks_of(view) if "stack" in b]
    assert len(sums) == 3
    assert all("=" in b["label"] for b in sums)


def test_both_languages() -> None:
    """The same view in Chinese has Chinese words and the same English plugin names."""
    try:
        set_language("zh")
        text = json.dumps(explorer().view(), ensure_ascii=False)
    finally:
        set_language(None)
    assert "CPU 请求" in text
    assert "NodeResourcesFit" in text


def test_trace_explorer_steps_through_a_labs_decisions() -> None:
    """Back and next move; the summary is the decision in words."""
    lab = Lab("three-zones")
    lab.run()
    controller = TraceExplorerController(lab.traces)
    last = controller.summary()
    controller.handle("back", None)
    assert controller.summary() != last
    controller.handle("next", None)
    assert controller.summary() == last
    assert "Trace" in repr(trace_explorer(lab))


def test_large_clusters_show_the_top_the_bottom_and_a_search() -> None:
    """At 200 nodes the table is cut, and a search finds any node."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i:03d}"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        for i in range(99)
    ]
    lab = Lab(nodes)
    lab.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: a}]}\n")
    trace = lab.schedule_one()
    assert trace is not None
    controller = TraceExplorerController([trace])
    rows = next(b for b in blocks_of(controller.view()) if b.get("type") == "table")["rows"]
    assert len(rows) < 40
    controller.handle("search", "n077")
    rows = next(b for b in blocks_of(controller.view()) if b.get("type") == "table")["rows"]
    assert len(rows) == 1
