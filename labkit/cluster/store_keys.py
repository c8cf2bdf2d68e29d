"""Keys of objects, and tables of objects as of an earlier version (spec 20 §7.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labkit.cluster.store_errors import bad_request, expired
from labkit.cluster.store_selectors import Match
from labkit.cluster.store_types import ResourceType
from labkit.cluster.store_watch import History

Json = dict[str, Any]


def select(
    resource: ResourceType, table: Mapping[str, Json], namespace: str | None, match: Match | None
) -> list[Json]:
    """The objects of a table that match, in the order of their keys."""
    prefix = f"{namespace}/" if namespace and resource.namespaced else ""
    keys = sorted(k for k in table if k.startswith(prefix)) if prefix else sorted(table)
    found = [table[k] for k in keys]
    return found if match is None else [o for o in found if match(o)]


def table_at(
    resource: ResourceType, table: Mapping[str, Json], history: History, version: int
) -> dict[str, Json]:
    """The table as it was at a version, by undoing what came after. ApiError 410 when that is forgotten."""
    if version < history.lost_version:
        raise expired()
    earlier = dict(table)
    for change in reversed(history.changes):
        if change.version <= version:
            break
        key = object_key(resource, change.new)
        if change.old is None:
            earlier.pop(key, None)
        else:
            earlier[key] = change.old
    return earlier


def key_of(resource: ResourceType, name: str, namespace: str | None) -> str:
    """`namespace/name`, or `name` for what has no namespace."""
    return f"{namespace or 'default'}/{name}" if resource.namespaced else name


def object_key(resource: ResourceType, obj: dict[str, Any]) -> str:
    """The key of an object."""
    meta = obj["metadata"]
    return key_of(resource, meta["name"], meta.get("namespace"))


def check_version_text(text: str) -> int:
    """A resourceVersion from a query as a number. ApiError 400 when it is none."""
    if not text.isascii() or not text.isdigit():
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": '
            "invalid syntax"
        )
    return int(text)
