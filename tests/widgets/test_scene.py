"""What the explorers decide on is what the scheduler sees: rooms that are held, nominations, the pod itself."""

from __future__ import annotations

from typing import Any

from labkit import Lab
from labkit.plugins.course import GangPermit
from labkit.widgets.domains_view import DomainsViewController
from labkit.widgets.preemption_explorer import PreemptionExplorerController
from labkit.widgets.scene import Scene

from tests.widgets.blocks import cells, of_type, text_of


def node(name: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    """A node with room for `cpu`."""
    labels = {"kubernetes.io/hostname": name, **labels}
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


def pod(name: str, cpu: str = "4", klass: str = "", **spec: Any) -> dict[str, Any]:
    """A pod that asks for `cpu`."""
    container = {"name": "c", "image": "a:1", "resources": {"requests": {"cpu": cpu}}}
    if klass:
        spec["priorityClassName"] = klass
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def important(name: str, value: int) -> dict[str, Any]:
    """A priority class."""
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


def test_the_room_of_held_pods_is_taken() -> None:
    """Three workers held by Permit leave no node with room for 2 CPUs, in the explorers as in the lab."""
    lab = Lab("gang")
    lab.plugins.enable(GangPermit)
    lab.run()
    assert len(lab.scheduler.waiting.list()) == 3
    scene = Scene(lab)
    assert scene.decide(scene.pod("web-0")).node is None
    # A held pod itself is decided as if it had no room yet.
    assert scene.decide(scene.pod("train-0")).node is not None
    assert scene.decide(scene.pod("web-0")).node is None


def test_a_placed_pod_is_not_in_its_own_way() -> None:
    """It fills its node; asked where it would go, it goes there again."""
    lab = Lab([node("n1"), pod("full", nodeName="n1"), pod("other")])
    scene = Scene(lab)
    assert scene.decide(scene.pod("full")).node == "n1"
    assert scene.decide(scene.pod("other")).node is None


def test_nominations_count_for_pods_that_are_not_more_important() -> None:
    """n1 was freed for `first`; `second` is less important and may not have it, `third` may."""
    classes = [important("high", 1000), important("middle", 500), important("top", 2000)]
    lab = Lab([node("n1"), *classes, pod("old", nodeName="n1"), pod("first", klass="high")])
    lab.schedule_one()
    lab.client.delete("Pod", "old", "default", grace_period_seconds=0)
    assert [p["metadata"]["name"] for p in lab.pods()] == ["first"]
    lab.apply([pod("second", klass="middle"), pod("third", klass="top")])
    assert PreemptionExplorerController(lab, "second").found.trace.node is None
    assert PreemptionExplorerController(lab, "third").found.trace.node == "n1"
    assert PreemptionExplorerController(lab, "first").found.trace.node == "n1"


def test_each_rule_has_a_verdict_of_its_own() -> None:
    """Zone x is fine for the zone constraint; it is the host constraint that rejects its node."""
    there = [node("x1", zone="x"), node("y1", zone="y"), pod("a", "1", nodeName="x1")]
    selector = {"matchLabels": {"app": "web"}}
    spread = [
        {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        for key, skew in (("zone", 3), ("kubernetes.io/hostname", 1))
    ]
    lab = Lab([*there, pod("web", "1", topologySpreadConstraints=spread)])
    view = DomainsViewController(lab, "web").view()
    zones, hosts = ({row[0]: row[4] for row in cells(table)} for table in of_type(view, "table")[:2])
    assert zones == {"x": "skip another rule rejects", "y": "pass allowed"}
    assert hosts == {"x1": "fail rejected", "y1": "pass allowed"}
    assert "for this constraint" in text_of(view)
