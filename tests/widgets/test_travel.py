"""Going back in time: alone, beside a notebook's own calls, and with switches that were moved."""

from __future__ import annotations

import pytest
from labkit import Lab
from labkit.errors import InputError
from labkit.widgets.playground import PlaygroundController
from labkit.widgets.queue_view import QueueViewController
from labkit.widgets.score_explorer import ScoreExplorerController
from labkit.widgets.travel import Travel

from tests.widgets.blocks import controls

POD = "kind: Pod\nmetadata: {name: extra}\nspec: {containers: [{name: c, image: a}]}"
MOST = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/thing]
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}
"""


def placed(lab: Lab) -> dict[str, str]:
    """Pod -> node."""
    return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in lab.pods()}


def test_back_and_forward_are_exact() -> None:
    """Every position shows what it showed the first time."""
    lab = Lab("three-zones")
    travel = Travel(lab)
    seen = [(placed(lab), lab.now, str(lab.queue))]
    for act in (travel.step, travel.run, lambda: travel.advance(1), lambda: travel.advance(10)):
        act()
        seen.append((placed(lab), lab.now, str(lab.queue)))
    assert travel.most == travel.at == len(seen) - 1
    for at in (0, 3, 1, 4, 2):
        travel.go(at)
        assert (placed(lab), lab.now, str(lab.queue)) == seen[at]


def test_what_a_cell_did_before_the_first_step_stays() -> None:
    """A pod applied before the widget's steps is there after going back to the start."""
    lab = Lab("three-zones")
    travel = Travel(lab)
    lab.apply(POD)
    travel.step()
    travel.go(0)
    assert "extra" in placed(lab)


def test_what_a_cell_did_after_a_step_goes_with_it() -> None:
    """Step, cell, step: one back keeps the cell's pod, two back take it away."""
    lab = Lab("three-zones")
    travel = Travel(lab)
    travel.step()
    lab.apply(POD)
    travel.step()
    travel.go(1)
    assert "extra" in placed(lab)
    travel.go(0)
    assert "extra" not in placed(lab)


def test_a_rewind_from_a_cell_is_noticed() -> None:
    """After `lab.rewind()` the widget knows that its last step is undone, and steps on from there."""
    lab = Lab("three-zones")
    controller = QueueViewController(lab)
    controller.handle("step", None)
    controller.handle("step", None)
    lab.rewind()
    controller.view()
    assert controller.travel.at == 1
    controller.handle("back", None)
    assert lab.history == 0


def test_a_call_that_failed_is_no_obstacle() -> None:
    """A refused manifest is part of history; going back past it and over it works."""
    lab = Lab("three-zones")
    travel = Travel(lab)
    travel.step()
    with pytest.raises(InputError):
        lab.apply("kind: Pod\nmetadata: {name: bad}\nspec: {containers: []}")
    travel.step()
    travel.step()
    travel.go(2)
    assert len(lab.traces) == 2
    travel.go(0)
    assert lab.traces == []


def test_forward_moves_the_switches_too() -> None:
    """A weight moved, taken back, and made again shows the same weight each time."""
    controller = PlaygroundController(Lab("three-zones"))
    controller.handle("weight.ImageLocality", 7)
    controller.handle("weight.TaintToleration.on", False)
    controller.handle("time", 0)
    shown = controls(controller.view())
    assert (shown["weight.ImageLocality"]["value"], shown["weight.TaintToleration"]["on"]) == (1, True)
    controller.handle("time", 2)
    shown = controls(controller.view())
    assert (shown["weight.ImageLocality"]["value"], shown["weight.TaintToleration"]["on"]) == (7, False)


def test_a_plugin_sees_the_lab_as_it_is_after_going_back() -> None:
    """The handle of a plugin object that was put in is the scheduler's of now."""

    class Watcher:
        handle = None

        def filter(self, state: object, pod: object, node: object) -> None:
            assert self.handle is not None
            seen.append(self.handle.snapshot)

    seen: list[object] = []
    lab = Lab("three-zones")
    lab.plugins.replace(Watcher())
    lab.schedule_one()
    lab.rewind()
    seen.clear()
    lab.schedule_one()
    assert seen[-1] is lab.scheduler.services.snapshot


def test_the_strategy_shown_is_the_configured_one() -> None:
    """Lab with MostAllocated: both widgets say so; another strategy keeps the other args; reset goes back."""
    lab = Lab("three-zones", config=MOST)
    playground = PlaygroundController(lab)
    explorer = ScoreExplorerController(lab, "web-7")
    assert controls(playground.view())["strategy"]["value"] == "MostAllocated"
    assert controls(explorer.view())["strategy"]["value"] == "MostAllocated"
    before = explorer.trace.ranking()
    explorer.handle("strategy", "LeastAllocated")
    assert explorer.trace.ranking() != before
    explorer.handle("reset", None)
    assert explorer.trace.ranking() == before
    playground.handle("strategy", "LeastAllocated")
    (fit,) = (
        p
        for p in lab.scheduler.frameworks["default-scheduler"].plugins("score")
        if p.name == "NodeResourcesFit"
    )
    assert fit.args.ignored_resources == ["example.com/thing"]
    assert [(r.name, r.weight) for r in fit.args.scoring_strategy.resources] == [("cpu", 3)]


def test_explorers_take_over_a_strategy_moved_in_the_playground() -> None:
    """What the lab runs now is what is explored, and what `what_if` starts from."""
    lab = Lab("three-zones")
    playground = PlaygroundController(lab)
    playground.handle("strategy", "MostAllocated")
    explorer = ScoreExplorerController(lab, "web-7")
    assert explorer.strategy == "MostAllocated"
    differences = lab.what_if(disable=["ImageLocality"]).differences
    before = next(d.before for d in differences if d.pod == "default/web-7")
    lab.schedule_one()
    real = lab.trace("web-7").ranking()
    assert explorer.trace.ranking() == real
    assert before is not None
    assert before.ranking() == real
