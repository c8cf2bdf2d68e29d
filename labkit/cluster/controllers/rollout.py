"""The arithmetic of a Deployment's rollout: how large each ReplicaSet may be next. No cluster in here."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

from labkit.cluster.controllers.world import Json


def replicas_of(obj: Json) -> int:
    """`spec.replicas`."""
    found = obj["spec"].get("replicas")
    return 1 if found is None else int(found)


def annotated(obj: Json, key: str) -> int | None:
    """A number in an annotation."""
    text = str((obj["metadata"].get("annotations") or {}).get(key, ""))
    return int(text) if text.isdigit() else None


def active_of(sets: list[Json]) -> list[Json]:
    """The sets that are to have pods."""
    return [s for s in sets if replicas_of(s) > 0]


def surge_and_unavailable(obj: Json) -> tuple[int, int]:
    """How many pods more, and how many available ones fewer than wanted a rolling update may have."""
    strategy = obj["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    wanted = replicas_of(obj)
    surge = _amount(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = min(wanted, _amount(rolling.get("maxUnavailable", "25%"), wanted, up=False))
    # Both may round to nothing, and then no pod could ever be replaced.
    return surge, unavailable if surge or unavailable else 1


def _amount(value: Any, of: int, *, up: bool) -> int:
    if isinstance(value, str) and value.endswith("%"):
        share = int(value[:-1]) * of / 100
        return ceil(share) if up else floor(share)
    return int(value)


def _available(one: Json) -> int:
    return int((one.get("status") or {}).get("availableReplicas") or 0)


def new_replicas(obj: Json, old: list[Json], new: Json | None) -> int:
    """The next size of the new set."""
    wanted, (surge, _) = replicas_of(obj), surge_and_unavailable(obj)
    size = replicas_of(new) if new is not None else 0
    if size >= wanted:
        return wanted
    room = wanted + surge - sum(map(replicas_of, old)) - size
    return size + max(0, min(room, wanted - size))


def old_replicas(obj: Json, old: list[Json], new: Json) -> list[tuple[Json, int]]:
    """Which old sets shrink, and to what: first pods that are not available, then as many as availability allows."""
    active = active_of(old)
    if not active:
        return []
    wanted, (_, unavailable) = replicas_of(obj), surge_and_unavailable(obj)
    least = wanted - unavailable
    total = sum(map(replicas_of, active)) + replicas_of(new)
    room = total - least - max(0, replicas_of(new) - _available(new))
    if room <= 0:
        return []
    sizes = {id(s): replicas_of(s) for s in active}
    for one in active:
        broken = max(0, min(room, sizes[id(one)] - _available(one)))
        sizes[id(one)] -= broken
        room -= broken
    spare = min(room, _available(new) + sum(min(_available(s), sizes[id(s)]) for s in active) - least)
    for one in active:
        gone = max(0, min(spare, sizes[id(one)]))
        sizes[id(one)] -= gone
        spare -= gone
    return [(s, sizes[id(s)]) for s in active if sizes[id(s)] != replicas_of(s)]


def fractions(obj: Json, active: list[Json], new: Json | None, maximum: str) -> list[tuple[Json, int]]:
    """Sizes in the same proportions when `spec.replicas` changes in the middle of a rollout.

    `maximum`: the annotation with the number of pods that the sets shared until now.
    """
    wanted, (surge, _) = replicas_of(obj), surge_and_unavailable(obj)
    allowed = wanted + surge if wanted else 0
    left = allowed - sum(map(replicas_of, active))
    sizes: list[tuple[Json, int]] = []
    for one in sorted(active, key=lambda s: (-replicas_of(s), s is not new, s["metadata"]["name"])):
        size, before = replicas_of(one), annotated(one, maximum) or wanted
        share = round(size * allowed / before) - size if before else -size
        share = max(0, min(share, left)) if left > 0 else min(0, max(share, left))
        sizes.append((one, max(0, size + share)))
        left -= share
    if sizes and left:
        first, size = sizes[0]
        sizes[0] = first, max(0, size + left)
    return sizes
