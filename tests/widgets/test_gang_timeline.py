"""The gang timeline: what each wait looked like and how it ended, in lanes and in tables; changes; back in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from labkit import Lab
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.i18n import set_language
from labkit.plugins.course import Coscheduling, GangPermit
from labkit.widgets import gang_timeline
from labkit.widgets.gang_timeline import GangTimelineController

from tests.widgets.blocks import cells, controls, of_type, text_of, verdict


@pytest.fixture(params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both languages, one after the other."""
    set_language(request.param)
    yield request.param
    set_language("en")


def gang_lab(plugin: Any = GangPermit) -> Lab:
    """Four workers, room for three, and a pod that wants a part of that room."""
    lab = Lab("gang")
    if plugin is not None:
        lab.plugins.enable(plugin)
    return lab


def lanes(controller: GangTimelineController) -> dict[str, list[tuple[float, float, str, str]]]:
    """Pod -> (from, to, text, status)."""
    (picture,) = of_type(controller.view(), "timeline")
    return {
        lane["name"]: [(s["from"], s["to"], s["text"], s["status"]) for s in lane["spans"]]
        for lane in picture["lanes"]
    }


def states(controller: GangTimelineController) -> dict[str, list[str]]:
    """Pod -> state, node, seconds left, attempts."""
    return {r[0]: r[1:] for r in cells(of_type(controller.view(), "table")[0])}


def log(controller: GangTimelineController) -> list[list[str]]:
    """Time, pod, extension point, result, node, message."""
    tables = of_type(controller.view(), "table")
    return cells(tables[1]) if len(tables) > 1 else []


def where(lab: Lab) -> dict[str, str | None]:
    """Pod -> node."""
    return {p["metadata"]["name"]: p["spec"].get("nodeName") for p in lab.pods()}


def test_before_the_first_step_nobody_holds_anything() -> None:
    """Empty lanes for all pods, members first; nothing to take back."""
    controller = GangTimelineController(gang_lab())
    assert lanes(controller) == {n: [] for n in ("train-0", "train-1", "train-2", "train-3", "web-0")}
    assert verdict(controller.view()) == "train: nobody holds a node."
    assert log(controller) == []
    shown = controls(controller.view())
    assert shown["back"]["disabled"]
    assert shown["reset"]["disabled"]


def test_a_step_books_a_node_and_permit_holds_the_pod() -> None:
    """Reserve and Permit in the table, 60 seconds; ten later others, who time out at 70, stretch the picture."""
    controller = GangTimelineController(gang_lab())
    controller.handle("step", None)
    assert [r[1:5] for r in log(controller)] == [
        ["train-0", "Reserve", "pass node booked", "g1"],
        ["train-0", "Permit", "wait wait: GangPermit 60 s", "g1"],
    ]
    controller.handle("advance.10", None)
    assert states(controller)["train-0"] == ["wait held", "g1", "50.0", "1"]
    assert lanes(controller)["train-0"] == [(0.0, 14.29, "◷ g1", "wait")]
    assert of_type(controller.view(), "timeline")[0]["now"] == pytest.approx(100 * 10 / 70)


def test_a_gang_that_cannot_gather_times_out_and_others_get_the_room() -> None:
    """Three held, the fourth without room; after 60 s all are undone, and web-0 is bound at that moment."""
    lab = gang_lab()
    controller = GangTimelineController(lab)
    controller.handle("run", None)
    assert verdict(controller.view()) == "train: 3 of 4 have booked a node and wait."
    assert controller.summary() == "train: 0 bound, 3 held by Permit, 1 without a node (needs 4)"
    assert states(controller)["web-0"][0] == "fail no node fits"
    controller.handle("advance.60", None)
    rows = [r for r in log(controller) if r[0] == "t + 01:00.0"]
    assert [r[1:4] for r in rows[:6]] == [
        [f"train-{i}", point, words]
        for i in range(3)
        for point, words in (("Permit", "fail timed out"), ("Unreserve", "skip booking undone"))
    ]
    assert "rejected due to timeout after waiting 1m0s at plugin GangPermit" in rows[0][5]
    assert ["web-0", "Bind", "pass bound"] in [r[1:4] for r in rows]
    assert ["train-3", "PreFilter", "fail refused"] in [r[1:4] for r in rows]
    assert lanes(controller)["train-0"][-1][2:] == ("✕ timed out", "fail")
    assert where(lab)["web-0"] == "g1"


