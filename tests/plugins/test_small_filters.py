"""NodeUnschedulable, NodeName, NodePorts, NodeDeclaredFeatures, SchedulingGates (spec 10 §10.1, 10.2, 10.5, 10.7, 10.10)."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.cycle_state import CycleState, MissingStateError
from labkit.framework.node_info import NodeInfo
from labkit.plugins.node_declared_features import NodeDeclaredFeatures
from labkit.plugins.node_name import NodeName
from labkit.plugins.node_ports import NodePorts
from labkit.plugins.node_resources_fit import NodeResourcesFit
from labkit.plugins.node_unschedulable import NodeUnschedulable
from labkit.plugins.scheduling_gates import SchedulingGates

from tests.plugins.helpers import OK, filtered, info, make_node, make_pod, pre_filter, requesting, said

UU = "UnschedulableAndUnresolvable"
KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("toleration", "passes"),
    [
        (None, False),
        ({"key": KEY, "operator": "Exists"}, True),
        ({"key": KEY, "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": KEY, "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": KEY}, True),
        ({"key": KEY, "value": "x"}, False),
        ({"operator": "Exists"}, True),
    ],
)
def test_cordoned_nodes(toleration: Any, passes: bool) -> None:
    """A cordoned node takes only pods that tolerate the unschedulable taint, whether or not the taint is there."""
    pod = make_pod(tolerations=[toleration] if toleration else [])
    cordoned = make_node(spec={"unschedulable": True})
    assert filtered(NodeUnschedulable(), pod, cordoned) == (
        OK if passes else (UU, ["node(s) were unschedulable"])
    )
    tainted = make_node(spec={"taints": [{"key": KEY, "effect": "NoSchedule"}]})
    assert filtered(NodeUnschedulable(), pod, tainted) == OK


@pytest.mark.parametrize(("wanted", "passes"), [("", True), ("n", True), ("m", False)])
def test_node_name(wanted: str, passes: bool) -> None:
    """A pod that names a node fits that node only."""
    expected = OK if passes else (UU, ["node(s) didn't match the requested node name"])
    assert filtered(NodeName(), make_pod(nodeName=wanted), make_node("n")) == expected


def ports(*wanted: str, **spec: Any) -> list[dict[str, Any]]:
    found = []
    for text in wanted:
        ip, protocol, number = text.split("/")
        found.append({"hostIP": ip, "protocol": protocol, "hostPort": int(number)})
    return [{"name": "c", "ports": found, **spec}]


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        ("127.0.0.1/TCP/80", "127.0.0.2/TCP/80", True),
        ("127.0.0.1/TCP/80", "127.0.0.1/TCP/80", False),
        ("127.0.0.1/TCP/80", "0.0.0.0/TCP/80", False),
        ("127.0.0.1/TCP/80", "/TCP/80", False),
        ("127.0.0.1/TCP/80", "//80", False),
        ("0.0.0.0/TCP/80", "127.0.0.1/TCP/80", False),
        ("//80", "127.0.0.1//80", False),
        ("127.0.0.1/TCP/80", "127.0.0.1/UDP/80", True),
        ("127.0.0.1/TCP/80", "127.0.0.1/TCP/81", True),
        ("//80", "/SCTP/80", True),
        # `::` is an address like any other.
        ("::/TCP/80", "127.0.0.1/TCP/80", True),
        ("::/TCP/80", "::1/TCP/80", True),
        ("::/TCP/80", "0.0.0.0/TCP/80", False),
    ],
)
def test_host_ports(used: str, wanted: str, fits: bool) -> None:
    """ip/protocol/port in use, and wanted."""
    node = info(make_node(), make_pod("holder", containers=ports(used)))
    rejected = ("Unschedulable", ["node(s) didn't have free ports for the requested pod ports"])
    assert filtered(NodePorts(), make_pod(containers=ports(wanted)), node) == (OK if fits else rejected)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"containers": ports("//0")}, "Skip"),
        ({"containers": []}, "Skip"),
        ({"initContainers": ports("//80")}, "Skip"),
        ({"initContainers": ports("//80", restartPolicy="Always")}, "Success"),
        ({"containers": ports("//0", "//80")}, "Success"),
    ],
)
def test_pods_without_host_ports_skip(spec: dict[str, Any], code: str) -> None:
    """Ordinary init containers and ports without a host port do not count; sidecars do."""
    assert said(pre_filter(NodePorts(), make_pod(**spec))[2])[0] == code


RESTARTS = {"containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]}
HOST_USERS = {"hostNetwork": True, "hostUsers": False}


@pytest.mark.parametrize(
    ("spec", "declared", "verdict"),
    [
        ({}, [], "Skip"),
        ({"hostNetwork": True}, [], "Skip"),
        ({"hostNetwork": True, "hostUsers": True}, [], "Skip"),
        ({"hostUsers": False}, [], "Skip"),
        (HOST_USERS, [], UU),
        (HOST_USERS, ["UserNamespacesHostNetworkSupport"], "Success"),
        (HOST_USERS, ["Aaa", "UserNamespacesHostNetworkSupport", "Zzz"], "Success"),
        (RESTARTS, ["UserNamespacesHostNetworkSupport"], UU),
        (RESTARTS, ["RestartAllContainersOnContainerExits"], "Success"),
        ({"initContainers": RESTARTS["containers"]}, [], UU),
        (RESTARTS | HOST_USERS, ["RestartAllContainersOnContainerExits"], UU),
        (
            RESTARTS | HOST_USERS,
            ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"],
            "Success",
        ),
        # The list is walked once, in order.
        (RESTARTS, ["UserNamespacesHostNetworkSupport", "RestartAllContainersOnContainerExits"], UU),
    ],
)
def test_declared_features(spec: dict[str, Any], declared: list[str], verdict: str) -> None:
    """What the pod needs must be among the features that the node declares."""
    code, reasons = filtered(NodeDeclaredFeatures(), make_pod(**spec), make_node(declaredFeatures=declared))
    assert (code, reasons) == (
        verdict,
        ["node(s) didn't match Pod's required features"] if verdict == UU else [],
    )


@pytest.mark.parametrize(
    ("gates", "verdict"),
    [
        ([], OK),
        (["a"], (UU, ["waiting for scheduling gates: [a]"])),
        (["b", "a"], (UU, ["waiting for scheduling gates: [b a]"])),
    ],
)
def test_scheduling_gates(gates: list[str], verdict: tuple[str, list[str]]) -> None:
    """Gates keep the pod out of the queue, named in the pod's order."""
    pod = make_pod(schedulingGates=[{"name": g} for g in gates])
    assert said(SchedulingGates().pre_enqueue(pod)) == verdict


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        (NodePorts(), 'reading "PreFilterNodePorts" from cycleState: not found'),
        (NodeResourcesFit(), 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'),
        (NodeDeclaredFeatures(), 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, str) else "",
)
def test_filter_without_prefilter(plugin: Any, text: str) -> None:
    """A profile that disables PreFilter and keeps Filter gets kube-scheduler's error, on every pod."""
    with pytest.raises(MissingStateError) as caught:
        plugin.filter(CycleState(), requesting({"cpu": "1"}), NodeInfo(make_node()))
    assert str(caught.value) == text
