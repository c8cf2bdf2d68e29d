"""Who owns which field: managedFields, and server-side apply (spec 20 §8.5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_fields import (
    Path,
    differences,
    element_key,
    from_fields_v1,
    holds,
    is_atomic,
    is_set,
    leaves,
    list_keys,
    path_text,
    to_fields_v1,
)
from labkit.cluster.store_schema import Struct, is_struct, struct
from labkit.cluster.store_types import ResourceType

Json = dict[str, Any]
APPLY, UPDATE = "Apply", "Update"
KUBECTL = "kubectl"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Written all the time, by one writer each: nobody asks who owns which field of them.
_UNTRACKED = ("Event", "Lease")


class Entry:
    """One entry of managedFields; its paths are read when somebody asks for them."""

    def __init__(self, raw: Json, paths: set[Path] | None = None) -> None:
        self._raw = raw
        self._paths = paths
        self.manager = str(raw.get("manager", ""))
        self.operation = str(raw.get("operation", ""))
        self.api_version = str(raw.get("apiVersion", ""))
        self.subresource = str(raw.get("subresource", ""))
        self.time = str(raw.get("time", ""))

    @classmethod
    def new(cls, manager: str, operation: str, api_version: str, subresource: str, time: str) -> Entry:
        """An entry that owns nothing yet."""
        raw = {"manager": manager, "operation": operation, "apiVersion": api_version, "time": time}
        return cls({**raw, "subresource": subresource} if subresource else raw, set())

    @property
    def paths(self) -> set[Path]:
        """The fields that it owns."""
        if self._paths is None:
            self._paths = from_fields_v1(self._raw.get("fieldsV1"))
        return self._paths

    @paths.setter
    def paths(self, paths: set[Path]) -> None:
        self._paths = paths

    def lose(self, paths: set[Path]) -> None:
        """Take fields away."""
        if self._paths is None and not any(holds(self._raw.get("fieldsV1"), p) for p in paths):
            return
        self.paths -= paths

    def is_for(self, manager: str, operation: str, api_version: str, subresource: str) -> bool:
        """Whether it is that writer's entry."""
        mine = (self.manager, self.operation, self.subresource) == (manager, operation, subresource)
        return mine and (operation == APPLY or self.api_version == api_version)

    def label(self) -> str:
        """As conflicts name it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        if self.operation == UPDATE:
            text += f" using {self.api_version}" + (f" at {self.time}" if self.time else "")
        return text

    def to_dict(self) -> Json | None:
        """As in an object; None when it owns nothing."""
        if self._paths is None:
            return self._raw if self._raw.get("fieldsV1") else None
        if not self._paths:
            return None
        entry: Json = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(self._paths),
        }
        return {**entry, "subresource": self.subresource} if self.subresource else entry


def _entries(obj: Json | None) -> list[Entry]:
    if obj is None:
        return []
    return [Entry(e) for e in obj["metadata"].get("managedFields") or () if isinstance(e, dict)]


def _write(obj: Json, entries: list[Entry]) -> None:
    # Appliers first, then updaters by age, as the real server orders them.
    ordered = sorted(entries, key=lambda e: (e.operation != APPLY, e.time, e.manager, e.subresource))
    kept = [found for e in ordered if (found := e.to_dict()) is not None]
    if kept:
        obj["metadata"]["managedFields"] = kept
    else:
        obj["metadata"].pop("managedFields", None)


def track(
    resource: ResourceType,
    old: Json | None,
    new: Json,
    manager: str,
    now: str,
    subresource: str | None = None,
) -> None:
    """Record in `new` that `manager` set what differs from `old`."""
    if resource.kind in _UNTRACKED:
        return
    set_now, gone = differences(old, new, resource.schema)
    # A PUT that sends managedFields back may edit them; one that leaves them out changes nothing of them.
    sent = new["metadata"].get("managedFields")
    entries = _entries(new if sent is not None else old)
    mine: Entry | None = None
    for entry in entries:
        if entry.is_for(manager, UPDATE, resource.api_version, subresource or ""):
            mine = entry
            entry.lose(gone)
        else:
            entry.lose({p for p in set_now if p[-1] != "."} | gone)
    if set_now:
        if mine is None:
            mine = Entry.new(manager, UPDATE, resource.api_version, subresource or "", now)
            entries.append(mine)
        if not set_now <= mine.paths or subresource:
            mine.time = now
        mine.paths |= set_now
    _write(new, entries)


def apply(
    resource: ResourceType,
    live: Json | None,
    config: Json,
    manager: str,
    *,
    force: bool,
    now: str,
    subresource: str | None = None,
) -> Json:
    """The object after server-side apply, not yet decoded. ApiError 409 when others own what differs."""
    wanted = leaves(config, resource.schema)
    if subresource:
        wanted = {p: v for p, v in wanted.items() if p[0] == f"f:{subresource}"}
    entries = _entries(live)
    if live is not None and not entries and (present := set(leaves(live, resource.schema))):
        # Fields set before anybody kept record belong to a manager of this name.
        first = Entry.new("before-first-apply", UPDATE, resource.api_version, "", now)
        first.paths = present
        entries.append(first)
    current = leaves(live, resource.schema) if live is not None else {}
    mine = next(
        (e for e in entries if e.is_for(manager, APPLY, resource.api_version, subresource or "")), None
    )
    others = [e for e in entries if e is not mine]
    conflicts = [
        (entry, path)
        for entry in others
        for path in sorted(entry.paths)
        if path in wanted and path[-1] != "." and path in current and wanted[path] != current[path]
    ]
    if conflicts and not force and not _from_client_side_apply(manager, live, conflicts, resource):
        raise _conflict(conflicts)
    for entry, path in conflicts:
        entry.paths.discard(path)
    merged = _merge(live or {}, config, resource.schema)
    if mine is not None:
        owned_elsewhere = {p for e in others for p in e.paths}
        released = mine.paths - wanted.keys() - owned_elsewhere
        # Whole elements first: without its key a list element could not be found.
        for path in sorted(released, key=lambda p: (p[-1] != ".", -len(p), p)):
            _drop(merged, path, wanted)
    if mine is None:
        mine = Entry.new(manager, APPLY, resource.api_version, subresource or "", now)
        entries.append(mine)
    if mine.paths != wanted.keys():
        mine.time = now
    mine.paths = set(wanted)
    merged["metadata"] = dict(merged.get("metadata") or {})
    if manager == KUBECTL and _LAST_APPLIED in (merged["metadata"].get("annotations") or {}):
        told = json.dumps({k: v for k, v in config.items() if k != "status"}, separators=(",", ":")) + "\n"
        merged["metadata"]["annotations"] = {**merged["metadata"]["annotations"], _LAST_APPLIED: told}
    _write(merged, entries)
    return merged


def _from_client_side_apply(
    manager: str, live: Json | None, conflicts: list[tuple[Entry, Path]], resource: ResourceType
) -> bool:
    """Whether kubectl moves from client-side to server-side apply: then it takes over what it applied before."""
    if manager != KUBECTL or live is None:
        return False
    annotation = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    try:
        before = json.loads(annotation or "null")
    except (ValueError, RecursionError):
        return False
    if not isinstance(before, dict):
        return False
    mine = leaves(before, resource.schema)
    return all(path in mine for _, path in conflicts)


def _conflict(conflicts: list[tuple[Entry, Path]]) -> ApiError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {e.label()}", "field": path_text(p)}
        for e, p in conflicts
    ]
    by_manager: dict[str, list[str]] = {}
    for entry, path in conflicts:
        by_manager.setdefault(entry.label(), []).append(path_text(path))
    told = []
    for label, paths in by_manager.items():
        told.append(
            f"conflict with {label}: {paths[0]}"
            if len(paths) == 1
            else f"conflicts with {label}:\n" + "\n".join(f"- {p}" for p in paths)
        )
    plural = "" if len(conflicts) == 1 else "s"
    message = f"Apply failed with {len(conflicts)} conflict{plural}: " + "\n".join(told)
    return ApiError(409, "Conflict", message, {"causes": causes})


def _merge(live: Json, config: Json, schema: Struct) -> Json:
    merged = dict(live)
    for key, value in config.items():
        if value is None:
            continue
        if key == "metadata" and isinstance(value, dict):
            value = {k: v for k, v in value.items() if k != "managedFields"}
        merged[key] = _merge_field(merged.get(key), value, schema, key) if key in schema.fields else value
    return merged


def _merge_field(live: Any, value: Any, schema: Struct, name: str) -> Any:
    type_name = schema.fields[name].type
    if is_atomic(schema, name) or live is None:
        return value
    if isinstance(value, dict) and isinstance(live, dict):
        if is_struct(type_name):
            return _merge(live, value, struct(type_name))
        return {**live, **value} if type_name.startswith("map[string]") else value
    if isinstance(value, list) and isinstance(live, list):
        if is_set(schema, name):
            return [*live, *(v for v in value if v not in live)]
        if keys := list_keys(schema, name):
            return _merge_elements(live, value, keys, struct(type_name[2:]))
    return value


def _merge_elements(live: list[Any], value: list[Any], keys: tuple[str, ...], item: Struct) -> list[Any]:
    given = {element_key(keys, e): e for e in value if isinstance(e, dict)}
    present = {element_key(keys, e): e for e in live}
    merged = [_merge(present[k], e, item) if k in present else e for k, e in given.items()]
    return merged + [e for k, e in present.items() if k not in given]


def _drop(obj: Json, path: Path, wanted: Mapping[Path, Any]) -> None:
    """Take a field out that its owner no longer applies; containers on the way are copied, not written."""
    node: Any = obj
    for i, step in enumerate(path):
        last = i == len(path) - 1
        kind, _, rest = step.partition(":")
        if kind == "f" and isinstance(node, dict):
            if rest not in node:
                return
            if last:
                del node[rest]
                return
            following = path[i + 1]
            if (
                following.startswith("k:")
                and i + 2 == len(path) - 1
                and path[-1] == "."
                and not _kept(path[:-1], wanted)
            ):
                node[rest] = [e for e in node[rest] if not _is_element(e, following)]
                return
            if following.startswith("v:"):
                node[rest] = [e for e in node[rest] if not _is_value(e, following)]
                return
            node[rest] = node = dict(node[rest]) if isinstance(node[rest], dict) else list(node[rest])
        elif kind == "k" and isinstance(node, list):
            at = next((n for n, e in enumerate(node) if _is_element(e, step)), None)
            if at is None:
                return
            node[at] = node = dict(node[at])
        else:
            return


def _kept(prefix: Path, wanted: Mapping[Path, Any]) -> bool:
    return any(p[: len(prefix)] == prefix for p in wanted)


def _is_element(element: Any, step: str) -> bool:
    keys = tuple(json.loads(step[2:]))
    return isinstance(element, dict) and element_key(keys, element) == step


def _is_value(element: Any, step: str) -> bool:
    return bool(json.loads(step[2:]) == element)
