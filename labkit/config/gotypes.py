"""Decoding JSON into Go types, strictly: which text Go's decoder gives for what does not fit (spec 03 §8).

A decoded struct is a dict from JSON field name to value that holds only what was given.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from typing import Any

from labkit.config.gojson import Node
from labkit.config.gotext import DurationError, go_quote, parse_duration

_MOST_STRICT_ERRORS = 100
UNSET = object()


class DecodeError(ValueError):
    """A value that does not fit its Go type; the message is Go's."""


class Decoder:
    """The state of decoding one document: where we are, the first type error, and what strictness found."""

    def __init__(self) -> None:
        self.struct = ""
        self.fields: list[str] = []
        self.path: list[str] = []
        self.first_error: str | None = None
        self.strict: dict[str, None] = {}

    def mismatch(self, value: str, type_name: str) -> str:
        """The text of a type error at the present place."""
        if not self.fields:
            return f"json: cannot unmarshal {value} into Go value of type {type_name}"
        place = f"{self.struct}.{'.'.join(self.fields)}"
        return f"json: cannot unmarshal {value} into Go struct field {place} of type {type_name}"

    def save(self, message: str) -> None:
        """Remember an error; decoding goes on, and the first one is reported in the end."""
        if self.first_error is None:
            self.first_error = message

    def note(self, kind: str, name: str) -> None:
        """Remember an unknown or duplicate field."""
        if len(self.strict) < _MOST_STRICT_ERRORS:
            path = "".join(self.path)
            self.strict[f"{kind} field {go_quote(f'{path}.{name}' if path else name)}"] = None


class GoType:
    """A Go type: its name in messages and how JSON becomes a value of it."""

    name: str

    def decode(self, node: Node, state: Decoder) -> Any:
        """The value, or UNSET when the JSON leaves the Go value as it was."""
        raise NotImplementedError

    def _refuse(self, node: Node, state: Decoder) -> Any:
        if node.kind != "null":
            state.save(state.mismatch(node.kind, self.name))
        return UNSET


class Text(GoType):
    """A string, or a named string type."""

    def __init__(self, name: str = "string") -> None:
        self.name = name

    def decode(self, node: Node, state: Decoder) -> Any:
        return node.value if node.kind == "string" else self._refuse(node, state)


class Bool(GoType):
    """A bool."""

    name = "bool"

    def decode(self, node: Node, state: Decoder) -> Any:
        return node.value if node.kind == "bool" else self._refuse(node, state)


class Int(GoType):
    """A signed integer of so many bits."""

    def __init__(self, bits: int) -> None:
        self.name = f"int{bits}"
        self.limit = 1 << (bits - 1)

    def decode(self, node: Node, state: Decoder) -> Any:
        if node.kind != "number":
            return self._refuse(node, state)
        text: str = node.value
        if not text.lstrip("-").isdigit() or not -self.limit <= int(text) < self.limit:
            state.save(state.mismatch(f"number {text}", self.name))
            return UNSET
        return int(text)


class Float32(GoType):
    """A float32."""

    name = "float32"

    def decode(self, node: Node, state: Decoder) -> Any:
        if node.kind != "number":
            return self._refuse(node, state)
        try:
            value: float = struct.unpack("f", struct.pack("f", float(node.value)))[0]
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            state.save(state.mismatch(f"number {node.value}", self.name))
            return UNSET
        return value


class Bytes(GoType):
    """A []byte: base64 text (or, as for any slice, a list of numbers)."""

    name = "[]uint8"

    def decode(self, node: Node, state: Decoder) -> Any:
        if node.kind == "array":
            numbers = [_Uint8().decode(item, state) for item in node.value]
            return bytes(0 if number is UNSET else number for number in numbers)
        if node.kind != "string":
            return self._refuse(node, state)
        text = node.value.replace("\n", "").replace("\r", "")
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            state.save(f"illegal base64 data at input byte {_bad_base64(text)}")
            return UNSET


class _Uint8(GoType):
    name = "uint8"

    def decode(self, node: Node, state: Decoder) -> Any:
        if node.kind != "number":
            return self._refuse(node, state)
        if not node.value.isdigit() or int(node.value) > 255:
            state.save(state.mismatch(f"number {node.value}", self.name))
            return UNSET
        return int(node.value)


