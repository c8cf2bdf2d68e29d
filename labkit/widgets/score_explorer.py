"""The score explorer: switches and weights of the score plugins, and which of them decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.engine.framework import Framework
from labkit.engine.trace import Trace
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.scene import Scene, key_of, pod_options
from labkit.widgets.switches import STRATEGIES, strategy_control, strategy_of, use_strategy, weight_controls
from labkit.widgets.trace import BOTTOM, TOP, nodes_table, score_legend, score_table, verdict_block
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

_POINTS = ("pre_score", "score")


class ScoreExplorerController:
    """One pod's scores under other weights and strategies. Nothing in the lab changes."""

    def __init__(self, lab: Lab, pod: Any) -> None:
        self.scene = Scene(lab)
        self.pod = self.scene.pod(pod)
        framework = next(iter(self.scene.frameworks().values()))
        self.plugins = framework.weights()
        self.weights = dict(self.plugins)
        self.off: set[str] = set()
        self._configured = self.strategy = strategy_of(framework)
        self.search = ""
        self.trace: Trace = self._decide()

    def handle(self, id: str, value: Any) -> None:
        """`weight.<plugin>`, `weight.<plugin>.on`, `strategy`, `pod`, `search`, `reset`."""
        if id == "search":
            self.search = str(value)
            return
        if id == "reset":
            self.weights, self.off, self.strategy = dict(self.plugins), set(), self._configured
        elif id == "pod":
            self.pod = self.scene.pod(str(value))
        elif id == "strategy" and value in STRATEGIES:
            self.strategy = str(value)
        elif id.startswith("weight."):
            name = id.removeprefix("weight.")
            if name.endswith(".on") and name.removesuffix(".on") in self.plugins:
                (self.off.discard if value else self.off.add)(name.removesuffix(".on"))
            elif name in self.plugins:
                self.weights[name] = min(100, max(1, int(value)))
        self.trace = self._decide()

    def _decide(self) -> Trace:
        return self.scene.decide(
            self.pod, off=dict.fromkeys(self.off, _POINTS), weights=self.weights, change=self._strategy
        )

    def _strategy(self, framework: Framework) -> None:
        use_strategy(framework, self.strategy)

    def view(self) -> list[Block]:
        """Verdict and scores beside the controls."""
        items: list[Block] = [verdict_block(self.trace)]
        if len(self.trace.filter) > TOP + BOTTOM:
            items.append(v.controls(v.entry("search", t("Search a node", "搜索节点"), self.search)))
        items += [
            nodes_table(self.trace, search=self.search),
            score_legend(self.trace),
            v.details(
                t("Scores as numbers: raw, normalised, weighted", "分数明细：原始、归一化、加权"),
                score_table(self.trace, search=self.search),
            ),
        ]
        skipped = [p for p, code in self.trace.pre_score_codes.items() if code.label == "Skip"]
        if skipped:
            names = ", ".join(skipped)
            items.append(
                v.text(
                    t(f"– not scored (PreScore: Skip): {names}", f"– 未打分（PreScore: Skip）：{names}"),
                    mute=True,
                )
            )
        return [
            v.toolbar(
                t("Scores", "打分"),
                sub=t(f"pod {key_of(self.pod)}", f"Pod {key_of(self.pod)}"),
                buttons=[v.button("reset", t("Reset", "重置"))],
            ),
            v.grid("minmax(0,1fr) 290px", v.card(None, *items), self._controls()),
        ]

    def _controls(self) -> Block:
        return v.card(
            None,
            v.controls(v.select("pod", "Pod", key_of(self.pod), pod_options(self.scene, self.pod))),
            v.heading(t("Score plugins · weight", "打分插件 · 权重")),
            v.controls(*weight_controls(self.plugins, self.weights, self.off)),
            *(
                [v.heading(t("Strategy", "策略")), v.controls(strategy_control(self.strategy))]
                if self.strategy
                else []
            ),
        )

    def summary(self) -> str:
        """The decision in one line."""
        where = self.trace.node or t("nowhere", "无处可放")
        total = self.trace.scores[where].total if where in self.trace.scores else None
        points = "" if total is None else t(f" ({total} points)", f"（{total} 分）")
        return f"{key_of(self.pod)} → {where}{points}"
