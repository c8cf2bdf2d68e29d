"""YAML to JSON the way Kubernetes does it: YAML 1.1 scalars, keys sorted, only the first document (spec 03 §8)."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from labkit.config.goscalars import is_date, resolve
from labkit.config.gotext import escape_html, float_g, go_float, go_quote, shortest_float32

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
    if isinstance(key, int) and key < 1 << 63:
        return str(key)
    if isinstance(key, float):
        if not math.isfinite(key):
            return ".nan" if math.isnan(key) else (".inf" if key > 0 else "-.inf")
        return float_g(shortest_float32(key))
    kind, shown = ("%!s(<nil>)", "<nil>") if key is None else ("uint64", hex(key))
    told = "<nil>" if value is None else _go_syntax(value)
    raise YamlError(f"unsupported map key of type: {kind}, key: {shown}, value: {told}")


def _go_syntax(value: Any) -> str:
    """A value as Go's `%#v` writes it."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(_go_syntax, value)) + "}"
    if isinstance(value, dict):
        members = sorted((_go_syntax(name), _go_syntax(item)) for (_, name), item in value.items())
        return "map[interface {}]interface {}{" + ", ".join(f"{name}:{item}" for name, item in members) + "}"
    if isinstance(value, float) and math.isfinite(value):
        return float_g(value, limit=21)
    return hex(value) if isinstance(value, int) and value >= 1 << 63 else json.dumps(value)


class _Node:
    """A node of the YAML tree, its scalars not yet resolved. `line` counts from 1."""

    __slots__ = ("children", "implicit", "kind", "line", "tag", "target", "text")

    def __init__(self, kind: str, line: int) -> None:
        self.kind = kind
        self.line = line
        self.children: list[_Node] = []
        self.text = ""
        self.tag = ""
        self.implicit = False
        self.target: _Node | None = None

    @property
    def is_merge(self) -> bool:
        """Is this the key `<<`?"""
        merges = self.implicit or self.tag == _TAG + "merge"
        return self.kind == "scalar" and self.text == "<<" and merges


class _Builder:
    """Turns the events of one document into Python data, as go-yaml fills an `interface{}`.

    Mappings are dicts keyed by (type, key): for Go 1, 1.0 and true are three keys, for Python one.
    """

    def __init__(self) -> None:
        self.duplicates: list[str] = []
        self.anchors: dict[str, _Node] = {}
        self.expanding: set[_Node] = set()
        self.decoded = 0
        self.aliased = 0

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

    def _tree(self, event: Any, events: Iterator[Any]) -> _Node:
        import yaml

        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise YamlError(f"yaml: unknown anchor '{event.anchor}' referenced")
            alias = _Node("alias", line)
            alias.text, alias.target = event.anchor, self.anchors[event.anchor]
            return alias
        node = _Node("scalar", line)
        if event.anchor:
            self.anchors[event.anchor] = node
        if isinstance(event, yaml.ScalarEvent):
            node.text = event.value
            node.tag = event.tag if event.tag not in (None, "!") else ""
            node.implicit = not event.style and event.implicit[0] and event.tag != "!"
            return node
        mapping = isinstance(event, yaml.MappingStartEvent)
        node.kind = "mapping" if mapping else "sequence"
        closing = yaml.MappingEndEvent if mapping else yaml.SequenceEndEvent
        while not isinstance(following := next(events), closing):
            node.children.append(self._tree(following, events))
        return node

    def _value(self, node: _Node) -> Any:
        self.decoded += 1
        self.aliased += bool(self.expanding)
        if (
            self.aliased > 100
            and self.decoded > 1000
            and self.aliased / self.decoded > _allowed(self.decoded)
        ):
            raise YamlError("yaml: document contains excessive aliasing")
        if node.kind == "scalar":
            return self._scalar(node)
        if node.kind == "sequence":
            return [self._value(item) for item in node.children]
        if node.kind == "alias":
            return self._through(node, self._value)
        result: dict[tuple[type, Any], Any] = {}
        self._fill(result, node)
        return result

    def _through(self, node: _Node, use: Callable[[_Node], Any]) -> Any:
        if node in self.expanding or node.target is None:
            raise YamlError(f"yaml: anchor '{node.text}' value contains itself")
        self.expanding.add(node)
        value = use(node.target)
        self.expanding.remove(node)
        return value

    def _fill(self, result: dict[tuple[type, Any], Any], node: _Node) -> None:
        for key_node, value_node in zip(node.children[::2], node.children[1::2], strict=True):
            if key_node.is_merge:
                self._merge(result, value_node)
                continue
            name = self._value(key_node)
            if isinstance(name, dict | list):
                raise YamlError(f"yaml: invalid map key: {_go_syntax(name)}")
            value = self._value(value_node)
            key = (type(name), name)
            if key in result:
                shown = go_quote(name) if isinstance(name, str) else _go_syntax(name)
                self.duplicates.append(f"  line {value_node.line}: key {shown} already set in map")
            result[key] = value

    def _merge(self, result: dict[tuple[type, Any], Any], node: _Node) -> None:
        for target in list(reversed(node.children)) if node.kind == "sequence" else [node]:
            found = target.target if target.kind == "alias" else target
            if found is None or found.kind != "mapping":
                raise YamlError("yaml: map merge requires map or sequence of maps as the value")
            if target.kind == "alias":
                self._through(target, lambda mapping: self._fill(result, mapping))
            else:
                self._fill(result, target)

    def _scalar(self, node: _Node) -> Any:
        text, tag = node.text, node.tag
        if not tag and not node.implicit:
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
        value = resolve(text)
        found = _tag_of(value)
        if tag == _TAG + "float" and found == "int":
            return float(value)
        if tag and tag != _TAG + found and not (tag == _TAG + "timestamp" and is_date(text)):
            raise YamlError(f"yaml: cannot decode !!{found} `{text}` as a !!{tag.removeprefix(_TAG)}")
        return value


def _tag_of(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float")):
        if isinstance(value, kind):
            return name
    return "str"


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
