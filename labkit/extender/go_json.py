"""Reading extender answers as Go's encoding/json does: any key case, null = absent, its error texts (spec 04 §2)."""

from __future__ import annotations

import json
from typing import Any


class GoDecodeError(ValueError):
    """The text is what kube-scheduler would report."""


def decode(body: bytes) -> Any:
    """The first JSON value of `body`. GoDecodeError with Go's text when it is malformed."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        raise GoDecodeError("EOF")
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except ValueError as e:
        raise GoDecodeError(_syntax_error(text, e)) from None
    except RecursionError:
        raise GoDecodeError("exceeded max depth") from None
    return value


def member(value: dict[str, Any], name: str) -> Any:
    """The member `name` in any case (the last one wins); None when absent or null."""
    lower = name.lower()
    found = None
    for k, v in value.items():
        if k.lower() == lower and v is not None:
            found = v
    return found


def expect_object(value: Any, go_type: str) -> dict[str, Any]:
    """`value` as an object; null is an empty one. GoDecodeError otherwise."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise GoDecodeError(f"json: cannot unmarshal {_kind(value)} into Go value of type {go_type}")
    return value


def expect_field(value: Any, kinds: type | tuple[type, ...], go_field: str, go_type: str) -> Any:
    """`value` when it is of one of `kinds`; GoDecodeError naming the Go field otherwise."""
    if isinstance(value, bool) and bool not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        raise GoDecodeError(f"json: cannot unmarshal bool into Go struct field {go_field} of type {go_type}")
    if not isinstance(value, kinds):
        raise GoDecodeError(
            f"json: cannot unmarshal {_kind(value)} into Go struct field {go_field} of type {go_type}"
        )
    return value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, float):
        return f"number {value!r}"
    if isinstance(value, int):
        return "number"
    return "array" if isinstance(value, list) else "object"


def _syntax_error(text: str, e: ValueError) -> str:
    at = getattr(e, "pos", 0)
    message = str(e)
    if at >= len(text.rstrip()) or "Unterminated" in message:
        return "unexpected EOF"
    char = json.dumps(text[at], ensure_ascii=False)[1:-1]
    quoted = "'\\''" if char == "'" else "'\"'" if char == '\\"' else f"'{char}'"
    if "property name" in message:
        return f"invalid character {quoted} looking for beginning of object key string"
    if "':' delimiter" in message:
        return f"invalid character {quoted} after object key"
    if "',' delimiter" in message:
        inside = "object key:value pair" if _inside_object(text[:at]) else "array element"
        return f"invalid character {quoted} after {inside}"
    word = next((w for w in ("true", "false", "null") if text[at] == w[0]), None)
    if word is not None:
        for i, expected in enumerate(word):
            if at + i >= len(text):
                return "unexpected EOF"
            if text[at + i] != expected:
                return f"invalid character '{text[at + i]}' in literal {word} (expecting '{expected}')"
    return f"invalid character {quoted} looking for beginning of value"


def _inside_object(prefix: str) -> bool:
    stack: list[str] = []
    in_string = escaped = False
    for c in prefix:
        if in_string:
            escaped, in_string = (c == "\\" and not escaped), (c != '"' or escaped)
        elif c == '"':
            in_string = True
        elif c in "{[":
            stack.append(c)
        elif c in "}]" and stack:
            stack.pop()
    return bool(stack) and stack[-1] == "{"
