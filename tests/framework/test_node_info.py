"""What a NodeInfo says of its pods, and that counting out undoes counting in (spec 01 §12)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.framework.node_info import NodeInfo, PodInfo, host_ports, pod_info
from labkit.objects.codec import from_dict
from labkit.objects.node import Node
from labkit.objects.pod import Pod

from tests import strategies


def pod(name: str, **spec: Any) -> Pod:
    found = from_dict(
        {"kind": "Pod", "metadata": {"name": name, "namespace": "d", "uid": f"u-{name}"}, "spec": spec}
    )
    assert isinstance(found, Pod)
    return found


def node(**allocatable: str) -> Node:
    found = from_dict({"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": allocatable}})
    assert isinstance(found, Node)
    return found


def port(number: int, ip: str = "", protocol: str = "") -> dict[str, Any]:
    return {"containerPort": 1, "hostPort": number, "hostIP": ip, "protocol": protocol}


def test_host_ports() -> None:
    """Sidecars first, ordinary init containers and ports without a host port not at all; IP and protocol filled in."""
    found = pod(
        "p",
        initContainers=[
            {"name": "i", "ports": [port(1)]},
            {"name": "s", "restartPolicy": "Always", "ports": [port(2)]},
        ],
        containers=[{"name": "c", "ports": [port(0), port(3, "127.0.0.1", "UDP")]}],
    )
    assert host_ports(found) == [("0.0.0.0", "TCP", 2), ("127.0.0.1", "UDP", 3)]


def test_pods_with_affinity() -> None:
    """A pod is in the list as soon as it has an affinity object, in the other with required anti-affinity terms."""
    term = {"topologyKey": "zone", "labelSelector": {}}
    plain = pod("plain")
    empty = pod("empty", affinity={"podAffinity": {}})
    anti = pod(
        "anti", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    )
    on_node = pod("on-node", affinity={"nodeAffinity": {}})
    info = NodeInfo(node(), [plain, empty, anti, on_node])
    assert [i.pod.name for i in info.pods_with_affinity] == ["empty", "anti"]
    assert [i.pod.name for i in info.pods_with_required_anti_affinity] == ["anti"]


def test_claims_are_counted_per_pod() -> None:
    """Claims by `namespace/name`; an ephemeral volume's claim is named after its pod."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "ephemeral": {}}]
    info = NodeInfo(node(), [pod("a", volumes=volumes), pod("b", volumes=volumes)])
    assert info.claim_counts == {"d/c": 2, "d/a-e": 1, "d/b-e": 1}
    info.remove_pod(pod("a", volumes=volumes))
    assert info.claim_counts == {"d/c": 1, "d/b-e": 1}


def test_removing_puts_the_last_pod_in_the_gap() -> None:
    """As in kube-scheduler, whose pod lists have no stable order."""
    info = NodeInfo(node(), [pod(n) for n in "abcd"])
    assert info.remove_pod(pod("b"))
    assert [i.pod.name for i in info.pods] == ["a", "d", "c"]
    assert not info.remove_pod(pod("b"))


def test_ports_are_not_counted_twice() -> None:
    """Two pods on one port are one entry, gone with the first of them."""
    one, two = (pod(n, containers=[{"name": "c", "ports": [port(80)]}]) for n in "ab")
    info = NodeInfo(node(), [one, two])
    assert info.used_ports == {"0.0.0.0": {("TCP", 80)}}
    info.remove_pod(one)
    assert info.used_ports == {}


def test_terminating_pods_still_count() -> None:
    """A pod with a deletion timestamp holds what it holds until it is gone."""
    raw = {
        "kind": "Pod",
        "metadata": {"name": "t", "deletionTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    found = from_dict(raw)
    assert isinstance(found, Pod)
    assert found.terminating
    assert NodeInfo(node(cpu="2"), [found]).requested.milli_cpu == 1000


def test_a_changed_node_keeps_its_pods() -> None:
    """`set_node` replaces what the node offers and nothing else."""
    info = NodeInfo(node(cpu="1"), [pod("a")])
    before = info.generation
    info.set_node(node(cpu="3"))
    assert (info.allocatable.milli_cpu, len(info.pods), info.generation > before) == (3000, 1, True)


def test_pod_info_is_made_once() -> None:
    """The same pod object gives the same PodInfo."""
    p = pod("a")
    assert pod_info(p) is pod_info(p)
    assert PodInfo(p) is not pod_info(p)


def seen(info: NodeInfo) -> Any:
    ports = {ip: frozenset(p) for ip, p in info.used_ports.items()}
    amounts = {
        n: info.requested.get(n)
        for n in ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu")
    }
    return (
        sorted(i.pod.name for i in info.pods),
        amounts,
        info.non_zero_cpu,
        info.non_zero_memory,
        ports,
        info.claim_counts,
    )


@given(st.lists(strategies.resource_lists(), max_size=5), st.data())
def test_counting_out_undoes_counting_in(requests: list[dict[str, str]], data: st.DataObject) -> None:
    """After any pods left, the sums are those of a node that only ever had the others; a clone stays as it was."""
    pods = [
        pod(f"p{i}", containers=[{"name": "c", "ports": [port(8000 + i)], "resources": {"requests": r}}])
        for i, r in enumerate(requests)
    ]
    info = NodeInfo(node(), pods)
    full, copy = seen(info), info.clone()
    leaving = data.draw(st.lists(st.sampled_from(pods), unique_by=lambda p: p.name)) if pods else []
    for p in leaving:
        info.remove_pod(p)
    assert seen(info) == seen(NodeInfo(node(), [p for p in pods if p not in leaving]))
    assert seen(copy) == full


@pytest.mark.parametrize("has", [True, False])
def test_a_node_that_is_gone(has: bool) -> None:
    """Pods may be known before their node, or stay after it."""
    assert NodeInfo(node() if has else None, [pod("a")]).has_node is has
