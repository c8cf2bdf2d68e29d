"""The cluster as a picture: zones, nodes, the CPU that each pod takes, and what a decision said about each node."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from labkit.engine.informer import typed
from labkit.engine.trace import Trace
from labkit.framework.node_info import pod_info
from labkit.i18n import t
from labkit.objects.pod import Pod
from labkit.objects.quantity import milli_value_of, value_of
from labkit.widgets import view as v
from labkit.widgets.resources import cores, gib
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
#: More nodes are shown as a table with a search box.
MOST_CARDS = 24
_TOP, _BOTTOM = 20, 5


@lru_cache(maxsize=65536)
def _requests(encoded: bytes) -> tuple[int, int]:
    pod = typed(msgspec.json.decode(encoded), "Pod")
    assert isinstance(pod, Pod)
    requested = pod_info(pod).requested
    return requested.milli_cpu, requested.memory


def requests_of(pod: Json) -> tuple[int, int]:
    """(millicores, bytes) that a pod requests."""
    spec = {
        k: x for k, x in pod["spec"].items() if k in ("containers", "initContainers", "overhead", "resources")
    }
    return _requests(msgspec.json.encode({"metadata": {"name": "p"}, "spec": spec}))


def cluster_blocks(
    nodes: list[Json], pods: list[Json], *, trace: Trace | None = None, search: str = "", fresh: str = ""
) -> list[Block]:
    """Node cards by zone, or a table of the fullest and emptiest nodes of a large cluster.

    `trace`: what a decision said; `fresh`: key of the pod to emphasise.
    """
    by_node: dict[str, list[Json]] = {}
    for pod in pods:
        by_node.setdefault((pod.get("spec") or {}).get("nodeName") or "", []).append(pod)
    if len(nodes) > MOST_CARDS:
        return _large(nodes, by_node, search)
    zones: dict[str, list[Block]] = {}
    for node in nodes:
        zone = (node["metadata"].get("labels") or {}).get(ZONE, "")
        zones.setdefault(zone, []).append(
            _card(node, by_node.get(node["metadata"]["name"], []), trace, fresh)
        )
    return [v.nodes(sorted(zones.items()))]


def _card(node: Json, pods: list[Json], trace: Trace | None, fresh: str) -> Block:
    name = node["metadata"]["name"]
    total = milli_value_of(((node.get("status") or {}).get("allocatable") or {}).get("cpu", 0))
    parts: list[Block] = []
    used = 0
    for pod in pods:
        cpu, _ = requests_of(pod)
        used += cpu
        key = f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}"
        width = 100 * cpu / max(total, 1)
        if width > 0:
            parts.append(v.part(min(width, 100.0), pod["metadata"]["name"], "new" if key == fresh else None))
    words = ", ".join(f"{p['metadata']['name']} {cores(requests_of(p)[0])}" for p in pods) or t("empty", "空")
    label = t(
        f"{name}: {cores(used)} of {cores(total)} CPU requested: {words}",
        f"{name}：已请求 {cores(used)} / {cores(total)} CPU：{words}",
    )
    tag, mark, win = _said(name, trace)
    spec = node.get("spec") or {}
    if not tag and spec.get("unschedulable"):
        tag, mark = t("cordoned", "已封锁（cordon）"), "skip"
    elif not tag and spec.get("taints"):
        tag = ", ".join(_taint(x) for x in spec["taints"])
    return v.node(
        name,
        figure=f"{cores(used)} / {cores(total)} CPU",
        meters=[v.meter(parts, label=label)],
        tag=tag,
        status=mark,
        win=win,
        hatch=bool(spec.get("unschedulable")),
    )


def _taint(taint: Json) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _said(name: str, trace: Trace | None) -> tuple[str, str | None, bool]:
    if trace is None:
        return "", None, False
    status = trace.filter.get(name)
    if name == trace.node:
        total = trace.scores[name].total if name in trace.scores else None
        tag = t("chosen", "选中") + ("" if total is None else t(f", score {total}", f"，{total} 分"))
        return tag, "pass", True
    if status is not None and not status.is_success:
        return ", ".join(status.reasons) or status.code.label, "fail", False
    return "", None, False


def nodes_table(nodes: list[Json], pods: list[Json]) -> Block:
    """The same as numbers: zone, pods, CPU and memory of each node."""
    by_node: dict[str, list[Json]] = {}
    for pod in pods:
        by_node.setdefault((pod.get("spec") or {}).get("nodeName") or "", []).append(pod)
    return v.table(_COLUMNS(), [_row(n, by_node.get(n["metadata"]["name"], [])) for n in nodes])


def _COLUMNS() -> list[Block]:
    return [
        v.column(t("Node", "节点")),
        v.column(t("Zone", "区域")),
        v.column("Pods"),
        v.column(t("CPU requested", "已请求 CPU"), num=True),
        v.column("CPU", num=True),
        v.column(t("Memory requested", "已请求内存"), num=True),
        v.column(t("Memory", "内存"), num=True),
    ]


def _row(node: Json, pods: list[Json]) -> Block:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    used = [requests_of(p) for p in pods]
    names = ", ".join(p["metadata"]["name"] for p in pods[:6]) + (" …" if len(pods) > 6 else "")
    return v.row(
        node["metadata"]["name"],
        (node["metadata"].get("labels") or {}).get(ZONE),
        names or None,
        cores(sum(c for c, _ in used)),
        cores(milli_value_of(allocatable.get("cpu", 0))),
        gib(sum(m for _, m in used)),
        gib(value_of(allocatable.get("memory", 0))),
    )


def _large(nodes: list[Json], by_node: dict[str, list[Json]], search: str) -> list[Block]:
    def fullness(node: Json) -> tuple[float, str]:
        name = node["metadata"]["name"]
        total = milli_value_of(((node.get("status") or {}).get("allocatable") or {}).get("cpu", 0))
        used = sum(requests_of(p)[0] for p in by_node.get(name, []))
        return -used / max(total, 1), name

    found = sorted((n for n in nodes if search.lower() in n["metadata"]["name"].lower()), key=fullness)
    cut = len(found) > _TOP + _BOTTOM + 1
    shown = [*found[:_TOP], *found[-_BOTTOM:]] if cut else found
    rows = [_row(n, by_node.get(n["metadata"]["name"], [])) for n in shown]
    if cut:
        left = len(found) - _TOP - _BOTTOM
        rows.insert(
            _TOP, v.row("…", None, t(f"{left} more nodes", f"另外 {left} 个节点"), None, None, None, None)
        )
    caption = t(
        f"{len(found)} of {len(nodes)} nodes, fullest first",
        f"{len(nodes)} 个节点中的 {len(found)} 个，最满的在前",
    )
    return [
        v.controls(v.entry("search", t("Search a node", "搜索节点"), search)),
        v.table(_COLUMNS(), rows, caption=caption),
    ]


class ClusterMapController:
    """Nodes in their zones, with the pods on them."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.search = ""

    def handle(self, id: str, value: Any) -> None:
        """`refresh` looks again; `search` narrows the nodes of a large cluster."""
        if id == "search":
            self.search = str(value)

    def view(self) -> list[Block]:
        """Picture, then table."""
        nodes, pods = self.lab.look("Node"), self.lab.look("Pod")
        placed = [p for p in pods if (p.get("spec") or {}).get("nodeName")]
        blocks = [
            v.toolbar(
                t("Cluster", "集群"),
                sub=self.summary(),
                buttons=[v.button("refresh", t("Refresh", "刷新"))],
            ),
            v.card(t("CPU by pod", "各 Pod 的 CPU"), *cluster_blocks(nodes, placed, search=self.search)),
        ]
        if len(nodes) <= MOST_CARDS:
            blocks.append(v.details(t("The same as a table", "表格形式"), nodes_table(nodes, placed)))
        return blocks

    def summary(self) -> str:
        """Counts."""
        return counts(self.lab)


def counts(lab: Lab) -> str:
    """`6 nodes · 13 placed · 4 waiting`."""
    pods = lab.look("Pod")
    placed = sum(bool((p.get("spec") or {}).get("nodeName")) for p in pods)
    nodes = len(lab.look("Node"))
    return t(
        f"{nodes} nodes · {placed} placed · {len(pods) - placed} waiting",
        f"{nodes} 个节点 · 已放置 {placed} · 等待 {len(pods) - placed}",
    )
