"""The answers of `labkit simulate`: a table for people, dicts for JSON and YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.engine.trace_text import table
from labkit.i18n import t

if TYPE_CHECKING:
    from labkit.engine.manifests import Manifests
    from labkit.engine.simulation import Outcome, PodOutcome


def as_dict(manifests: Manifests, outcome: Outcome) -> dict[str, Any]:
    """Everything, with the full decision record of each attempt (the form of the golden traces)."""
    return {
        "pods": [
            {
                "pod": p.pod,
                "result": p.result,
                "node": p.node,
                "why": p.trace.why() if p.trace is not None else None,
                "message": _message(p),
                "preemptedBy": p.preempted_by,
                "attempts": [trace.to_dict() for trace in p.traces],
            }
            for p in outcome.pods
        ],
        "preemptions": [
            {"victim": p.victim, "preemptor": p.preemptor, "node": p.node} for p in outcome.preemptions
        ],
        "problems": [
            {
                "file": p.file,
                "document": p.document,
                "object": p.object,
                "field": p.field,
                "message": p.problem,
                "hint": p.hint,
            }
            for p in manifests.problems
        ],
        "ignoredKinds": dict(sorted(manifests.ignored.items())),
        "notes": manifests.notes,
    }


def as_table(manifests: Manifests, outcome: Outcome) -> str:
    """A summary line, a row per pod, then the decision record of each."""
    lines = [_summary(manifests, outcome)]
    if outcome.pods:
        rows = [["Pod", t("Result", "结果"), t("Node", "节点"), t("Why", "原因")]]
        rows += [[p.pod, _words(p.result), p.node or "–", _short_why(p)] for p in outcome.pods]
        lines += ["", *table(rows)]
    for gone in outcome.preemptions:
        lines.append(
            t(
                f"✕ {gone.victim} is preempted on {gone.node} to make room for {gone.preemptor}",
                f"✕ {gone.victim} 在 {gone.node} 上被抢占，为 {gone.preemptor} 腾出空间",
            )
        )
    for p in outcome.pods:
        for trace in p.traces:
            if trace.skipped is None:
                attempt = (
                    t(f", attempt {trace.attempt}", f"，第 {trace.attempt} 次尝试")
                    if len(p.traces) > 1
                    else ""
                )
                lines += ["", f"── {p.pod}{attempt} ──", trace.to_text()]
    if manifests.ignored:
        kinds = ", ".join(f"{kind} ×{n}" for kind, n in sorted(manifests.ignored.items()))
        lines += ["", t(f"Not read by the scheduler: {kinds}", f"调度器不读取：{kinds}")]
    lines += [f"* {note}" for note in manifests.notes]
    return "\n".join(lines)


def _summary(manifests: Manifests, outcome: Outcome) -> str:
    nodes, placed, pending = len(manifests.nodes), len(manifests.placed), len(outcome.pods)
    scheduled = sum(p.result == "scheduled" for p in outcome.pods)
    there = t(
        f"{_count(nodes, 'node')}, {_count(placed, 'pod')} on them",
        f"{nodes} 个节点，其上有 {placed} 个 Pod",
    )
    if not pending:
        return there + t("; no pending pods: nothing to schedule.", "；没有待调度的 Pod。")
    finds = "finds" if scheduled == 1 else "find"
    return there + t(
        f"; {scheduled} of {_count(pending, 'pending pod')} {finds} a node.",
        f"；{pending} 个待调度的 Pod 中有 {scheduled} 个找到节点。",
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _words(result: str) -> str:
    return {
        "scheduled": t("✓ scheduled", "✓ 已调度"),
        "unschedulable": t("✕ unschedulable", "✕ 无法调度"),
        "error": t("! error", "! 错误"),
        "gated": t("◷ gated", "◷ 被拦住"),
        "foreign": t("– other scheduler", "– 其他调度器"),
        "deleting": t("– being deleted", "– 正在删除"),
        "preempted": t("✕ preempted", "✕ 被抢占"),
    }[result]


def _message(p: PodOutcome) -> str | None:
    if p.trace is None or p.result == "scheduled":
        return None
    return p.trace.full_message


def _short_why(p: PodOutcome) -> str:
    if p.result == "preempted":
        return t(f"by {p.preempted_by}", f"被 {p.preempted_by} 抢占")
    if p.trace is None:
        return t("the pod is being deleted", "该 Pod 正在被删除")
    if p.trace.node is None and p.trace.message is not None:
        return p.trace.message
    return (
        p.trace.why()
        if p.trace.skipped is None
        else p.trace.verdict().partition(": ")[2] or p.trace.verdict()
    )
