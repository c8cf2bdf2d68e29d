"""A gang in virtual time: who has booked a node, whom Permit holds and until when, and how each wait ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.i18n import t
from labkit.plugins.course.coscheduling import LABEL as GROUP_LABEL
from labkit.plugins.course.gang_permit import GANG, SIZE, GangPermit
from labkit.widgets import view as v
from labkit.widgets.gang_changes import node_like, pod_like, set_timeout, timeout_of
from labkit.widgets.gang_record import Attempt, GangRecord
from labkit.widgets.gang_steps import outcome_of, spans, steps
from labkit.widgets.scene import clock_text
from labkit.widgets.travel import Travel
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

Json = dict[str, Any]
_LANES = 16
_TIMEOUTS = (5, 10, 30, 60, 120, 300, 900)


class GangTimelineController:
    """Drives the lab. A gang is what shares the label `gang-id` (or `scheduling.x-k8s.io/pod-group`)."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.record = GangRecord(lab)
        self.travel = Travel(lab, self.record.listen)
        self._gang: str | None = None

    # --- what the learner does ------------------------------------------------------------------------------

    def handle(self, id: str, value: Any) -> None:
        """`back`, `step`, `run`, `advance.<seconds>`, `time`, `reset`; `gang`, `timeout` (seconds);
        `member.add`, `member.remove`, `node.add`, `plugin.enable`."""
        self.record.listen()
        if self.travel.handle(id, value):
            return
        if id == "reset":
            self.travel.go(0)
        elif id == "gang":
            self._gang = str(value)
        elif id == "timeout":
            self._set_timeout(float(value))
        elif id == "member.add":
            self._add_member()
        elif id == "member.remove" and (members := self._members()):
            last = members[-1]["metadata"]
            name, namespace = last["name"], last["namespace"]
            self.travel.do(
                lambda: self.lab.delete("Pod", name, namespace), t(f"without {name}", f"去掉 {name}")
            )
        elif id == "node.add":
            self._add_node()
        elif id == "plugin.enable":
            self.travel.do(
                lambda: self.lab.plugins.enable(GangPermit), t("GangPermit runs", "启用 GangPermit")
            )

    def _add_member(self) -> None:
        if members := self._members():
            made = pod_like(members[0], self.lab.look("Pod"))
            name = made["metadata"]["name"]
            self.travel.do(lambda: self.lab.apply(made), t(f"with {name}", f"加上 {name}"))

    def _add_node(self) -> None:
        if nodes := self.lab.look("Node"):
            made = node_like(nodes[-1], nodes)
            name = made["metadata"]["name"]
            self.travel.do(lambda: self.lab.apply(made), t(f"with node {name}", f"加上节点 {name}"))

    def _set_timeout(self, seconds: float) -> None:
        words = t(f"time-out {seconds:g} s", f"超时 {seconds:g} 秒")
        self.travel.do(lambda: self.lab.plugins.change(lambda f: set_timeout(f, seconds)), words)

    # --- what there is --------------------------------------------------------------------------------------

    def _gangs(self) -> dict[str, list[Json]]:
        """`namespace/gang` -> its pods, in order of creation."""
        found: dict[str, list[Json]] = {}
        for pod in self.lab.look("Pod"):
            labels = pod["metadata"].get("labels") or {}
            if gang := labels.get(GANG) or labels.get(GROUP_LABEL):
                found.setdefault(f"{pod['metadata']['namespace']}/{gang}", []).append(pod)
        return found

    def _current(self) -> str | None:
        gangs = self._gangs()
        return self._gang if self._gang in gangs else next(iter(gangs), None)

    def _members(self) -> list[Json]:
        return self._gangs().get(self._current() or "", [])

    def _size(self) -> int:
        members = self._members()
        text = str((members[0]["metadata"].get("labels") or {}).get(SIZE, "")) if members else ""
        return int(text) if text.isascii() and text.isdigit() else len(members)

    def _permits(self) -> list[Any]:
        return [p for f in list(self.lab.scheduler.frameworks.values())[:1] for p in f.plugins("permit")]

    def _pods(self, attempts: list[Attempt]) -> list[str]:
        """Lanes: the gang's members, deleted ones too, then everybody else who was tried."""
        members = [_key(p) for p in self._members()]
        others = [_key(p) for p in self.lab.look("Pod") if _key(p) not in members]
        gone = [a.pod for a in attempts if a.pod not in others]
        return list(dict.fromkeys([*members, *gone, *others]))[:_LANES]

    # --- what is shown --------------------------------------------------------------------------------------

    def view(self) -> list[Block]:
        """Clock and buttons, the gang in one sentence, controls, lanes, and the same as tables."""
        self.record.listen()
        attempts = self.record.attempts()
        pods = self._pods(attempts)
        reset = v.button("reset", t("Reset", "重置"), disabled=self.travel.at == 0)
        blocks: list[Block] = [
            v.toolbar(
                t("Gang in time", "gang 时间线"),
                sub=self.travel.last or None,
                clock=clock_text(self.lab.now),
                clock_label=t("virtual clock", "虚拟时钟"),
                buttons=[*self.travel.buttons((10, 60)), reset],
            ),
            *self.travel.slider(),
            self._verdict(attempts),
            self._controls(),
        ]
        if not self._permits():
            words = t(
                "No plugin serves Permit: every pod is bound on its own.",
                "没有实现 Permit 的插件：每个 Pod 各自绑定。",
            )
            blocks.append(v.notice("skip", words))
        blocks.append(self._timeline(pods, attempts))
        blocks.append(v.card(t("Where each pod stands", "每个 Pod 的状态"), self._now(pods, attempts)))
        title = t("The same as a table: what happened when", "同样内容的表格：何时发生了什么")
        blocks.append(v.details(title, self._log(attempts)))
        return blocks

    def _verdict(self, attempts: list[Attempt]) -> Block:
        status, words, why = self._state(attempts)
        return v.verdict(words, why, status=status)

    def _state(self, attempts: list[Attempt]) -> tuple[str | None, str, str | None]:
        gang, size = self._current(), self._size()
        if gang is None:
            return None, t("No pod here belongs to a gang.", "这里没有属于 gang 的 Pod。"), None
        keys = {_key(p) for p in self._members()}
        name = gang.split("/")[-1]
        bound = sum(bool(p["spec"].get("nodeName")) for p in self._members())
        held = [a for a in attempts if a.pod in keys and a.outcome == "held"]
        if bound and bound < size:
            words = t(
                f"{name}: {bound} of {size} run. A gang should run whole or not at all.",
                f"{name}：{size} 个中有 {bound} 个在运行。gang 应当整体运行或都不运行。",
            )
            return "fail", words, None
        if bound:
            return (
                "pass",
                t(f"{name} runs: {bound} pods bound.", f"{name} 已运行：绑定了 {bound} 个 Pod。"),
                None,
            )
        if held:
            left = min(until for a in held for _, until in a.deadlines) - self.lab.now
            words = t(
                f"{name}: {len(held)} of {size} have booked a node and wait.",
                f"{name}：{size} 个中有 {len(held)} 个已预订节点，正在等待。",
            )
            why = t(
                f"The first time-out is in {left:g} s. Until then nobody else gets their room.",
                f"最早的超时在 {left:g} 秒后。在此之前，别人得不到它们占的资源。",
            )
            return "wait", words, why
        return None, t(f"{name}: nobody holds a node.", f"{name}：没有成员占着节点。"), None

    def _controls(self) -> Block:
        members = self._members()
        items: list[Block] = [
            v.button(
                "member.add",
                t("+ member", "+ 成员"),
                disabled=not members,
                label=t("add a member", "加一个成员"),
            ),
            v.button(
                "member.remove",
                t("− member", "− 成员"),
                disabled=not members,
                label=t("delete the last member", "删除最后一个成员"),
            ),
            v.button(
                "node.add",
                t("+ node", "+ 节点"),
                disabled=not self.lab.look("Node"),
                label=t("add a node like the last one", "再加一个同样的节点"),
            ),
        ]
        if not self._permits():
            items.append(v.button("plugin.enable", t("Run with GangPermit", "启用 GangPermit")))
        fields: list[Block] = []
        if len(gangs := self._gangs()) > 1:
            options = [(g, g.removeprefix("default/")) for g in gangs]
            fields.append(v.select("gang", "Gang", self._current() or "", options))
        seconds = next((s for p in self._permits() if (s := timeout_of(p)) is not None), None)
        if seconds is not None:
            every = sorted({float(s) for s in _TIMEOUTS} | {seconds})
            options = [(f"{s:g}", t(f"{s:g} s", f"{s:g} 秒")) for s in every]
            label = t(
                "Permit time-out (for waits that begin from now on)", "Permit 超时（对此后开始的等待有效）"
            )
            fields.append(v.select("timeout", label, f"{seconds:g}", options))
        if not fields:
            return v.buttons(*items)
        return v.grid("minmax(0,1fr) minmax(0,1fr)", v.buttons(*items), v.controls(*fields))

    def _timeline(self, pods: list[str], attempts: list[Attempt]) -> Block:
        now = self.lab.now
        ends = [until for a in attempts if a.outcome == "held" for _, until in a.deadlines]
        most = max([now, *ends, 10.0])
        lanes = [(_short(p), spans([a for a in attempts if a.pod == p], now, most)) for p in pods]
        label = t(
            f"From 0 s to {most:g} s, now {now:g} s. {self.summary()}. The table below has every step.",
            f"从 0 秒到 {most:g} 秒，现在 {now:g} 秒。{self.summary()}。下面的表格列出每一步。",
        )
        axis = t(
            f"0 s to {most:g} s; the line is now · ◷ held · ✓ bound · ✕ no room, or given up",
            f"0 秒到 {most:g} 秒；竖线是现在 · ◷ 被扣住 · ✓ 已绑定 · ✕ 没有位置，或已放弃",
        )
        picture = v.timeline(lanes, label=label, now=100 * now / most)
        return v.card(axis, picture)

    def _now(self, pods: list[str], attempts: list[Attempt]) -> Block:
        raw = {_key(p): p for p in self.lab.look("Pod")}
        rows = []
        for pod in pods:
            last = next((a for a in reversed(attempts) if a.pod == pod), None)
            at = (raw[pod]["spec"].get("nodeName") if pod in raw else None) or None
            if pod not in raw:
                cell, node = v.mark("skip", t("deleted", "已删除")), None
            elif last is None:
                cell = (
                    v.mark("pass", t("runs", "在运行"))
                    if at
                    else v.mark("now", t("not tried yet", "尚未尝试"))
                )
                node = at
            else:
                cell, node = v.mark(*outcome_of(last)), at or (last.node if last.outcome == "held" else None)
            left = None
            if last is not None and last.outcome == "held" and last.deadlines:
                left = round(min(until for _, until in last.deadlines) - self.lab.now, 3)
            rows.append(v.row(_short(pod), cell, node, left, last.number if last is not None else None))
        columns = [
            v.column("Pod"),
            v.column(t("State", "状态")),
            v.column(t("Node", "节点")),
            v.column(t("Left (s)", "剩余（秒）"), num=True),
            v.column(t("Attempts", "尝试次数"), num=True),
        ]
        return v.table(columns, rows)

    @staticmethod
    def _log(attempts: list[Attempt]) -> Block:
        rows = [
            v.row(
                clock_text(x.when), _short(x.pod), x.point, v.mark(x.status, x.words), x.node, x.why or None
            )
            for x in steps(attempts)
        ]
        if not rows:
            return v.text(t("– nothing yet", "– 还没有"), mute=True)
        columns = [
            v.column(t("Time", "时间"), width="96px"),
            v.column("Pod", width="96px"),
            v.column(t("Extension point", "扩展点")),
            v.column(t("Result", "结果"), width="190px"),
            v.column(t("Node", "节点")),
            v.column(t("Message", "消息")),
        ]
        return v.table(columns, rows)

    def summary(self) -> str:
        """How many members are bound, held and without room."""
        self.record.listen()
        attempts = self.record.attempts()
        last = {a.pod: a.outcome for a in attempts}
        gang, keys = self._current(), [_key(p) for p in self._members()]
        if gang is None:
            return t("no gang", "没有 gang")
        bound = sum(bool(p["spec"].get("nodeName")) for p in self._members())
        held = sum(last.get(k) == "held" for k in keys)
        rest = len(keys) - bound - held
        name = gang.removeprefix("default/")
        return t(
            f"{name}: {bound} bound, {held} held by Permit, {rest} without a node (needs {self._size()})",
            f"{name}：已绑定 {bound}，被 Permit 扣住 {held}，没有节点 {rest}（需要 {self._size()}）",
        )


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _short(key: str) -> str:
    return key.removeprefix("default/")
