"""Field sets: which fields of an object somebody owns, as `managedFields` spells it (fieldsV1).

A set is a set of paths; a path is a tuple of `f:name`, `k:{"name":"c"}` (element of a keyed list) or `v:"x"`
(element of a set).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from labkit.cluster.store_schema import Struct, is_struct, struct

Json = dict[str, Any]
Path = tuple[str, ...]
#: Lists whose elements are told apart by more than the strategic merge key.
_LIST_KEYS: dict[tuple[str, str], tuple[str, ...]] = {
    ("core.v1.Container", "ports"): ("containerPort", "protocol"),
    ("core.v1.EphemeralContainer", "ports"): ("containerPort", "protocol"),
    ("core.v1.ServiceSpec", "ports"): ("port", "protocol"),
    ("core.v1.PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
}
_KEY_DEFAULTS = {"protocol": "TCP"}
#: Types that are owned as one piece.
_ATOMIC = frozenset(
    {
        "meta.v1.LabelSelector",
        "core.v1.NodeSelector",
        "core.v1.NodeSelectorTerm",
        "core.v1.ObjectReference",
        "core.v1.LocalObjectReference",
        "core.v1.TypedLocalObjectReference",
        "core.v1.ObjectFieldSelector",
        "core.v1.ResourceFieldSelector",
        "core.v1.ConfigMapKeySelector",
        "core.v1.SecretKeySelector",
        "rbac.v1.RoleRef",
        "core.v1.SecretReference",
        "core.v1.TopologySelectorTerm",
        "core.v1.ScopeSelector",
    }
)
_ATOMIC_FIELDS = frozenset(
    {
        ("core.v1.PodSpec", "nodeSelector"),
        ("core.v1.ServiceSpec", "selector"),
        ("core.v1.ReplicationControllerSpec", "selector"),
    }
)
_IGNORED_METADATA = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
        "generateName",
    }
)


def list_keys(schema: Struct, name: str) -> tuple[str, ...]:
    """The keys that tell the elements of a list field apart; empty for lists that are one piece, or sets."""
    found = _LIST_KEYS.get((schema.name, name))
    if found:
        return found
    field = schema.fields[name]
    return (field.merge_key,) if field.merge_key and "merge" in field.patch_strategy else ()


def is_set(schema: Struct, name: str) -> bool:
    """Whether a list field is a set of plain values."""
    field = schema.fields[name]
    return "merge" in field.patch_strategy.split(",") and not field.merge_key


def is_atomic(schema: Struct, name: str) -> bool:
    """Whether a field is owned as one piece."""
    return schema.fields[name].type in _ATOMIC or (schema.name, name) in _ATOMIC_FIELDS


def _has_fields(schema: Struct, name: str) -> bool:
    return is_struct(schema.fields[name].type) and not is_atomic(schema, name)


def holds(fields: Any, path: Path) -> bool:
    """Whether nested fieldsV1 hold a path."""
    for step in path:
        if not isinstance(fields, dict) or step not in fields:
            return False
        fields = fields[step]
    return isinstance(fields, dict) and not fields


def element_key(keys: tuple[str, ...], element: Json) -> str:
    """`k:{"name":"c"}`."""
    chosen = {k: element.get(k, _KEY_DEFAULTS.get(k)) for k in sorted(keys)}
    return "k:" + json.dumps(chosen, separators=(",", ":"), ensure_ascii=False)


def leaves(obj: Json, schema: Struct) -> dict[Path, Any]:
    """The object's fields as paths with their values; what the server owns is left out."""
    found: dict[Path, Any] = {}
    for key, value in obj.items():
        if key in ("kind", "apiVersion") or value is None or key not in schema.fields:
            continue
        if key == "metadata":
            if isinstance(value, dict):
                value = {k: v for k, v in value.items() if k not in _IGNORED_METADATA}
                _walk_struct(value, struct("meta.v1.ObjectMeta"), ("f:metadata",), found)
            continue
        _walk_field(value, schema, key, (f"f:{key}",), found)
    return found


