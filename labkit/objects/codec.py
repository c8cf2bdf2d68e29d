"""YAML and JSON in and out: documents, typed objects, and errors that say where (spec 11, API conventions)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from labkit.errors import InputError
from labkit.objects import cluster, node, pod, storage
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


@dataclass(frozen=True)
class Document:
    """One object as it was written: the whole dict, the file, and the document's number from 1."""

    raw: RawObject
    source: str = "<input>"
    number: int = 1

    @property
    def label(self) -> str:
        """`Pod default/web`, for messages."""
        return describe(self.raw)


def describe(raw: Any) -> str:
    """`Pod default/web`, as far as the object says."""
    if not isinstance(raw, dict):
        return "object"
    meta = raw.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = meta.get("name") or meta.get("generateName") or "(no name)"
    namespace = meta.get("namespace")
    return f"{raw.get('kind') or 'object'} {f'{namespace}/' if namespace else ''}{name}"


def from_dict(raw: RawObject, kind: str | None = None) -> KubeObject:
    """The typed object. Null counts as absent, unknown fields are passed over.

    InputError names object, field, value and what was expected; also for quantities that do not parse.
    """
    cls = KINDS.get(kind or str(raw.get("kind", "")))
    if cls is None:
        raise InputError(
            f"kind {raw.get('kind')!r} is not one that the scheduler reads",
            object=describe(raw),
            field="kind",
            hint=f"known kinds: {', '.join(KINDS)}",
        )
    try:
        found = msgspec.convert(raw, cls)
    except msgspec.ValidationError:
        found = _convert(drop_nulls(raw), cls)
    _check_quantities(raw, "", raw)
    return found


def _convert(raw: RawObject, cls: type[KubeObject]) -> KubeObject:
    try:
        return msgspec.convert(raw, cls)
    except msgspec.ValidationError as e:
        match = _PATH.fullmatch(str(e))
        what, path = (match["what"], match["path"] or "$") if match else (str(e), "$")
        field = path.removeprefix("$").removeprefix(".")
        value = _at(raw, field)
        raise InputError(
            f"{_plain(what)}, got {json.dumps(value, ensure_ascii=False, default=str)[:80]}",
            object=describe(raw),
            field=field or None,
            value=value,
            hint="compare the field with `kubectl explain`",
        ) from None


def _plain(what: str) -> str:
    found = re.match(r"Expected `([^`]+)`", what)
    names = {
        "object": "an object",
        "array": "a list",
        "str": "text",
        "int": "a whole number",
        "bool": "true or false",
        "float": "a number",
        "null": "nothing",
    }
    if not found:
        return what
    return "expected " + " or ".join(
        names.get(p.strip(), p.strip()) for p in found[1].split("|") if p.strip() != "null"
    )


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
            f"{quantity!r} is not a quantity: {e}",
            object=describe(raw),
            field=field,
            value=quantity,
            hint='write amounts like "500m", "2", "128Mi" or "1Gi"',
        ) from None


def drop_nulls(value: Any) -> Any:
    """The same value without null members of objects: in Kubernetes null means absent."""
    if isinstance(value, dict):
        return {k: drop_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [drop_nulls(v) for v in value]
    return value


def to_dict(obj: KubeObject) -> RawObject:
    """The object as Kubernetes JSON; fields at their zero value are left out."""
    raw: RawObject = msgspec.to_builtins(obj)
    raw.setdefault("kind", obj.kind or type(obj).__name__)
    return raw


def load_documents(text: str, source: str = "<input>") -> list[Document]:
    """All objects in YAML or JSON text; several documents and List objects are flattened, empty ones dropped.

    InputError with file, document number and line when the text is malformed.
    """
    return list(_documents(text, source))


def _documents(text: str, source: str) -> Iterator[Document]:
    for number, raw in enumerate(_parsed(text, source), start=1):
        if raw is None:
            continue
        yield from _flatten(raw, source, number)


def _flatten(raw: Any, source: str, number: int) -> Iterator[Document]:
    if not isinstance(raw, dict):
        raise InputError(
            f"expected a Kubernetes object, got {type(raw).__name__}",
            file=source,
            document=number,
            hint="each document needs apiVersion, kind and metadata",
        )
    if isinstance(raw.get("items"), list) and str(raw.get("kind", "")).endswith("List"):
        item_kind = str(raw["kind"]).removesuffix("List")
        for item in raw["items"]:
            if item is None:
                continue
            if isinstance(item, dict) and item_kind and "kind" not in item:
                item = {"kind": item_kind, "apiVersion": raw.get("apiVersion", ""), **item}
            yield from _flatten(item, source, number)
        return
    yield Document({str(k): v for k, v in raw.items()}, source, number)


def _parsed(text: str, source: str) -> Iterator[Any]:
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith(("{", "[")):
        try:
            yield json.loads(stripped)
        except (ValueError, RecursionError):
            pass
        else:
            return
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    number = 0
    try:
        for raw in yaml.load_all(text, Loader=_loader(loader)):
            number += 1
            yield raw
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        problem = getattr(e, "problem", None) or str(e).splitlines()[0]
        raise InputError(
            f"{line}malformed YAML: {problem}",
            file=source,
            document=number + 1,
            hint="check the indentation and quotes around that line",
        ) from None
    except (ValueError, RecursionError) as e:
        raise InputError(f"malformed YAML: {e}", file=source, document=number + 1) from None


def _loader(base: Any) -> Any:
    global _LOADER
    if _LOADER is None:
        # Times stay text, as the API server sends them.
        class Loader(base):  # type: ignore[misc]
            """SafeLoader without implicit timestamps."""

        Loader.yaml_implicit_resolvers = {
            first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }
        _LOADER = Loader
    return _LOADER


_LOADER: Any = None
