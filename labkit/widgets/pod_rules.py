"""Changing a pod manifest's spread constraints and inter-pod terms; plain dicts in, plain dicts out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
#: How the control names a kind of term: (side of the affinity, list).
KINDS = {
    "podAffinity required": ("podAffinity", REQUIRED),
    "podAffinity preferred": ("podAffinity", PREFERRED),
    "podAntiAffinity required": ("podAntiAffinity", REQUIRED),
    "podAntiAffinity preferred": ("podAntiAffinity", PREFERRED),
}
SEVERAL = "several"


def constraints(pod: Json) -> list[Json]:
    """The pod's own spread constraints."""
    return list(pod["spec"].get("topologySpreadConstraints") or [])


def set_constraints(pod: Json, every: list[Json]) -> None:
    """Replace them; without any the field goes."""
    pod["spec"].pop("topologySpreadConstraints", None)
    if every:
        pod["spec"]["topologySpreadConstraints"] = every


def terms(pod: Json) -> list[tuple[str, Json]]:
    """(kind, term) of every inter-pod term, preferred ones without their weight."""
    affinity = pod["spec"].get("affinity") or {}
    found = []
    for kind, (side, which) in KINDS.items():
        for entry in (affinity.get(side) or {}).get(which) or []:
            found.append((kind, entry["podAffinityTerm"] if which == PREFERRED else entry))
    return found


def set_term(pod: Json, kind: str, term: Json | None) -> None:
    """Make `term` the only inter-pod term (None: none at all); node affinity stays."""
    affinity = pod["spec"].setdefault("affinity", {}) or {}
    for side, _ in KINDS.values():
        affinity.pop(side, None)
    if term is not None:
        side, which = KINDS[kind]
        affinity[side] = {which: [{"weight": 100, "podAffinityTerm": term} if which == PREFERRED else term]}
    pod["spec"]["affinity"] = affinity
    if not affinity:
        del pod["spec"]["affinity"]


def selector_text(selector: Json | None) -> str:
    """A label selector in words that fit a list: `app=web`, `tier In (a, b)`; empty when it matches everything."""
    if selector is None:
        return "–"
    parts = [f"{k}={v}" for k, v in sorted((selector.get("matchLabels") or {}).items())]
    for e in selector.get("matchExpressions") or []:
        values = f" ({', '.join(e['values'])})" if e.get("values") else ""
        parts.append(f"{e['key']} {e['operator']}{values}")
    return ", ".join(parts)


def selector_of(text: str) -> Json:
    """The selector of one `key=value`."""
    key, _, value = text.partition("=")
    return {"matchLabels": {key: value}}


def labels_of(pods: Iterable[Json], *, without: Iterable[str] = ()) -> list[str]:
    """Every `key=value` that some pod carries; keys in `without` (node labels copied to pods) left out."""
    left_out = set(without)
    found = {
        f"{k}={v}"
        for pod in pods
        for k, v in (pod["metadata"].get("labels") or {}).items()
        if k not in left_out
    }
    return sorted(found)
