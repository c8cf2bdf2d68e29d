"""One plugin, some nodes, one pod: what the plugin says, without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, QueueingHint
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import EXTENSION_POINTS
from labkit.framework.results import NodeScore
from labkit.framework.status import Status
from labkit.objects.codec import from_dict
from labkit.objects.node import Node
from labkit.objects.pod import Pod

OK = ("Success", [])


def make_pod(name: str = "p", *, status: Any = None, labels: Any = None, uid: str = "", **spec: Any) -> Pod:
    """A pod in `default`; keywords are fields of its spec, in JSON spelling."""
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "labels": labels or {}}
    found = from_dict({"kind": "Pod", "metadata": metadata, "spec": spec, "status": status or {}})
    assert isinstance(found, Pod)
    return found


def requesting(*containers: Mapping[str, str], **spec: Any) -> Pod:
    """A pod whose containers request these amounts."""
    made = [{"name": f"c{i}", "resources": {"requests": dict(c)}} for i, c in enumerate(containers)]
    return make_pod(containers=made, **spec)


def make_node(name: str = "n", *, labels: Any = None, spec: Any = None, **status: Any) -> Node:
    """A node; keywords are fields of its status, in JSON spelling."""
    raw = {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec or {},
        "status": status,
    }
    found = from_dict(raw)
    assert isinstance(found, Node)
    return found


def info(node: Node, *pods: Pod) -> NodeInfo:
    """The node with pods on it."""
    return NodeInfo(node, pods)


def handle(**parts: Any) -> Any:
    """A scheduler that consists of `gates`, `client` and a number of `nodes`."""
    return SimpleNamespace(
        gates=parts.get("gates", {}), client=parts.get("client"), total_nodes=lambda: parts.get("nodes", 0)
    )


def said(status: Status | None) -> tuple[str, list[str]]:
    """(code, sorted reasons), as recorded decisions write them."""
    return ("Success", []) if status is None else (status.code.label, sorted(status.reasons))


def pre_filter(plugin: Any, pod: Pod) -> tuple[CycleState, set[str] | None, Status | None]:
    """The state after PreFilter (untouched when the plugin has none), the node names and the status."""
    state = CycleState()
    if not hasattr(plugin, EXTENSION_POINTS["pre_filter"]):
        return state, None, None
    answer = plugin.pre_filter(state, pod, [])
    result, status = answer if isinstance(answer, tuple) else (None, answer)
    return state, None if result is None else result.node_names, status


def filtered(plugin: Any, pod: Pod, node: Node | NodeInfo) -> tuple[str, list[str]]:
    """The plugin's verdict on one node; `Skip` when PreFilter said so."""
    state, _, status = pre_filter(plugin, pod)
    if status is not None and not status.is_success:
        return said(status)
    return said(plugin.filter(state, pod, node if isinstance(node, NodeInfo) else NodeInfo(node)))


def scored(plugin: Any, pod: Pod, nodes: Sequence[Node | NodeInfo]) -> Any:
    """(raw, final) scores by node, or PreScore's status when that is not success."""
    infos = [n if isinstance(n, NodeInfo) else NodeInfo(n) for n in nodes]
    state = CycleState()
    if hasattr(plugin, "pre_score"):
        status = plugin.pre_score(state, pod, infos)
        if status is not None and not status.is_success:
            return said(status)
    raw = [plugin.score(state, pod, n) for n in infos]
    final = [NodeScore(n.name, s) for n, s in zip(infos, raw, strict=True)]
    if hasattr(plugin, "normalize_score"):
        assert plugin.normalize_score(state, pod, final) is None
    return raw, [s.score for s in final]


def hint(
    plugin: Any, resource: str, action: ActionType, pod: Pod, old: Any = None, new: Any = None
) -> str | None:
    """What the plugin's registration for this event answers: `Queue`, `QueueSkip`, or None when it has none."""
    for registered in plugin.events_to_register():
        if registered.event.matches(ClusterEvent(resource, action)):
            answer = QueueingHint.QUEUE if registered.hint is None else registered.hint(pod, old, new)
            return str(answer.value)
    return None
