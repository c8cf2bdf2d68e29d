"""Field errors, collected and worded as the API server words them (spec 20 §6)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from labkit.cluster.store_errors import Cause
from labkit.cluster.store_metadata import is_dns_subdomain

NOT_A_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NOT_A_DNS_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
NOT_A_LABEL_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
NOT_A_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def why_no_dns_label(name: str) -> str:
    """What is wrong with a name that is no DNS label: its dots, if without them it would do."""
    return "must not contain dots" if is_dns_subdomain(name) else NOT_A_DNS_LABEL


def go_value(value: Any) -> str:
    """A value as the API server prints it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Problems:
    """The problems of one object, in order."""

    def __init__(self) -> None:
        self.found: list[Cause] = []

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, reason: str, field: str, message: str) -> None:
        """Any problem."""
        self.found.append(Cause(reason, message, field))

    def required(self, field: str, why: str = "") -> None:
        """A field that must be there."""
        self.add("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")

    def invalid(self, field: str, value: Any, why: str) -> None:
        """A value that does not do."""
        self.add("FieldValueInvalid", field, f"Invalid value: {go_value(value)}: {why}")

    def forbidden(self, field: str, why: str) -> None:
        """Something that must not be there, or not change."""
        self.add("FieldValueForbidden", field, f"Forbidden: {why}")

    def duplicate(self, field: str, value: Any, why: str = "") -> None:
        """A value that occurs twice."""
        self.add(
            "FieldValueDuplicate", field, f"Duplicate value: {go_value(value)}" + (f": {why}" if why else "")
        )

    def unsupported(self, field: str, value: Any, supported: Sequence[str]) -> None:
        """A value outside of an enumeration."""
        listed = ", ".join(f'"{s}"' for s in supported)
        self.add(
            "FieldValueNotSupported",
            field,
            f"Unsupported value: {go_value(value)}: supported values: {listed}",
        )

    def one_of(self, field: str, value: Any, supported: Sequence[str], *, empty: bool = False) -> None:
        """Unsupported unless it is in the enumeration (or empty, where that is allowed)."""
        if value in supported or (empty and not value):
            return
        self.unsupported(field, "" if value is None else value, supported)
