"""The error of a configuration that is refused, and how field errors are written (spec 03 §6 and §7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from labkit.config.gotext import go_json, go_quote
from labkit.config.hints import hint_for
from labkit.errors import LabError


class ConfigError(LabError, ValueError):
    """A configuration that kube-scheduler refuses.

    `stage` is "load" (decoding), "validate" or "init" (building the profiles); `message` is kube-scheduler's
    own text, word for word; `hint` is one more line for the common mistakes, or None; `source` is the name
    of the file, or None.
    """

    def __init__(self, stage: str, message: str, *, source: str | None = None) -> None:
        super().__init__(message, hint=hint_for(message, "en"))
        self.stage = stage
        self.source = source

    def hint_in(self, language: str) -> str | None:
        """The hint in "en" or "zh"; None when the mistake is not a common one."""
        return hint_for(self.message, language)

    def __str__(self) -> str:
        text = f"{self.source}: {self.message}" if self.source else self.message
        return f"{text}\n{self.hint}" if self.hint else text


class Json:
    """Marks a bad value that is shown as JSON rather than as a bare or quoted scalar."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _shown(value: Any) -> str:
    if isinstance(value, Json):
        return go_json(value.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, str):
        return go_quote(value)
    return go_json(value)


def invalid(path: str, value: Any, detail: str) -> str:
    """`PATH: Invalid value: VALUE: DETAIL`."""
    return f"{path}: Invalid value: {_shown(value)}: {detail}"


def required(path: str, detail: str = "") -> str:
    """`PATH: Required value[: DETAIL]`."""
    return f"{path}: Required value: {detail}" if detail else f"{path}: Required value"


def duplicate(path: str, value: Any) -> str:
    """`PATH: Duplicate value: VALUE`."""
    return f"{path}: Duplicate value: {_shown(value)}"


def forbidden(path: str, detail: str) -> str:
    """`PATH: Forbidden: DETAIL`."""
    return f"{path}: Forbidden: {detail}"


def unsupported(path: str, value: Any, supported: Iterable[str]) -> str:
    """`PATH: Unsupported value: VALUE: supported values: "A", "B"`."""
    listed = ", ".join(go_quote(choice) for choice in supported)
    return f"{path}: Unsupported value: {_shown(value)}: supported values: {listed}"


def child(path: str, name: str) -> str:
    """The path of a field below `path`; an empty path is the root."""
    return f"{path}.{name}" if path else name


def aggregate(messages: Iterable[str]) -> str:
    """Several errors as one text: `[A, B]`; equal texts once; brackets only around two or more."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
