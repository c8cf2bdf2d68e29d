"""The shape of every API type: reads JSON as the API server does (spec 20 §2.1, §4.4, `data/api-types.json`).

`decode` copies an object on the way: quantities and times come out canonical, null and empty optional fields
go, fields that Go always writes come in, unknown fields are reported, wrong types are refused.
"""

from __future__ import annotations

import base64
import binascii
import builtins
import json
import marshal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, TypeVar

from labkit.cluster import store_alpha
from labkit.cluster.store_times import micro_time, time_text
from labkit.objects.quantity import QuantityError, parse_quantity

_T = TypeVar("_T")
Decoder = Callable[[Any, list[str]], Any]


class DecodeError(ValueError):
    """JSON that does not fit its type; `path` grows while it travels up to the object's root."""

    def __init__(self, message: str, go_type: str = "") -> None:
        super().__init__(message)
        self.problem = message
        self.go_type = go_type
        self.struct = ""
        self.path = ""

    def at(self, struct: str, name: str) -> None:
        """Note the field it happened in, innermost first."""
        self.struct = self.struct or struct
        self.path = f"{name}.{self.path}" if self.path else name

    def __str__(self) -> str:
        """The API server's sentence."""
        if not self.go_type:
            return self.problem
        where = f"Go struct field {self.struct}.{self.path}" if self.path else "Go value"
        return f"json: cannot unmarshal {self.problem} into {where} of type {self.go_type}"


@dataclass(slots=True)
class Field:
    """One field of a type, as JSON and protobuf spell it."""

    json: str
    type: str
    pb: int = 0
    omitempty: bool = False
    omitzero: bool = False
    ptr: bool = False
    inline: bool = False
    patch_strategy: str = ""
    merge_key: str = ""
    scalar: builtins.type | None = None
    decode: Decoder = field(default=lambda value, _: value)
    drop_zero: bool = False


@dataclass(slots=True)
class Struct:
    """A type with named fields; `own` are those written in the type itself, `fields` have inlined ones too."""

    name: str
    go_name: str
    own: list[Field] = field(default_factory=list)
    fields: dict[str, Field] = field(default_factory=dict)
    always: list[tuple[str, Callable[[], Any]]] = field(default_factory=list)

    def decode(self, value: Any, unknown: list[str]) -> Any:
        """The value copied and made canonical; paths of unknown fields are added to `unknown`."""
        if type(value) is not dict:
            raise DecodeError(json_type(value), self.go_name)
        out: dict[str, Any] = {}
        fields = self.fields
        for key, inner in value.items():
            known = fields.get(key)
            if known is None:
                unknown.append(str(key))
                continue
            if inner is None:
                continue
            if known.scalar is type(inner):
                if inner or not known.drop_zero:
                    out[key] = inner
                continue
            before = len(unknown)
            try:
                found = known.decode(inner, unknown)
            except DecodeError as e:
                e.at(self.go_name.rpartition(".")[2], key)
                raise
            if len(unknown) > before:
                for i in range(before, len(unknown)):
                    tail = unknown[i]
                    unknown[i] = f"{key}{tail}" if tail.startswith("[") else f"{key}.{tail}"
            if found or not known.drop_zero:
                out[key] = found
        for key, zero in self.always:
            if key not in out:
                out[key] = zero()
        return out

    def zero(self) -> dict[str, Any]:
        """The value that Go writes when nothing is set."""
        return {key: zero() for key, zero in self.always}


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    text = resources.files("labkit.cluster").joinpath("data/api-types.json").read_bytes()
    tables: dict[str, Any] = json.loads(text)
    return tables


@lru_cache(maxsize=1)
def _all_types() -> dict[str, Any]:
    """Those that a server with default settings describes, and pod groups."""
    return {**_tables()["types"], **store_alpha.TYPES}


