"""One decision on the side: nodes, placed pods and a pod, under a configuration; no store, no queue."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from labkit.config import load_config
from labkit.engine.build import build_frameworks
from labkit.engine.cache import Cache
from labkit.engine.cycle import Settings, schedule_pod
from labkit.engine.informer import typed
from labkit.engine.services import Services
from labkit.engine.trace import Trace
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import pod_info
from labkit.objects.node import Node
from labkit.objects.pod import Pod

Json = dict[str, Any]


def decide(nodes: list[Json], pods: list[Json], pod: Json, config: Json | None = None) -> Trace:
    """Where `pod` goes when `pods` are placed on `nodes`."""
    cache = Cache()
    for raw in nodes:
        node = _node(msgspec.json.encode(raw))
        cache.add_node(node)
    for raw in pods:
        cache.add_pod(_pod(msgspec.json.encode(raw)))
    services = Services()
    frameworks = build_frameworks(load_config(config), services)
    cache.update_snapshot(services.snapshot)
    incoming = typed(pod, "Pod")
    assert isinstance(incoming, Pod)
    trace = Trace(incoming.key, all_filters=False)
    framework = next(iter(frameworks.values()))
    schedule_pod(framework, CycleState(), incoming, Settings(all_nodes=True), trace)
    return trace


def placed_requests(pods: list[Json]) -> dict[str, tuple[int, int]]:
    """Node name -> (millicores, bytes) that placed pods request."""
    found: dict[str, tuple[int, int]] = {}
    for raw in pods:
        pod = _pod(msgspec.json.encode(raw))
        requested = pod_info(pod).requested
        cpu, memory = found.get(pod.spec.node_name, (0, 0))
        found[pod.spec.node_name] = (cpu + requested.milli_cpu, memory + requested.memory)
    return found


@lru_cache(maxsize=8192)
def _node(encoded: bytes) -> Node:
    found = typed(msgspec.json.decode(encoded), "Node")
    assert isinstance(found, Node)
    return found


@lru_cache(maxsize=65536)
def _pod(encoded: bytes) -> Pod:
    found = typed(msgspec.json.decode(encoded), "Pod")
    assert isinstance(found, Pod)
    return found
