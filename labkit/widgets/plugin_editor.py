"""The plugin editor: write a plugin, apply it, and see the same pods re-decided beside the old decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.engine.trace_text import verdict, why
from labkit.i18n import t
from labkit.what_if import Difference, WhatIf
from labkit.widgets import view as v
from labkit.widgets.plugin_code import PluginCode, PluginCodeError, fault_of
from labkit.widgets.trace import nodes_table, score_legend
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

_MOST = 40


class PluginEditorController:
    """Code and its consequences for the waiting pods. Nothing in the lab changes."""

    def __init__(self, lab: Lab, source: str, *, disable: tuple[str, ...] = ()) -> None:
        self.lab = lab
        self.source = source.strip("\n") + "\n"
        self.disable = disable
        self.problem = ""
        self.result: WhatIf | None = None
        self.shown = ""
        self._applied = ""
        self._apply()

    def handle(self, id: str, value: Any) -> None:
        """`code` is the text, `apply` runs it, `pod` picks a decision to look at."""
        if id == "code":
            self.source = str(value)
        elif id == "pod":
            self.shown = str(value)
        elif id == "apply":
            self._apply()

    def _apply(self) -> None:
        self.problem = ""
        try:
            plugin = PluginCode(self.source).make()
        except PluginCodeError as e:
            self.problem = str(e)
            return
        self.result = self.lab.what_if(plugins=[plugin], disable=self.disable)
        self._applied = self.source
        pods = [d.pod for d in self.result.differences]
        if self.shown not in pods:
            moved = [d.pod for d in self.result.changed]
            self.shown = (moved or pods or [""])[0]

    def view(self) -> list[Block]:
        """Code above, comparison below."""
        code = [v.controls(v.code("code", t("Plugin", "插件"), self.source, rows=self._rows()))]
        if self.problem:
            code.append(v.notice("error", self.problem))
        elif self.source != self._applied:
            code.append(v.text(t("Changed; not applied yet.", "已修改，尚未应用。"), mute=True))
        code.append(v.buttons(v.button("apply", t("Apply", "应用"), primary=True)))
        blocks: list[Block] = [
            v.toolbar(t("Plugin editor", "插件编辑器"), sub=self.summary()),
            v.card(None, *code),
        ]
        blocks += comparison(self.result, self.shown)
        return blocks

    def _rows(self) -> int:
        return min(30, max(8, self.source.count("\n") + 2))

    def summary(self) -> str:
        """How many pods end differently."""
        if self.problem:
            return self.problem
        if self.result is None or not self.result.differences:
            return t("no pod is waiting", "没有等待中的 Pod")
        return self.result.summary()


def comparison(result: WhatIf | None, shown: str) -> list[Block]:
    """The pods with both nodes, and both decisions of the one that is looked at (control `pod`)."""
    if result is None:
        return []
    if not result.differences:
        words = t(
            "No pod is waiting in this lab: apply some pods, then look again.",
            "这个 lab 里没有等待的 Pod：先 apply 几个，再来看。",
        )
        return [v.card(t("Before and after", "前后对比"), v.text(words))]
    rows = []
    ordered = [*result.changed, *(d for d in result.differences if not d.changed)]
    for d in ordered[:_MOST]:
        before, after = d.nodes
        change: Any = v.mark("now" if d.changed else "skip", d.outcome)
        if d.after is not None and d.after.error is not None:
            change = v.mark("error", t("error", "错误"))
        rows.append(
            v.row(d.pod.removeprefix("default/"), before, v.strong(after) if d.changed else after, change)
        )
    if len(ordered) > _MOST:
        left = len(ordered) - _MOST
        rows.append(v.row("…", None, None, t(f"{left} more", f"另外 {left} 个")))
    columns = [
        v.column("Pod"),
        v.column(t("Node before", "之前的节点")),
        v.column(t("Node after", "之后的节点")),
        v.column(t("Change", "变化")),
    ]
    blocks = [v.card(t("Before and after", "前后对比"), v.table(columns, rows))]
    chosen = next((d for d in result.differences if d.pod == shown), None)
    if chosen is not None:
        blocks.append(_decisions(chosen, [d.pod for d in result.differences]))
    return blocks


def _decisions(d: Difference, pods: list[str]) -> Block:
    items: list[Block] = []
    if len(pods) > 1:
        items.append(v.controls(v.select("pod", "Pod", d.pod, [(p, p) for p in pods])))
    for title, trace in ((t("Before", "之前"), d.before), (t("After", "之后"), d.after)):
        items.append(v.heading(title))
        if trace is None:
            items.append(v.text(t("– not tried", "– 未尝试"), mute=True))
            continue
        fault = fault_of(trace)
        said = why(trace) if fault is None else None
        items.append(v.verdict(verdict(trace), said, status=None if trace.node else "fail"))
        if fault is not None:
            items.append(v.notice("error", *fault))
        elif trace.filter:
            items += [nodes_table(trace), score_legend(trace)]
    return v.card(None, *items)
