"""What may bring a rejected pod back: each plugin's events and what its hints answer (spec 02 §11)."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.events import ActionType as A
from labkit.plugins.node_affinity import NodeAffinity
from labkit.plugins.node_declared_features import NodeDeclaredFeatures
from labkit.plugins.node_name import NodeName
from labkit.plugins.node_ports import NodePorts
from labkit.plugins.node_resources_fit import NodeResourcesFit
from labkit.plugins.node_unschedulable import NodeUnschedulable
from labkit.plugins.scheduling_gates import SchedulingGates
from labkit.plugins.taint_toleration import TaintToleration

from tests.plugins.helpers import hint, make_node, make_pod, requesting

Q, S = "Queue", "QueueSkip"
CORDONED = {"unschedulable": True}
KEY = "node.kubernetes.io/unschedulable"
TAINTED = {"taints": [{"key": "a", "effect": "NoSchedule"}]}
SOFT = {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}
EXISTS = [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        (None, {}, Q),
        (None, CORDONED, S),
        (CORDONED, {}, Q),
        ({}, {}, S),
        ({}, CORDONED, S),
        (CORDONED, CORDONED, S),
    ],
)
def test_node_unschedulable(old: Any, new: Any, answer: str) -> None:
    """Added schedulable, or uncordoned."""
    before = None if old is None else make_node(spec=old)
    action = A.ADD if old is None else A.UPDATE_NODE_TAINT
    assert hint(NodeUnschedulable(), "Node", action, make_pod(), before, make_node(spec=new)) == answer


@pytest.mark.parametrize(
    ("plugin", "updated", "answer"),
    [
        (NodeUnschedulable(), make_pod(tolerations=EXISTS), Q),
        (NodeUnschedulable(), make_pod(tolerations=[{"key": "b", "operator": "Exists"}]), S),
        (NodeUnschedulable(), make_pod("other", tolerations=EXISTS), S),
        (TaintToleration(), make_pod(), Q),
        (TaintToleration(), make_pod("other"), S),
    ],
)
def test_tolerations(plugin: Any, updated: Any, answer: str) -> None:
    """Only the waiting pod's own update, told apart by UID."""
    assert (
        hint(plugin, "UnschedulablePod", A.UPDATE_POD_TOLERATION, make_pod(), make_pod(), updated) == answer
    )


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        (None, {}, Q),
        (None, TAINTED, S),
        (None, SOFT, Q),
        (TAINTED, {}, Q),
        (TAINTED, SOFT, Q),
        ({}, {}, S),
        ({}, TAINTED, S),
    ],
)
def test_taints(old: Any, new: Any, answer: str) -> None:
    """Tolerated now, and new or not tolerated before."""
    before = None if old is None else make_node(spec=old)
    action = A.ADD if old is None else A.UPDATE_NODE_TAINT
    assert hint(TaintToleration(), "Node", action, make_pod(), before, make_node(spec=new)) == answer


SSD = {"d": "ssd"}
ADDED = {
    "addedAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}]
        }
    }
}


@pytest.mark.parametrize(
    ("args", "old", "new", "answer"),
    [
        (None, None, SSD, Q),
        (None, None, {}, S),
        (None, {}, SSD, Q),
        (None, SSD, SSD | {"x": "y"}, S),
        (None, SSD, {}, S),
        (ADDED, None, SSD, S),
        (ADDED, None, SSD | {"pool": "a"}, Q),
        # The old node is compared with the pod's affinity alone.
        (ADDED, SSD, SSD | {"pool": "a"}, S),
    ],
)
def test_labels(args: Any, old: Any, new: Any, answer: str) -> None:
    """Matching now, and new or not matching before."""
    before = None if old is None else make_node(labels=old)
    action = A.ADD if old is None else A.UPDATE_NODE_LABEL
    assert (
        hint(NodeAffinity(args), "Node", action, make_pod(nodeSelector=SSD), before, make_node(labels=new))
        == answer
    )


