"""A rule as a card: its domains in a table, what was counted in each, and what the engine says of its nodes."""

from __future__ import annotations

from typing import Any

from labkit.engine.trace import Trace
from labkit.i18n import t
from labkit.widgets import view as v
from labkit.widgets.domains import Domain, Rule
from labkit.widgets.style import plugin_color
from labkit.widgets.trace import BOTTOM, TOP
from labkit.widgets.view import Block

_MOST_NODES = 6
#: Kinds of rules that only score.
_SCORED = ("soft", "wishes")


def rule_card(rule: Rule, trace: Trace) -> Block:
    """Title, what is counted, remarks, and one row a domain."""
    items: list[Block] = [v.heading(_title(rule)), v.text(_meaning(rule)), *_remarks(rule, trace)]
    top = max([1, *(abs(d.count or 0) + (rule.kind == "hard") for d in rule.domains)])
    shown, left = rule.domains, 0
    if len(shown) > TOP + BOTTOM + 1:
        left = len(shown) - TOP - BOTTOM
        shown = [*shown[:TOP], *shown[-BOTTOM:]]
    rows = [_row(rule, d, trace, top) for d in shown]
    columns = _columns(rule)
    if left:
        rows.insert(TOP, v.row("…", *([None] * (len(columns) - 2)), t(f"{left} more", f"另外 {left} 个")))
    items.append(v.table(columns, rows))
    by_reason: dict[str, list[str]] = {}
    for d in rule.domains if rule.kind not in _SCORED else ():
        reason = verdict_of(rule, d, trace)[2]
        if reason:
            by_reason.setdefault(reason, []).append(_name(d))
    for reason, names in by_reason.items():
        more = "" if len(names) <= TOP else ", …"
        items.append(v.text(f"✕ {', '.join(names[:TOP])}{more}: {reason}"))
    items.append(v.text(_footnote(rule), mute=True))
    return v.card(None, *items)


def rejections(trace: Trace) -> Block | None:
    """Which plugin rejects which nodes, each node by the first one; None when nobody does."""
    by_plugin: dict[str, list[str]] = {}
    for node, status in trace.filter.items():
        if not status.is_success:
            by_plugin.setdefault(status.plugin or status.code.label, []).append(node)
    parts = []
    for plugin, nodes in by_plugin.items():
        left = len(nodes) - _MOST_NODES
        names = ", ".join(sorted(nodes)[:_MOST_NODES])
        parts.append(
            f"{plugin} ✕ {names}" + (t(f" and {left} more", f" 等 {len(nodes)} 个") if left > 0 else "")
        )
    return v.text(" · ".join(parts)) if parts else None


def verdict_of(rule: Rule, domain: Domain, trace: Trace) -> tuple[str, str, str]:
    """(status, word, reason): what the engine's Filter said of the domain's nodes, for this rule's plugin.

    A domain passes when one of its nodes does. Where the plugin rejects it for another of its rules, this one says so.
    """
    said = [s for n in domain.nodes if (s := trace.filter_by_plugin.get(n, {}).get(rule.plugin)) is not None]
    if not said:
        return "skip", t("not asked", "未询问"), ""
    if any(s.is_success for s in said):
        return "pass", t("allowed", "允许"), ""
    status = said[0]
    reason = ", ".join(status.reasons)
    if status.is_rejected and _fulfilled(rule, domain):
        return "skip", t("another rule rejects", "被其他规则拒绝"), ""
    if status.is_rejected:
        return "fail", t("rejected", "拒绝"), reason
    return "error", t("error", "出错"), reason


def _fulfilled(rule: Rule, domain: Domain) -> bool:
    """By the plugin's own numbers this rule has nothing against the domain."""
    if domain.value is None:
        # Only what forbids a neighbour cannot forbid nodes that are in no domain.
        return rule.kind in ("apart", "kept-out")
    if rule.kind == "hard":
        return domain.skew is not None and domain.count is not None and domain.skew <= rule.max_skew
    if rule.kind == "together":
        return bool(domain.count)
    return not domain.count


def _title(rule: Rule) -> str:
    texts = {
        "hard": f"maxSkew {rule.max_skew}, DoNotSchedule",
        "soft": f"maxSkew {rule.max_skew}, ScheduleAnyway",
        "together": t("required podAffinity", "必需的 podAffinity"),
        "apart": t("required podAntiAffinity", "必需的 podAntiAffinity"),
        "kept-out": t("podAntiAffinity of pods that are there", "已有 Pod 的 podAntiAffinity"),
        "wishes": t("preferred terms, of this pod and of others", "偏好条目，包括这个 Pod 的和其他 Pod 的"),
    }
    return f"{rule.plugin} · {rule.key} · {texts[rule.kind]}"


def _meaning(rule: Rule) -> str:
    own = 1 if rule.self_match else 0
    texts = {
        "hard": t(
            f"skew = matching pods + {own} for this pod − minimum {rule.minimum}. "
            f"More than maxSkew {rule.max_skew} is rejected.",
            f"skew = 匹配的 Pod 数 + 这个 Pod 的 {own} − 最小值 {rule.minimum}。"
            f"大于 maxSkew {rule.max_skew} 则拒绝。",
        ),
        "soft": t(
            "Nothing is rejected: fewer matching pods give a higher score.",
            "不会拒绝：匹配的 Pod 越少，得分越高。",
        ),
        "together": t(
            "A domain needs at least one pod that meets all required terms.",
            "一个域里至少要有一个满足所有必需条目的 Pod。",
        ),
        "apart": t(
            "A domain with a pod that a term means is forbidden.", "域里只要有条目所指的 Pod，就被禁止。"
        ),
        "kept-out": t(
            "These pods keep the new one out, whatever it says itself.",
            "这些 Pod 不让新 Pod 进来，不管它自己怎么写。",
        ),
        "wishes": t(
            "Nothing is rejected: the weights of all terms that speak for or against a domain are added up.",
            "不会拒绝：把支持或反对一个域的所有条目的权重加起来。",
        ),
    }
    return texts[rule.kind]


