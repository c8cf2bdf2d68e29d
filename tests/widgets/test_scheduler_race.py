"""The scheduler race: who saw what, who bound, where they collide; three ways to run the same schedulers."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.errors import LabError
from labkit.i18n import set_language
from labkit.several import Member, SeveralSchedulers
from labkit.widgets import scheduler_race
from labkit.widgets.scheduler_race import SchedulerRaceController

from tests.widgets.blocks import cells, column, controls, of_type, text_of, verdict


def race(*members: Member, source: Any = "two-schedulers") -> SchedulerRaceController:
    """Two schedulers of different names; news takes a second."""
    given = members or (Member(identity="a", delay=1), Member("batch-scheduler", "b", delay=1))
    return SchedulerRaceController(SeveralSchedulers(source, given))


def rows_of(controller: SchedulerRaceController, title: str) -> list[list[str]]:
    """The rows of the table that has a column `title`."""
    for table in of_type(controller.view(), "table"):
        if title in [c["text"] for c in table["columns"]]:
            return cells(table)
    raise AssertionError(title)


def lanes(controller: SchedulerRaceController) -> dict[str, list[str]]:
    """Lane -> the texts on it."""
    (picture,) = of_type(controller.view(), "timeline")
    return {lane["name"]: [s["text"] for s in lane["spans"]] for lane in picture["lanes"]}


def test_before_the_first_step_nothing_has_happened() -> None:
    """No lanes, no decisions, and nothing to take back."""
    controller = race()
    assert verdict(controller.view()) == "Nothing is bound yet."
    assert not of_type(controller.view(), "timeline")
    shown = controls(controller.view())
    assert shown["back"]["disabled"]
    assert shown["reset"]["disabled"]
    assert shown["mode"]["value"] == "names"


def test_different_names_overcommit_nodes_and_the_kubelet_refuses() -> None:
    """OutOfcpu in the lane of the node, in the verdict and in the notice, in the kubelet's words."""
    controller = race()
    controller.handle("run", None)
    view = controller.view()
    assert verdict(view) == "2 pods bound in vain: the node refused batch-1, batch-2"
    assert "requested: 3000, used: 2000, capacity: 4000" in of_type(view, "verdict")[0]["why"]
    assert "n1: pods for 5 CPU were bound, it has 4 CPU" in [n["text"] for n in of_type(view, "notice")]
    drawn = lanes(controller)
    assert drawn["a"] == ["✓ web-1→n1", "✓ web-2→n2"]
    assert drawn["b"] == ["✓ batch-1→n1", "✓ batch-2→n2"]
    assert drawn["n1"] == ["✓ web-1", "✕ OutOfcpu", "web-1 runs"]
    assert drawn["virtual time"] == ["0 s", "1 s"]


def test_the_table_tells_what_a_scheduler_did_not_know() -> None:
    """b counted nothing on n1; web-1 was there, and that is what is emphasised."""
    controller = race()
    controller.handle("run", None)
    rows = rows_of(controller, "It counted there")
    assert rows[1] == ["batch-1 → n1", "b", "0.0", "–", "web-1", "fail bound; refused by the node"]
    assert rows[0][3:] == ["–", "–", "pass bound"]
    strong = [b for b in of_type(controller.view(), "table")[0]["rows"][1]["cells"] if isinstance(b, dict)]
    assert {"text": "web-1", "strong": True} in strong


def test_without_delay_the_second_one_knows_better() -> None:
    """The slider begins anew: news at once, batch-2 stays Pending, nobody is refused."""
    controller = race()
    controller.handle("run", None)
    controller.handle("delay", 0)
    assert controller.several.log == []
    controller.handle("run", None)
    assert verdict(controller.view()) == "3 pods bound, no conflict, nobody refused"
    assert rows_of(controller, "Outcome")[-1] == ["batch-2 → –", "b", "0.0", "–", "–", "wait stays Pending"]


def test_same_name_without_election_collides() -> None:
    """Every pod twice, one of them a 409; pods of the other name wait for nobody."""
    controller = race()
    controller.handle("mode", "race")
    controller.handle("run", None)
    view = controller.view()
    assert verdict(view) == "2 attempts for nothing: the pod was bound already (409)"
    assert lanes(controller)["b"] == ["✕ web-1: 409", "✕ web-2: 409"]
    assert "Nobody serves batch-scheduler: batch-1, batch-2 stay Pending" in text_of(view)
    assert rows_of(controller, "Outcome")[1][-1] == "fail 409: was bound already"


