"""The filter matrix: every node against every Filter plugin, with switches, for one pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.engine.trace import Trace
from labkit.framework.plugin import plugin_name
from labkit.framework.status import Code
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.scene import Scene, key_of, pod_options
from labkit.widgets.trace import BOTTOM, TOP, verdict_block
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

_POINTS = ("pre_filter", "filter")


class FilterMatrixController:
    """Which plugin rejects which node, and what if it did not. Nothing in the lab changes."""

    def __init__(self, lab: Lab, pod: Any) -> None:
        self.scene = Scene(lab)
        self.pod = self.scene.pod(pod)
        framework = next(iter(self.scene.frameworks().values()))
        self.plugins = [plugin_name(p) for p in framework.plugins("filter")]
        self.off: set[str] = set()
        self.search = ""
        self.trace: Trace = self._decide()

    def handle(self, id: str, value: Any) -> None:
        """`on.<plugin>` switches a plugin, `pod` picks another pod, `search` narrows the nodes, `all` switches all on."""
        if id.startswith("on."):
            name = id.removeprefix("on.")
            if name in self.plugins:
                (self.off.discard if value else self.off.add)(name)
        elif id == "pod":
            self.pod = self.scene.pod(str(value))
        elif id == "all":
            self.off.clear()
        elif id == "search":
            self.search = str(value)
            return
        self.trace = self._decide()

    def _decide(self) -> Trace:
        return self.scene.decide(self.pod, off=dict.fromkeys(self.off, _POINTS), all_filters=True)

    def _active(self) -> list[str]:
        """Plugins that looked at nodes: PreFilter did not skip them."""
        skipped = {
            name for name, record in self.trace.pre_filter_plugins.items() if record.status.code is Code.SKIP
        }
        return [p for p in self.plugins if p not in skipped and p not in self.off]

    def view(self) -> list[Block]:
        """Verdict, switches beside the matrix, what PreFilter did."""
        sub = t(f"pod {key_of(self.pod)}", f"Pod {key_of(self.pod)}")
        blocks: list[Block] = [v.toolbar(t("Filter matrix", "Filter 矩阵"), sub=sub)]
        blocks.append(v.grid("minmax(0,1fr) 270px", self._matrix(), self._switches()))
        return blocks

    def _matrix(self) -> Block:
        active = self._active()
        if not self.trace.filter:
            active = []
        names = sorted(
            (n for n in self.trace.filter if self.search.lower() in n.lower()),
            key=lambda n: (not self.trace.filter[n].is_success, n),
        )
        cut = len(names) > TOP + BOTTOM + 1
        shown = [*names[:TOP], *names[-BOTTOM:]] if cut else names
        rows = [self._row(n, active) for n in shown]
        if cut:
            left = len(names) - TOP - BOTTOM
            rows.insert(TOP, v.row("…", *([None] * len(active)), t(f"{left} more", f"另外 {left} 个")))
        items: list[Block] = [verdict_block(self.trace)]
        rejected = [
            f"{name}: {record.status.message}"
            for name, record in self.trace.pre_filter_plugins.items()
            if record.status.code not in (Code.SUCCESS, Code.SKIP)
        ]
        for text in rejected:
            items.append(v.notice("fail", f"PreFilter – {text}"))
        for name, record in self.trace.pre_filter_plugins.items():
            if record.nodes is not None:
                allowed = ", ".join(record.nodes[:8]) or "–"
                items.append(
                    v.text(
                        t(f"PreFilter: {name} allows only {allowed}", f"PreFilter：{name} 只允许 {allowed}")
                    )
                )
        if len(self.trace.filter) > TOP + BOTTOM:
            items.append(v.controls(v.entry("search", t("Search a node", "搜索节点"), self.search)))
        columns = [
            v.column(t("Node", "节点")),
            *(v.column(_split(p)) for p in active),
            v.column(t("Reason", "原因")),
        ]
        items.append(
            v.table(
                columns,
                rows,
                caption=t(
                    "✓ pass · ✕ rejects · first: the one that decides", "✓ 通过 · ✕ 拒绝 · 首个：由它决定"
                ),
            )
        )
        return v.card(None, *items)

    def _row(self, node: str, active: list[str]) -> Block:
        by_plugin = self.trace.filter_by_plugin.get(node, {})
        status = self.trace.filter[node]
        cells: list[Any] = []
        for plugin in active:
            said = by_plugin.get(plugin)
            if said is None:
                cells.append(None)
            elif said.is_success:
                cells.append(v.mark("pass", ""))
            else:
                first = plugin == status.plugin
                cells.append(
                    v.mark("fail" if said.is_rejected else "error", t("first", "首个") if first else "")
                )
        reasons = [f"{p}: {', '.join(s.reasons)}" for p, s in by_plugin.items() if not s.is_success]
        if not reasons and not status.is_success:
            reasons = [f"{status.plugin}: {', '.join(status.reasons)}"]
        return v.row(node, *cells, "; ".join(reasons) or None)

    def _switches(self) -> Block:
        skipped = [p for p in self.plugins if p not in self._active() and p not in self.off]
        items: list[Block] = [
            v.controls(v.select("pod", "Pod", key_of(self.pod), pod_options(self.scene, self.pod)))
        ]
        items.append(
            v.heading(
                t(
                    "Filter plugins, in call order (Skip: nothing to do for this pod)",
                    "Filter 插件，按调用顺序（Skip：与此 Pod 无关）",
                )
            )
        )
        items.append(
            v.controls(
                *(v.check(f"on.{p}", self._label(p, skipped), p not in self.off) for p in self.plugins)
            )
        )
        items.append(v.buttons(v.button("all", t("All on", "全部开启"), disabled=not self.off)))
        return v.card(None, *items)

    @staticmethod
    def _label(plugin: str, skipped: list[str]) -> str:
        """Its PreFilter said that it has nothing to do for this pod."""
        return f"{plugin} – Skip" if plugin in skipped else plugin

    def summary(self) -> str:
        """How many nodes are left."""
        passed = sum(s.is_success for s in self.trace.filter.values())
        total = len(self.scene.nodes)
        return t(
            f"{key_of(self.pod)}: {passed} of {total} nodes pass",
            f"{key_of(self.pod)}：{total} 个节点中 {passed} 个通过",
        )


def _split(name: str) -> str:
    """A long plugin name with places to break."""
    import re

    return re.sub(r"(?<=[a-z])(?=[A-Z])", "\u200b", name)
