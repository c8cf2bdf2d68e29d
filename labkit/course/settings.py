"""`course.json`: what an instructor decides once for a course. Faults are told by field."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Any

import msgspec

from labkit.course.late import LatePolicy
from labkit.errors import InputError
from labkit.i18n import LANGUAGES
from labkit.quiz.graded import COURSE_FILE, GRADED, PRACTICE, Terms

_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$?\.?(?P<field>.*)`)?$", re.DOTALL)


class Settings(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """`quiz` is "practice" or "graded"; `secret` makes the ids of shipped answers; `late` is by module or `*`."""

    course_id: str
    language: str
    quiz: str = PRACTICE
    variants: bool = False
    secret: str = ""
    late: dict[str, LatePolicy] = {}

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ValueError("language is en or zh")
        if self.quiz not in (PRACTICE, GRADED):
            raise ValueError(f"quiz is {PRACTICE} or {GRADED}")
        if self.variants and self.quiz != GRADED:
            raise ValueError("variants need quiz: graded (in practice everybody may ask for other numbers)")

    @property
    def terms(self) -> Terms:
        """What concerns quizzes."""
        return Terms(self.course_id, self.quiz, self.variants, self.secret)

    def late_policy(self, module: str) -> LatePolicy:
        """The module's policy over the course's."""
        return self.late.get(module, LatePolicy()).over(self.late.get("*", LatePolicy()))


def read_settings(root: Path) -> Settings:
    """The settings of the course in `root`. Raises InputError naming the field."""
    try:
        return msgspec.json.decode((root / COURSE_FILE).read_bytes(), type=Settings)
    except msgspec.DecodeError as e:
        raise _problem(e, root) from e
    except OSError as e:
        raise InputError(
            "is not a course folder", file=str(root), hint=f"`labkit course init {root}` makes one"
        ) from e


def write_settings(root: Path, settings: Settings) -> None:
    """Write them, all or nothing. A graded course gets its secret here, once."""
    if settings.quiz == GRADED and not settings.secret:
        settings.secret = secrets.token_hex(16)
    path = root / COURSE_FILE
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(settings), indent=1) + b"\n")
    os.replace(temporary, path)


def changed(root: Path, settings: Settings, **values: Any) -> Settings:
    """A copy with other values, checked. Raises InputError."""
    try:
        return msgspec.convert({**msgspec.to_builtins(settings), **values}, Settings)
    except msgspec.ValidationError as e:
        raise _problem(e, root) from e


def _problem(error: msgspec.DecodeError, root: Path) -> InputError:
    match = _AT.match(str(error))
    what, field = (match["what"], match["field"]) if match else (str(error), None)
    return InputError(what, file=str(root / COURSE_FILE), field=field or None)
