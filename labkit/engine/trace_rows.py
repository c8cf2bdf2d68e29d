"""What a Trace shows as a table, before it is drawn as text or HTML: nodes x plugins, scores, what was skipped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labkit.framework.status import Code, Status
from labkit.i18n import t

if TYPE_CHECKING:
    from labkit.engine.trace import Trace

PASS, FAIL, LATER, ERROR, NONE = "✓", "✕", "(✕)", "!", "–"
#: More nodes than this are cut: the first ones and the last ones stay.
SHOWN_FIRST, SHOWN_LAST = 30, 5


@dataclass
class NodeRow:
    """One node: the framework's verdict in words, a glyph per plugin of the table, and the reasons."""

    node: str
    verdict: str
    ok: bool
    chosen: bool
    cells: list[str]
    reasons: str


@dataclass
class FilterTable:
    """Nodes x those Filter plugins that tell nodes apart; `remarks` says what became of the other plugins."""

    plugins: list[str] = field(default_factory=list)
    rows: list[NodeRow] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def filter_table(trace: Trace) -> FilterTable:
    """The Filter part of the record. Nodes that pass come first, then the rejected ones, each in name order."""
    each = trace.filter_by_plugin
    asked = list(dict.fromkeys(p for verdicts in each.values() for p in verdicts))
    rejecting = {s.plugin for s in trace.filter.values() if s.is_rejected} | {
        p for verdicts in each.values() for p, s in verdicts.items() if not s.is_success
    }
    plugins = [p for p in asked if p in rejecting]
    table = FilterTable(plugins)
    for name in sorted(trace.filter, key=lambda n: (not trace.filter[n].is_success, n)):
        status = trace.filter[name]
        cells = [_cell(p, status, each.get(name, {}).get(p)) for p in plugins]
        table.rows.append(
            NodeRow(
                name,
                verdict_words(status),
                status.is_success,
                name == trace.node,
                cells,
                ", ".join(status.reasons),
            )
        )
    if any(LATER in row.cells for row in table.rows):
        table.remarks.append(
            t(
                f"{LATER} would reject too, but is not asked: the first {FAIL} decides",
                f"{LATER} 也会拒绝，但不会被询问：第一个 {FAIL} 就决定了",
            )
        )
    agreed = [p for p in asked if p not in rejecting]
    if agreed:
        table.remarks.append(
            t(f"{PASS} on every node: {', '.join(agreed)}", f"在所有节点上都 {PASS}：{', '.join(agreed)}")
        )
    skipped = [p for p, record in trace.pre_filter_plugins.items() if record.status.code == Code.SKIP]
    if skipped:
        names = ", ".join(skipped)
        table.remarks.append(
            t(
                f"{NONE} nothing to do for this pod (PreFilter: Skip): {names}",
                f"{NONE} 对此 Pod 无事可做（PreFilter: Skip）：{names}",
            )
        )
    return table


def _cell(plugin: str, verdict: Status, alone: Status | None) -> str:
    if verdict.plugin == plugin and not verdict.is_success:
        return FAIL if verdict.is_rejected else ERROR
    if alone is None:
        return NONE
    if alone.is_success:
        return PASS
    return LATER if alone.is_rejected else ERROR


def verdict_words(status: Status) -> str:
    """`✓ pass`, `✕ NodeResourcesFit`, `! Error`."""
    if status.is_success:
        return t(f"{PASS} pass", f"{PASS} 通过")
    return f"{FAIL if status.is_rejected else ERROR} {status.plugin or status.code.label}"


def pre_filter_lines(trace: Trace) -> list[str]:
    """Only PreFilter plugins that did more than agree: narrowed the nodes, rejected, or failed."""
    lines = []
    for name, record in trace.pre_filter_plugins.items():
        if record.nodes is not None:
            nodes = ", ".join(record.nodes) or "–"
            lines.append(t(f"PreFilter: {name} allows only {nodes}", f"PreFilter：{name} 只允许 {nodes}"))
        elif record.status.code not in (Code.SUCCESS, Code.SKIP):
            glyph = FAIL if record.status.is_rejected else ERROR
            lines.append(f"PreFilter: {glyph} {name}: {record.status.message}")
    return lines


def extender_lines(trace: Trace) -> list[str]:
    """Each call of an extender: how many nodes it was asked about, what it kept or scored, its error or warning."""
    lines = []
    several = len({call.extender for call in trace.extender_calls}) > 1
    for call in trace.extender_calls:
        asked = t(f"{call.nodes} node(s)", f"{call.nodes} 个节点")
        if call.error:
            answer = f"{ERROR} {call.error}"
        elif call.scores:
            answer = ", ".join(f"{host} {score}" for host, score in call.scores.items())
        elif call.kept is None:
            answer = PASS
        else:
            answer = t(f"{call.kept} kept", f"保留 {call.kept} 个")
        name = f"Extender {call.extender}" if several else "Extender"
        lines.append(f"{name} {call.verb}: {asked} → {answer}")
        lines += [f"  {FAIL} {node}: {reason}" for node, reason in call.failed.items()]
        if call.warning:
            lines.append(f"  {ERROR} {call.warning}")
    return lines


def post_filter_lines(trace: Trace) -> list[str]:
    """What PostFilter answered: the node it makes room on, victims, and the candidates it chose from."""
    status, result = trace.post_filter_status, trace.post_filter_result
    if status is None:
        return []
    lines = [f"PostFilter: {status.code.label}"]
    if result is None:
        return lines
    if result.nominated_node_name:
        node = result.nominated_node_name
        lines.append(t(f"  nominated node: {node}", f"  提名节点：{node}"))
    if result.victims:
        victims = ", ".join(result.victims)
        lines.append(t(f"  victims: {victims}", f"  被抢占的 Pod：{victims}"))
    for node, candidate in sorted(result.candidates.items()):
        found = candidate.get("victims")
        victims = ", ".join(map(str, found)) if isinstance(found, list) else str(found)
        violations = candidate.get("pdbViolations", 0)
        lines.append(
            t(
                f"  candidate {node}: victims {victims}; budgets violated: {violations}",
                f"  候选 {node}：被抢占的 Pod {victims}；违反的预算：{violations}",
            )
        )
    return lines


@dataclass
class ScoreRow:
    """One node's scores: (raw, normalised, weighted) per plugin, extender points, total."""

    node: str
    chosen: bool
    scores: list[tuple[int, int, int]]
    extender: int
    total: int


@dataclass
class ScoreTable:
    """Nodes x Score plugins with their weights, best first."""

    plugins: list[tuple[str, int]]
    rows: list[ScoreRow]
    has_extender: bool
    skipped: list[str]


def score_table(trace: Trace) -> ScoreTable:
    """The Score part of the record."""
    plugins = list(trace.weights.items())
    rows = []
    for name, total in trace.ranking():
        entry = trace.scores[name]
        triples = [(s.raw, s.normalized, s.weighted) for s in (entry.plugins[p] for p, _ in plugins)]
        rows.append(ScoreRow(name, name == trace.node, triples, entry.extender, total))
    return ScoreTable(
        plugins,
        rows,
        any(s.extender for s in trace.scores.values()),
        [p for p, code in trace.pre_score_codes.items() if code == Code.SKIP],
    )


def cut(count: int) -> tuple[int, int]:
    """(rows shown from the top, rows left out) of a table of `count` rows; the last SHOWN_LAST follow the gap."""
    if count <= SHOWN_FIRST + SHOWN_LAST + 1:
        return count, 0
    return SHOWN_FIRST, count - SHOWN_FIRST - SHOWN_LAST
