"""Errors that a person sees.

LabError                what went wrong, and a hint that says what to do
└── InputError          something in a file or object: file, document, object, field, value
"""

from __future__ import annotations

from typing import Any


class LabError(Exception):
    """A problem that is the user's to solve; shown without a traceback."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class InputError(LabError, ValueError):
    """Bad input: where it stands (file, document number from 1, object, field), its value, and what to do."""

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
        self.file = file
        self.document = document
        self.object = object
        self.field = field
        self.value = value
        self.problem = message
        super().__init__(self._text(message), hint=hint)

    def _text(self, message: str) -> str:
        place = [self.file] if self.file else []
        if self.document is not None:
            place.append(f"document {self.document}")
        if self.object:
            place.append(self.object)
        if self.field:
            place.append(self.field)
        where = ", ".join(place)
        return f"{where}: {message}" if where else message

    def located(
        self, *, file: str | None = None, document: int | None = None, object: str | None = None
    ) -> InputError:
        """The same error with what is missing of its place filled in."""
        return InputError(
            self.problem,
            file=self.file or file,
            document=self.document if self.document is not None else document,
            object=self.object or object,
            field=self.field,
            value=self.value,
            hint=self.hint,
        )
