"""Scoring feasible nodes and choosing one (spec 01 §6)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.status import Status
from labkit.i18n import t
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.framework import Framework
    from labkit.engine.trace import Trace

#: One point of an extender (0..10) counts like this many points of a plugin.
EXTENDER_SCALE = 10


def prioritize(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    rng: random.Random,
    trace: Trace | None = None,
) -> tuple[list[int], list[int] | None, Status | None]:
    """(total per node, random tie-breaks if extenders scored nodes, None), or the error that ends the attempt.

    A tie-break is 0 for a node that no extender scored.
    """
    extenders = framework.extenders
    if not extenders and not framework.has("score"):
        return [1] * len(nodes), None, None
    status = framework.run_pre_score(state, pod, nodes, trace)
    if status is not None:
        return [], None, status
    totals, status = framework.run_score(state, pod, nodes, trace)
    if status is not None:
        return [], None, status
    added: dict[str, int] = {}
    for extender in extenders:
        if not extender.is_prioritizer or not extender.is_interested(pod):
            continue
        try:
            scores = extender.prioritize(pod, nodes)
        except Exception as e:
            if trace is not None:
                trace.notes.append(
                    t(
                        f"Extender {extender.name} gave no scores: {e}",
                        f"extender {extender.name} 没有给出分数：{e}",
                    )
                )
            continue
        for host, score in scores:
            added[host] = added.get(host, 0) + score * extender.weight * EXTENDER_SCALE
    if not added:
        return totals, None, None
    tie_breaks = [0] * len(nodes)
    for i, node in enumerate(nodes):
        if node.name in added:
            totals[i] += added[node.name]
            tie_breaks[i] = rng.getrandbits(31)
            if trace is not None:
                trace.extender_score(node.name, added[node.name])
    return totals, tie_breaks, None


def pick(totals: Sequence[int], tie_breaks: Sequence[int] | None = None) -> int:
    """The index at the root of a max-heap built over the totals in order: what kube-scheduler takes among equals."""
    ranked: Sequence[Any] = totals if tie_breaks is None else list(zip(totals, tie_breaks, strict=True))
    top = max(ranked)
    ties = [i for i, rank in enumerate(ranked) if rank == top]
    if len(ties) == 1:
        return ties[0]
    # Heapify only moves a node up past strictly smaller parents and prefers the left child: of equals the first in
    # pre-order wins. A power of two keeps the number of tables small: smaller heaps are the top of larger ones.
    ranks = _pre_order(1 << len(ranked).bit_length())
    return min(ties, key=ranks.__getitem__)


@lru_cache(maxsize=16)
def _pre_order(size: int) -> list[int]:
    """Place of each index of a binary heap in pre-order: parent, left subtree, right subtree."""
    ranks = [0] * size
    stack, rank = [0], 0
    while stack:
        i = stack.pop()
        if i < size:
            ranks[i] = rank
            rank += 1
            stack += [2 * i + 2, 2 * i + 1]
    return ranks