def test_terms_that_do_not_parse() -> None:
    """A pod with such a term is retried on every node that no other term and no label rules out."""
    broken = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [broken]}}
    }
    for spec, answer in (({}, Q), ({"nodeSelector": SSD}, S)):
        assert (
            hint(NodeAffinity(), "Node", A.ADD, make_pod(affinity=affinity, **spec), None, make_node())
            == answer
        )


def ported(name: str, ip: str = "", port: int = 80, **spec: Any) -> Any:
    ports = [{"hostPort": port, "hostIP": ip}]
    return make_pod(name, containers=[{"name": "c", "ports": ports}], **spec)


@pytest.mark.parametrize(
    ("deleted", "answer"),
    [
        (ported("d", nodeName="n"), Q),
        (ported("d", "127.0.0.1", nodeName="n"), Q),
        (ported("d", status={"nominatedNodeName": "n"}), Q),
        (ported("d"), S),
        (ported("d", port=81, nodeName="n"), S),
        (make_pod("d", nodeName="n"), S),
    ],
)
def test_freed_ports(deleted: Any, answer: str) -> None:
    """A bound or nominated pod goes that held a conflicting port."""
    assert hint(NodePorts(), "AssignedPod", A.DELETE, ported("p"), deleted) == answer


def placed(name: str = "d", *, uid: str = "", **requests: str) -> Any:
    names = {"gpu": "nvidia.com/gpu"}
    return requesting({names.get(n, n): a for n, a in requests.items()}, nodeName="n", uid=uid, name=name)


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        (placed(cpu="1"), None, Q),
        (requesting({}, status={"nominatedNodeName": "n"}), None, Q),
        (requesting({"cpu": "1"}), None, S),
        (placed(cpu="2"), placed(cpu="1"), Q),
        (placed(cpu="2", memory="1"), placed(cpu="2"), S),
        (placed(gpu="2"), placed(), Q),
        (placed(cpu="1"), placed(cpu="2"), S),
        (requesting({"cpu": "2"}), requesting({"cpu": "1"}, name="other"), S),
        (placed(cpu="2"), placed("p", memory="9"), Q),
    ],
)
def test_pods_that_make_room(old: Any, new: Any, answer: str) -> None:
    """Gone from a node, shrunk in something that the waiting pod asks for, or the waiting pod's own update."""
    pod = requesting({"cpu": "1", "nvidia.com/gpu": "1"})
    action = A.DELETE if new is None else A.UPDATE_POD_SCALE_DOWN
    assert hint(NodeResourcesFit(), "AssignedPod", action, pod, old, new) == answer


SMALL, LARGE = {"cpu": "1", "pods": "1"}, {"cpu": "4", "pods": "1"}


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        (None, LARGE, Q),
        (None, SMALL, S),
        (None, {"cpu": "4"}, S),
        (SMALL, LARGE, Q),
        (LARGE, LARGE | {"memory": "1"}, S),
        (LARGE, LARGE | {"pods": "2"}, Q),
        ({"cpu": "5", "pods": "1"}, LARGE, S),
        (LARGE, SMALL, S),
    ],
)
def test_nodes_that_make_room(old: Any, new: Any, answer: str) -> None:
    """The pod fits the node when empty, and the node is new or has more of something that the pod asks for."""
    before = None if old is None else make_node(allocatable=old)
    action = A.ADD if old is None else A.UPDATE_NODE_ALLOCATABLE
    pod = requesting({"cpu": "2"})
    assert hint(NodeResourcesFit(), "Node", action, pod, before, make_node(allocatable=new)) == answer


def test_ignored_resources_do_not_matter_to_the_hint() -> None:
    """A node without a resource that Filter ignores wakes nobody who asks for it."""
    plugin = NodeResourcesFit({"ignoredResources": ["example.com/a"]})
    pod = requesting({"example.com/a": "1"})
    assert hint(plugin, "Node", A.ADD, pod, None, make_node(allocatable=LARGE)) == S
    assert hint(plugin, "Node", A.ADD, pod, None, make_node(allocatable=LARGE | {"example.com/a": "1"})) == Q


def device_class(name: str, extended: str | None) -> Any:
    return {"metadata": {"name": name}, "spec": {"extendedResourceName": extended} if extended else {}}


