"""What holds for the whole family, whatever a widget shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from labkit import Lab, widgets
from labkit.cli._bench_widgets import measure

from tests.widgets.blocks import of_type, text_of

PLUGIN = "class P:\n    def score(self, state, pod, node):\n        return 5\n"
MADE: dict[str, Callable[[Lab], Any]] = {
    "cluster_map": lambda lab: widgets.cluster_map(lab),
    "playground": lambda lab: widgets.playground(lab),
    "filter_matrix": lambda lab: widgets.filter_matrix(lab, "web-7"),
    "score_explorer": lambda lab: widgets.score_explorer(lab, "web-7"),
    "queue_view": lambda lab: widgets.queue_view(lab),
    "plugin_editor": lambda lab: widgets.plugin_editor(lab, PLUGIN),
}


@pytest.mark.parametrize("name", MADE)
def test_a_second_call_works_like_the_first(name: str) -> None:
    """Modules bear the functions' names; importing them leaves the functions in their place."""
    lab = Lab("three-zones")
    assert repr(MADE[name](lab)) == repr(MADE[name](lab))


def test_functions_stay_callable_in_a_new_process() -> None:
    """Also with `from labkit.widgets import ...` after the first use, as in a notebook's later cells."""
    code = (
        "from labkit import Lab, widgets\n"
        "widgets.playground(Lab('small'))\n"
        "from labkit.widgets import playground, cluster_map\n"
        "from labkit.widgets.cluster_map import ClusterMapController\n"
        "print(playground(Lab('small')), callable(cluster_map))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("<Playground: t + 00:00.0")
    assert done.stdout.rstrip().endswith("True")


@pytest.mark.parametrize("name", MADE)
def test_an_empty_lab_is_no_error(name: str) -> None:
    """No nodes, and a pod that can go nowhere: only kube-scheduler's own error is shown."""
    lab = Lab([])
    lab.apply("kind: Pod\nmetadata: {name: web-7}\nspec: {containers: [{name: c, image: a}]}")
    widget = MADE[name](lab)
    errors = {b["text"] for b in of_type(widget.view["blocks"], "notice") if b["status"] == "error"}
    assert errors <= {"no nodes available to schedule pods"}
    assert "web-7" in text_of(widget.view["blocks"]) or name == "cluster_map"


def test_the_bench_moves_every_control_and_names_the_target() -> None:
    """Rows for all widgets; no time is judged here."""
    rows = list(measure(100, rounds=1))
    others = {"resources_explorer", "config_editor", "domains_view", "preemption_explorer"}
    assert {r["widget"] for r in rows} == {*MADE, *others, "gang_timeline", "scheduler_race"}
    assert {r["target ms"] for r in rows} == {100.0}
    assert all(0 < r["median ms"] <= r["worst ms"] for r in rows)
