"""The playground: the whole lab in one picture. Step, and see where pods go; change the plugins, and see them go elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.engine.build import build_frameworks
from labkit.framework.plugin import plugin_name
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.cluster_map import MOST_CARDS, cluster_blocks, counts, nodes_table
from labkit.widgets.plugin_code import PluginCode, PluginCodeError
from labkit.widgets.scene import clock_text
from labkit.widgets.switches import STRATEGIES, strategy_control, strategy_of, use_strategy, weight_controls
from labkit.widgets.trace import decision_blocks
from labkit.widgets.travel import Travel
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

_EXAMPLE = """class PreferZoneB:
    def score(self, state, pod, node):
        zone = node.node.labels.get("topology.kubernetes.io/zone")
        return 100 if zone == "zone-b" else 0
"""


class PlaygroundController:
    """Drives the lab: steps are real attempts, switches change the lab's own profile, Back takes both back."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.travel = Travel(lab, self._read_switches)
        self.plugins = lab.plugins.weights()
        self.weights: dict[str, int] = {}
        self.off: set[str] = set()
        self._code: PluginCode | None = None
        self.strategy = STRATEGIES[0]
        self.source = _EXAMPLE
        self.problem = ""
        self.search = ""
        self._read_switches()

    def _read_switches(self) -> None:
        running = self.lab.plugins.weights()
        self.plugins = {**self.plugins, **running}
        self.weights = {**self.plugins, **self.weights, **running}
        self.off = set(self.plugins) - set(running)
        self.strategy = strategy_of(next(iter(self.lab.scheduler.frameworks.values())))

    def handle(self, id: str, value: Any) -> None:
        """`back`, `step`, `run`, `advance.<s>`, `time`; `weight.<plugin>[.on]`, `strategy`; `code`, `apply`; `search`."""
        if self._code is not None:
            self._code.reset()
        if self.travel.handle(id, value):
            self._read_switches()
            return
        if id == "search":
            self.search = str(value)
        elif id == "strategy" and value in STRATEGIES:
            self._use_strategy(str(value))
        elif id.startswith("weight."):
            self._weigh(id.removeprefix("weight."), value)
        elif id == "code":
            self.source = str(value)
        elif id == "apply":
            self._apply()
        self._read_switches()

    def _use_strategy(self, strategy: str) -> None:
        lab = self.lab
        self.travel.do(lambda: lab.plugins.change(lambda f: use_strategy(f, strategy)), strategy)

    def _weigh(self, name: str, value: Any) -> None:
        lab = self.lab
        switch = name.endswith(".on")
        name = name.removesuffix(".on")
        if name not in self.plugins:
            return
        if not switch:
            weight = min(100, max(1, int(value)))
            self.weights[name] = weight
            if name not in self.off:
                self.travel.do(lambda: lab.plugins.set_weight(name, weight), f"{name} ×{weight}")
        elif value and name in self.off:
            weight = self.weights.get(name, 1)
            self.travel.do(lambda: self._enable(name, weight), name)
        elif not value and name not in self.off:
            self.travel.do(lambda: lab.plugins.disable(name, "pre_score", "score"), name)

    def _enable(self, name: str, weight: int) -> None:
        """The plugin made anew, from the lab's configuration or from the code here: after going back in time an
        old object would look at a cluster that is no more."""
        if self._code is not None and name == self._code.name:
            self.lab.plugins.replace(self._code.make(), weight=weight)
            return
        scheduler = self.lab.scheduler
        made = next(iter(build_frameworks(scheduler.config, scheduler.services).values()))
        plugin = next((p for p in made.plugins("score") if plugin_name(p) == name), None)
        if plugin is not None:
            self.lab.plugins.replace(plugin, weight=weight)

    def _apply(self) -> None:
        self.problem = ""
        try:
            code = PluginCode(self.source)
            plugin = code.make()
        except PluginCodeError as e:
            self.problem = str(e)
            return
        lab, self._code = self.lab, code
        self.travel.do(lambda: lab.plugins.replace(plugin), plugin_name(plugin))

    # --- what is shown --------------------------------------------------------------------------------------

    def view(self) -> list[Block]:
        """As in `docs/img/playground.png`: cluster and queue, switches, the last decision."""
        trace = self.travel.last_trace()
        nodes, pods = self.lab.look("Node"), self.lab.look("Pod")
        placed = [p for p in pods if (p.get("spec") or {}).get("nodeName")]
        fresh = trace.pod if trace is not None and trace.node else ""
        cluster = v.card(
            t("Cluster · CPU by pod", "集群 · 各 Pod 的 CPU"),
            *cluster_blocks(nodes, placed, trace=trace, search=self.search, fresh=fresh),
            self._queue(),
        )
        blocks: list[Block] = [
            v.toolbar(
                t("Playground", "演练场"),
                sub=counts(self.lab),
                clock=clock_text(self.lab.now),
                clock_label=t("virtual clock", "虚拟时钟"),
                buttons=self.travel.buttons((10,)),
            ),
            *self.travel.slider(),
            v.grid("minmax(0,1fr) 280px", cluster, self._switches()),
        ]
        if trace is not None:
            blocks.append(v.card(None, *decision_blocks(trace, search=self.search)))
        if len(nodes) <= MOST_CARDS:
            blocks.append(
                v.details(t("The cluster as a table", "集群的表格形式"), nodes_table(nodes, placed))
            )
        return blocks

    def _queue(self) -> Block:
        queue = self.lab.queue
        chips: list[tuple[str, str | None]] = []
        for i, e in enumerate(queue.active[:12]):
            name = e.pod.removeprefix("default/")
            chips.append((f"{name} · {t('next', '下一个')}" if i == 0 else name, "now" if i == 0 else None))
        for e in [*queue.backoff, *queue.error_backoff][:8]:
            left = max(0.0, (e.until or queue.now) - queue.now)
            words = t(f"back-off {left:g} s", f"退避 {left:g} 秒")
            chips.append((f"{e.pod.removeprefix('default/')} · {words}", "wait"))
        for e in queue.unschedulable[:8]:
            words = t("unschedulable", "不可调度")
            chips.append((f"{e.pod.removeprefix('default/')} · {words}", "fail"))
        for e in queue.gated[:8]:
            chips.append((f"{e.pod.removeprefix('default/')} · {t('gated', '被挡住')}", "skip"))
        for pod in queue.in_flight[:8]:
            chips.append(
                (f"{pod.removeprefix('default/')} · {t('held by Permit', '被 Permit 扣住')}", "wait")
            )
        return v.chips(chips or [(t("empty", "空"), None)], title=t("Queue", "队列"))

    def _switches(self) -> Block:
        editor: list[Block] = [v.controls(v.code("code", t("Plugin", "插件"), self.source, rows=8))]
        if self.problem:
            editor.append(v.notice("error", self.problem))
        editor.append(v.buttons(v.button("apply", t("Apply", "应用"))))
        return v.card(
            t("Score plugins · weight", "打分插件 · 权重"),
            v.controls(*weight_controls(self.plugins, self.weights, self.off)),
            *([v.controls(strategy_control(self.strategy))] if self.strategy else []),
            v.details(t("Your plugin", "你的插件"), *editor, open=bool(self.problem)),
        )

    def summary(self) -> str:
        """Time and counts."""
        return f"{clock_text(self.lab.now)} · {counts(self.lab)}"
