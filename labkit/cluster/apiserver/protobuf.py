"""Reads Kubernetes protobuf bodies: kube-scheduler and typed kubectl verbs send nothing else (spec 20 §2.1)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from labkit.cluster.store_errors import bad_request
from labkit.cluster.store_schema import Field, Struct, is_struct, struct, type_of_kind
from labkit.cluster.store_times import format_time

MAGIC = b"k8s\x00"
MAX_DEPTH = 100
Raw = int | bytes


class ProtobufError(ValueError):
    """Bytes that are no protobuf message of the expected type."""


def decode(body: bytes) -> dict[str, Any]:
    """The object in a `k8s\\0` envelope as Kubernetes JSON. ApiError 400 when it is malformed or of an unknown kind."""
    if not body.startswith(MAGIC):
        raise bad_request(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    try:
        envelope = dict(_fields(body[len(MAGIC) :]))
        meta = dict(_fields(_bytes(envelope.get(1, b""))))
        api_version, kind = _text(meta.get(1, b"")), _text(meta.get(2, b""))
        type_name = type_of_kind(api_version, kind) or (
            "meta.v1.DeleteOptions" if kind == "DeleteOptions" else None
        )
        if type_name is None:
            raise bad_request(f'no kind "{kind}" is registered for version "{api_version}"')
        obj: dict[str, Any] = _message(_bytes(envelope.get(2, b"")), struct(type_name), 0)
    except ProtobufError as e:
        raise bad_request(f"unable to decode the protobuf body: {e}") from None
    return {"kind": kind, "apiVersion": api_version, **obj}


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ProtobufError("truncated or overlong varint")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Raw]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == 2:
            length, position = _varint(data, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ProtobufError(f"wire type {wire} is not used here")
        if position + length > len(data):
            raise ProtobufError("a field is longer than its message")
        yield number, data[position : position + length]
        position += length


def _bytes(value: Raw) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("expected bytes, found a number")
    return value


def _int(value: Raw, bits: int = 64) -> int:
    if not isinstance(value, int):
        raise ProtobufError("expected a number, found bytes")
    # Negative numbers travel as 64 bit two's complement.
    value &= (1 << 64) - 1
    signed = value - (1 << 64) if value >= 1 << 63 else value
    return max(min(signed, (1 << (bits - 1)) - 1), -(1 << (bits - 1)))


def _text(value: Raw) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as e:
        raise ProtobufError("a string is not UTF-8") from e


@lru_cache(maxsize=1024)
def _by_number(name: str) -> dict[int, Field]:
    return {f.pb: f for f in struct(name).own if f.pb}


def _message(data: bytes, schema: Struct, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise ProtobufError("messages are nested too deeply")
    by_number = _by_number(schema.name)
    out: dict[str, Any] = {}
    for number, raw in _fields(data):
        field = by_number.get(number)
        if field is None:
            continue
        if field.inline:
            out.update(_message(_bytes(raw), struct(field.type), depth + 1))
        else:
            _put(out, field, raw, depth)
    return out


def _put(out: dict[str, Any], field: Field, raw: Raw, depth: int) -> None:
    name = field.type
    if name.startswith("[]"):
        item = name[2:]
        if item in ("int32", "int64", "bool") and isinstance(raw, bytes):
            position = 0
            while position < len(raw):  # packed
                number, position = _varint(raw, position)
                out.setdefault(field.json, []).append(_value(number, item, depth))
        else:
            out.setdefault(field.json, []).append(_value(raw, item, depth))
    elif name.startswith("map[string]"):
        entry = dict(_fields(_bytes(raw)))
        item = name[len("map[string]") :]
        empty: Raw = b"" if item == "string" or not item.startswith(("int", "bool")) else 0
        out.setdefault(field.json, {})[_text(entry.get(1, b""))] = _map_value(
            entry.get(2, empty), item, depth
        )
    else:
        value = _value(raw, name, depth)
        # Go writes zero values of plain fields; in JSON they would not be there.
        if value is not None and (field.ptr or not field.omitempty or value not in ("", 0, False)):
            out[field.json] = value


def _map_value(raw: Raw, item: str, depth: int) -> Any:
    if item == "[]string":  # a message of its own in protobuf
        return [_text(v) for n, v in _fields(_bytes(raw)) if n == 1]
    return _value(raw, item, depth)


def _value(raw: Raw, name: str, depth: int) -> Any:
    if name == "string":
        return _text(raw)
    if name == "bool":
        return _int(raw) != 0
    if name in ("int32", "int64"):
        return _int(raw, int(name[3:]))
    if name == "bytes":
        return base64.b64encode(_bytes(raw)).decode()
    special = _SPECIAL.get(name)
    if special is not None:
        return special(_bytes(raw))
    if is_struct(name):
        return _message(_bytes(raw), struct(name), depth + 1)
    raise ProtobufError(f"fields of type {name} cannot be read")


def _quantity(data: bytes) -> Any:
    return _text(dict(_fields(data)).get(1, b"")) or "0"


def _time(data: bytes) -> Any:
    found = dict(_fields(data))
    return format_time(_seconds(found)) if found else None


def _micro_time(data: bytes) -> Any:
    found = dict(_fields(data))
    if not found:
        return None
    return f"{format_time(_seconds(found))[:-1]}.{_int(found.get(2, 0)) // 1000:06}Z"


def _seconds(found: dict[int, Raw]) -> int:
    seconds = _int(found.get(1, 0))
    if not -62135596800 <= seconds < 253402300800:
        raise ProtobufError("a time is outside of the years 1 to 9999")
    return seconds


def _int_or_string(data: bytes) -> Any:
    found = dict(_fields(data))
    return _text(found.get(3, b"")) if _int(found.get(1, 0)) == 1 else _int(found.get(2, 0), 32)


def _json(data: bytes) -> Any:
    import msgspec

    raw = _bytes(dict(_fields(data)).get(1, b""))
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as e:
        raise ProtobufError(f"embedded JSON: {e}") from e


def _duration(data: bytes) -> Any:
    return f"{_int(dict(_fields(data)).get(1, 0)) / 1e9:g}s"


_SPECIAL = {
    "api.resource.Quantity": _quantity,
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "util.intstr.IntOrString": _int_or_string,
    "meta.v1.FieldsV1": _json,
    "runtime.RawExtension": _json,
    "meta.v1.Duration": _duration,
}