def _bad_base64(text: str) -> int:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for at, char in enumerate(text):
        if char == "=" and at % 4 >= 2 and text[at:] in ("=", "==") and len(text) % 4 == 0:
            continue
        if char not in alphabet:
            return at
    return len(text) - len(text) % 4


class GoDuration(GoType):
    """metav1.Duration. What does not fit ends the decoding at once, before any saved error."""

    name = "string"

    def decode(self, node: Node, state: Decoder) -> Any:
        if node.kind not in ("string", "null"):
            raise DecodeError(state.mismatch(node.kind, self.name))
        try:
            return parse_duration(node.value or "")
        except DurationError as error:
            raise DecodeError(str(error)) from None


class Raw(GoType):
    """runtime.RawExtension: kept as it is."""

    name = "runtime.RawExtension"

    def decode(self, node: Node, state: Decoder) -> Any:
        return UNSET if node.kind == "null" else node


class Pointer(GoType):
    """A pointer: null means absent."""

    def __init__(self, target: GoType) -> None:
        self.target = target
        self.name = target.name

    def decode(self, node: Node, state: Decoder) -> Any:
        return UNSET if node.kind == "null" else self.target.decode(node, state)


class Slice(GoType):
    """A list."""

    def __init__(self, item: GoType) -> None:
        self.item = item
        self.name = f"[]{item.name}"

    def decode(self, node: Node, state: Decoder) -> Any:
        if node.kind != "array":
            return self._refuse(node, state)
        items = []
        for at, item in enumerate(node.value):
            state.path.append(f"[{at}]")
            value = self.item.decode(item, state)
            state.path.pop()
            items.append(zero(self.item) if value is UNSET else value)
        return items


class TextMap(GoType):
    """A map[string]string."""

    name = "map[string]string"

    def decode(self, node: Node, state: Decoder) -> Any:
        if node.kind != "object":
            return self._refuse(node, state)
        result: dict[str, str] = {}
        item = Text()
        for key, member in node.value:
            if key in result:
                state.note("duplicate", key)
            value = item.decode(member, state)
            result[key] = "" if value is UNSET else value
        return result


class Struct(GoType):
    """A struct. `fields`: JSON name -> type; `inside`: JSON name -> the embedded struct it comes from.

    `always` names the fields that are written even when they are zero.
    """

    def __init__(
        self,
        name: str,
        fields: Mapping[str, GoType],
        *,
        inside: Mapping[str, str] | None = None,
        package: str = "v1",
        always: tuple[str, ...] = (),
    ) -> None:
        self.short = name
        self.name = f"{package}.{name}"
        self.fields = fields
        self.inside = inside or {}
        self.always = always

    def decode(self, node: Node, state: Decoder) -> Any:
        if node.kind != "object":
            return self._refuse(node, state)
        result: dict[str, Any] = {}
        seen: set[str] = set()
        outer, depth = state.struct, len(state.fields)
        for key, member in node.value:
            field = self.fields.get(key)
            if field is None:
                state.note("unknown", key)
                continue
            if key in seen:
                state.note("duplicate", key)
            seen.add(key)
            state.struct = self.short
            state.fields += [self.inside[key], key] if key in self.inside else [key]
            state.path.append(f".{key}" if state.path else key)
            value = field.decode(member, state)
            if value is not UNSET:
                result[key] = value
            elif member.kind == "null" and isinstance(field, Pointer | Slice | TextMap):
                result.pop(key, None)
            state.path.pop()
            state.struct = outer
            del state.fields[depth:]
        return result


def zero(kind: GoType) -> Any:
    """The Go zero value of a list item."""
    if isinstance(kind, Struct):
        return {}
    return "" if isinstance(kind, Text) else 0


def written(kind: GoType, value: Any) -> Any:
    """A decoded value as Go writes it back: empty fields left out, required ones filled in."""
    if isinstance(kind, Pointer):
        return written(kind.target, value)
    if isinstance(kind, Slice):
        return [written(kind.item, item) for item in value]
    if not isinstance(kind, Struct):
        return value
    result: dict[str, Any] = {}
    for name, field in kind.fields.items():
        if name in value and (value[name] or isinstance(field, Pointer) or name in kind.always):
            result[name] = written(field, value[name])
        elif name in kind.always or (isinstance(field, Struct) and name in value):
            result[name] = None if isinstance(field, Slice) else zero(field)
    return result
