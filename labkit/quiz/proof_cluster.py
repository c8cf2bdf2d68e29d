"""Proofs about the rest of the cluster: API server, kubelet, garbage collector, leases (spec 15 §3-5, 16)."""

from __future__ import annotations

from typing import Any

from labkit.quiz.model import Scenario
from labkit.quiz.proof_world import World
from labkit.quiz.scenario import engine_input


def pod_of_missing_node(seconds: int) -> str:
    """What has become, after so many seconds, of a pod whose `spec.nodeName` names no node: its phase, or "gone"."""
    found = _bound_by_hand({"node": "nowhere", "cpu": 1}, seconds)
    return str(found["status"].get("phase")) if found else "gone"


def kubelet_answer(cpu: int = 1, selector: dict[str, str] | None = None, taint: str = "") -> str:
    """How a pod fares that was put on n1 (4 CPUs) by `spec.nodeName`: its phase and, if the kubelet refused it, why.

    `taint` is the effect of a taint of n1 that the pod does not tolerate.
    """
    pod: dict[str, Any] = {"node": "n1", "cpu": cpu}
    if selector:
        pod["spec"] = {"nodeSelector": selector}
    status = (_bound_by_hand(pod, 5, taint) or {}).get("status", {})
    return " ".join(str(status[k]) for k in ("phase", "reason") if status.get(k))


def _bound_by_hand(pod: dict[str, Any], seconds: int, taint: str = "") -> dict[str, Any] | None:
    from labkit.lab import Lab

    node: dict[str, Any] = {"cpu": 4}
    if taint:
        node["taints"] = [{"key": "a", "effect": taint}]
    lab = Lab(controllers=True)
    lab.apply(engine_input(Scenario(nodes={"n1": node}))["objects"])
    lab.apply(engine_input(Scenario(placed={"web": pod}))["objects"])
    lab.advance(seconds)
    return next((p for p in lab.pods() if p["metadata"]["name"] == "web"), None)


def api_fills(spec: dict[str, Any], field: str) -> Any:
    """What the API server writes into `field` (dotted) of the spec of a Pod with this spec."""
    world = World({"n1": {"cpu": 4}})
    metadata = {"name": "web", "namespace": "default"}
    value: Any = world.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    for part in ("spec", *field.split(".")):
        value = value[int(part)] if part.isdigit() else value.get(part)
    return value


def leaders(leases: list[str]) -> int:
    """How many of the schedulers that compete for these leases lead, one scheduler an entry."""
    from labkit.cluster.client import StoreClient
    from labkit.cluster.lease import LeaseHolder

    world = World({})
    now = world.clock.now
    holders = [
        LeaseHolder(StoreClient(world.store), f"scheduler-{i}", name=name, now=now, elapsed=now)
        for i, name in enumerate(leases)
    ]
    return sum([holder.attempt() for holder in holders])
