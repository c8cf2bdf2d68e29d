"""What all tables share: columns, and durations and selectors as kubectl writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.cluster.store_scale import selector_text
from labkit.cluster.store_times import seconds_of

Json = dict[str, Any]
Column = tuple[str, str, int]
NONE, UNKNOWN, INVALID = "<none>", "<unknown>", "<invalid>"


def duration(seconds: float) -> str:
    """`68s`, `5m51s`, `11m`, `3h2m`, `2d4h`, `400d`, `3y10d`; at most two units, fewer the longer it is."""
    if seconds < -1:
        return INVALID
    whole = int(seconds) if seconds > 0 else 0
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years = days // 365
    if days < 8 * 365:
        return f"{years}y{days % 365}d" if days % 365 else f"{years}y"
    return f"{years}y"


def age(obj: dict[str, Any], now: float) -> str:
    """Time since the object was created."""
    created = obj["metadata"].get("creationTimestamp")
    return duration(now - seconds_of(created)) if created else UNKNOWN


def selector(wanted: dict[str, Any] | None) -> str:
    """A LabelSelector; `<none>` when there is none or it is empty."""
    return selector_text(wanted) or NONE


@dataclass(frozen=True)
class Cells:
    """Columns (name, type, priority), and the cells of an object at a time."""

    columns: tuple[Column, ...]
    cells: Callable[[Json, float], list[Any]]


def columns(text: str) -> tuple[Column, ...]:
    """`Name, Value:integer, Node*`: type after a colon, a star for what only `-o wide` shows."""
    found = []
    for part in text.split(", "):
        name, _, type_ = part.rstrip("*").partition(":")
        found.append((name, type_ or "string", 1 if part.endswith("*") else 0))
    return tuple(found)


def name_of(obj: Json) -> str:
    """Its name."""
    return str(obj["metadata"]["name"])


def spec_of(obj: Json) -> Json:
    """Its spec, or nothing."""
    return obj.get("spec") or {}


def status_of(obj: Json) -> Json:
    """Its status, or nothing."""
    return obj.get("status") or {}


def since(text: str | None, now: float) -> str:
    """Time since then."""
    return duration(now - seconds_of(text)) if text else UNKNOWN
