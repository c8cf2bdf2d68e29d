"""What the scheduler race says in notices and tables."""

from __future__ import annotations

from typing import Any

from labkit.i18n import t
from labkit.several import Entry, Member, SeveralSchedulers
from labkit.widgets import view as v
from labkit.widgets.race_lanes import short
from labkit.widgets.view import Block

_UNITS = {"cpu": (1000, "CPU"), "memory": (1 << 30, "GiB"), "ephemeral-storage": (1 << 30, "GiB")}


def notices(several: SeveralSchedulers) -> list[Block]:
    """Nodes to which too much was bound, and pods that nobody serves."""
    found = []
    for node, resources in several.summary()["overcommitted"].items():
        for resource, (bound, offered) in resources.items():
            had, has = _amount(resource, bound), _amount(resource, offered)
            found.append(
                v.notice(
                    "fail",
                    t(
                        f"{node}: pods for {had} were bound, it has {has}",
                        f"{node}：绑定的 Pod 共需 {had}，它只有 {has}",
                    ),
                )
            )
    served = {m.name for m in several.members if several.state(m.identity) != "stopped"}
    for name in sorted({scheduler_of(p) for p in waiting(several)} - served):
        pods = ", ".join(p["metadata"]["name"] for p in waiting(several) if scheduler_of(p) == name)
        found.append(
            v.notice(
                "wait",
                t(
                    f"Nobody serves {name}: {pods} stay Pending, without any event",
                    f"没有调度器负责 {name}：{pods} 一直 Pending，也没有任何事件",
                ),
            )
        )
    return found


def waiting(several: SeveralSchedulers) -> list[Any]:
    """Pods without a node."""
    return [p for p in several.pods() if not p["spec"].get("nodeName")]


def decisions(several: SeveralSchedulers) -> Block:
    """Each decision, with what its scheduler counted on the node and what was there."""
    title = t("Who decided what, on which knowledge", "谁凭什么信息做了什么决定")
    attempts = [e for e in several.log if e.kind == "decided"]
    if not attempts:
        return v.card(title, v.text(t("– nobody has decided yet", "– 还没有人做决定"), mute=True))
    columns = [
        v.column(t("Decision", "决定")),
        v.column(t("Scheduler", "调度器")),
        v.column(t("Time (s)", "时间（秒）"), num=True),
        v.column(t("It counted there", "它以为那里有")),
        v.column(t("Was there", "其实有")),
        v.column(t("Outcome", "结果")),
    ]
    rows = []
    for e in attempts[-30:]:
        where = f"{short(e.pod)} → {e.node or '–'}"
        there: Any = _list(e.there)
        if set(e.there) - set(e.saw):
            there = v.strong(there)
        rows.append(
            v.row(
                where,
                e.member,
                f"{e.time:.1f}",
                _list(e.saw) if e.node else None,
                there if e.node else None,
                _outcome(several, e),
            )
        )
    caption = t(
        "Emphasised: there were pods of which this scheduler did not know yet",
        "加粗：那里有这个调度器还不知道的 Pod",
    )
    return v.card(title, v.table(columns, rows, caption=caption))


def _outcome(several: SeveralSchedulers, decision: Entry) -> Block:
    if not decision.node:
        return v.mark("wait", t("stays Pending", "仍为 Pending"))
    log = several.log
    after = log[next(i for i, e in enumerate(log) if e is decision) :]
    for e in after:
        if e.pod != decision.pod:
            continue
        if e.kind == "conflict" and e.member == decision.member:
            return v.mark("fail", t("409: was bound already", "409：已被绑定"))
        if e.kind == "rejected":
            return v.mark("fail", t("bound; refused by the node", "已绑定；被节点拒绝"))
        if e.kind == "kubelet":
            return v.mark("pass", t("bound", "已绑定"))
    return v.mark("pass", t("bound", "已绑定"))


def schedulers(several: SeveralSchedulers) -> Block:
    """Each scheduler: its name, state, queue and what it counts; and the truth."""
    nodes = [n["metadata"]["name"] for n in several.nodes()][:6]
    columns = [
        v.column(t("Scheduler", "调度器")),
        v.column("schedulerName"),
        v.column(t("State", "状态")),
        v.column(t("In its queue", "队列中")),
        *(v.column(t(f"Counts on {n}", f"以为 {n} 上有")) for n in nodes),
    ]
    rows = [_member_row(several, m, nodes) for m in several.members]
    truth: dict[str, list[str]] = {}
    for p in several.pods():
        if p["spec"].get("nodeName") and (p.get("status") or {}).get("phase") not in (
            "Succeeded",
            "Failed",
        ):
            meta = p["metadata"]
            truth.setdefault(p["spec"]["nodeName"], []).append(f"{meta['namespace']}/{meta['name']}")
    api = t("API server", "API server")
    rows.append(v.row(api, None, None, None, *(_list(sorted(truth.get(n, []))) for n in nodes)))
    caption = t("* assumed: its own binding, not confirmed yet", "* 假定（assumed）：自己的绑定，尚未确认")
    return v.table(columns, rows, caption=caption)


def _member_row(several: SeveralSchedulers, member: Member, nodes: list[str]) -> Block:
    counted = several.counted(member.identity)
    queue = several.queue(member.identity)
    waiting = [*queue.active, *queue.backoff, *queue.error_backoff, *queue.unschedulable, *queue.gated]
    state = {
        "working": v.mark("pass", t("leads", "leader") if member.leader_election else t("works", "工作中")),
        "standing-by": v.mark("wait", t("stands by", "待命")),
        "stopped": v.mark("skip", t("stopped", "已停止")),
    }[several.state(member.identity)]
    cells = [
        ", ".join(short(p) + ("*" if assumed else "") for p, assumed in counted.get(n, {}).items()) or "–"
        for n in nodes
    ]
    return v.row(member.identity, member.name, state, _list([e.pod for e in waiting]), *cells)


def scheduler_of(pod: Any) -> str:
    """The scheduler that a pod asks for."""
    return pod["spec"].get("schedulerName") or "default-scheduler"


def _list(pods: Any) -> str:
    """Pods in one cell; past eight, how many more."""
    names = [short(p) for p in pods]
    rest = [t(f"{len(names) - 8} more", f"另外 {len(names) - 8} 个")] if len(names) > 8 else []
    return ", ".join([*names[:8], *rest]) or "–"


def _amount(resource: str, value: int) -> str:
    """5000 millicores -> `5 CPU`."""
    unit, name = _UNITS.get(resource, (1, resource))
    return f"{value / unit:g} {name}"