def test_with_election_one_works_and_the_other_stands_by() -> None:
    """Stopped, it hands over at once; killed, its lease must run out first."""
    controller = race()
    controller.handle("mode", "elected")
    controller.handle("run", None)
    assert verdict(controller.view()) == "2 pods bound, no conflict, nobody refused"
    state = column(of_type(controller.view(), "table")[1], "State")
    assert state == {"a": "pass leads", "b": "wait stands by", "API server": "–"}

    def handover(how: str) -> float:
        controller.handle("reset", None)
        controller.handle("run", None)
        controller.handle(f"{how}.a", None)
        controller.handle("advance.20", None)
        return next(e.time for e in controller.several.log if e.kind == "leading" and e.member == "b")

    assert handover("stop") < 10
    assert 15 <= handover("kill") < 22
    shown = controls(controller.view())
    assert shown["stop.a"]["disabled"]
    assert not shown["stop.b"]["disabled"]


def test_a_stopped_scheduler_leaves_its_pods_to_nobody() -> None:
    """Its pods stay Pending, and the widget says why."""
    controller = race()
    controller.handle("stop.b", None)
    controller.handle("run", None)
    assert "Nobody serves batch-scheduler: batch-1, batch-2" in text_of(controller.view())
    assert rows_of(controller, "State")[1][2] == "skip stopped"


def test_assumed_pods_are_marked_until_they_are_confirmed() -> None:
    """After a step a counts web-1 as assumed and b counts nothing; in the end both count the same."""
    controller = race()
    controller.handle("step", None)
    rows = {r[0]: r[4] for r in rows_of(controller, "Counts on n1")}
    assert rows == {"a": "web-1*", "b": "–", "API server": "web-1"}
    controller.handle("run", None)
    rows = {r[0]: r[4] for r in rows_of(controller, "Counts on n1")}
    assert rows == {"a": "web-1", "b": "web-1", "API server": "web-1"}


def test_back_takes_the_last_step_back_and_reset_all() -> None:
    """The same steps give the same log."""
    controller = race()
    controller.handle("step", None)
    before = list(controller.several.log)
    controller.handle("run", None)
    controller.handle("back", None)
    assert controller.several.log == before
    controller.handle("reset", None)
    assert controller.several.log == []
    assert controller.several.now == 0


def test_the_names_of_the_mode_come_from_the_pods() -> None:
    """Given two of one name, the other name is the one that pods ask for."""
    controller = race(Member(identity="a", delay=1), Member(identity="b", delay=1))
    assert controller.mode == "race"
    controller.handle("mode", "names")
    assert [m.name for m in controller.several.members] == ["default-scheduler", "batch-scheduler"]
    controller.handle("mode", "race")
    assert [m.name for m in controller.several.members] == ["default-scheduler"] * 2


def test_a_mode_that_a_members_config_cannot_serve_leaves_the_old_one() -> None:
    """The config has one profile only; the error says so, and the widget goes on."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "batch-scheduler"}],
    }
    controller = race(Member(identity="a"), Member("batch-scheduler", "b", config=config))
    with pytest.raises(LabError, match="no profile 'default-scheduler'"):
        controller.handle("mode", "race")
    assert controller.mode == "names"
    controller.handle("run", None)
    assert controller.several.summary()["bound"] == 3


def test_mixed_members_are_run_as_given() -> None:
    """Three members, two of one name: the fourth choice."""
    controller = race(Member(identity="a"), Member(identity="b"), Member("batch-scheduler", "c"))
    assert controls(controller.view())["mode"]["value"] == "given"
    assert "as given" in controller.summary()


def test_many_moments_show_the_last_eight() -> None:
    """The rest is counted, and in the log."""
    pods = [
        {
            "kind": "Pod",
            "metadata": {"name": f"p{i}", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "a"}]},
        }
        for i in range(20)
    ]
    node = {
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    controller = race(Member(identity="a"), source=[node, *pods])
    controller.handle("run", None)
    assert len(lanes(controller)["n"]) == 8
    assert "earlier moments are in the log" in text_of(controller.view())
    assert len(rows_of(controller, "In the cluster's words")) == len(controller.several.log)


def test_in_chinese() -> None:
    """Plugin and field names stay, the rest is translated."""
    set_language("zh")
    try:
        controller = race()
        controller.handle("run", None)
        assert verdict(controller.view()) == "2 个 Pod 白绑定了：节点拒绝了 batch-1, batch-2"
        assert controller.summary() == "名字不同：4 次绑定，0 次冲突，2 次被节点拒绝"
        assert lanes(controller)["n1"][0] == "✓ web-1"
        assert "接纳 web-1" in text_of(controller.view())
    finally:
        set_language(None)


def test_as_a_widget_it_survives_nonsense() -> None:
    """Unknown members, modes and numbers are notices; the schedulers go on."""
    widget = scheduler_race(SeveralSchedulers("two-schedulers"))
    widget.set("stop.nobody")
    assert of_type(widget.view["blocks"], "notice")[0]["status"] == "error"
    for id, value in (("mode", "x"), ("delay", "x"), ("delay", -1), ("advance.x", None)):
        widget.set(id, value)
        assert of_type(widget.view["blocks"], "notice")[0]["status"] == "error", id
    widget.set("step")
    assert verdict(widget.view["blocks"]) == "1 pod bound, no conflict, nobody refused"
