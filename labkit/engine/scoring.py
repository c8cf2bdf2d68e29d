"""Running PreScore, Score and NormalizeScore (spec 01 §4.5, §4.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from labkit.engine.calls import RAISED, call_status, failure, quote, raised, wrong_type
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import plugin_name
from labkit.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE, NodeScore
from labkit.framework.status import Code, Status, is_success
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.trace import Trace

#: (name, plugin, weight)
Scorer = tuple[str, Any, int]


def run_pre_score(
    plugins: Sequence[Any], state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], trace: Trace | None
) -> Status | None:
    """Skip switches a plugin's Score off; anything else but success ends the attempt as an error."""
    skip: set[str] = set()
    state.skip_score_plugins = skip
    for plugin in plugins:
        name = plugin_name(plugin)
        status = call_status(plugin, "pre_score", state, pod, nodes)
        if trace is not None:
            trace.pre_score(name, status)
        if status is not None and status.code == Code.SKIP:
            skip.add(name)
        elif not is_success(status):
            return failure(f"running PreScore plugin {quote(name)}: ", status)
    return None


def run_score(
    scorers: Sequence[Scorer], state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], trace: Trace | None
) -> tuple[list[int], Status | None]:
    """(total per node in the order of `nodes`, None), or ([], the error): all raw scores, then all normalisers,
    then the check of the range and the weights."""
    if trace is not None:
        trace.scored([n.name for n in nodes])
    raw, status = _all_raw(scorers, state, pod, nodes)
    if status is not None:
        return [], status
    normalized: list[list[int]] = []
    for (name, plugin, _), scores in zip(scorers, raw, strict=True):
        if hasattr(plugin, "normalize_score"):
            scores, status = normalize(plugin, state, pod, nodes, scores)
            if status is not None:
                text = f"running Normalize on Score plugins: plugin {quote(name)} failed with: "
                return [], failure(text, status)
        normalized.append(scores)
    totals = [0] * len(nodes)
    for (name, _, weight), before, after in zip(scorers, raw, normalized, strict=True):
        for i, score in enumerate(after):
            if score > MAX_NODE_SCORE or score < MIN_NODE_SCORE:
                return [], _out_of_range(name, score, nodes[i].name)
            totals[i] += score * weight
        if trace is not None:
            trace.score(name, weight, [n.name for n in nodes], before, after)
    return totals, None


def _all_raw(
    scorers: Sequence[Scorer], state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> tuple[list[list[int]], Status | None]:
    """The failure that is reported is the first one node by node, as if all plugins scored one node at a time."""
    raw: list[list[int]] = []
    first: Status | None = None
    for name, plugin, _ in scorers:
        scores, status = raw_scores(plugin, state, pod, nodes)
        if status is not None:
            first = failure(f"running Score plugins: plugin {quote(name)} failed with: ", status)
            # Later plugins can only be first on an earlier node.
            nodes = nodes[: len(scores)]
        raw.append(scores)
    return raw, first


def raw_scores(
    plugin: Any, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> tuple[list[int], Status | None]:
    """Raw scores of one plugin, and the failure that ended them early."""
    scores: list[int] = []
    append = scores.append
    score_of = plugin.score
    for node in nodes:
        try:
            score = score_of(state, pod, node)
        except RAISED as e:
            return scores, raised(plugin, "score", e, node.name)
        if type(score) is int:
            append(score)
            continue
        status = None
        if isinstance(score, tuple) and len(score) == 2:
            score, status = score
        if isinstance(status, Status) and not status.is_success:
            return scores, status
        if type(score) is not int:
            return scores, wrong_type(plugin, "score", score, "a whole number from 0 to 100", node.name)
        append(score)
    return scores, None


def normalize(
    plugin: Any, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Sequence[int]
) -> tuple[list[int], Status | None]:
    """What the plugin's normaliser makes of raw scores, or its failure."""
    entries = [NodeScore(n.name, s) for n, s in zip(nodes, scores, strict=True)]
    status = call_status(plugin, "normalize_score", state, pod, entries)
    if not is_success(status):
        return [], status
    if len(entries) != len(nodes):
        expected = f"None, and change scores[i].score in place; the list must keep its {len(nodes)} entries"
        return [], wrong_type(plugin, "normalize_score", entries, expected)
    found: list[int] = []
    for node, entry in zip(nodes, entries, strict=True):
        score = getattr(entry, "score", entry)
        if type(score) is not int:
            expected = "None, with whole numbers from 0 to 100 in scores[i].score"
            return [], wrong_type(plugin, "normalize_score", score, expected, node.name)
        found.append(score)
    return found, None


def _out_of_range(name: str, score: int, node: str) -> Status:
    return Status.as_error_of(
        f"applying score defaultWeights on Score plugins: plugin {quote(name)} returns an invalid score {score}, "
        f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing",
        plugin=name,
        traceback=f"node {node}: {name} gave {score} after normalizing; scale it into 0..100 in normalize_score",
    )
