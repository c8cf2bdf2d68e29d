"""The scheduling queue at work: who is ready, who waits and why, what wakes them; step by step, and back in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labkit.engine.hints import Strategy
from labkit.engine.queue_view import QueueEntry, QueueView
from labkit.engine.trace_text import verdict
from labkit.framework.events import ClusterEvent
from labkit.framework.node_info import QueuedPodInfo
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.scene import clock_text
from labkit.widgets.travel import Travel
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

_MOST = 12
_MOST_ASKED = 200


@dataclass
class Asked:
    """A rejected pod was asked whether an event helps it. `history`: the lab's call; `seconds` of virtual time."""

    history: int
    seconds: float
    event: str
    pod: str
    plugins: list[str]
    strategy: Strategy


class QueueViewController:
    """Drives the lab: a step is a real scheduling attempt."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.travel = Travel(lab)
        self.asked: list[Asked] = []
        self._listen()

    def _listen(self) -> None:
        """Be told by the queue of now: after a rewind it is another one."""
        watchers = self.lab.scheduler.queue.watchers
        if self._hear not in watchers:
            watchers.append(self._hear)
        self.asked = [a for a in self.asked if a.history <= self.lab.history][-_MOST_ASKED:]

    def _hear(self, info: QueuedPodInfo, event: ClusterEvent, strategy: Strategy) -> None:
        plugins = sorted(info.unschedulable_plugins | info.pending_plugins)
        self.asked.append(Asked(self.lab.history, self.lab.now, event.label, info.pod.key, plugins, strategy))

    def handle(self, id: str, value: Any) -> None:
        """`back`, `step`, `run`, `advance.<seconds>`, `time`; `refresh` looks again."""
        self._listen()
        self.travel.handle(id, value)

    def view(self) -> list[Block]:
        """Clock and buttons, what happened last, the queues, events and hints."""
        self._listen()
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
        asked = v.heading(t("What happened, and did it help?", "发生了什么，有没有用？"))
        wakes = v.heading(t("What is waited for", "在等什么"))
        title = t("Cluster events and queueing hints", "集群事件与 queueing hint")
        blocks.append(v.details(title, wakes, self._hints(queue), asked, self._asked()))
        blocks.append(v.details(t("Events of the pods", "Pod 的事件"), self._events()))
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
        waits = {w.pod.key: w for w in self.lab.scheduler.waiting.list()}
        held = [
            QueueEntry(
                pod,
                0,
                now,
                until=min(waits[pod].deadlines.values(), default=None),
                plugins=waits[pod].pending_plugins(),
            )
            for pod in queue.in_flight
        ]
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
                    t("In flight: held by Permit", "in flight：被 Permit 扣住"), held, self._held, "wait"
                )
            )
        return cards

    def _held(self, entry: QueueEntry) -> str:
        left = max(0.0, (entry.until or self.lab.queue.now) - self.lab.queue.now)
        trace = next((x for x in reversed(self.lab.traces) if x.pod == entry.pod), None)
        node = (trace.node if trace is not None else None) or "–"
        names = ", ".join(entry.plugins)
        return t(f"{names}; on {node}, {left:g} s left", f"{names}；在 {node} 上，还剩 {left:g} 秒")

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
            v.column(t("Attempts", "尝试次数"), num=True),
            v.column(t("Remark", "说明")),
        ]
        return v.card(title, v.table(columns, rows))

    def _events(self) -> Block:
        rows = []
        for event in self.lab.events()[-30:]:
            about = event.get("regarding") or event.get("involvedObject") or {}
            text = event.get("note") or event.get("message") or ""
            rows.append(v.row(about.get("name", ""), event.get("reason"), text))
        if not rows:
            return v.text(t("– none yet", "– 还没有"), mute=True)
        return v.table([v.column("Pod"), v.column(t("Reason", "原因")), v.column(t("Message", "消息"))], rows)

    def _hints(self, queue: QueueView) -> Block:
        names = sorted({p for e in queue.unschedulable for p in e.plugins})
        if not names:
            return v.text(t("– nobody waits for an event", "– 没有等待事件的 Pod"), mute=True)
        hints = self.lab.scheduler.queue.hints
        profile = next(iter(self.lab.scheduler.frameworks))
        rows = [v.row(n, _labels(hints.events_of(profile, n))) for n in names]
        columns = [v.column(t("Rejected by", "拒绝它的插件")), v.column(t("Woken by", "唤醒它的事件"))]
        return v.table(columns, rows)

    def _asked(self) -> Block:
        if not self.asked:
            words = t(
                "– no event has come up that a rejected pod was asked about",
                "– 还没有需要询问被拒绝 Pod 的事件",
            )
            return v.text(words, mute=True)
        answers = {
            Strategy.SKIP: v.mark("skip", t("Skip: stays", "Skip：继续等")),
            Strategy.AFTER_BACKOFF: v.mark("pass", t("Queue: worth a try", "Queue：值得一试")),
            Strategy.IMMEDIATELY: v.mark("pass", t("Queue: at once", "Queue：立即")),
        }
        rows = [
            v.row(
                a.event,
                clock_text(a.seconds),
                a.pod.removeprefix("default/"),
                ", ".join(a.plugins) or None,
                answers[a.strategy],
            )
            for a in reversed(self.asked[-_MOST:])
        ]
        columns = [
            v.column(t("Cluster event", "集群事件")),
            v.column(t("Time", "时间")),
            v.column("Pod"),
            v.column(t("Asked", "询问了")),
            v.column(t("Answer", "回答")),
        ]
        return v.table(columns, rows)

    def summary(self) -> str:
        """How many pods are where."""
        q = self.lab.queue
        off = len(q.backoff) + len(q.error_backoff)
        held_en = f", {len(q.in_flight)} held by Permit" if q.in_flight else ""
        held_zh = f"，被 Permit 扣住 {len(q.in_flight)}" if q.in_flight else ""
        return t(
            f"{len(q.active)} active, {off} in back-off, {len(q.unschedulable)} unschedulable, "
            f"{len(q.gated)} gated{held_en}",
            f"active {len(q.active)}，退避 {off}，unschedulable {len(q.unschedulable)}，gated {len(q.gated)}{held_zh}",
        )


def _labels(events: list[ClusterEvent]) -> str:
    """`NodeAdd, AssignedPodDelete`."""
    if not events or any(e.is_wildcard for e in events):
        return t("every event", "任何事件")
    return ", ".join(dict.fromkeys(e.label.replace("|", " | ") for e in events))
