"""Between two pods of a recorded scenario: FORMAT.md, sentence by sentence, on scenarios of our own."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.engine.notes import event_note
from labkit.engine.replay import Replay, replay

DEFAULT = "default-scheduler"


def node(name: str, cpu: str = "4", **status: Any) -> dict[str, Any]:
    """A node."""
    labels = {"kubernetes.io/hostname": name}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}, **status},
    }


def pod(name: str, cpu: str = "1", priority: int = 0, nominated: str = "", **spec: Any) -> dict[str, Any]:
    """A pod."""
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"u-{name}"},
        "spec": {
            "schedulerName": DEFAULT,
            "priority": priority,
            "containers": [{"name": "c", "image": "app:v1", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
        "status": {"nominatedNodeName": nominated} if nominated else {},
    }


def profile(**plugins: Any) -> dict[str, Any]:
    """A configuration whose one profile has these `plugins`."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": DEFAULT, "plugins": plugins}],
    }


def expect(objects: list[Any], pods: list[Any], config: Any = None) -> list[dict[str, Any]]:
    """The decisions."""
    found = replay({"name": "x-1", "config": config, "objects": objects, "pods": pods})
    decisions: list[dict[str, Any]] = found["expect"]
    return decisions


def bound(objects: list[Any], pods: list[Any], config: Any = None) -> list[str | None]:
    """Where the pods go."""
    return [e["bound"] for e in expect(objects, pods, config)]


def test_listed_order_whatever_the_priorities() -> None:
    """The first one gets the room."""
    assert bound([node("a", "1")], [pod("low"), pod("high", priority=0)]) == ["a", None]


def test_first_of_the_best_in_byte_order() -> None:
    """Not the first in snapshot order: nodes come in any order, b and a are equal."""
    assert bound([node("b"), node("a")], [pod("p")]) == ["a"]


def test_victims_go_at_once_and_the_pod_stays_nominated() -> None:
    """high takes the place of low; the next pod of lower priority sees it as nominated, one of higher does not."""
    objects = [node("a", "1"), pod("low", priority=-1, nodeName="a")]
    high, next_, top = expect(objects, [pod("high", priority=5), pod("next"), pod("top", priority=9)])
    assert high["postFilter"]["victims"] == ["default/low"]
    assert high["postFilter"]["nominatedNode"] == "a"
    assert high["postFilter"]["candidates"] == {"a": {"victims": ["default/low"], "pdbViolations": 0}}
    assert (next_["bound"], next_["filter"]["a"]["plugin"]) == (None, "NodeResourcesFit")
    assert next_["filterByPlugin"]["a"]["NodeResourcesFit"] == {"code": "Success"}
    assert top["bound"] == "a"


def test_nominated_from_the_start_even_when_later_in_the_list() -> None:
    """The nominated pod stands last and blocks the first."""
    assert bound([node("a", "1")], [pod("first"), pod("vip", priority=5, nominated="a")]) == [None, "a"]


def test_nomination_to_a_node_that_does_not_exist() -> None:
    """Blocks nobody."""
    assert bound([node("a", "1")], [pod("first"), pod("vip", priority=5, nominated="ghost")]) == ["a", None]


def test_only_the_nominated_node_is_feasible_but_all_are_listed() -> None:
    """No scores; `filter` lists every node."""
    (e,) = expect([node("a"), node("b")], [pod("p", nominated="b")])
    assert (e["bound"], e["best"], e["scores"], e["preScore"]) == ("b", ["b"], {}, {})
    assert {n: v["code"] for n, v in e["filter"].items()} == {"a": "Success", "b": "Success"}


def test_nomination_is_cleared_when_there_is_no_candidate() -> None:
    """big is nominated to a, fits nowhere, finds no victims: the next pod is not blocked any more."""
    objects = [node("a", "1")]
    assert bound(objects, [pod("big", "9", priority=5, nominated="a"), pod("next")]) == [None, "a"]


def test_nomination_stays_when_the_pod_may_not_preempt() -> None:
    """Not eligible: it stays, and blocks."""
    objects = [node("a", "2"), pod("on", nodeName="a", priority=9)]
    big = pod("big", "2", priority=5, nominated="a", preemptionPolicy="Never")
    assert bound(objects, [big, pod("next")]) == [None, None]


