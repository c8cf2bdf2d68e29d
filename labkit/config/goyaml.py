"""YAML to JSON the way Kubernetes does it: YAML 1.1 scalars, keys sorted, only the first document (spec 03 §8)."""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from labkit.config.gotext import escape_html, go_float, go_quote

_TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE = frozenset(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_NULL = frozenset(["", "~", "null", "Null", "NULL"])
_NAN = frozenset([".nan", ".NaN", ".NAN"])
_INF = frozenset([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"])
_NEG_INF = frozenset(["-.inf", "-.Inf", "-.INF"])
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_DATE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)"
    r"| (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d+)?)?"
)
_TAG = "tag:yaml.org,2002:"
_RESOLVABLE = frozenset(_TAG + name for name in ("str", "bool", "int", "float", "null", "timestamp"))
#: The two YAML parsers word these differently.
_SAME_PROBLEM = {
    "mapping values are not allowed here": "mapping values are not allowed in this context",
    "sequence entries are not allowed here": "block sequence entries are not allowed in this context",
    "mapping keys are not allowed here": "mapping keys are not allowed in this context",
}


class YamlError(ValueError):
    """Text that is no YAML; the message is that of Kubernetes' parser."""


def yaml_to_json(data: bytes) -> tuple[bytes, list[str]]:
    """JSON of the first document, and the duplicate keys as ready lines. Raises YamlError."""
    builder = _Builder()
    value = builder.document(data)
    return escape_html(_encode(value)).encode(), builder.duplicates


def _encode(value: Any) -> str:
    if isinstance(value, dict):
        members = {_key_text(key, item): item for (_, key), item in value.items()}
        return "{" + ",".join(f"{_text(key)}:{_encode(members[key])}" for key in sorted(members)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_encode, value)) + "]"
    if isinstance(value, float):
        if not math.isfinite(value):
            name = "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
            raise YamlError(f"json: unsupported value: {name}")
        return go_float(value)
    if isinstance(value, str):
        return _text(value)
    return json.dumps(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _key_text(key: Any, value: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str):
        return key
    if isinstance(key, int):
        return str(key)
    if isinstance(key, float):
        if not math.isfinite(key):
            return ".nan" if math.isnan(key) else (".inf" if key > 0 else "-.inf")
        return go_float(key)
    raise YamlError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {_go_syntax(value)}")


def _go_syntax(value: Any) -> str:
    if value is None:
        return "interface {}(nil)"
    return go_quote(value) if isinstance(value, str) else _encode(value)


class _Builder:
    """Turns the events of one document into Python data, as go-yaml fills an `interface{}`.

    Mappings are dicts keyed by (type, key): for Go 1, 1.0 and true are three keys, for Python one.
    """

    def __init__(self) -> None:
        self.duplicates: list[str] = []
        self.anchors: dict[str, tuple[Any, ...] | None] = {}
        self.decoded = 0
        self.aliased = 0
        self.alias_depth = 0

    def document(self, data: bytes) -> Any:
        import yaml

        loader: Any = getattr(yaml, "CLoader", yaml.Loader)
        try:
            events = iter(yaml.parse(data, Loader=loader))
            next(events)
            event = next(events)
            if not isinstance(event, yaml.DocumentStartEvent):
                return None
            tree = self._tree(next(events), events)
            next(events)
        except yaml.YAMLError as error:
            raise YamlError(_problem(error)) from None
        except UnicodeDecodeError:
            raise YamlError("yaml: invalid UTF-8") from None
        return self._value(tree)

    def _tree(self, event: Any, events: Iterator[Any]) -> tuple[Any, ...]:
        """(kind, line, ...): a node tree without resolved values."""
        import yaml

        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise YamlError(f"yaml: unknown anchor '{event.anchor}' referenced")
            return ("alias", line, event.anchor)
        if event.anchor:
            self.anchors[event.anchor] = None
        node: tuple[Any, ...]
        if isinstance(event, yaml.ScalarEvent):
            implicit = event.implicit[0] if not event.style else False
            node = ("scalar", line, event.value, event.tag if event.tag not in (None, "!") else "", implicit)
        else:
            closing = (
                yaml.MappingEndEvent if isinstance(event, yaml.MappingStartEvent) else yaml.SequenceEndEvent
            )
            children: list[tuple[Any, ...]] = []
            while not isinstance(following := next(events), closing):
                children.append(self._tree(following, events))
            kind = "mapping" if closing is yaml.MappingEndEvent else "sequence"
            node = (kind, line, children)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _value(self, node: tuple[Any, ...]) -> Any:
        self.decoded += 1
        self.aliased += self.alias_depth > 0
        if (
            self.aliased > 100
            and self.decoded > 1000
            and self.aliased / self.decoded > _allowed(self.decoded)
        ):
            raise YamlError("yaml: document contains excessive aliasing")
        kind = node[0]
        if kind == "scalar":
            return self._scalar(node)
        if kind == "sequence":
            return [self._value(item) for item in node[2]]
        if kind == "alias":
            return self._through(node, self._value)
        result: dict[tuple[type, Any], Any] = {}
        self._fill(result, node)
        return result

    def _through(self, node: tuple[Any, ...], use: Callable[[tuple[Any, ...]], Any]) -> Any:
        target = self.anchors[node[2]]
        if target is None or self.alias_depth > 500:
            raise YamlError(f"yaml: anchor '{node[2]}' value contains itself")
        self.alias_depth += 1
        value = use(target)
        self.alias_depth -= 1
        return value

    def _fill(self, result: dict[tuple[type, Any], Any], node: tuple[Any, ...]) -> None:
        children = node[2]
        for key_node, value_node in zip(children[::2], children[1::2], strict=True):
            if _is_merge(key_node):
                self._merge(result, value_node)
                continue
            name = self._value(key_node)
            if isinstance(name, dict | list):
                raise YamlError(f"yaml: invalid map key: {_go_map(name)}")
            value = self._value(value_node)
            key = (type(name), name)
            if key in result:
                shown = go_quote(name) if isinstance(name, str) else _key_text(name, value)
                self.duplicates.append(f"  line {value_node[1]}: key {shown} already set in map")
            result[key] = value

    def _merge(self, result: dict[tuple[type, Any], Any], node: tuple[Any, ...]) -> None:
        targets = list(reversed(node[2])) if node[0] == "sequence" else [node]
        for target in targets:
            seen = self.anchors[target[2]] if target[0] == "alias" else target
            if seen is None or seen[0] != "mapping":
                raise YamlError("yaml: map merge requires map or sequence of maps as the value")
            if target[0] == "alias":
                self._through(target, lambda found: self._fill(result, found))
            else:
                self._fill(result, target)

    def _scalar(self, node: tuple[Any, ...]) -> Any:
        _, _, text, tag, implicit = node
        if not tag and not implicit:
            return text
        if tag == _TAG + "binary":
            try:
                return base64.b64decode(text, validate=True).decode("utf-8", "replace")
            except (binascii.Error, ValueError):
                raise YamlError("yaml: !!binary value contains invalid base64 data") from None
        if tag and tag not in _RESOLVABLE:
            return text
        if tag == _TAG + "str":
            return text
        value = _resolve(text)
        found = _tag_of(value)
        if tag == _TAG + "float" and found == "int":
            return float(value)
        if tag and tag != _TAG + found and not (tag == _TAG + "timestamp" and _is_date(text)):
            raise YamlError(f"yaml: cannot decode !!{found} `{text}` as a !!{tag.removeprefix(_TAG)}")
        return value


def _is_merge(node: tuple[Any, ...]) -> bool:
    return bool(node[0] == "scalar" and node[2] == "<<" and (node[4] or node[3] == _TAG + "merge"))


def _go_map(key: Any) -> str:
    if isinstance(key, list):
        return "[]interface {}{" + ", ".join(map(_go_syntax, key)) + "}"
    inner = ", ".join(f"{_go_syntax(name)}:{_go_syntax(value)}" for (_, name), value in key.items())
    return "map[interface {}]interface {}{" + inner + "}"


def _tag_of(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float")):
        if isinstance(value, kind):
            return name
    return "str"


def _resolve(text: str) -> Any:
    """A plain scalar's value by the rules of go-yaml v2."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text in _NAN:
        return math.nan
    if text in _INF or text in _NEG_INF:
        return -math.inf if text in _NEG_INF else math.inf
    if text[0] == ".":
        return _float(text)
    if text[0] not in "+-0123456789" or _is_date(text):
        return text
    plain = text.replace("_", "")
    if _INT.fullmatch(plain):
        value = _int(plain)
        if -(1 << 63) <= value < 1 << 63 or (plain[0] not in "+-" and value < 1 << 64):
            return value
    if _FLOAT.fullmatch(plain):
        return _float(plain, otherwise=text)
    return text


def _int(plain: str) -> int:
    sign = -1 if plain.startswith("-") else 1
    digits = plain.lstrip("+-").lower()
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567":
        digits = "0o" + digits[1:]
    return sign * int(digits, 0)


def _float(text: str, otherwise: str | None = None) -> Any:
    try:
        value = float(text)
    except ValueError:
        return otherwise or text
    return value if math.isfinite(value) else otherwise or text


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day, *clock = (int(part) if part else 0 for part in found.groups())
    hour, minute, second = (early + late for early, late in zip(clock[:3], clock[3:], strict=True))
    try:
        datetime.datetime(year or 1, month, day, hour, minute, second)
    except ValueError:
        return False
    return True


def _allowed(decoded: int) -> float:
    low, high = 400_000, 4_000_000
    if decoded <= low:
        return 0.99
    if decoded >= high:
        return 0.10
    return 0.99 - 0.89 * (decoded - low) / (high - low)


def _problem(error: Any) -> str:
    """Kubernetes' text for a scanner, parser or reader error."""
    import yaml

    problem = (
        getattr(error, "problem", None)
        or getattr(error, "reason", None)
        or "unknown problem parsing YAML content"
    )
    problem = _SAME_PROBLEM.get(problem, problem)
    line = 0
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    if mark is not None and mark.line:
        line = mark.line + (1 if isinstance(error, yaml.scanner.ScannerError) else 0)
    elif context is not None and context.line:
        line = context.line
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


def is_plain_text(text: str) -> bool:
    """Would this text, written without quotes, be read as text again?"""
    return bool(text) and isinstance(_resolve(text), str) and not _is_date(text)
