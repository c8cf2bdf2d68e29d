"""The scheduling queue at work: who is ready, who waits and why, what wakes them; step by step, and back in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.engine.queue_view import QueueEntry, QueueView
from labkit.engine.trace_text import verdict
from labkit.framework.plugin import plugin_name
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.scene import clock_text
from labkit.widgets.travel import Travel
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

_MOST = 12


class QueueViewController:
    """Drives the lab: a step is a real scheduling attempt."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.travel = Travel(lab)

    def handle(self, id: str, value: Any) -> None:
        """`back`, `step`, `run`, `advance.<seconds>`, `time`; `refresh` looks again."""
        self.travel.handle(id, value)

    def view(self) -> list[Block]:
        """Clock and buttons, what happened last, the queues, events and hints."""
        queue = self.lab.queue
        blocks: list[Block] = [
            v.toolbar(
                t("Scheduling queue", "调度队列"),
                clock=clock_text(self.lab.now),
                clock_label=t("virtual clock", "虚拟时钟"),
                buttons=self.travel.buttons((1, 10, 300)),
            ),
            *self.travel.slider(),
            self._last(),
            v.grid("minmax(0,1fr) minmax(0,1fr)", *self._cards(queue)),
        ]
        blocks.append(v.details(t("Events", "事件"), self._events()))
        blocks.append(v.details(t("What wakes a rejected pod", "什么会唤醒被拒绝的 Pod"), self._hints(queue)))
        return blocks

    def _last(self) -> Block:
        trace = self.travel.last_trace()
        if trace is None:
            first = self.lab.queue.active
            words = (
                t(f"{first[0].pod} is next.", f"下一个是 {first[0].pod}。")
                if first
                else t("Nobody is ready.", "没有就绪的 Pod。")
            )
            return v.verdict(words)
        why = trace.full_message if trace.node is None else None
        return v.verdict(verdict(trace), why, status=None if trace.node else "fail")

    def _cards(self, queue: QueueView) -> list[Block]:
        now = queue.now
        held = [QueueEntry(pod, 0, now) for pod in queue.in_flight]
        cards = [
            self._card(
                t("Active: ready, best first", "active：就绪，优先的在前"),
                queue.active,
                lambda e: None,
                "now",
            ),
            self._card(
                t("Back-off: waits out its delay", "backoff：等待退避结束"),
                [*queue.backoff, *queue.error_backoff],
                lambda e: t(
                    f"{max(0.0, (e.until or now) - now):g} s left",
                    f"还剩 {max(0.0, (e.until or now) - now):g} 秒",
                ),
                "wait",
            ),
            self._card(
                t("Unschedulable: waits for an event", "unschedulable：等待事件"),
                queue.unschedulable,
                lambda e: ", ".join(e.plugins) or None,
                "fail",
            ),
            self._card(
                t("Gated: PreEnqueue keeps it out", "gated：被 PreEnqueue 挡住"),
                queue.gated,
                lambda e: f"{e.reason}: {e.message}" if e.message else e.reason or None,
                "skip",
            ),
        ]
        if held:
            cards.append(
                self._card(
                    t("Held by Permit: has a node", "被 Permit 扣住：已有节点"), held, lambda e: None, "wait"
                )
            )
        return cards

    def _card(self, title: str, entries: list[QueueEntry], remark: Any, status: str) -> Block:
        if not entries:
            return v.card(title, v.text(t("– empty", "– 空"), mute=True))
        nominated = self.lab.queue.nominated
        rows = []
        for i, e in enumerate(entries[:_MOST]):
            note = remark(e)
            if e.pod in nominated:
                on = t(f"nominated to {nominated[e.pod]}", f"提名到 {nominated[e.pod]}")
                note = f"{note}; {on}" if note else on
            shown = status if status != "now" or i == 0 else None
            cell = v.mark(shown, note or t("next", "下一个")) if shown else note
            rows.append(v.row(e.pod.removeprefix("default/"), e.attempts or None, cell))
        if len(entries) > _MOST:
            left = len(entries) - _MOST
            rows.append(v.row("…", None, t(f"{left} more", f"另外 {left} 个")))
        columns = [
            v.column("Pod"),
            v.column(t("attempts", "尝试次数"), num=True),
            v.column(t("remark", "说明")),
        ]
        return v.card(title, v.table(columns, rows))

    def _events(self) -> Block:
        rows = []
        for event in self.lab.events()[-30:]:
            about = event.get("regarding") or event.get("involvedObject") or {}
            text = event.get("note") or event.get("message") or ""
            rows.append(v.row(event.get("reason", ""), about.get("name"), text))
        if not rows:
            return v.text(t("– none yet", "– 还没有"), mute=True)
        return v.table([v.column(t("Reason", "原因")), v.column("Pod"), v.column(t("Message", "消息"))], rows)

    def _hints(self, queue: QueueView) -> Block:
        names = sorted({p for e in queue.unschedulable for p in e.plugins})
        if not names:
            return v.text(t("– nobody waits for an event", "– 没有等待事件的 Pod"), mute=True)
        framework = next(iter(self.lab.scheduler.frameworks.values()))
        by_name = {plugin_name(p): p for p in framework.all_plugins()}
        rows = [v.row(n, events_of(by_name.get(n))) for n in names]
        columns = [v.column(t("Rejected by", "拒绝它的插件")), v.column(t("Woken by", "唤醒它的事件"))]
        return v.table(columns, rows)

    def summary(self) -> str:
        """How many pods are where."""
        q = self.lab.queue
        off = len(q.backoff) + len(q.error_backoff)
        return t(
            f"{len(q.active)} active, {off} in back-off, {len(q.unschedulable)} unschedulable, {len(q.gated)} gated",
            f"active {len(q.active)}，退避 {off}，unschedulable {len(q.unschedulable)}，gated {len(q.gated)}",
        )


def events_of(plugin: Any) -> str:
    """The cluster events that a plugin registered, such as `NodeAdd, AssignedPodDelete`; "every event" without any."""
    register = getattr(plugin, "events_to_register", None)
    if register is None:
        return t("every event", "任何事件")
    words = [registered.event.label for registered in register()]
    return ", ".join(words) or t("every event", "任何事件")
