"""Typed objects from plain dicts and back, with errors that say where (Kubernetes API conventions)."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import msgspec.inspect

from labkit.errors import InputError
from labkit.i18n import t
from labkit.objects import cluster, node, pod, storage
from labkit.objects.documents import Document as Document
from labkit.objects.documents import describe
from labkit.objects.documents import load_documents as load_documents
from labkit.objects.meta import KubeObject, RawObject
from labkit.objects.quantity import QuantityError, parse_quantity

KINDS: dict[str, type[KubeObject]] = {
    cls.__name__: cls
    for cls in (
        pod.Pod,
        node.Node,
        storage.PersistentVolume,
        storage.PersistentVolumeClaim,
        storage.StorageClass,
        storage.CSINode,
        storage.CSIDriver,
        storage.CSIStorageCapacity,
        storage.VolumeAttachment,
        cluster.PodDisruptionBudget,
        cluster.Namespace,
        cluster.PriorityClass,
        cluster.Service,
        cluster.ReplicationController,
        cluster.ReplicaSet,
        cluster.StatefulSet,
        cluster.PodGroup,
    )
}

_PATH = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?", re.DOTALL)
_RESOURCE_LISTS = ("requests", "limits", "allocatable", "capacity", "overhead", "allocatedResources")


def from_dict(raw: RawObject, kind: str | None = None) -> KubeObject:
    """The typed object. Null counts as absent, unknown fields are passed over.

    InputError names object, field, value and what was expected; also for quantities that do not parse.
    """
    cls = KINDS.get(kind or str(raw.get("kind", "")))
    if cls is None:
        raise InputError(
            t(
                f"kind {raw.get('kind')!r} is not one that the scheduler reads",
                f"kind {raw.get('kind')!r} 不是 scheduler 会读取的类型",
            ),
            object=describe(raw),
            field="kind",
            hint=t(f"known kinds: {', '.join(KINDS)}", f"可用的 kind：{', '.join(KINDS)}"),
        )
    try:
        try:
            found = msgspec.convert(raw, cls)
        except msgspec.ValidationError:
            found = _convert(_without_nulls(raw, msgspec.inspect.type_info(cls)), cls)
        _check_quantities(raw, "", raw)
    except RecursionError:
        raise InputError(t("nested too deeply", "嵌套过深"), object=describe(raw)) from None
    return found


def _convert(raw: RawObject, cls: type[KubeObject]) -> KubeObject:
    try:
        return msgspec.convert(raw, cls)
    except msgspec.ValidationError as e:
        match = _PATH.fullmatch(str(e))
        what, path = (match["what"], match["path"] or "$") if match else (str(e), "$")
        field = path.removeprefix("$").removeprefix(".")
        value = _at(raw, field)
        got = json.dumps(value, ensure_ascii=False, default=str)[:80]
        raise InputError(
            t(f"{_plain(what)}, got {got}", f"{_plain(what)}，实际为 {got}"),
            object=describe(raw),
            field=field or None,
            value=value,
            hint=t("compare the field with `kubectl explain`", "用 `kubectl explain` 核对该字段"),
        ) from None


def _plain(what: str) -> str:
    found = re.match(r"Expected `([^`]+)`", what)
    names = {
        "object": t("an object", "对象"),
        "array": t("a list", "列表"),
        "str": t("text", "文本"),
        "int": t("a whole number", "整数"),
        "bool": t("true or false", "true 或 false"),
        "float": t("a number", "数"),
        "null": t("nothing", "空"),
    }
    if not found:
        return what
    wanted = [names.get(p.strip(), p.strip()) for p in found[1].split("|") if p.strip() != "null"]
    return t("expected " + " or ".join(wanted), "应为" + "或".join(wanted))


def _at(raw: Any, path: str) -> Any:
    value = raw
    for part in re.findall(r"[^.\[\]]+", path):
        if part == "...":
            return value
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, ValueError, TypeError):
            return value
    return value


def _check_quantities(value: Any, path: str, raw: RawObject) -> None:
    if isinstance(value, list):
        for i, item in enumerate(value):
            _check_quantities(item, f"{path}[{i}]", raw)
        return
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        where = f"{path}.{key}" if path else str(key)
        if key in _RESOURCE_LISTS and isinstance(inner, dict):
            for name, quantity in inner.items():
                if isinstance(quantity, (str, int, float)):
                    _check_quantity(quantity, f"{where}.{name}", raw)
        elif isinstance(inner, (dict, list)) and key not in ("labels", "annotations", "managedFields"):
            _check_quantities(inner, where, raw)


def _check_quantity(quantity: str | int | float, field: str, raw: RawObject) -> None:
    try:
        parse_quantity(quantity)
    except QuantityError as e:
        raise InputError(
            t(f"{quantity!r} is not a quantity: {e}", f"{quantity!r} 不是合法的数量：{e}"),
            object=describe(raw),
            field=field,
            value=quantity,
            hint=t(
                'write amounts like "500m", "2", "128Mi" or "1Gi"',
                '请写成 "500m"、"2"、"128Mi"、"1Gi" 这样的数量',
            ),
        ) from None


def drop_nulls(value: Any) -> Any:
    """The same value without null members of objects: in Kubernetes null means absent."""
    if isinstance(value, dict):
        return {k: drop_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [drop_nulls(v) for v in value]
    return value


def _without_nulls(value: Any, kind: Any) -> Any:
    # A null field is absent; a null among the values of a map or the items of a list is that type's zero value.
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next((k for k in kind.types if not isinstance(k, msgspec.inspect.NoneType)), kind)
    if isinstance(value, dict):
        if isinstance(kind, msgspec.inspect.StructType):
            fields = {f.encode_name: f.type for f in kind.fields}
            return {
                k: _without_nulls(v, fields.get(k)) if k in fields else v
                for k, v in value.items()
                if v is not None
            }
        if isinstance(kind, msgspec.inspect.DictType):
            return {k: _zero_or(v, kind.value_type) for k, v in value.items()}
    if isinstance(value, list) and isinstance(kind, msgspec.inspect.ListType):
        return [_zero_or(v, kind.item_type) for v in value]
    return value


def _zero_or(value: Any, kind: Any) -> Any:
    if value is not None:
        return _without_nulls(value, kind)
    if isinstance(kind, msgspec.inspect.StructType):
        return {}
    # Only quantities are a union here.
    return "0" if isinstance(kind, msgspec.inspect.UnionType) else "" if _is_text(kind) else None


def _is_text(kind: Any) -> bool:
    return isinstance(kind, msgspec.inspect.StrType)


def to_dict(obj: KubeObject) -> RawObject:
    """The object as Kubernetes JSON; fields at their zero value are left out; empty objects may stay."""
    raw: RawObject = msgspec.to_builtins(obj)
    raw.setdefault("kind", obj.kind or type(obj).__name__)
    return raw
