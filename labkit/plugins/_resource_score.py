"""Vectors and strategies behind the resource scores (spec 11 §11.6).

A score looks at `(requested, allocatable)` per configured resource, in millicores, bytes or units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from labkit.framework.node_info import NodeInfo
from labkit.framework.resource import Resource, is_scalar
from labkit.plugins._normalize import truncating_div

#: (resource name, weight)
Weighted = Sequence[tuple[str, int]]
#: (requested incl. the pod, allocatable, weight) of one resource that the node has.
Entry = tuple[int, int, int]
Strategy = Callable[[Sequence[Entry]], int]
#: (utilisation 0..100, score 0..100)
Shape = Sequence[tuple[int, int]]

DEFAULT_RESOURCES: Weighted = (("cpu", 1), ("memory", 1))


def weighted_resources(raw: Any) -> Weighted:
    """(name, weight) pairs from plugin args; weight 0 or absent counts 1, an empty list is cpu and memory."""
    found = []
    for r in raw or ():
        name, weight = (r.get("name"), r.get("weight")) if isinstance(r, dict) else (r.name, r.weight)
        found.append((str(name), int(weight or 1)))
    return tuple(found) or DEFAULT_RESOURCES


def entries(resources: Weighted, pod: Resource, node: NodeInfo, *, non_zero: bool) -> list[Entry]:
    """What each configured resource of `node` would look like with the pod on it.

    Resources that the node does not have, and scalar resources that the pod does not ask for, are left out.
    `non_zero`: count placed pods with the scoring defaults for cpu and memory.
    """
    found: list[Entry] = []
    for name, weight in resources:
        asked = pod.get(name)
        if asked == 0 and is_scalar(name):
            continue
        allocatable = node.allocatable.get(name) if name != "pods" else 0
        if allocatable == 0:
            continue
        if non_zero and name == "cpu":
            used = node.non_zero_cpu
        elif non_zero and name == "memory":
            used = node.non_zero_memory
        else:
            used = node.requested.get(name)
        found.append((used + asked, allocatable, weight))
    return found


def least_allocated(found: Sequence[Entry]) -> int:
    """The free share, 0..100, averaged by weight; both divisions truncate."""
    total = weights = 0
    for requested, allocatable, weight in found:
        share = 0 if requested > allocatable else truncating_div((allocatable - requested) * 100, allocatable)
        total += share * weight
        weights += weight
    return truncating_div(total, weights) if weights else 0


def most_allocated(found: Sequence[Entry]) -> int:
    """The used share, 0..100, averaged by weight; both divisions truncate."""
    total = weights = 0
    for requested, allocatable, weight in found:
        total += truncating_div(min(requested, allocatable) * 100, allocatable) * weight
        weights += weight
    return truncating_div(total, weights) if weights else 0


def requested_to_capacity_ratio(shape: Shape) -> Strategy:
    """Scores by a piecewise linear function of utilisation; resources that score 0 do not count at all."""

    def strategy(found: Sequence[Entry]) -> int:
        total = weights = 0
        for requested, allocatable, weight in found:
            utilization = 100 if requested > allocatable else truncating_div(requested * 100, allocatable)
            score = broken_linear(shape, utilization)
            if score > 0:
                total += score * weight
                weights += weight
        return _round_half_away(total / weights) if weights else 0

    return strategy


def broken_linear(shape: Shape, utilization: int) -> int:
    """The value of the shape at `utilization`; flat before the first and after the last point."""
    for i, (u, score) in enumerate(shape):
        if utilization <= u:
            if i == 0:
                return score
            before_u, before = shape[i - 1]
            return before + truncating_div((score - before) * (utilization - before_u), u - before_u)
    return shape[-1][1]


def _round_half_away(x: float) -> int:
    floor = math.floor(x)
    return floor + 1 if x - floor >= 0.5 else floor


def balance(found: Sequence[tuple[int, int]]) -> int:
    """How even the shares are, 50..100, from (amount, allocatable) pairs; doubles, truncated."""
    fractions = [min(float(v) / float(a), 1.0) for v, a in found]
    if len(fractions) == 2:
        std = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = 0.0
        for f in fractions:
            total += f
        mean = total / float(len(fractions))
        deviation = 0.0
        for f in fractions:
            deviation += (f - mean) * (f - mean)
        std = math.sqrt(deviation / float(len(fractions)))
    else:
        std = 0.0
    return int((1 - std) * 100.0)
