"""Errors a person sees. Every one says where, what, and what to do about it; none needs a traceback."""

from __future__ import annotations

from typing import Any

_LONGEST_VALUE = 80


class LabError(Exception):
    """Base of all errors that are shown to people. `message` says what is wrong, `hint` what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class InputError(LabError, ValueError):
    """Input that cannot be used. Everything but the message is optional.

    `file` is a path or another name of the source; `document` counts from 1 inside a multi-document file;
    `object` is like "Pod default/web"; `field` is a path like "spec.containers[0].resources"; `value` is
    shown as given, shortened. `str()` gives one line, and a second one when there is a hint.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        document: int | None = None,
        object: str | None = None,
        field: str | None = None,
        value: Any = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.document = document
        self.object = object
        self.field = field
        self.value = value

    def __str__(self) -> str:
        where = ", ".join(
            part
            for part in (
                self.file,
                f"document {self.document}" if self.document is not None else None,
                self.object,
            )
            if part
        )
        parts = [part for part in (where, self.field, self.message) if part]
        line = ": ".join(parts)
        if self.value is not None:
            line += f" (got {_short(self.value)})"
        return f"{line}\n  {self.hint}" if self.hint else line


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 4] + " ..."
