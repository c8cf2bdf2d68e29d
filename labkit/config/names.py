"""Label keys, label values and extended resource names, with Kubernetes' texts for what is wrong (spec 03 §6)."""

from __future__ import annotations

import re

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_SUBDOMAIN_PART}(\.{_SUBDOMAIN_PART})*"
_NAME_RE = re.compile(_NAME)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)
_VALUE_RE = re.compile(f"({_NAME})?")
_LONGEST_NAME = 63
_LONGEST_SUBDOMAIN = 253

_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    f"validation is '({_NAME})?')"
)


def label_key_errors(key: str) -> list[str]:
    """What is wrong with a label key (also called qualified name); empty when nothing is."""
    parts = key.split("/")
    if len(parts) > 2:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_TEXT}{optional}"]
    errors = []
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            errors.append("prefix part must be non-empty")
        else:
            if len(prefix.encode()) > _LONGEST_SUBDOMAIN:
                errors.append(f"prefix part must be no more than {_LONGEST_SUBDOMAIN} bytes")
            if not _SUBDOMAIN_RE.fullmatch(prefix):
                errors.append(f"prefix part {_SUBDOMAIN_TEXT}")
    name = parts[-1]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > _LONGEST_NAME:
        errors.append(f"name part must be no more than {_LONGEST_NAME} bytes")
    if not _NAME_RE.fullmatch(name):
        errors.append(f"name part {_NAME_TEXT}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """What is wrong with a label value; empty when nothing is."""
    errors = []
    if len(value.encode()) > _LONGEST_NAME:
        errors.append(f"must be no more than {_LONGEST_NAME} bytes")
    if not _VALUE_RE.fullmatch(value):
        errors.append(_VALUE_TEXT)
    return errors


def is_extended_resource(name: str) -> bool:
    """Is this a resource that Kubernetes itself does not define?"""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not label_key_errors(f"requests.{name}")
