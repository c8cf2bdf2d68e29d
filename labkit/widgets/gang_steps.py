"""Attempts of a gang's pods in words: outcomes, spans of a lane, and the steps in order of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.gang_record import Attempt
from labkit.widgets.view import GLYPHS, Block

_MARK = 1.5


@dataclass(frozen=True)
class Step:
    """`point` said `words` at `when` (virtual seconds); `why` is the scheduler's message."""

    when: float
    pod: str
    point: str
    status: str
    words: str
    node: str | None
    why: str = ""


def outcome_of(a: Attempt) -> tuple[str, str]:
    """Status and word."""
    if a.before_filter:
        return "fail", t("refused", "未获许可")
    words = {
        "no room": ("fail", t("no node fits", "没有合适的节点")),
        "held": ("wait", t("held", "被扣住")),
        "bound": ("pass", t("bound", "已绑定")),
        "timed out": ("fail", t("timed out", "超时")),
        "rejected": ("fail", t("rejected", "被拒绝")),
        "refused": ("fail", t("refused", "未获许可")),
        "failed": ("error", t("error", "出错")),
        "deleted": ("skip", t("deleted", "已删除")),
    }
    return words[a.outcome]


def spans(attempts: Iterable[Attempt], now: float, most: float) -> list[Block]:
    """One pod's lane from 0 to `most` seconds: waits, what ended them, and the time on its node."""
    found = []
    for a in attempts:
        end = a.end if a.end is not None else now
        left, right = 100 * a.start / most, 100 * end / most
        node = a.node or ""
        if a.held and (end > a.start or a.end is None):
            start = min(left, 100 - _MARK)
            found.append(v.span(start, max(right, start + _MARK), f"{GLYPHS['wait']} {node}", "wait"))
        if a.end is None:
            continue
        at = min(right, 100 - _MARK)
        if a.outcome == "bound":
            found.append(v.span(at, max(100 * now / most, at + _MARK), f"{GLYPHS['pass']} {node}", "pass"))
        else:
            found.append(v.span(at, at + _MARK, f"{GLYPHS['fail']} {outcome_of(a)[1]}", "fail"))
    return found


def steps(attempts: Iterable[Attempt]) -> list[Step]:
    """All steps in the order in which they happened."""
    keyed = [entry for a in attempts for entry in _steps(a)]
    return [step for _, step in sorted(keyed, key=lambda entry: entry[0])]


def _steps(a: Attempt) -> list[tuple[tuple[float, float], Step]]:
    # What ends a wait comes after the attempt that caused it, and before the next one.
    begin, finish = (a.start, float(a.turn)), (a.end or 0.0, a.end_turn + (0.5 if a.held else 0.0))
    status, words = outcome_of(a)
    if a.outcome == "no room":
        point = "PreFilter" if a.before_filter else "Filter"
        return [(begin, Step(a.start, a.pod, point, status, words, None, a.message))]
    found = [(begin, Step(a.start, a.pod, "Reserve", "pass", t("node booked", "节点已预订"), a.node))]
    if a.held:
        waits = [f"{plugin} {until - a.start:g} s" for plugin, until in a.deadlines] or list(a.plugins)
        text = t("wait: ", "等待：") + ", ".join(waits)
        found.append((begin, Step(a.start, a.pod, "Permit", "wait", text, a.node)))
    if a.end is None:
        return found
    if a.outcome == "bound":
        if a.held:
            found.append((finish, Step(a.end, a.pod, "Permit", "pass", t("allowed", "放行"), a.node)))
        found.append((finish, Step(a.end, a.pod, "Bind", status, words, a.node)))
        return found
    point = "Permit" if a.held else "–"
    found.append((finish, Step(a.end, a.pod, point, status, words, a.node, a.message)))
    undone = t("booking undone", "取消预订")
    found.append((finish, Step(a.end, a.pod, "Unreserve", "skip", undone, a.node)))
    return found