def differences(old: Json | None, new: Json, schema: Struct) -> tuple[set[Path], set[Path]]:
    """The fields that `new` sets otherwise than `old`, and those that it no longer has."""
    set_now: set[Path] = set()
    gone: set[Path] = set()
    for key in new.keys() | (old or {}).keys():
        if key in ("kind", "apiVersion") or key not in schema.fields:
            continue
        before, after = (old or {}).get(key), new.get(key)
        if key == "metadata":
            before = {k: v for k, v in (before or {}).items() if k not in _IGNORED_METADATA}
            after = {k: v for k, v in (after or {}).items() if k not in _IGNORED_METADATA}
        _compare(before, after, schema, key, (f"f:{key}",), set_now, gone)
    return set_now, gone


def _compare(
    before: Any, after: Any, schema: Struct, name: str, path: Path, set_now: set[Path], gone: set[Path]
) -> None:
    if before == after:
        return
    type_name = schema.fields[name].type
    if (
        before
        and after
        and isinstance(before, dict)
        and isinstance(after, dict)
        and _has_fields(schema, name)
    ):
        inner = struct(type_name)
        for key in before.keys() | after.keys():
            if key in inner.fields:
                _compare(before.get(key), after.get(key), inner, key, (*path, f"f:{key}"), set_now, gone)
        return
    was: dict[Path, Any] = {}
    now: dict[Path, Any] = {}
    if before is not None:
        _walk_field(before, schema, name, path, was)
    if after is not None:
        _walk_field(after, schema, name, path, now)
    set_now.update(p for p, v in now.items() if p not in was or was[p] != v)
    gone.update(was.keys() - now.keys())


def _walk_struct(value: Json, schema: Struct, path: Path, found: dict[Path, Any]) -> None:
    for key, inner in value.items():
        if inner is not None and key in schema.fields:
            _walk_field(inner, schema, key, (*path, f"f:{key}"), found)


def _walk_field(value: Any, schema: Struct, name: str, path: Path, found: dict[Path, Any]) -> None:
    type_name = schema.fields[name].type
    if is_atomic(schema, name) or not isinstance(value, (dict, list)) or not value:
        found[path] = value
    elif isinstance(value, dict):
        if is_struct(type_name):
            _walk_struct(value, struct(type_name), path, found)
        elif type_name.startswith("map[string]") and not is_struct(type_name[11:]):
            found[(*path, ".")] = None
            for key, inner in value.items():
                found[(*path, f"f:{key}")] = inner
        else:
            found[path] = value
    elif keys := list_keys(schema, name):
        if schema.fields[name].omitempty:
            # A list that is always written is there from the beginning, and nobody's.
            found[(*path, ".")] = None
        item = struct(type_name[2:])
        for element in value:
            if not isinstance(element, dict):
                continue
            here = (*path, element_key(keys, element))
            found[(*here, ".")] = None
            _walk_struct(element, item, here, found)
    elif is_set(schema, name):
        found[(*path, ".")] = None
        for element in value:
            found[(*path, "v:" + json.dumps(element, ensure_ascii=False))] = element
    else:
        found[path] = value


def to_fields_v1(paths: Iterable[Path]) -> Json:
    """The paths as nested fieldsV1."""
    root: Json = {}
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
    return root


def from_fields_v1(fields: Any) -> set[Path]:
    """Nested fieldsV1 as paths."""
    return set(_paths(fields, ())) if isinstance(fields, dict) else set()


def _paths(node: Json, prefix: Path) -> Iterator[Path]:
    for key, inner in node.items():
        if isinstance(inner, dict) and inner:
            yield from _paths(inner, (*prefix, key))
        else:
            yield (*prefix, key)


def path_text(path: Path) -> str:
    """`.spec.containers[name="c"].image`."""
    parts = []
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            parts.append(f".{rest}")
        elif kind == "k":
            chosen = json.loads(rest)
            parts.append("[" + ",".join(f"{k}={json.dumps(v)}" for k, v in chosen.items()) + "]")
        elif kind == "v":
            parts.append(f"[={rest}]")
    return "".join(parts)
