"""What kube-scheduler does with an extender's answer, in words and tables (spec 04 §6 to §9)."""

from __future__ import annotations

from typing import Any

from labkit.engine.prioritize import EXTENDER_SCALE
from labkit.engine.trace import Trace
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.extender_tap import Exchange, plain
from labkit.widgets.view import Block

#: Nodes shown in a table; kept ones come first.
SHOWN = 16
HIGHEST = 10


def status_mark(exchange: Exchange) -> Block:
    """The HTTP status, and whether the answer was of use."""
    if not exchange.code:
        return v.mark("error", t("no answer", "无应答"))
    if exchange.call.error:
        unusable = t("an error", "错误") if exchange.code == 200 else ""
        return v.mark("error", " · ".join(x for x in (str(exchange.code), unusable) if x))
    return v.mark("pass", str(exchange.code))


def blocks(exchange: Exchange, trace: Trace | None) -> list[Block]:
    """The consequence of one exchange; `trace` is the attempt that it belongs to."""
    if exchange.call.error:
        return [_failed(exchange)]
    config = exchange.extender.config
    if exchange.verb == config.filter_verb:
        return _filtered(exchange)
    if exchange.verb == config.prioritize_verb:
        return _scored(exchange, trace)
    if exchange.verb == config.preempt_verb:
        left = exchange.call.kept or 0
        words = t(
            f"{left} of {exchange.call.nodes} candidate nodes are left; preemption picks among them.",
            f"{exchange.call.nodes} 个候选节点中剩下 {left} 个；抢占在其中挑选。",
        )
        return [v.notice("pass" if left else "fail", words)]
    words = t(
        "It takes the extender's word: the pod counts as bound, and DefaultBinder is not called.",
        "它相信 extender 的话：Pod 视为已绑定，不再调用 DefaultBinder。",
    )
    return [v.notice("pass", words)]


def _failed(exchange: Exchange) -> Block:
    """An error, by verb and `ignorable`."""
    config = exchange.extender.config
    error = plain(exchange.call.error, exchange.extender.name)
    if exchange.verb == config.prioritize_verb:
        words = t(
            "Ignored silently, whatever ignorable says: the extender adds no points.",
            "无论 ignorable 如何，都被默默忽略：extender 不加分。",
        )
        return v.notice("skip", words, error)
    if config.ignorable:
        words = t(
            "ignorable: the extender is passed over, and the attempt goes on without it.",
            "ignorable：跳过这个 extender，本次尝试照常继续。",
        )
        return v.notice("skip", words, error)
    words = t(
        "The attempt ends here with this text, reason SchedulerError; the pod is tried again after its backoff.",
        "本次尝试到此结束，消息就是这段文字，原因是 SchedulerError；退避之后再试这个 Pod。",
    )
    return v.notice("error", words, error)


def _filtered(exchange: Exchange) -> list[Block]:
    kept = exchange.kept
    failed, never = exchange.reasons("FailedNodes"), exchange.reasons("FailedAndUnresolvableNodes")
    rows: list[Block] = [v.row(n, v.mark("pass", t("kept", "保留")), None) for n in kept]
    lost = 0
    for node in exchange.sent:
        if node in kept:
            continue
        if node in never:
            rows.append(v.row(node, v.mark("fail", "UnschedulableAndUnresolvable"), never[node]))
        elif node in failed:
            rows.append(v.row(node, v.mark("fail", "Unschedulable"), failed[node]))
        else:
            lost += 1
            rows.append(v.row(node, v.mark("error", t("gone", "消失")), t("no reason given", "没有给出原因")))
    found: list[Block] = [_count(len(kept), len(exchange.sent))]
    if exchange.call.warning:
        found.append(v.notice("wait", exchange.call.warning))
    if lost:
        words = t(
            f"{lost} node(s) are in no map: the pod's message counts no reason for them, and preemption leaves them "
            "out.",
            f"{lost} 个节点不在任何一个 map 里：Pod 的消息里不计它们的原因，抢占也不考虑它们。",
        )
        found.append(v.notice("error", words))
    columns = [v.column(t("Node", "节点")), v.column("Filter"), v.column(t("Reason", "原因"))]
    found.append(v.table(columns, _cut(rows), caption=t("Nodes that were sent", "发送的节点")))
    return found


def _count(left: int, sent: int) -> Block:
    if left == 0:
        words = t("No node is left: PostFilter is next.", "没有节点剩下：接下来是 PostFilter。")
        return v.notice("fail", words)
    if left == 1:
        words = t(
            "One node is left: it is taken, nothing is scored, and prioritize is not called.",
            "只剩一个节点：就用它，不再打分，也不调用 prioritize。",
        )
        return v.notice("now", words)
    return v.notice(
        "pass", t(f"{left} of {sent} nodes go on to Score.", f"{sent} 个节点中有 {left} 个进入 Score。")
    )


def _scored(exchange: Exchange, trace: Trace | None) -> list[Block]:
    weight = exchange.extender.weight
    scores = exchange.call.scores
    found: list[Block] = []
    outside = sorted(n for n, s in scores.items() if not 0 <= s <= HIGHEST)
    if outside:
        words = t(
            f"Scores outside 0 to {HIGHEST} are used as they are: {', '.join(outside)}. The plugins are drowned out.",
            f"超出 0 到 {HIGHEST} 的分数照用不误：{', '.join(outside)}。插件的分数被淹没了。",
        )
        found.append(v.notice("error", words))
    rows: list[tuple[int, Block]] = []
    for node in exchange.sent:
        score = scores.get(node)
        points = (score or 0) * weight * EXTENDER_SCALE
        total: Any = None
        plugins: Any = None
        won = False
        if trace is not None and node in trace.scores:
            total = trace.scores[node].total
            plugins = total - trace.scores[node].extender
            won = node == trace.node
        shown = t("missing: 0", "缺：0") if score is None else score
        row = v.row(v.strong(node) if won else node, plugins, shown, points, total, win=won)
        rows.append((total if total is not None else points, row))
    rows.sort(key=lambda pair: -pair[0])
    columns = [
        v.column(t("Node", "节点")),
        v.column(t("Plugins' sum", "插件之和"), num=True),
        v.column("Score", num=True),
        v.column(t(f"Score × {weight} × {EXTENDER_SCALE}", f"Score × {weight} × {EXTENDER_SCALE}"), num=True),
        v.column(t("Total", "总分"), num=True),
    ]
    caption = t("Score × weight × 10 is added to the plugins' sum", "Score × weight × 10 加到插件之和上")
    found.append(v.table(columns, _cut([row for _, row in rows]), caption=caption))
    return found


def _cut(rows: list[Block]) -> list[Block]:
    left = len(rows) - SHOWN
    if left < 2:
        return rows
    width = len(rows[0]["cells"]) - 2
    return [*rows[:SHOWN], v.row("…", *([None] * width), t(f"{left} more", f"另外 {left} 个"))]
