"""Scoring in a large cluster: the same totals, on arrays (spec 01 §4.6).

Scores of node-local plugins come from rows (`rows.py`); plugins with a quick way score all nodes at once; a
learner's plugin is asked node by node and normalises its own list, as in a small cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.engine.calls import RAISED
from labkit.engine.rows import Index, NotKept, ScoreRow
from labkit.engine.scoring import Scorer, normalize, raw_scores
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.framework import Framework
    from labkit.engine.trace import Trace

Scores = NDArray[np.int64]


def run_score_batch(
    framework: Framework,
    scorers: Sequence[Scorer],
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    trace: Trace | None,
) -> list[int]:
    """Total per node in the order of `nodes`. NotKept where a plugin fails: the ordinary way says how."""
    at: Index = np.fromiter((n.index for n in nodes), np.intp, len(nodes))
    totals = np.zeros(len(nodes), np.int64)
    told: list[tuple[str, int, Scores, Scores]] = []
    try:
        raw = [_raw(framework, name, plugin, state, pod, nodes, at) for name, plugin, _ in scorers]
        for (name, plugin, weight), before in zip(scorers, raw, strict=True):
            after = _normalized(framework, plugin, state, pod, nodes, before)
            if len(after) and (after.max() > MAX_NODE_SCORE or after.min() < MIN_NODE_SCORE):
                raise NotKept
            totals += after * weight
            told.append((name, weight, before, after))
    except (*RAISED, OverflowError) as e:
        raise NotKept from e
    if trace is not None:
        names = [n.name for n in nodes]
        trace.scored(names)
        for name, weight, before, after in told:
            trace.score(name, weight, names, before.tolist(), after.tolist())
    found: list[int] = totals.tolist()
    return found


def _raw(
    framework: Framework,
    name: str,
    plugin: Any,
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    at: Index,
) -> Scores:
    sign = framework.quick(plugin, "sign_pod")
    shape = sign(pod) if sign is not None else None
    if shape is not None:
        snapshot = framework.snapshot
        row = framework.rows.row((name, shape), ScoreRow, snapshot)
        return row.scores(at, snapshot.nodes, lambda node: plugin.score(state, pod, node))
    batch = framework.quick(plugin, "score_batch")
    found: Scores | None = batch(state, pod, at) if batch is not None else None
    if found is not None:
        return found
    scores, status = raw_scores(plugin, state, pod, nodes)
    if status is not None:
        raise NotKept
    return np.array(scores, np.int64)


def _normalized(
    framework: Framework, plugin: Any, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], raw: Scores
) -> Scores:
    if not hasattr(plugin, "normalize_score"):
        return raw
    batch = framework.quick(plugin, "normalize_batch")
    found: Scores | None = batch(state, pod, nodes, raw) if batch is not None else None
    if found is not None:
        return found
    scores, status = normalize(plugin, state, pod, nodes, raw.tolist())
    if status is not None:
        raise NotKept
    return np.array(scores, np.int64)
