"""Scoring feasible nodes and choosing one (spec 01 §6)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.status import Status
from labkit.i18n import t
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.framework import Framework
    from labkit.engine.trace import Trace

#: (node name, total, random tie-break: 0 unless an extender scored the node)
Ranked = tuple[str, int, int]
#: One point of an extender (0..10) counts like this many points of a plugin.
EXTENDER_SCALE = 10


def prioritize(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    nodes: Sequence[NodeInfo],
    rng: random.Random,
    trace: Trace | None = None,
) -> tuple[list[Ranked], Status | None]:
    """Totals of all nodes in feasible order, or the error that ends the attempt."""
    extenders = framework.extenders
    if not extenders and not framework.has("score"):
        return [(n.name, 1, 0) for n in nodes], None
    status = framework.run_pre_score(state, pod, nodes, trace)
    if status is not None:
        return [], status
    totals, status = framework.run_score(state, pod, nodes, trace)
    if status is not None:
        return [], status
    randomizers = [0] * len(nodes)
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
    for i, node in enumerate(nodes):
        if node.name in added:
            totals[i] += added[node.name]
            randomizers[i] = rng.getrandbits(31)
            if trace is not None:
                trace.extender_score(node.name, added[node.name])
    return [(n.name, t, r) for n, t, r in zip(nodes, totals, randomizers, strict=True)], None


def pick(ranked: Sequence[Ranked]) -> str:
    """The root of a max-heap built over `ranked` in its order: what kube-scheduler takes among equals."""
    top = max([(total, tie) for _, total, tie in ranked])
    ties = [i for i, (_, total, tie) in enumerate(ranked) if (total, tie) == top]
    if len(ties) == 1:
        return ranked[ties[0]][0]
    # Heapify only moves a node up past strictly smaller parents and prefers the left child: of equals the first in
    # pre-order wins. A power of two keeps the number of tables small: smaller heaps are the top of larger ones.
    ranks = _pre_order(1 << len(ranked).bit_length())
    return ranked[min(ties, key=ranks.__getitem__)][0]


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