@pytest.mark.parametrize(
    ("resource", "old", "new", "answer"),
    [
        ("example.com/gpu", None, device_class("c", "example.com/gpu"), Q),
        ("example.com/gpu", None, device_class("c", None), S),
        ("example.com/gpu", device_class("c", None), device_class("c", "example.com/gpu"), Q),
        ("example.com/gpu", device_class("c", "example.com/gpu"), device_class("c", "example.com/gpu"), S),
        ("deviceclass.resource.kubernetes.io/c", None, device_class("c", None), Q),
        ("deviceclass.resource.kubernetes.io/d", None, device_class("c", None), S),
    ],
)
def test_device_classes(resource: str, old: Any, new: Any, answer: str) -> None:
    """A class that stands for an extended resource which the pod asks for."""
    action = A.ADD if old is None else A.UPDATE
    assert (
        hint(NodeResourcesFit(), "resource.k8s.io/DeviceClass", action, requesting({resource: "1"}), old, new)
        == answer
    )


@pytest.mark.parametrize(
    ("old", "new", "answer"), [(None, [], Q), (["a"], ["a"], S), (["a"], ["a", "b"], Q), ([], ["a"], Q)]
)
def test_declared_features(old: Any, new: Any, answer: str) -> None:
    """A new node, or one whose list changed."""
    before = None if old is None else make_node(declaredFeatures=old)
    action = A.ADD if old is None else A.UPDATE_NODE_DECLARED_FEATURE
    assert (
        hint(NodeDeclaredFeatures(), "Node", action, make_pod(), before, make_node(declaredFeatures=new))
        == answer
    )


NEEDS = {"hostNetwork": True, "hostUsers": False}


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        (make_pod(**NEEDS), make_pod(), Q),
        (make_pod(**NEEDS), make_pod(**NEEDS), S),
        (make_pod("o", **NEEDS), make_pod("o"), S),
    ],
)
def test_needed_features(old: Any, new: Any, answer: str) -> None:
    """The waiting pod's own generic update that changes what it needs."""
    assert hint(NodeDeclaredFeatures(), "UnschedulablePod", A.UPDATE, make_pod(**NEEDS), old, new) == answer


@pytest.mark.parametrize(("updated", "answer"), [(make_pod(), Q), (make_pod("other"), S)])
def test_gates(updated: Any, answer: str) -> None:
    """The pod's own last gate is gone."""
    action = A.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    assert hint(SchedulingGates(), "UnschedulablePod", action, make_pod(), make_pod(), updated) == answer


@pytest.mark.parametrize("plugin", [NodeName(), NodePorts()], ids=["NodeName", "NodePorts"])
def test_any_new_node(plugin: Any) -> None:
    """Every new node is worth a try."""
    assert hint(plugin, "Node", A.ADD, make_pod(), None, make_node()) == Q


@pytest.mark.parametrize(
    ("plugin", "resource", "action"),
    [
        (NodeName(), "Node", A.UPDATE_NODE_LABEL),
        (NodePorts(), "AssignedPod", A.UPDATE_POD_LABEL),
        (NodeUnschedulable(), "Node", A.UPDATE_NODE_LABEL),
        (TaintToleration(), "Node", A.UPDATE_NODE_ALLOCATABLE),
        (NodeAffinity(), "Node", A.UPDATE_NODE_TAINT),
        (NodeResourcesFit(), "AssignedPod", A.ADD),
        (NodeDeclaredFeatures(), "UnschedulablePod", A.UPDATE_POD_LABEL | A.UPDATE_POD_TOLERATION | A.UPDATE),
        (SchedulingGates(), "UnschedulablePod", A.UPDATE),
        (NodeResourcesFit(), "Node", A.DELETE),
    ],
)
def test_events_that_are_not_registered(plugin: Any, resource: str, action: A) -> None:
    """Other events do not reach the plugin; a generic update reaches only those who registered all updates."""
    expected = Q if isinstance(plugin, NodeDeclaredFeatures) else None
    old, new = make_pod(**NEEDS), make_pod()
    assert hint(plugin, resource, action, make_pod(), old, new) == expected
