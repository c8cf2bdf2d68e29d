"""What a kubelet checks before it runs a pod that is bound to its node, and the words of its refusal (spec 15 §3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from labkit.framework.node_info import NodeInfo, pod_info
from labkit.framework.requests import requests_of_incoming_pod
from labkit.objects.pod import Pod
from labkit.objects.selectors import find_untolerated_taint, required_node_affinity
from labkit.plugins.node_ports import conflict


@dataclass(frozen=True)
class Refusal:
    """Why a pod was rejected: the `reason` of its status and event, and the event's message."""

    reason: str
    message: str

    @property
    def status_message(self) -> str:
        """As `status.message` has it."""
        return f"Pod was rejected: {self.message}"


def refusal(pod: Pod, node: NodeInfo) -> Refusal | None:
    """The first reason why `node`, with the pods it runs already, does not take `pod`; None when it does.

    In the kubelet's order: room, node affinity, host ports, NoExecute taints.
    """
    return (
        _no_room(pod, node) or _wrong_node(pod, node) or _port_taken(pod, node) or _not_tolerated(pod, node)
    )


def shortages(wanted: Iterable[tuple[str, int]], node: NodeInfo) -> list[tuple[str, int, int, int]]:
    """(resource, requested, used, capacity) of what does not fit: millicores for cpu, bytes, or units."""
    found: list[tuple[str, int, int, int]] = []
    pods = len(node.pods)
    if pods + 1 > node.allocatable.allowed_pod_number:
        found.append(("pods", 1, pods, node.allocatable.allowed_pod_number))
    for name, amount in wanted:
        used, capacity = node.requested.get(name), node.allocatable.get(name)
        if amount > 0 and amount > capacity - used:
            found.append((name, amount, used, capacity))
    return found


def _no_room(pod: Pod, node: NodeInfo) -> Refusal | None:
    request = requests_of_incoming_pod(pod)
    names = ["cpu", "memory", "ephemeral-storage", *sorted(request.scalars)]
    for name, amount, used, capacity in shortages(((n, request.get(n)) for n in names), node):
        text = f"Node didn't have enough resource: {name}, requested: {amount}, used: {used}, capacity: {capacity}"
        return Refusal(f"OutOf{name}", text)
    return None


def _wrong_node(pod: Pod, node: NodeInfo) -> Refusal | None:
    if required_node_affinity(pod).matches(node.node):
        return None
    return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def _port_taken(pod: Pod, node: NodeInfo) -> Refusal | None:
    if not conflict(pod_info(pod).host_ports, node.used_ports):
        return None
    return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")


def _not_tolerated(pod: Pod, node: NodeInfo) -> Refusal | None:
    taints = [t for t in node.node.spec.taints if t.effect == "NoExecute"]
    if not taints or find_untolerated_taint(taints, pod.spec.tolerations, effects=("NoExecute",)) is None:
        return None
    return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")


def _predicate(name: str, description: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {description}")