def test_nomination_is_cleared_without_post_filter_plugins() -> None:
    """The same pod, a profile without PostFilter."""
    objects = [node("a", "2"), pod("on", nodeName="a", priority=9)]
    big = pod("big", "2", priority=5, nominated="a", preemptionPolicy="Never")
    assert bound(objects, [big, pod("next")], profile(postFilter={"disabled": [{"name": "*"}]})) == [
        None,
        "a",
    ]


def test_lower_nominations_on_the_node_are_dropped() -> None:
    """low is nominated to a; high preempts there; a later pod is blocked by high alone."""
    objects = [node("a", "2"), pod("v", "2", priority=-1, nodeName="a")]
    low = pod("low", "1", priority=1, nominated="a")
    replayed = Replay(
        {"name": "x-1", "config": None, "objects": objects, "pods": [pod("high", "2", priority=5), low]}
    )
    high, _ = replayed.run()
    assert high.post_filter_result is not None
    assert [p.name for p in replayed.nominator.pods_for("a")] == ["high"]


def test_profile_without_score_plugins() -> None:
    """`best` lists all that pass, nothing is scored."""
    (e,) = expect(
        [node("b"), node("a"), node("c", "0")], [pod("p")], profile(score={"disabled": [{"name": "*"}]})
    )
    assert (e["bound"], e["best"], e["scores"], e["preScore"]) == ("a", ["a", "b"], {}, {})


def test_skipped_pods() -> None:
    """Gates and foreign schedulers; every other key is empty or null."""
    gated, foreign = expect(
        [node("a")], [pod("g", schedulingGates=[{"name": "x/y"}]), pod("f", schedulerName="o")]
    )
    assert gated["skipped"] == {
        "reason": "PreEnqueue",
        "plugin": "SchedulingGates",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["waiting for scheduling gates: [x/y]"],
    }
    assert foreign["skipped"] == {"reason": "NoProfile"}
    assert {k: v for k, v in foreign.items() if k not in ("pod", "skipped") and v} == {}


def test_pod_with_a_node_name_runs_without_post_filter() -> None:
    """Placed where it names; where that is impossible, `fullMessage` equals `message` and it is forgotten."""
    good, bad = expect(
        [node("a"), node("b", "1")], [pod("good", nodeName="a"), pod("bad", "2", nodeName="b", priority=9)]
    )
    assert good["bound"] == "a"
    assert (bad["bound"], bad["postFilter"]) == (None, None)
    assert bad["message"] == bad["fullMessage"] != ""


def test_no_nodes() -> None:
    """`preFilter` is null."""
    (e,) = expect([], [pod("p")])
    assert (e["preFilter"], e["message"], e["postFilter"]) == (
        None,
        "no nodes available to schedule pods",
        None,
    )


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1020 + " ..."),
        ("é" * 600, "é" * 510 + " ..."),
        ("100%", "100%!(NOVERB)"),
        ("100%% sure", "100% sure"),
        ("5% of", "5%!o(MISSING)f"),
    ],
)
def test_note_of_the_event(message: str, note: str) -> None:
    """Cut to 1024 bytes: the first 1020 and ` ...`; read as a format without arguments (spec 01 §8.1)."""
    assert event_note(message) == note


def test_the_size_of_an_image_is_that_of_the_first_node_by_name() -> None:
    """b stands first in the file with a small image, a has a big one: a's size counts for both."""
    mib = 2**20

    def image(name: str, size: int) -> dict[str, Any]:
        return node(name, images=[{"names": ["app:v1"], "sizeBytes": size}])

    (e,) = expect([image("b", 30 * mib), image("a", 900 * mib)], [pod("p")])
    raw = {n: s["plugins"]["ImageLocality"]["raw"] for n, s in e["scores"].items()}
    assert raw["a"] == raw["b"] == (900 - 23) * 100 // (1000 - 23)


def test_refused_configurations() -> None:
    """Stage and text."""
    config = profile(filter={"enabled": [{"name": "Nope"}]})
    found = replay({"name": "x-1", "config": config, "objects": [], "pods": []})
    assert found["configErrorStage"] == "init"
    assert "Nope" in found["configError"]
