"""The preemption explorer's tables: candidates, criteria, one node's victims, and nodes that are no candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.framework.status import Code
from labkit.i18n import t
from labkit.plugins._preemption import Candidate
from labkit.widgets import view as v
from labkit.widgets.preemption_run import DryRun, start_of
from labkit.widgets.view import Block

_MOST_ROWS = 30


def criteria() -> dict[str, str]:
    """The engine's names of the criteria, in order, in the learner's words."""
    return {
        "fewest PDB violations": t("fewest PDB violations", "违反的 PDB 最少"),
        "lowest highest victim priority": t("lowest highest victim priority", "受害者的最高优先级最低"),
        "lowest sum of victim priorities": t(
            "lowest sum of priorities (+ 2³¹ each)", "优先级之和最小（每个 + 2³¹）"
        ),
        "fewest victims": t("fewest victims", "受害者最少"),
        "latest start of the most important victim": t(
            "latest start of the most important victim", "最重要的受害者启动得最晚"
        ),
    }


def candidates_table(found: DryRun) -> Block:
    """Candidates, best first, with what each criterion compares; ✕ where a node lost."""
    names = list(criteria())
    days = {start_of(c.victims).partition("T")[0] for c in found.candidates}
    day = days.pop() if len(days) == 1 else ""
    rows = []
    for candidate in found.ranked()[:_MOST_ROWS]:
        out = found.out_at(candidate.node)
        cells: list[Any] = []
        for name, value in zip(names, _values(candidate, day), strict=True):
            cells.append(v.mark("fail", value) if name == out else value)
        won = candidate.node == found.nominated
        victims = ", ".join(f"{p.name} ({p.priority})" for p in candidate.victims)
        rows.append(v.row(v.strong(candidate.node) if won else candidate.node, victims, *cells, win=won))
    left = len(found.candidates) - _MOST_ROWS
    if left > 0:
        rows.append(v.row("…", t(f"{left} more", f"另外 {left} 个"), *([None] * len(names))))
    columns = [
        v.column(t("Node", "节点")),
        v.column(t("Victims (priority)", "受害者（优先级）")),
        v.column(t("1 PDBs", "1 PDB"), num=True),
        v.column(t("2 Highest", "2 最高"), num=True),
        v.column(t("3 Sum", "3 总和"), num=True),
        v.column(t("4 Victims", "4 个数"), num=True),
        v.column(t("5 Start", "5 启动"), num=True),
    ]
    caption = t("✕ here the node lost", "✕ 节点在此落选")
    return v.table(columns, rows, caption=caption)


def criteria_table(found: DryRun) -> Block:
    """The five criteria: what each left, and which decided."""
    left = {name: [c.node for c in some] for name, some in found.steps}
    rows = []
    decided = found.steps[-1][0]
    for number, (name, text) in enumerate(criteria().items(), 1):
        kept = left.get(name)
        if kept is None:
            what: Any = v.mark("skip", t("not needed", "不需要"))
        elif name == decided and len(kept) == 1:
            what = v.mark("pass", t("decides", "起决定作用"))
        else:
            what = v.mark("now", t("goes on", "继续比较"))
        rows.append(v.row(f"{number} {text}", what, _some(kept) if kept else None, win=name == decided))
    columns = [
        v.column(t("Criterion", "标准")),
        v.column(t("Outcome", "结果")),
        v.column(t("Nodes left", "剩下的节点")),
    ]
    return v.table(columns, rows, caption=t("The next one counts only for equals", "相同时才看下一条"))


def victims_of(found: DryRun, node: str, priority: int) -> Block:
    """How the victims of `node` (of the best one when it is no candidate) are found, pod by pod."""
    ranked = found.ranked()
    candidate = next((c for c in ranked if c.node == node), ranked[0])
    leaving = {p.uid for p in candidate.victims}
    order = found.put_back(candidate.node, priority)
    rows = [
        v.row(
            f"{i} {pod.name}",
            pod.priority,
            start_of([pod]) or None,
            _guarded(bad),
            _fate(pod.uid in leaving),
        )
        for i, (pod, bad) in enumerate(order, 1)
    ]
    asked = {p.uid for p, _ in order}
    safe = [p for p in found.pods.get(candidate.node, []) if p.uid not in asked]
    rows += [
        v.row(p.name, p.priority, start_of([p]) or None, None, v.mark("skip", t("not touched", "不动")))
        for p in sorted(safe, key=lambda p: -p.priority)
    ]
    columns = [
        v.column("Pod"),
        v.column("priority", num=True),
        v.column("startTime"),
        v.column("PDB"),
        v.column(t("Put back: does the pod still fit?", "放回：Pod 还放得下吗？")),
    ]
    options = [(c.node, c.node) for c in ranked]
    return v.details(
        t("How the victims of one node are found", "一个节点的受害者是怎么找出来的"),
        v.controls(v.select("node", t("Node", "节点"), candidate.node, options)),
        v.text(
            t(
                "All pods of lower priority are taken off. If the pod fits then, they are put back one by one in "
                "this order; whoever is in the way is a victim.",
                "先把所有优先级更低的 Pod 拿掉。如果这样放得下，就按此顺序逐个放回；挡路的就是受害者。",
            )
        ),
        v.table(columns, rows),
        open=bool(node),
    )


def others(found: DryRun, nodes: Sequence[str]) -> Block:
    """The nodes that are no candidates, and why."""
    candidates = {c.node for c in found.candidates}
    rows = []
    for node in nodes:
        if node in candidates:
            continue
        status = found.trace.filter.get(node)
        said = "–" if status is None else f"{status.plugin}: {', '.join(status.reasons)}"
        rows.append(
            v.row(node, said, None if status is None else status.code.label, _no_candidate(found, node))
        )
    left = len(rows) - _MOST_ROWS
    if left > 0:
        rows[_MOST_ROWS:] = [v.row("…", t(f"{left} more", f"另外 {left} 个"), None, None)]
    title = t("No candidates", "不是候选的节点")
    if not rows:
        return v.card(title, v.text(t("Every node is a candidate.", "每个节点都是候选。"), mute=True))
    columns = [
        v.column(t("Node", "节点")),
        v.column("Filter"),
        v.column(t("Code", "代码")),
        v.column(t("Why preemption does not help", "为什么抢占没有用")),
    ]
    return v.card(title, v.table(columns, rows))


def _no_candidate(found: DryRun, node: str) -> str:
    if not found.ran:
        return t("PostFilter looked at no node", "PostFilter 没有查看任何节点")
    status = found.tried.get(node)
    if status is not None:
        reasons = ", ".join(status.reasons)
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return reasons
        return t(f"even without them: {reasons}", f"即使拿掉它们也不行：{reasons}")
    if found.not_tried(node):
        return t("removing pods changes nothing about this", "移走 Pod 改变不了这一点")
    return t("not looked at: there are candidates enough", "没有查看：候选已经够多")


def _values(candidate: Candidate, day: str) -> list[str]:
    """What each criterion compares, as text. `day`: the date that all starts have in common."""
    priorities = [p.priority for p in candidate.victims]
    return [
        str(candidate.violations),
        str(priorities[0]),
        f"{sum(priorities)} + {len(priorities)} × 2³¹",
        str(len(priorities)),
        start_of(candidate.victims).removeprefix(f"{day}T").removesuffix("Z") or t("now", "现在"),
    ]


def _some(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:8])
    return shown if len(names) <= 8 else f"{shown} … ({len(names)})"


def _guarded(violated: bool) -> Any:
    return v.mark("fail", t("would be violated", "会违反")) if violated else None


def _fate(leaves: bool) -> Block:
    return (
        v.mark("fail", t("no: leaves", "不行：离开"))
        if leaves
        else v.mark("pass", t("yes: stays", "可以：留下"))
    )
