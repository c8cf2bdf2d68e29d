"""What a learner can change about a gang: one more member or node, and how long Permit waits."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from labkit.engine.framework import Framework
from labkit.plugins.course.coscheduling import Coscheduling
from labkit.plugins.course.gang_permit import GangPermit

Json = dict[str, Any]
_ARG = "permitWaitingTimeSeconds"


def pod_like(pod: Json, pods: Iterable[Json]) -> Json:
    """A waiting pod with the labels and the spec of `pod`, under the next free name."""
    spec = copy.deepcopy(pod["spec"])
    spec.pop("nodeName", None)
    meta = {
        "name": _next_name(pod["metadata"]["name"], pods),
        "namespace": pod["metadata"]["namespace"],
        "labels": copy.deepcopy(pod["metadata"].get("labels") or {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def node_like(node: Json, nodes: Iterable[Json]) -> Json:
    """An untainted node with the labels and the size of `node`, under the next free name."""
    name = _next_name(node["metadata"]["name"], nodes)
    labels = {**(node["metadata"].get("labels") or {}), "kubernetes.io/hostname": name}
    allocatable = copy.deepcopy((node.get("status") or {}).get("allocatable") or {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable},
    }


def timeout_of(plugin: Any) -> float | None:
    """The time-out that can be changed here: an arg of the course's plugins, or a learner's attribute `timeout`."""
    if isinstance(plugin, (GangPermit, Coscheduling)):
        return float(_args(plugin).get(_ARG, 60))
    value = getattr(plugin, "timeout", None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def set_timeout(framework: Framework, seconds: float) -> None:
    """Waits that begin from now on last `seconds` at most."""
    for plugin in framework.plugins("permit"):
        if isinstance(plugin, (GangPermit, Coscheduling)):
            framework.replace(type(plugin)({**_args(plugin), _ARG: seconds}, framework))
        elif timeout_of(plugin) is not None:
            plugin.timeout = seconds


def _args(plugin: Any) -> Mapping[str, Any]:
    return plugin.args if isinstance(plugin.args, Mapping) else {}


def _next_name(name: str, taken: Iterable[Json]) -> str:
    stem = name.rstrip("0123456789")
    if stem == name:
        stem += "-"
    names = [o["metadata"]["name"] for o in taken]
    numbers = [int(n[len(stem) :]) for n in names if n.startswith(stem) and n[len(stem) :].isdecimal()]
    return f"{stem}{max(numbers, default=-1) + 1}"
