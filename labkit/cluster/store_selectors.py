"""Label and field selectors as the API takes them in queries (spec 20 §7.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from labkit.cluster.store_errors import ApiError, bad_request
from labkit.cluster.store_problems import NOT_A_LABEL_KEY, NOT_A_LABEL_VALUE
from labkit.cluster.store_types import EVENTS_V1, ResourceType
from labkit.objects.names import is_label_key, is_label_value

Match = Callable[[dict[str, Any]], bool]
_LabelTest = Callable[[Mapping[str, str]], bool]

_TOKEN = re.compile(r"\s*(==|!=|=|!|,|\(|\)|<|>|[^\s=!,()<>]+)")
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: dict[str, frozenset[str]] = {
    "pods": frozenset(
        {
            "spec.nodeName",
            "status.phase",
            "spec.schedulerName",
            "spec.restartPolicy",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        }
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "events": frozenset(
        {
            *(f"involvedObject.{f}" for f in _INVOLVED),
            *(f"regarding.{f}" for f in _INVOLVED),
            "reason",
            "reportingComponent",
            "reportingController",
            "source",
            "type",
        }
    ),
    "namespaces": frozenset({"status.phase"}),
    "resourceslices": frozenset({"spec.nodeName", "spec.driver"}),
    "replicasets": frozenset({"status.replicas"}),
    "replicationcontrollers": frozenset({"status.replicas"}),
    "jobs": frozenset({"status.successful"}),
    "secrets": frozenset({"type"}),
}
_BOOLEANS = ("spec.unschedulable", "spec.hostNetwork")


def compile_selectors(resource: ResourceType, labels: str | None, fields: str | None) -> Match | None:
    """One test of an object for both selectors; None when everything matches. ApiError 400 when malformed."""
    label_test = parse_labels(labels) if labels else None
    field_test = _field_test(resource, fields) if fields else None
    if label_test is None:
        return field_test

    def by_labels(obj: dict[str, Any]) -> bool:
        return label_test(obj["metadata"].get("labels") or {})

    if field_test is None:
        return by_labels
    return lambda obj: field_test(obj) and by_labels(obj)


def parse_labels(text: str) -> _LabelTest | None:
    """A test of labels for `a=b,c in (d,e),!f`; None when everything matches. ApiError 400 when malformed."""
    tokens = _tokens(text)
    tests: list[_LabelTest] = []
    while tokens:
        tests.append(_requirement(tokens))
        found = tokens.pop(0) if tokens else ","
        if found != ",":
            raise bad_request(f"found '{found}', expected: ',' or 'end of string'")
        if not tokens and text.rstrip().endswith(","):
            raise bad_request("found '', expected: identifier after ','")
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda labels: all(test(labels) for test in tests)


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    text = text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise bad_request(f"unable to parse requirement: unexpected text {text[position:]!r}")
        tokens.append(match[1])
        position = match.end()
    return tokens


def _take(tokens: list[str]) -> str:
    return tokens.pop(0) if tokens else ""


def _requirement(tokens: list[str]) -> _LabelTest:
    first = _take(tokens)
    if first == "!":
        key = _key(_take(tokens))
        return lambda labels: key not in labels
    key = _key(first)
    operator = tokens[0] if tokens else ","
    if operator == ",":
        return lambda labels: key in labels
    tokens.pop(0)
    if operator in ("=", "==", "!="):
        value = tokens.pop(0) if tokens and tokens[0] != "," else ""
        _check_value(key, value)
        if tokens and tokens[0] != ",":
            raise bad_request(f"found '{tokens[0]}', expected: ',' or 'end of string'")
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if operator in ("in", "notin"):
        values = _values(key, tokens)
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if operator in ("<", ">"):
        return _comparison(key, operator, _take(tokens))
    expected = "in, notin, =, ==, !=, gt, lt"
    raise bad_request(f"unable to parse requirement: found '{operator}', expected: {expected}")


def _comparison(key: str, operator: str, text: str) -> _LabelTest:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise bad_request(
            f"values[0][{key}]: Invalid value: \"{text}\": for 'Gt', 'Lt' operators, the value must be an integer"
        )
    bound = int(text)

    def test(labels: Mapping[str, str]) -> bool:
        value = labels.get(key, "")
        if not re.fullmatch(r"[+-]?\d+", value):
            return False
        return int(value) > bound if operator == ">" else int(value) < bound

    return test


def _values(key: str, tokens: list[str]) -> frozenset[str]:
    opening = _take(tokens)
    if opening != "(":
        raise bad_request(f"unable to parse requirement: found '{opening}' expected: '('")
    values: list[str] = []
    expects_value = True
    while True:
        token = _take(tokens)
        if token == ")":
            if expects_value:
                values.append("")
            break
        if token == ",":
            if expects_value:
                values.append("")
            expects_value = True
        elif not token or not expects_value:
            raise bad_request(f"unable to parse requirement: found '{token}', expected: ',' or ')'")
        else:
            _check_value(key, token)
            values.append(token)
            expects_value = False
    return frozenset(values)


def _key(key: str) -> str:
    if not key or key in ("=", "==", "!=", ",", "(", ")", "!"):
        raise bad_request(f"unable to parse requirement: found '{key}', expected: identifier")
    if not is_label_key(key):
        raise bad_request(f'unable to parse requirement: <nil>: Invalid value: "{key}": {NOT_A_LABEL_KEY}')
    return key


def _check_value(key: str, value: str) -> None:
    if not is_label_value(value):
        raise bad_request(
            f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": {NOT_A_LABEL_VALUE}'
        )


def field_requirements(text: str) -> list[tuple[str, str, str]]:
    """`a=b,c!=d` as (field, `=` or `!=`, value). ApiError 400 when malformed."""
    found = []
    for part in _split(text):
        match = re.fullmatch(r"\s*([^=!\s]+)\s*(!=|==|=)\s*(.*)", part, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        value = re.sub(r"\\([\\,=])", r"\1", match[3])
        found.append((match[1], "!=" if match[2] == "!=" else "=", value))
    return found


def _split(text: str) -> list[str]:
    return [part for part in re.split(r"(?<!\\),", text) if part.strip()]


def _field_test(resource: ResourceType, text: str) -> Match | None:
    tests = []
    known = _FIELDS.get(resource.plural, frozenset())
    for name, operator, value in field_requirements(text):
        if name not in ("metadata.name", "metadata.namespace") and name not in known:
            raise ApiError(400, "BadRequest", f"field label not supported: {name}")
        tests.append((_reader(resource, name), operator == "=", value))
    if not tests:
        return None
    if len(tests) == 1:
        read, equal, wanted = tests[0]
        return lambda obj: (read(obj) == wanted) is equal
    return lambda obj: all((read(obj) == wanted) is equal for read, equal, wanted in tests)


def _reader(resource: ResourceType, name: str) -> Callable[[dict[str, Any]], str]:
    if resource.plural == "events":
        name = _core_event_field(name)
        if name == "source":
            return lambda obj: str(
                (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""
            )
    if name == "status.podIPs":
        return lambda obj: ",".join(ip["ip"] for ip in (obj.get("status") or {}).get("podIPs") or ())
    boolean = name in _BOOLEANS
    parts = name.split(".")
    if len(parts) == 2 and not boolean:
        first, second = parts
        return lambda obj: str((obj.get(first) or {}).get(second) or "")

    def read(obj: dict[str, Any]) -> str:
        value: Any = obj
        for part in parts:
            value = value.get(part) if isinstance(value, dict) else None
        if boolean:
            return "true" if value else "false"
        return "" if value is None else str(value)

    return read


def _core_event_field(name: str) -> str:
    if name.startswith("regarding."):
        return "involvedObject." + name.removeprefix("regarding.")
    return "reportingComponent" if name == "reportingController" else name


def selectable_name(resource: ResourceType, fields: str | None) -> str | None:
    """The name in `metadata.name=X`, when the field selector asks for one object only."""
    if not fields or resource is EVENTS_V1:
        return None
    return next((v for f, op, v in field_requirements(fields) if f == "metadata.name" and op == "="), None)
