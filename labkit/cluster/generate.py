"""Clusters too large to write down: `Lab("nodes-5000")` (three zones, two node shapes, one tainted node in fifty)."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r"nodes-([0-9]{1,6})\Z")
#: The most nodes that a Kubernetes cluster is tested with upstream is 5000; we go further for benchmarks.
MAX_NODES = 20_000


def generated(name: str) -> list[dict[str, Any]] | None:
    """The nodes of a cluster called `nodes-N`; None when the name is not of that form or N is out of range."""
    match = _NAME.match(name)
    if match is None or not 1 <= int(match[1]) <= MAX_NODES:
        return None
    return [make_node(i) for i in range(int(match[1]))]


def make_node(i: int) -> dict[str, Any]:
    """Node `i`: zone a, b or c in turn; every fourth is large; every fiftieth is kept for GPUs by a taint."""
    large, gpu = i % 4 == 3, i % 50 == 49
    name = f"node-{i:05d}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": f"zone-{'abc'[i % 3]}",
        "node.kubernetes.io/instance-type": "large" if large else "standard",
    }
    allocatable = {"cpu": "16" if large else "4", "memory": "64Gi" if large else "16Gi", "pods": "110"}
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable},
    }
    if gpu:
        labels["accelerator"] = "gpu"
        allocatable["example.com/gpu"] = "8"
        node["spec"] = {"taints": [{"key": "accelerator", "value": "gpu", "effect": "NoSchedule"}]}
    return node