def test_room_for_the_last_member_lets_all_go_at_once() -> None:
    """+ node: the fourth member is bound, and the three are allowed after its Permit, not before its Reserve."""
    lab = gang_lab()
    controller = GangTimelineController(lab)
    controller.handle("run", None)
    controller.handle("advance.10", None)
    controller.handle("node.add", None)
    controller.handle("run", None)
    controller.handle("advance.10", None)
    assert where(lab)["train-3"] == "g4"
    assert verdict(controller.view()) == "train runs: 4 pods bound."
    late = [r[1:4] for r in log(controller) if r[0] == "t + 00:10.0" and r[1].startswith("train")]
    assert late[:2] == [["train-3", "Reserve", "pass node booked"], ["train-3", "Bind", "pass bound"]]
    assert late[2:] == [
        [f"train-{i}", point, words]
        for i in range(3)
        for point, words in (("Permit", "pass allowed"), ("Bind", "pass bound"))
    ]
    assert lanes(controller)["train-0"] == [(0.0, 50.0, "◷ g1", "wait"), (50.0, 100.0, "✓ g1", "pass")]


def test_a_held_member_that_is_deleted_takes_the_others_along() -> None:
    """− member deletes the last one; when it was held, Unreserve rejects its siblings with a reason."""
    lab = gang_lab()
    lab.delete("Pod", "train-3")
    controller = GangTimelineController(lab)
    controller.handle("run", None)
    controller.handle("advance.10", None)
    controller.handle("member.remove", None)
    rows = [r for r in log(controller) if r[0] == "t + 00:10.0" and r[2] == "Permit"]
    assert [r[1] for r in rows] == ["train-0", "train-1", "train-2"]
    assert [r[3] for r in rows] == ["fail rejected"] * 3
    assert ["default/train-2 cannot stay" in r[5] for r in rows] == [True, True, False]
    assert states(controller)["train-2"][0] == "skip deleted"
    assert "train-2" in lanes(controller)


def test_a_member_is_added_with_the_labels_of_the_others() -> None:
    """It belongs to the gang, waits in the queue, and gets the next number."""
    lab = gang_lab()
    controller = GangTimelineController(lab)
    controller.handle("member.add", None)
    made = next(p for p in lab.pods() if p["metadata"]["name"] == "train-4")
    assert made["metadata"]["labels"]["gang-id"] == "train"
    assert not made["spec"].get("nodeName")
    assert list(lanes(controller))[:5] == [f"train-{i}" for i in range(5)]


@pytest.mark.parametrize("plugin", [GangPermit, Coscheduling])
def test_the_time_out_holds_for_waits_that_begin_afterwards(plugin: Any) -> None:
    """train-0 keeps its 60 s, train-1 gets 10."""
    lab = gang_lab(plugin)
    if plugin is Coscheduling:
        group = {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "train"},
        }
        lab.apply(group | {"spec": {"minMember": 4}})
        for pod in lab.pods():
            if "gang-id" in pod["metadata"]["labels"]:
                labels = {"scheduling.x-k8s.io/pod-group": "train"}
                patch = {"metadata": {"labels": labels}}
                lab.client.patch("Pod", pod["metadata"]["name"], "default", patch, "merge")
    controller = GangTimelineController(lab)
    controller.handle("step", None)
    assert controls(controller.view())["timeout"]["value"] == "60"
    controller.handle("timeout", "10")
    controller.handle("step", None)
    held = sorted(r[2] for r in states(controller).values() if r[0] == "wait held")
    assert held == ["10.0", "60.0"]
    assert controls(controller.view())["timeout"]["value"] == "10"
    controller.handle("back", None)
    controller.handle("back", None)
    assert controls(controller.view())["timeout"]["value"] == "60"


def test_a_learners_attribute_timeout_can_be_changed() -> None:
    """Any Permit plugin with a number `timeout`."""

    class Mine(Plugin):
        timeout = 30

        def permit(self, state: Any, pod: Any, node_name: str) -> tuple[Status | None, float]:
            return Status.wait("for ever"), self.timeout

    controller = GangTimelineController(gang_lab(Mine))
    assert controls(controller.view())["timeout"]["value"] == "30"
    controller.handle("timeout", "5")
    controller.handle("step", None)
    assert states(controller)["train-0"][2] == "5.0"


