"""Generated clusters: the same seed always gives the same one. Small numbers that a learner can check by hand."""

from __future__ import annotations

import random
from typing import Any

_CPU = ["500m", "1", "2", "3", "4", "6", "8", "16"]
_MEMORY = ["512Mi", "1Gi", "2Gi", "3Gi", "4Gi", "8Gi", "16Gi"]
_TAINTS = [
    {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "db", "effect": "NoExecute"},
    {"key": "spot", "effect": "PreferNoSchedule"},
    {"key": "noisy", "value": "yes", "effect": "PreferNoSchedule"},
]
_ZONES = ("a", "b", "c")


def cluster(seed: int, *, nodes: int = 4, placed: int = 5, taints: bool = False) -> dict[str, Any]:
    """`nodes`, `placed` and one pod `web` in the short forms of question banks (`labkit.quiz.model.Scenario`)."""
    rng = random.Random(f"labkit-check/{seed}")
    found: dict[str, dict[str, Any]] = {}
    for i in range(nodes):
        node: dict[str, Any] = {"cpu": rng.choice(_CPU[2:]), "memory": rng.choice(_MEMORY[2:])}
        node["labels"] = {
            "topology.kubernetes.io/zone": rng.choice(_ZONES),
            "disk": rng.choice(("ssd", "hdd")),
        }
        if taints and rng.random() < 0.7:
            node["taints"] = rng.sample(_TAINTS, rng.randint(1, 2))
        found[f"n{i + 1}"] = node
    there: dict[str, dict[str, Any]] = {}
    for i in range(placed):
        pod: dict[str, Any] = {"node": rng.choice(list(found)), "labels": {"app": rng.choice(("web", "db"))}}
        if rng.random() < 0.85:
            pod |= {"cpu": rng.choice(_CPU[:4]), "memory": rng.choice(_MEMORY[:4])}
        there[f"old-{i + 1}"] = pod
    web: dict[str, Any] = {
        "cpu": rng.choice(_CPU[:5]),
        "memory": rng.choice(_MEMORY[:5]),
        "labels": {"app": "web"},
    }
    if seed % 5 == 4:
        # A pod without requests is where many sums go wrong.
        web = {"labels": {"app": "web"}}
    if taints:
        tolerated = rng.sample(_TAINTS, rng.randint(0, 3))
        web["spec"] = {"tolerations": [_toleration(taint, rng) for taint in tolerated]}
    return {"nodes": found, "placed": there, "pods": {"web": web}}


def _toleration(taint: dict[str, str], rng: random.Random) -> dict[str, str]:
    """One that tolerates the taint, or differs in the one field that a careless comparison leaves out."""
    whole = {
        "key": taint["key"],
        "operator": "Equal",
        "value": taint.get("value", ""),
        "effect": taint["effect"],
    }
    other = "NoSchedule" if taint["effect"] != "NoSchedule" else "NoExecute"
    return rng.choice(
        [
            whole,
            {"key": taint["key"], "operator": "Exists"},
            {"key": taint["key"], "value": taint.get("value", "")},
            {"operator": "Exists", "effect": taint["effect"]},
            {**whole, "value": "other"},
            {**whole, "effect": other},
        ]
    )


def node_rows(scenario: dict[str, Any]) -> list[list[str]]:
    """One row a node: name, allocatable, what its pods request, taints. For the table of a failed case."""
    rows = []
    for name, node in scenario["nodes"].items():
        there = [p for p in scenario.get("placed", {}).values() if p.get("node") == name]
        booked = ", ".join(f"{p.get('cpu', 0)}/{p.get('memory', 0)}" for p in there) or "–"
        taints = (
            ", ".join(f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in node.get("taints", [])) or "–"
        )
        rows.append([name, f"{node.get('cpu')}/{node.get('memory')}", booked, taints])
    return rows


def pod_text(scenario: dict[str, Any]) -> str:
    """The pod that is scheduled, in one line."""
    pod = next(iter(scenario["pods"].values()))
    tolerations = (pod.get("spec") or {}).get("tolerations") or []
    tolerated = "; ".join(" ".join(f"{k}={v}" for k, v in toleration.items()) for toleration in tolerations)
    asked = f"{pod.get('cpu', 0)}/{pod.get('memory', 0)}"
    return asked + (f" [{tolerated}]" if tolerated else "")
