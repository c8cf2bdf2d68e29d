"""The preemption explorer: for a pod that fits nowhere, who would have to go where, and what decides between nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.engine.trace_text import verdict as verdict_text
from labkit.framework.node_info import pod_info
from labkit.i18n import t
from labkit.objects.quantity import milli_value_of
from labkit.plugins._preemption import Candidate
from labkit.widgets import view as v
from labkit.widgets.preemption_run import DryRun, PreemptionScene
from labkit.widgets.preemption_tables import candidates_table, criteria, criteria_table, others, victims_of
from labkit.widgets.resources import cores
from labkit.widgets.scene import Json, key_of, pod_options
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

#: Nodes drawn as cards.
_MOST_CARDS = 12
_BESIDE = "minmax(0,1fr) 270px"
_LOWEST, _HIGHEST = -(2**31), 10**9


class PreemptionExplorerController:
    """Dry runs of DefaultPreemption under changed priorities and budgets. Nothing in the lab changes."""

    def __init__(self, lab: Lab, pod: Any) -> None:
        self.scene = PreemptionScene(lab)
        self.allowed = {key_of(b): _allowed(b) for b in self.scene.budgets()}
        self.node = ""
        self._take(pod)
        self.found: DryRun = self._decide()

    def _take(self, pod: Any) -> None:
        self.pod = self.scene.pod(pod)
        self.priority = int(self.pod["spec"].get("priority") or 0)
        self.never = self.pod["spec"].get("preemptionPolicy") == "Never"

    def handle(self, id: str, value: Any) -> None:
        """`pod`, `priority`, `never` and `budget.<namespace/name>` (disruptions allowed) change the run; `node` what
        is shown of it; `reset` goes back to the pod and the budgets of the lab."""
        if id == "pod":
            self._take(str(value))
        elif id == "priority":
            if value == "":
                # A number that is being typed: so far there is only its sign.
                return
            self.priority = min(max(int(float(str(value))), _LOWEST), _HIGHEST)
        elif id == "never":
            self.never = bool(value)
        elif id.startswith("budget."):
            key = id.removeprefix("budget.")
            if key in self.allowed:
                self.allowed[key] = max(0, int(float(str(value))))
        elif id == "node":
            self.node = str(value)
            return
        elif id == "reset":
            self.allowed = {key_of(b): _allowed(b) for b in self.scene.budgets()}
            self._take(key_of(self.pod))
        self.found = self._decide()

    def _decide(self) -> DryRun:
        for budget in self.scene.budgets():
            self.scene.allow(budget, self.allowed.get(key_of(budget), 0))
        policy = "Never" if self.never else "PreemptLowerPriority"
        spec = {**self.pod["spec"], "priority": self.priority, "preemptionPolicy": policy}
        return self.scene.preempt({**self.pod, "spec": spec})

    # --- what is shown ----------------------------------------------------------------------------------------

    def view(self) -> list[Block]:
        """Verdict, candidates and criteria beside the controls; then the nodes that are no candidates."""
        sub = t(f"pod {key_of(self.pod)}", f"Pod {key_of(self.pod)}")
        blocks = [v.toolbar(t("Preemption explorer", "抢占探索器"), sub=sub)]
        shown: list[Block] = [v.verdict(verdict_text(self.found.trace), self._why(), status=self._status())]
        if not self.found.candidates:
            blocks.append(v.grid(_BESIDE, v.card(None, *shown), self._controls()))
        else:
            blocks.append(v.grid(_BESIDE, v.card(None, *shown, self._picture()), self._controls()))
            compared = v.card(t("What is compared", "比较的内容"), candidates_table(self.found))
            decided = v.card(t("What decides", "由什么决定"), criteria_table(self.found))
            blocks += [compared, decided]
            blocks.append(victims_of(self.found, self.node, self.priority))
        if self.found.trace.node is None:
            blocks.append(others(self.found, [n["metadata"]["name"] for n in self.scene.nodes]))
        return blocks

    def _status(self) -> str | None:
        if self.found.trace.node is not None:
            return None
        return "wait" if self.found.nominated else "fail"

    def _why(self) -> str:
        found = self.found
        if found.trace.node is not None:
            return t(
                "It fits without anybody leaving: PostFilter does not run.",
                "不需要谁让位就放得下：PostFilter 不运行。",
            )
        if not found.enabled:
            return t(
                "DefaultPreemption is switched off in this profile.",
                "这个 profile 关闭了 DefaultPreemption。",
            )
        if not found.nominated:
            return found.trace.full_message or found.trace.message or ""
        best = next(c for c in found.candidates if c.node == found.nominated)
        names = ", ".join(p.name for p in best.victims)
        n = len(found.candidates)
        leaving = t(f"Leaving: {names}. ", f"离开的是：{names}。")
        return leaving + t(
            f"{n} candidate{'s' if n > 1 else ''}. {self._decided()}", f"{n} 个候选节点。{self._decided()}"
        )

    def _decided(self) -> str:
        steps = self.found.steps
        last, left = steps[-1]
        if last not in criteria():
            return t("Nothing to compare.", "没有可比的。")
        name = criteria()[last]
        if len(left) > 1:
            return t(
                f"{len(left)} are equal in everything: any of them may be taken, the lab takes the first name.",
                f"有 {len(left)} 个在各方面都相同：取哪个都可以，lab 取名字最靠前的。",
            )
        number = list(criteria()).index(last) + 1
        return t(f"Decided by criterion {number}: {name}.", f"由标准 {number} 决定：{name}。")

    def _picture(self) -> Block:
        groups = []
        for rank, candidate in enumerate(self.found.ranked()[:_MOST_CARDS], 1):
            groups.append((t(f"Candidate {rank}", f"候选 {rank}"), [self._card(candidate)]))
        return v.nodes(groups)

    def _card(self, candidate: Candidate) -> Block:
        pods = self.found.pods.get(candidate.node, [])
        leaving = {p.uid for p in candidate.victims}
        total = self._capacity(candidate.node)
        parts, words = [], []
        for pod in sorted(pods, key=lambda p: -p.priority):
            cpu = pod_info(pod).requested.milli_cpu
            goes = pod.uid in leaving
            name = f"{'✕ ' if goes else ''}{pod.name} ({pod.priority})"
            if cpu:
                parts.append(v.part(min(100 * cpu / max(total, 1), 100.0), name, "leaves" if goes else None))
            what = t("leaves", "离开") if goes else t("stays", "留下")
            words.append(f"{pod.name} ({pod.priority}, {cores(cpu)} CPU) {what}")
        won = candidate.node == self.found.nominated
        return v.node(
            candidate.node,
            figure=f"{cores(total)} CPU",
            meters=[v.meter(parts, label=f"{candidate.node}: {', '.join(words)}")],
            tag=t("taken", "选中") if won else self._lost(candidate.node),
            status="pass" if won else "skip",
            win=won,
        )

    def _lost(self, node: str) -> str:
        criterion = self.found.out_at(node)
        if criterion is None:
            return t("equal in everything", "完全相同")
        number = list(criteria()).index(criterion) + 1
        return t(f"out at criterion {number}", f"在标准 {number} 落选")

    def _capacity(self, node: str) -> int:
        for raw in self.scene.nodes:
            if raw["metadata"]["name"] == node:
                return milli_value_of(((raw.get("status") or {}).get("allocatable") or {}).get("cpu", 0))
        return 0

    def _controls(self) -> Block:
        items: list[Block] = [
            v.select("pod", "Pod", key_of(self.pod), pod_options(self.scene, self.pod)),
            v.entry("priority", t("Its priority", "它的优先级"), str(self.priority), number=True),
            v.check("never", "preemptionPolicy: Never", self.never),
        ]
        for budget in self.scene.budgets():
            key = key_of(budget)
            most = max(_expected(budget), _allowed(budget), 1)
            text = t(f"PDB {key}: disruptions allowed", f"PDB {key}：允许的中断数")
            value = self.allowed.get(key, 0)
            items.append(
                v.slider(f"budget.{key}", text, value, min=0, max=most, step=1, figure=f"{value} / {most}")
            )
        return v.card(
            None, v.controls(*items), v.buttons(v.button("reset", t("As in the lab", "恢复为 lab 的值")))
        )

    def summary(self) -> str:
        """The decision and what decided, in one line."""
        text = verdict_text(self.found.trace)
        return f"{text}{t('. ', '。')}{self._decided()}" if self.found.nominated else text


def _allowed(budget: Json) -> int:
    return int((budget.get("status") or {}).get("disruptionsAllowed") or 0)


def _expected(budget: Json) -> int:
    return int((budget.get("status") or {}).get("expectedPods") or 0)
