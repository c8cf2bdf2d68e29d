"""The lanes of the scheduler race: what happened, moment by moment, in a lane for each scheduler and each node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from labkit.i18n import t
from labkit.several import Entry
from labkit.widgets import view as v
from labkit.widgets.view import Block

#: So many moments fit beside each other; earlier ones are in the table.
MOST = 8
_OUTCOMES = ("bound", "conflict")
#: These belong to the moment of what went before.
_FOLLOW = (*_OUTCOMES, "kubelet", "rejected", "standing-by")


@dataclass
class Moment:
    """What happened at once: lane -> what to draw there, as (status, text)."""

    time: float
    cells: dict[str, tuple[str | None, str]] = field(default_factory=dict)


def short(pod: str) -> str:
    """A pod without the namespace that everybody is in."""
    return pod.removeprefix("default/")


def said(entry: Entry) -> tuple[str | None, str]:
    """An entry in a few words, with its status."""
    pod = short(entry.pod)
    if entry.kind == "decided":
        if entry.node:
            return "now", f"{pod} → {entry.node}"
        return "wait", t(f"{pod}: no node", f"{pod}：没有节点")
    if entry.kind == "bound":
        return "pass", f"{pod} → {entry.node}"
    if entry.kind == "conflict":
        return "fail", f"{pod}: 409"
    if entry.kind == "rejected":
        return "fail", f"{pod}: {reason(entry)}"
    if entry.kind == "leading":
        return "pass", t("leads", "成为 leader")
    if entry.kind == "standing-by":
        return "wait", t("stands by", "待命")
    if entry.kind == "stopped":
        return "skip", t("stopped", "已停止")
    if entry.text == "admitted":
        return "pass", t(f"{pod} admitted", f"接纳 {pod}")
    if entry.text == "running":
        return None, t(f"{pod} runs", f"{pod} 运行")
    return None, f"{pod} {entry.text}"


def brief(entry: Entry) -> tuple[str | None, str]:
    """The same for a narrow place: the pod's way is in the lane of its scheduler, at the same moment."""
    status, text = said(entry)
    if entry.kind == "rejected":
        return status, reason(entry)
    if entry.kind == "kubelet" and entry.text == "admitted":
        return status, short(entry.pod)
    return status, text.replace(" → ", "→")


def reason(entry: Entry) -> str:
    """The kubelet's reason for a refusal: `OutOfcpu` from its message."""
    head, _, rest = entry.text.partition("enough resource: ")
    return f"OutOf{rest.partition(',')[0]}" if rest else head.partition(":")[0]


def moments(log: Iterable[Entry], lanes: Sequence[str]) -> list[Moment]:
    """The log in columns: a decision, its outcome and the node's answer to it are one moment."""
    found: list[Moment] = []
    for entry in log:
        if entry.member not in lanes:
            continue
        follows = entry.kind in _FOLLOW
        here = found[-1] if found else None
        taken = here is not None and entry.member in here.cells and entry.kind not in _OUTCOMES
        if here is None or here.time != entry.time or not follows or taken:
            here = Moment(entry.time)
            found.append(here)
        here.cells[entry.member] = brief(entry)
    return found


def picture(log: Sequence[Entry], members: Sequence[str], nodes: Sequence[str]) -> list[Block]:
    """The latest moments, and a remark when there are earlier ones."""
    lanes = [*members, *nodes]
    every = moments(log, lanes)
    shown = every[-MOST:]
    if not shown:
        return [v.text(t("– nothing has happened yet", "– 还没有发生任何事"), mute=True)]
    width = 100 / max(len(shown), 4)
    drawn: list[tuple[str, list[Block]]] = [(t("virtual time", "虚拟时间"), _times(shown, width))]
    for lane in lanes:
        spans = []
        for i, moment in enumerate(shown):
            if lane in moment.cells:
                status, text = moment.cells[lane]
                glyph = f"{v.GLYPHS[status]} " if status else ""
                drawn_as = status if status in ("pass", "fail", "wait") else None
                spans.append(v.span(i * width, (i + 1) * width, glyph + text, drawn_as))
        drawn.append((lane, spans))
    label = t(
        f"{len(shown)} moments in {len(lanes)} lanes; the log below has the same in words",
        f"{len(lanes)} 条泳道中的 {len(shown)} 个时刻；下面的日志用文字给出同样的内容",
    )
    items: list[Block] = [v.timeline(drawn, label=label)]
    if len(every) > len(shown):
        left = len(every) - len(shown)
        items.append(
            v.text(
                t(f"{left} earlier moments are in the log.", f"更早的 {left} 个时刻见日志。"),
                mute=True,
            )
        )
    return items


def _times(shown: Sequence[Moment], width: float) -> list[Block]:
    """A span for each stretch of moments at the same time."""
    spans: list[Block] = []
    begin = 0
    for i in range(1, len(shown) + 1):
        if i == len(shown) or shown[i].time != shown[begin].time:
            spans.append(v.span(begin * width, i * width, f"{round(shown[begin].time, 1):g} s"))
            begin = i
    return spans


def log_table(log: Sequence[Entry], most: int = 200) -> Block:
    """Everything in words, the latest first."""
    columns = [
        v.column(t("Who", "谁")),
        v.column(t("Time (s)", "时间（秒）"), num=True),
        v.column(t("What", "做了什么")),
        v.column(t("In the cluster's words", "集群的原话")),
    ]
    rows = [
        v.row(e.member, f"{e.time:.1f}", _cell(e), e.text if e.kind != "kubelet" else None)
        for e in list(log)[: -most - 1 : -1]
    ]
    return v.table(columns, rows)


def _cell(entry: Entry) -> object:
    status, text = said(entry)
    if entry.kind == "decided" and entry.node:
        return t(f"decides {text}", f"决定 {text}")
    if entry.kind == "bound":
        text = t(f"binds {text}", f"绑定 {text}")
    if entry.kind == "conflict":
        text = t(f"{short(entry.pod)} → {entry.node}: 409", f"{short(entry.pod)} → {entry.node}：409")
    return v.mark(status, text) if status else text
