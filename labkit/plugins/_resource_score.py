"""Vectors and strategies behind the resource scores (spec 11 §11.6), in millicores, bytes or units."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from labkit.framework.node_info import NodeInfo
from labkit.framework.resource import is_scalar
from labkit.objects.quantity import Quantity
from labkit.plugins._normalize import truncating_div

#: (resource name, weight)
Weighted = Sequence[tuple[str, int]]
#: (resource name, what the pod asks for, weight)
Plan = Sequence[tuple[str, int, int]]
#: (taken by placed pods, what the pod asks for, allocatable, weight) of one resource that the node has.
Entry = tuple[int, int, int, int]
Strategy = Callable[[Sequence[Entry]], int]
#: (utilisation 0..100, score 0..100)
Shape = Sequence[tuple[int, int]]

_MAX_INT64 = 2**63 - 1

DEFAULT_RESOURCES: Weighted = (("cpu", 1), ("memory", 1))


def weighted_resources(raw: Any) -> Weighted:
    """(name, weight) pairs from plugin args; weight 0 or absent counts 1, an empty list is cpu and memory."""
    found = []
    for r in raw or ():
        name, weight = (r.get("name"), r.get("weight")) if isinstance(r, dict) else (r.name, r.weight)
        found.append((str(name), int(weight or 1)))
    return tuple(found) or DEFAULT_RESOURCES


def request_units(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    """A request as scores count it: millicores of cpu, whole units of all else; also names unknown to nodes."""
    return {name: q.milli_value() if name == "cpu" else q.value() for name, q in amounts.items()}


def plan(resources: Weighted, units: Mapping[str, int]) -> Plan:
    """What to look at on every node for a pod that requests `units`.

    Scalar resources that the pod does not ask for are left out.
    """
    found = ((name, units.get(name, 0), weight) for name, weight in resources)
    return [(name, asked, weight) for name, asked, weight in found if asked or not is_scalar(name)]


def entries(looked_at: Plan, node: NodeInfo, *, non_zero: bool) -> list[Entry]:
    """What each planned resource of `node` would look like with the pod on it; what the node lacks is left out.

    `non_zero`: count placed pods with the scoring defaults for cpu and memory.
    """
    offered, used = node.allocatable, node.requested
    found: list[Entry] = []
    for name, asked, weight in looked_at:
        if name == "cpu":
            total, taken = offered.milli_cpu, node.non_zero_cpu if non_zero else used.milli_cpu
        elif name == "memory":
            total, taken = offered.memory, node.non_zero_memory if non_zero else used.memory
        elif name == "ephemeral-storage":
            total, taken = offered.ephemeral_storage, used.ephemeral_storage
        else:
            total, taken = offered.scalars.get(name, 0), used.scalars.get(name, 0)
        if total:
            found.append((taken, asked, total, weight))
    return found


def least_allocated(found: Sequence[Entry]) -> int:
    """The free share, 0..100, averaged by weight; both divisions truncate."""
    total = weights = 0
    for taken, asked, allocatable, weight in found:
        free = allocatable - taken - asked
        if free >= 0:
            total += _percent(free, allocatable) * weight
        weights += weight
    return truncating_div(total, weights) if weights else 0


def most_allocated(found: Sequence[Entry]) -> int:
    """The used share, 0..100, averaged by weight; both divisions truncate."""
    total = weights = 0
    for taken, asked, allocatable, weight in found:
        total += _percent(min(taken + asked, allocatable), allocatable) * weight
        weights += weight
    return truncating_div(total, weights) if weights else 0


def _percent(part: int, whole: int) -> int:
    hundredfold = part * 100
    if hundredfold > _MAX_INT64:
        # Above 92 PB the product wraps around in an int64.
        hundredfold = (hundredfold + 2**63) % 2**64 - 2**63
    return hundredfold // whole if hundredfold >= 0 and whole > 0 else truncating_div(hundredfold, whole)


def requested_to_capacity_ratio(shape: Shape) -> Strategy:
    """Scores by a piecewise linear function of utilisation; resources that score 0 do not count at all."""

    def strategy(found: Sequence[Entry]) -> int:
        total = weights = 0
        for taken, asked, allocatable, weight in found:
            requested = taken + asked
            utilization = 100 if requested > allocatable else _percent(requested, allocatable)
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