def type_of_kind(api_version: str, kind: str) -> str | None:
    """The type's name, such as `core.v1.Pod`, or None for kinds that are not known."""
    key = f"{api_version}/{kind}"
    found = _tables()["kinds"].get(key) or store_alpha.KINDS.get(key)
    return str(found) if found else None


def type_names() -> list[str]:
    """All known type names."""
    return list(_tables()["types"])


_STRUCTS: dict[str, Struct] = {}


def struct(name: str) -> Struct:
    """The type's fields, built on first use. KeyError when there is no such type."""
    found = _STRUCTS.get(name)
    if found is not None:
        return found
    rows = _all_types()[name]
    built = Struct(name, go_type_name(name))
    _STRUCTS[name] = built  # before its fields, for types that contain themselves
    for row in rows:
        own = Field(
            json=row.get("json", ""),
            type=row["type"],
            pb=row.get("pb", 0),
            omitempty=row.get("omitempty", False),
            omitzero=row.get("omitzero", False),
            ptr=row.get("ptr", False),
            inline=row.get("inline", False),
            patch_strategy=row.get("patchStrategy", ""),
            merge_key=row.get("patchMergeKey", ""),
        )
        built.own.append(own)
        if own.inline:
            inlined = struct(own.type)
            built.fields.update(inlined.fields)
            if own.type != "meta.v1.TypeMeta":
                built.always.extend(inlined.always)
            continue
        _compile(own)
        built.fields[own.json] = own
        if _always_written(own):
            built.always.append((own.json, _zero_of(own)))
    return built


def _always_written(f: Field) -> bool:
    if f.ptr or f.omitzero:
        return not f.omitempty and not f.omitzero
    return (
        not f.omitempty or f.type in _TIMES or (is_struct(f.type) and not f.type.startswith(("[]", "map[")))
    )


def _zero_of(f: Field) -> Callable[[], Any]:
    zeros: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0}
    if not f.ptr and f.type in zeros:
        value = zeros[f.type]
        return lambda: value
    if not f.ptr and is_struct(f.type):
        return lambda: struct(f.type).zero()
    if f.type == "api.resource.Quantity" and not f.ptr:
        return lambda: "0"
    return lambda: None


def is_struct(name: str) -> bool:
    """Whether the name is a type with fields (not a list, map, scalar or special type)."""
    return name in _all_types() and name not in _SPECIAL


_TIMES = ("meta.v1.Time", "meta.v1.MicroTime")
_SPECIAL = {
    *_TIMES,
    "api.resource.Quantity",
    "util.intstr.IntOrString",
    "runtime.RawExtension",
    "meta.v1.FieldsV1",
    "meta.v1.Duration",
    "time.Time",
}


def _compile(f: Field) -> None:
    f.drop_zero = f.omitempty and not f.ptr and not is_struct(f.type) and f.type not in _TIMES
    if f.type == "string":
        f.scalar = str
    elif f.type == "bool":
        f.scalar = bool
    f.decode = _decoder(f.type)


def _decoder(name: str) -> Decoder:
    if name.startswith("[]"):
        return _list_decoder(name[2:], go_type_name(name))
    if name.startswith("map[string]"):
        return _map_decoder(name[11:], go_type_name(name))
    if (simple := _SIMPLE.get(name)) is not None:
        return simple
    # Looked up at the first call, so that a type may contain itself.
    target: list[Decoder] = []

    def decode(value: Any, unknown: list[str]) -> Any:
        if not target:
            target.append(struct(name).decode)
        return target[0](value, unknown)

    return decode


def _list_decoder(item: str, go_type: str) -> Decoder:
    decode = _decoder(item)
    empty: Any = {} if is_struct(item) else ""

    def decode_list(value: Any, unknown: list[str]) -> Any:
        if type(value) is not list:
            raise DecodeError(json_type(value), go_type)
        out = []
        for i, inner in enumerate(value):
            before = len(unknown)
            out.append(decode(empty if inner is None else inner, unknown))
            for j in range(before, len(unknown)):
                tail = unknown[j]
                unknown[j] = f"[{i}]{tail}" if tail.startswith("[") else f"[{i}].{tail}"
        return out

    return decode_list


