"""Label keys, label values and field errors, with the API server's texts for what is wrong (spec 10 §10.0.2)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_PART}(\.{_PART})*"
_NAME_RE = re.compile(_NAME)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)
_LONGEST_NAME = 63
_LONGEST_SUBDOMAIN = 253

_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    f"start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    f"validation is '({_NAME})?')"
)


@lru_cache(maxsize=8192)
def is_label_key(key: str) -> bool:
    """A valid (optionally prefixed) label key."""
    return not label_key_errors(key)


@lru_cache(maxsize=8192)
def is_label_value(value: str) -> bool:
    """A valid label value; empty is valid."""
    return not label_value_errors(value)


def label_key_errors(key: str) -> list[str]:
    """What is wrong with a label key (also called qualified name); empty when nothing is."""
    prefix, slash, name = key.partition("/")
    if not slash:
        prefix, name = "", key
    elif "/" in name:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_TEXT}{optional}"]
    found = _prefix_errors(prefix) if slash else []
    if not name:
        found.append("name part must be non-empty")
    elif len(name.encode()) > _LONGEST_NAME:
        found.append(f"name part must be no more than {_LONGEST_NAME} bytes")
    if not _NAME_RE.fullmatch(name):
        found.append(f"name part {_NAME_TEXT}")
    return found


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    found = []
    if len(prefix.encode()) > _LONGEST_SUBDOMAIN:
        found.append(f"prefix part must be no more than {_LONGEST_SUBDOMAIN} bytes")
    if not _SUBDOMAIN_RE.fullmatch(prefix):
        found.append(f"prefix part {_SUBDOMAIN_TEXT}")
    return found


def label_value_errors(value: str) -> list[str]:
    """What is wrong with a label value; empty when nothing is."""
    found = []
    if len(value.encode()) > _LONGEST_NAME:
        found.append(f"must be no more than {_LONGEST_NAME} bytes")
    if value and not _NAME_RE.fullmatch(value):
        found.append(_VALUE_TEXT)
    return found


def invalid(path: str, value: str | Sequence[str], detail: str) -> str:
    """`PATH: Invalid value: VALUE: DETAIL`; an empty list is shown as null."""
    return f"{path}: Invalid value: {_shown(value)}: {detail}"


def unsupported(path: str, value: str, supported: Sequence[str]) -> str:
    """`PATH: Unsupported value: VALUE: supported values: "A", "B"`."""
    listed = ", ".join(f'"{choice}"' for choice in supported)
    return f"{path}: Unsupported value: {_shown(value)}: supported values: {listed}"


def aggregate(messages: Sequence[str]) -> str:
    """One message as it is; several, each once, as `[a, b]`."""
    once = list(dict.fromkeys(messages))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def _shown(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(list(value), ensure_ascii=False, separators=(",", ":")) if value else "null"