def test_without_a_permit_plugin_a_part_of_the_gang_runs_and_the_button_mends_it() -> None:
    """Three of four run: said as a failure. Reset, enable GangPermit: three wait."""
    lab = gang_lab(None)
    controller = GangTimelineController(lab)
    controller.handle("run", None)
    assert of_type(controller.view(), "verdict")[0]["status"] == "fail"
    assert verdict(controller.view()).startswith("train: 3 of 4 run.")
    assert "No plugin serves Permit" in text_of(controller.view())
    controller.handle("reset", None)
    assert set(where(lab).values()) == {None}
    controller.handle("plugin.enable", None)
    assert "plugin.enable" not in controls(controller.view())
    controller.handle("run", None)
    assert verdict(controller.view()) == "train: 3 of 4 have booked a node and wait."


def test_refused_at_permit_and_raised_at_permit_are_told_apart() -> None:
    """Unschedulable: refused, the booking undone. An exception: an error."""

    class No(Plugin):
        def permit(self, state: Any, pod: Any, node_name: str) -> Status:
            if pod.name == "train-0":
                raise RuntimeError("boom")
            return Status.unschedulable("not today")

    controller = GangTimelineController(gang_lab(No))
    controller.handle("step", None)
    assert states(controller)["train-0"][0] == "error error"
    controller.handle("step", None)
    assert states(controller)["train-1"][0] == "fail refused"
    assert [r[2] for r in log(controller) if r[1] == "train-1"] == ["Reserve", "–", "Unreserve"]
    assert "not today" in log(controller)[-2][5]


def test_there_and_back_again_shows_the_same() -> None:
    """Every step of a history, forward, back one by one, and forward again; waits that ended are open again."""
    controller = GangTimelineController(gang_lab())
    seen = []
    for id in ("step", "run", "advance.10", "node.add", "run", "advance.60", "member.remove", "advance.10"):
        controller.handle(id, None)
        seen.append((lanes(controller), states(controller), log(controller)))
    for at in range(len(seen) - 1, 0, -1):
        controller.handle("back", None)
        assert (lanes(controller), states(controller), log(controller)) == seen[at - 1]
    controller.handle("time", len(seen))
    assert (lanes(controller), states(controller), log(controller)) == seen[-1]


def test_what_a_cell_does_meanwhile_is_seen() -> None:
    """The lab is run, and rewound, from code."""
    lab = gang_lab()
    controller = GangTimelineController(lab)
    lab.run()
    lab.advance(60)
    assert states(controller)["train-0"][0] == "fail timed out"
    lab.rewind(1)
    assert states(controller)["train-0"] == ["wait held", "g1", "60.0", "1"]
    lab.advance(30)
    assert states(controller)["train-0"] == ["wait held", "g1", "30.0", "1"]


def test_two_gangs_can_be_chosen_from() -> None:
    """The members of the chosen one come first."""
    lab = gang_lab()
    lab.apply(
        {
            "kind": "Pod",
            "metadata": {"name": "solo", "labels": {"gang-id": "other", "gang-min-count": "2"}},
            "spec": {"containers": [{"name": "c", "image": "a"}]},
        }
    )
    controller = GangTimelineController(lab)
    assert "gang" in controls(controller.view())
    controller.handle("gang", "default/other")
    assert next(iter(lanes(controller))) == "solo"
    assert controller.summary() == "other: 0 bound, 0 held by Permit, 1 without a node (needs 2)"


def test_every_control_and_picture_has_words_in_both_languages(language: str) -> None:
    """Labels, texts, and a clean run of everything; also for a lab without nodes or gangs."""
    widget = gang_timeline(gang_lab())
    for id in ("run", "advance.60", "node.add", "member.add", "run", "member.remove", "reset", "nonsense"):
        widget.set(id)
        for block in controls(widget.view["blocks"]).values():
            assert block["text"]
        assert all(p["label"] for p in of_type(widget.view["blocks"], "timeline"))
        assert not [n for n in of_type(widget.view["blocks"], "notice") if n["status"] == "error"]
    chinese = any("\u4e00" <= ch <= "\u9fff" for ch in text_of(widget.view["blocks"]))
    assert chinese == (language == "zh")
    empty = GangTimelineController(Lab([]))
    empty.handle("member.add", None)
    empty.handle("node.add", None)
    assert lanes(empty) == {}
    assert empty.lab.history == 0


def test_as_a_widget_it_survives_nonsense() -> None:
    """A time-out that is no number is a notice, and nothing has changed."""
    widget = gang_timeline(gang_lab())
    widget.set("timeout", "soon")
    assert of_type(widget.view["blocks"], "notice")[0]["status"] == "error"
    widget.set("step")
    assert verdict(widget.view["blocks"]) == "train: 1 of 4 have booked a node and wait."
