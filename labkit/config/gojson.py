"""A JSON reader with the errors, duplicate keys and number texts of Go's encoding/json (spec 03 §8)."""

from __future__ import annotations

import json
import re
from typing import Any

from labkit.config.gotext import go_quote

_MAX_DEPTH = 10_000
_SPACE = b" \t\r\n"
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


class JsonError(ValueError):
    """Text that is no JSON; the message is Go's."""


class Node:
    """One JSON value. `kind` is object, array, string, number, bool or null; `raw` its text.

    `value` is: a list of (key, Node) with duplicates kept; a list of Node; str; the number's text; bool; None.
    """

    __slots__ = ("kind", "raw", "value")

    def __init__(self, kind: str, value: Any, raw: bytes) -> None:
        self.kind = kind
        self.value = value
        self.raw = raw

    def plain(self) -> Any:
        """The value as ordinary Python data; of duplicate keys the last one counts."""
        if self.kind == "object":
            return {key: node.plain() for key, node in self.value}
        if self.kind == "array":
            return [node.plain() for node in self.value]
        if self.kind == "number":
            text: str = self.value
            return float(text) if any(char in text for char in ".eE") else int(text)
        return self.value

    def compact(self) -> str:
        """The text without white space between tokens."""
        if self.kind == "object":
            inner = ",".join(
                f"{json.dumps(key, ensure_ascii=False)}:{node.compact()}" for key, node in self.value
            )
            return "{" + inner + "}"
        if self.kind == "array":
            return "[" + ",".join(node.compact() for node in self.value) + "]"
        return self.raw.decode("utf-8", "replace")


def parse(data: bytes) -> Node:
    """The one JSON value in `data`. Raises JsonError with Go's text."""
    reader = _Reader(data)
    node = reader.value("looking for beginning of value")
    reader.skip_space()
    if reader.at < len(data):
        raise reader.unexpected("after top-level value")
    return node


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.depth = 0

    def skip_space(self) -> None:
        data, at, end = self.data, self.at, len(self.data)
        while at < end and data[at] in _SPACE:
            at += 1
        self.at = at

    def unexpected(self, context: str, *, space_fits: bool = True) -> JsonError:
        """The error of the present character. At the end Go tries a blank, which some places refuse."""
        if self.at >= len(self.data) and space_fits:
            return JsonError("unexpected end of JSON input")
        char = chr(self.data[self.at]) if self.at < len(self.data) else " "
        shown = {"'": r"'\''", '"': "'\"'"}.get(char) or "'" + go_quote(char)[1:-1] + "'"
        return JsonError(f"invalid character {shown} {context}")

    def peek(self) -> int:
        return self.data[self.at] if self.at < len(self.data) else -1

    def value(self, context: str) -> Node:
        self.skip_space()
        char = self.peek()
        start = self.at
        if char == 0x7B:
            return self._nested(start, self._object, "object")
        if char == 0x5B:
            return self._nested(start, self._array, "array")
        if char == 0x22:
            text = self._string()
            return Node("string", text, self.data[start : self.at])
        if char == 0x2D or 0x30 <= char <= 0x39:
            return self._number(start)
        for word, kind, value in (
            (b"true", "bool", True),
            (b"false", "bool", False),
            (b"null", "null", None),
        ):
            if char == word[0]:
                self._literal(word)
                return Node(kind, value, word)
        raise self.unexpected(context)

    def _nested(self, start: int, read: Any, kind: str) -> Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise JsonError("exceeded max depth")
        self.at += 1
        value = read()
        self.depth -= 1
        return Node(kind, value, self.data[start : self.at])

    def _literal(self, word: bytes) -> None:
        for expected in word:
            if self.peek() != expected:
                raise self.unexpected(
                    f"in literal {word.decode()} (expecting {chr(expected)!r})", space_fits=False
                )
            self.at += 1

    def _number(self, start: int) -> Node:
        found = _NUMBER.match(self.data, self.at)
        if found is None:
            self.at += 1
            raise self.unexpected("in numeric literal", space_fits=False)
        self.at = found.end()
        digit_before = found.group()
        if self.peek() == 0x2E and b"." not in digit_before and b"e" not in digit_before.lower():
            self.at += 1
            raise self.unexpected("after decimal point in numeric literal", space_fits=False)
        if self.peek() in (0x65, 0x45) and b"e" not in digit_before.lower():
            self.at += 1
            if self.peek() in (0x2B, 0x2D):
                self.at += 1
            raise self.unexpected("in exponent of numeric literal", space_fits=False)
        return Node("number", digit_before.decode(), digit_before)

    def _string(self) -> str:
        data = self.data
        start = self.at
        self.at += 1
        while True:
            char = self.peek()
            if char == 0x22:
                self.at += 1
                break
            if char == 0x5C:
                self.at += 1
                self._escape()
            elif char < 0x20:
                raise self.unexpected("in string literal")
            else:
                self.at += 1
        text: str = json.loads(data[start : self.at].decode("utf-8", "replace"))
        return text.encode("utf-8", "replace").decode() if _has_surrogate(text) else text

    def _escape(self) -> None:
        char = self.peek()
        if char == 0x75:
            self.at += 1
            for _ in range(4):
                if chr(max(self.peek(), 0)) not in "0123456789abcdefABCDEF":
                    raise self.unexpected("in \\u hexadecimal character escape", space_fits=False)
                self.at += 1
        elif char >= 0 and chr(char) in '"\\/bfnrt':
            self.at += 1
        else:
            raise self.unexpected("in string escape code", space_fits=False)

    def _object(self) -> list[tuple[str, Node]]:
        members: list[tuple[str, Node]] = []
        self.skip_space()
        if self.peek() == 0x7D:
            self.at += 1
            return members
        while True:
            self.skip_space()
            if self.peek() != 0x22:
                raise self.unexpected("looking for beginning of object key string")
            key = self._string()
            self.skip_space()
            if self.peek() != 0x3A:
                raise self.unexpected("after object key")
            self.at += 1
            members.append((key, self.value("looking for beginning of value")))
            self.skip_space()
            char = self.peek()
            if char not in (0x2C, 0x7D):
                raise self.unexpected("after object key:value pair")
            self.at += 1
            if char == 0x7D:
                return members

    def _array(self) -> list[Node]:
        items: list[Node] = []
        self.skip_space()
        if self.peek() == 0x5D:
            self.at += 1
            return items
        while True:
            items.append(self.value("looking for beginning of value"))
            self.skip_space()
            char = self.peek()
            if char not in (0x2C, 0x5D):
                raise self.unexpected("after array element")
            self.at += 1
            if char == 0x5D:
                return items


def _has_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(char) <= 0xDFFF for char in text)
