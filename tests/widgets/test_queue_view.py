"""The queue view: where each pod is, what woke it, how long Permit holds it."""

from __future__ import annotations

from labkit import Lab
from labkit.widgets import queue_view
from labkit.widgets.queue_view import QueueViewController

from tests.widgets.blocks import cells, controls, of_type, text_of, verdict

BIG = """
kind: Pod
metadata: {name: big}
spec: {containers: [{name: c, image: a, resources: {requests: {cpu: "7"}}}]}
"""
NODE = """
kind: Node
metadata: {name: %s}
status: {allocatable: {cpu: "%s", memory: 16Gi, pods: "110"}}
"""


class Hold:
    """Permit holds every pod for a minute."""

    def permit(self, state: object, pod: object, node_name: str) -> tuple[object, float]:
        from labkit.framework.status import Status

        return Status.wait("hold on"), 60.0


class Loud:
    """Rejects everything, and cannot say what it waits for."""

    def filter(self, state: object, pod: object, node: object) -> object:
        from labkit.framework.status import Status

        return Status.unschedulable("no")

    def events_to_register(self) -> list[object]:
        raise RuntimeError("not today")


def waiting_lab() -> Lab:
    """One node of 4 CPU and a pod of 7 that was tried in vain."""
    lab = Lab([])
    lab.apply(NODE % ("small", 4))
    lab.apply(BIG)
    lab.run()
    return lab


def card(controller: QueueViewController, start: str) -> str:
    """The text of the card whose title begins with `start`."""
    return text_of(next(b for b in of_type(controller.view(), "card") if str(b["title"]).startswith(start)))


def test_step_takes_the_first_of_the_active_queue() -> None:
    """The next pod is named before the step, its decision after it."""
    controller = QueueViewController(Lab("three-zones"))
    assert verdict(controller.view()) == "default/web-7 is next."
    controller.handle("step", None)
    assert verdict(controller.view()) == "web-7 → b2"
    assert "web-7" not in card(controller, "Active")


def test_a_rejected_pod_shows_its_plugin_and_a_gated_one_its_gate() -> None:
    """big-0 waits for an event; train-0 for its gate."""
    controller = QueueViewController(Lab("three-zones"))
    controller.handle("run", None)
    assert "NodeResourcesFit" in card(controller, "Unschedulable")
    assert "lab.example/quota" in card(controller, "Gated")
    assert controller.summary() == "0 active, 0 in back-off, 1 unschedulable, 1 gated"


def test_an_event_that_does_not_help_is_skipped_and_one_that_helps_queues() -> None:
    """A node too small: Skip, the pod stays. A node large enough: Queue, and the pod is ready or in back-off."""
    lab = waiting_lab()
    controller = QueueViewController(lab)
    lab.apply(NODE % ("tiny", 2))
    controller.view()
    assert [(a.event, a.pod, a.plugins, a.strategy.value) for a in controller.asked] == [
        ("NodeAdd", "default/big", ["NodeResourcesFit"], "Skip")
    ]
    lab.apply(NODE % ("large", 8))
    rows = next(
        cells(t) for t in of_type(controller.view(), "table") if t["columns"][0]["text"] == "Cluster event"
    )
    assert rows[0] == ["NodeAdd", "t + 00:00.0", "big", "NodeResourcesFit", "pass Queue: worth a try"]
    assert rows[1][4] == "skip Skip: stays"
    assert "unschedulable" not in str(lab.queue)


def test_back_off_is_shown_with_the_seconds_left() -> None:
    """Woken within a second of the rejection, the pod waits out its back-off, then is placed."""
    lab = waiting_lab()
    controller = QueueViewController(lab)
    lab.apply(NODE % ("large", 8))
    assert "s left" in card(controller, "Back-off")
    controller.handle("advance.1", None)
    controller.handle("advance.10", None)
    assert "big" not in card(controller, "Back-off")
    assert lab.pods()[0]["spec"]["nodeName"] == "large"


def test_five_minutes_bring_an_unschedulable_pod_back() -> None:
    """+ 5 min, twice: the flush of the pool tries it again."""
    lab = waiting_lab()
    controller = QueueViewController(lab)
    controller.handle("advance.300", None)
    controller.handle("advance.300", None)
    assert lab.trace("big").attempt >= 2
    assert "UnschedulableTimeout" in [a.event for a in controller.asked]


def test_hints_are_forgotten_with_the_time_in_which_they_came() -> None:
    """Going back before the event takes its line away; forward brings it again."""
    lab = waiting_lab()
    controller = QueueViewController(lab)
    controller.handle("advance.300", None)
    controller.handle("advance.300", None)
    controller.view()
    seen = [(a.event, a.seconds) for a in controller.asked]
    assert seen
    controller.handle("time", 0)
    controller.view()
    assert controller.asked == []
    controller.handle("time", 2)
    controller.view()
    assert [(a.event, a.seconds) for a in controller.asked] == seen


def test_a_pod_held_by_permit_is_in_flight_with_its_time_left() -> None:
    """The plugin, the node and the seconds; after the time-out it is elsewhere."""
    lab = Lab([])
    lab.apply(NODE % ("n", 8))
    lab.plugins.enable(Hold)
    lab.apply(BIG)
    controller = QueueViewController(lab)
    controller.handle("step", None)
    assert "Hold; on n, 60 s left" in card(controller, "In flight")
    controller.handle("advance.10", None)
    assert "Hold; on n, 50 s left" in card(controller, "In flight")
    assert controller.summary().endswith("1 held by Permit")


def test_a_plugin_that_cannot_register_events_waits_for_every_event() -> None:
    """Its own change of status wakes the pod already; the view goes on."""
    lab = Lab([])
    lab.apply(NODE % ("n", 8))
    lab.plugins.enable(Loud)
    lab.apply(BIG)
    controller = QueueViewController(lab)
    controller.handle("step", None)
    assert "big" in card(controller, "Back-off")


def test_buttons_are_disabled_when_there_is_nothing_to_do() -> None:
    """Back before the first step, Step and Run with an empty active queue."""
    controller = QueueViewController(waiting_lab())
    shown = controls(controller.view())
    assert [shown[b]["disabled"] for b in ("back", "step", "run")] == [True, True, True]
    controller.handle("advance.1", None)
    assert not controls(controller.view())["back"]["disabled"]


def test_events_of_the_pods_are_listed() -> None:
    """FailedScheduling with kube-scheduler's message."""
    controller = QueueViewController(Lab("three-zones"))
    controller.handle("run", None)
    shown = text_of(controller.view())
    assert "FailedScheduling" in shown
    assert "0/6 nodes are available" in shown
    assert "Scheduled" in shown


def test_as_a_widget_it_survives_nonsense() -> None:
    """A time that is no number is a notice."""
    widget = queue_view(Lab("three-zones"))
    widget.set("time", "x")
    widget.set("advance.x")
    widget.set("step")
    assert verdict(widget.view["blocks"]) == "web-7 → b2"