def _map_decoder(item: str, go_type: str) -> Decoder:
    decode = _decoder(item)

    def decode_map(value: Any, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise DecodeError(json_type(value), go_type)
        out = {}
        for key, inner in value.items():
            try:
                out[str(key)] = decode(
                    "" if inner is None and item in ("string", "bytes") else inner, unknown
                )
            except DecodeError as e:
                e.path = f"{key}.{e.path}" if e.path else ""
                raise
        return out

    return decode_map


def _string(value: Any, _: list[str]) -> Any:
    if type(value) is not str:
        raise DecodeError(json_type(value), "string")
    return value


def _bool(value: Any, _: list[str]) -> Any:
    if type(value) is not bool:
        raise DecodeError(json_type(value), "bool")
    return value


def _integer(go_type: str, bits: int) -> Decoder:
    bound = 2 ** (bits - 1)

    def decode(value: Any, _: list[str]) -> Any:
        if type(value) is not int:
            raise DecodeError(json_type(value, with_value=True), go_type)
        if not -bound <= value < bound:
            raise DecodeError(f"number {value}", go_type)
        return value

    return decode


def _bytes(value: Any, _: list[str]) -> Any:
    if type(value) is not str:
        raise DecodeError(json_type(value), "[]uint8")
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise DecodeError("illegal base64 data at input byte 0") from None
    return value


@lru_cache(maxsize=65536)
def _canonical(text: str) -> str:
    return str(parse_quantity(text))


def _quantity(value: Any, _: list[str]) -> Any:
    if value is None:
        return "0"
    if type(value) not in (str, int, float):
        value = json.dumps(value)
    try:
        return _canonical(value if type(value) is str else repr(value))
    except QuantityError as e:
        raise DecodeError(str(e)) from None


def _int_or_string(value: Any, _: list[str]) -> Any:
    if type(value) not in (str, int):
        raise DecodeError(json_type(value, with_value=True), "int32")
    return value


def _time(value: Any, _: list[str]) -> Any:
    return _parsed_time(value, time_text)


def _micro(value: Any, _: list[str]) -> Any:
    return _parsed_time(value, micro_time)


def _parsed_time(value: Any, parse: Callable[[str], str]) -> Any:
    if type(value) is not str:
        raise DecodeError(json_type(value), "string")
    try:
        return parse(value)
    except ValueError:
        layout = "2006-01-02T15:04:05Z07:00"
        raise DecodeError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"') from None


def _raw(value: Any, _: list[str]) -> Any:
    return copy(value)


_SIMPLE: dict[str, Decoder] = {
    "string": _string,
    "bool": _bool,
    "int32": _integer("int32", 32),
    "int64": _integer("int64", 64),
    "bytes": _bytes,
    "api.resource.Quantity": _quantity,
    "util.intstr.IntOrString": _int_or_string,
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro,
    "runtime.RawExtension": _raw,
    "meta.v1.FieldsV1": _raw,
    "meta.v1.Duration": _string,
    "time.Time": _raw,
    "any": _raw,
}


def go_type_name(name: str) -> str:
    """`[]core.v1.Container` as Go's errors print it: `[]v1.Container`."""
    if name.startswith("[]"):
        return "[]" + go_type_name(name[2:])
    if name.startswith("map[string]"):
        return "map[string]" + go_type_name(name[11:])
    if name == "bytes":
        return "[]uint8"
    return ".".join(name.split(".")[-2:]) if "." in name else name


def json_type(value: Any, *, with_value: bool = False) -> str:
    """What encoding/json calls the value: `object`, `array`, `string`, `number`, `bool`, `null`."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return f"number {value}" if with_value else "number"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else "null"


def copy(value: _T) -> _T:
    """A deep copy of plain JSON data."""
    copied: _T = marshal.loads(marshal.dumps(value))  # type: ignore[arg-type]
    return copied
