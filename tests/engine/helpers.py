"""A scheduler of three lines for tests: fake plugins, nodes and pods by name, one attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labkit.engine.cycle import CycleResult, Settings, schedule_pod
from labkit.engine.framework import Framework
from labkit.engine.services import Services
from labkit.engine.trace import Trace
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import EXTENSION_POINTS
from labkit.framework.snapshot import Snapshot
from labkit.objects.codec import from_dict
from labkit.objects.node import Node
from labkit.objects.pod import Pod


def make_pod(name: str = "p", **fields: Any) -> Pod:
    """A pod in `default`; `labels`, `priority`, `nominated`, `cpu`, `node` are short for the usual places."""
    labels, nominated = fields.pop("labels", {}), fields.pop("nominated", "")
    cpu, node = fields.pop("cpu", None), fields.pop("node", "")
    spec: dict[str, Any] = {"schedulerName": "default-scheduler", "priority": 0, **fields}
    if cpu is not None:
        spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    if node:
        spec["nodeName"] = node
    pod = from_dict(
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels},
            "spec": spec,
            "status": {"nominatedNodeName": nominated} if nominated else {},
        }
    )
    assert isinstance(pod, Pod)
    return pod


def make_node(name: str, *, cpu: str = "4", labels: Mapping[str, str] | None = None, **status: Any) -> Node:
    """A node with 4 CPUs unless told otherwise."""
    node = from_dict(
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": dict(labels or {})},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}, **status},
        }
    )
    assert isinstance(node, Node)
    return node


def fake(name: str, **methods: Any) -> Any:
    """A plugin whose methods give a fixed answer, call a function, or raise an exception."""

    def method(answer: Any) -> Any:
        def call(self: Any, *args: Any) -> Any:
            self.calls.append(args)
            if isinstance(answer, BaseException):
                raise answer
            return answer(*args) if callable(answer) else answer

        return call

    cls = type(name, (), {point: method(answer) for point, answer in methods.items()})
    plugin = cls()
    plugin.name = name
    plugin.calls = []
    return plugin


class Nominator:
    """Nominated pods by node, set by hand."""

    def __init__(self, by_node: Mapping[str, Sequence[Pod]] | None = None) -> None:
        self.by_node = {node: list(pods) for node, pods in (by_node or {}).items()}

    def pods_for(self, node: str) -> list[Pod]:
        """The pods nominated to `node`."""
        return self.by_node.get(node, [])

    def add(self, pod: Pod, node: str) -> None:
        """Nominate."""
        self.by_node.setdefault(node, []).append(pod)

    def delete(self, pod: Pod) -> None:
        """Forget."""
        for pods in self.by_node.values():
            pods[:] = [p for p in pods if p.uid != pod.uid]


def framework_of(
    *plugins: Any,
    nodes: Sequence[str | Node] = ("a", "b", "c"),
    weights: Mapping[str, int] | None = None,
    nominated: Mapping[str, Sequence[Pod]] | None = None,
    placed: Mapping[str, Sequence[Pod]] | None = None,
    extenders: Sequence[Any] = (),
    percentage: int | None = None,
) -> Framework:
    """A profile in which each plugin serves every point it has a method for, in the given order."""
    points: dict[str, list[tuple[Any, int]]] = {
        point: [(p, (weights or {}).get(p.name, 1)) for p in plugins if callable(getattr(p, method, None))]
        for point, method in EXTENSION_POINTS.items()
    }
    infos = [NodeInfo(make_node(n) if isinstance(n, str) else n) for n in nodes]
    for info in infos:
        for pod in (placed or {}).get(info.name, ()):
            info.add_pod(_info(pod))
    services = Services(snapshot=Snapshot(infos), nominator=Nominator(nominated), extenders=list(extenders))
    return Framework("default-scheduler", points, services, percentage_of_nodes_to_score=percentage)


def _info(pod: Pod) -> Any:
    from labkit.framework.node_info import pod_info

    return pod_info(pod)


def attempt(
    framework: Framework, pod: Pod | None = None, *, settings: Settings | None = None
) -> tuple[CycleResult, Trace]:
    """One scheduling attempt with a full trace."""
    pod = pod or make_pod()
    trace = Trace(pod.key)
    return schedule_pod(framework, CycleState(), pod, settings or Settings(), trace), trace