def _remarks(rule: Rule, trace: Trace) -> list[Block]:
    found: list[Block] = []
    if rule.kind == "hard" and rule.counted < rule.min_domains:
        found.append(
            v.notice(
                "wait",
                t(
                    f"{rule.counted} domains, but minDomains is {rule.min_domains}: the minimum counts as 0.",
                    f"只有 {rule.counted} 个域，而 minDomains 是 {rule.min_domains}：最小值按 0 计算。",
                ),
            )
        )
    if rule.kind in ("hard", "soft") and not rule.self_match:
        found.append(
            v.notice(
                "wait",
                t(
                    "The pod does not match the selector itself: placing it changes no count.",
                    "这个 Pod 自己不匹配选择器：放下它不会改变任何计数。",
                ),
            )
        )
    if (
        rule.kind == "together"
        and rule.nobody
        and any(verdict_of(rule, d, trace)[0] == "pass" for d in rule.domains)
    ):
        found.append(
            v.notice(
                "pass",
                t(
                    "Nobody matches anywhere and the pod matches its own terms: the first one may go anywhere.",
                    "任何地方都没有匹配的 Pod，而这个 Pod 匹配自己的条目：第一个可以去任何地方。",
                ),
            )
        )
    return found


def _columns(rule: Rule) -> list[Block]:
    count = {
        "together": t("Wanted", "想要"),
        "apart": t("In the way", "妨碍"),
        "kept-out": t("Objecting", "反对"),
        "wishes": t("Points", "分值"),
    }.get(rule.kind, t("Pods", "Pod 数"))
    found = [
        v.column(t("Domain", "域")),
        v.column(count, num=True),
        v.column(t("Picture", "图示"), width="18%"),
    ]
    if rule.kind == "hard":
        found.append(v.column("Skew"))
    if rule.kind in _SCORED:
        found.append(v.column(t("Score", "得分"), num=True))
    else:
        found.append(v.column(t("Verdict", "判定")))
    found.append(v.column(t("Nodes", "节点")))
    return found


def _footnote(rule: Rule) -> str:
    if rule.kind == "hard":
        return t(
            "Verdict: of PodTopologySpread, for this constraint. ✕ beside a node: this or another plugin rejects it. "
            "★: chosen.",
            "判定：PodTopologySpread 就这条约束的结论。节点旁的 ✕：被这个或其他插件拒绝。★：被选中。",
        )
    if rule.kind in ("together", "apart", "kept-out"):
        return t(
            "Verdict: of InterPodAffinity, for these terms. ✕ beside a node: this or another plugin rejects it. "
            "★: chosen.",
            "判定：InterPodAffinity 就这些条目的结论。节点旁的 ✕：被这个或其他插件拒绝。★：被选中。",
        )
    return t(
        "Score: of the plugin with all its rules, normalised. Only nodes that passed every Filter have one. ★: chosen.",
        "得分：插件按其全部规则得出，已归一化。只有通过所有 Filter 的节点才有。★：被选中。",
    )


def _row(rule: Rule, domain: Domain, trace: Trace, top: int) -> Block:
    cells: list[Any] = [domain.count, _picture(rule, domain, top)]
    if rule.kind == "hard":
        if domain.skew is None:
            cells.append(None)
        elif domain.count is None:
            cells.append(t("not counted", "不计入"))
        else:
            sign = ">" if domain.skew > rule.max_skew else "≤"
            cells.append(f"{domain.skew} {sign} {rule.max_skew}")
    if rule.kind in _SCORED:
        scores = [
            trace.scores[n].plugins[rule.plugin].normalized
            for n in domain.nodes
            if n in trace.scores and rule.plugin in trace.scores[n].plugins
        ]
        low, high = (min(scores), max(scores)) if scores else (None, None)
        cells.append(low if low == high else f"{low}–{high}")
    else:
        cells.append(v.mark(*verdict_of(rule, domain, trace)[:2]))
    cells.append(_nodes(domain, trace))
    return v.row(_name(domain), *cells, win=trace.node in domain.nodes)


def _name(domain: Domain) -> str:
    return domain.value if domain.value is not None else t("(without the label)", "（没有这个标签）")


def _picture(rule: Rule, domain: Domain, top: int) -> Any:
    if domain.count is None:
        return v.mark("skip", t("not counted", "不计入"))
    parts = []
    if domain.count:
        text = str(domain.count)
        parts.append((100 * abs(domain.count) / top, plugin_color(rule.plugin), text))
    label = t(f"{domain.count} there", f"已有 {domain.count}")
    if rule.kind == "hard" and rule.self_match:
        parts.append((100 / top, "new", "+1"))
        label += t(", 1 new", "，新增 1")
    if rule.kind == "wishes":
        label = t(f"{domain.count} points", f"{domain.count} 分")
    return v.stack(parts, label=label)


def _nodes(domain: Domain, trace: Trace) -> str:
    found = []
    for name in domain.nodes[:_MOST_NODES]:
        status = trace.filter.get(name)
        if name == trace.node:
            found.append(f"{name} ★")
        elif status is None or status.is_success:
            found.append(f"{name} ✓")
        else:
            found.append(f"{name} ✕")
    left = len(domain.nodes) - _MOST_NODES
    if left > 0:
        found.append(t(f"{left} more", f"另外 {left} 个"))
    return ", ".join(found)
