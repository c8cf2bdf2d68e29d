"""What a late submission costs. A policy is part of `course.json`, for all modules (`*`) or for one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from labkit.errors import InputError


class LatePolicy(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`due` and `extensions` (student -> due) are ISO times, UTC when they name no zone.

    Every begun day after `due` and `grace_minutes` takes `per_day` of the score, at most `most` (both are shares).
    """

    due: str | None = None
    per_day: float | None = None
    grace_minutes: float | None = None
    most: float | None = None
    extensions: dict[str, str] = {}

    def __post_init__(self) -> None:
        for name in ("due", *self.extensions):
            text = self.due if name == "due" else self.extensions[name]
            try:
                datetime.fromisoformat(text or "2000-01-01")
            except ValueError:
                raise ValueError(f"{text!r} is no ISO time such as 2026-03-01T23:59+01:00") from None
        for name in ("per_day", "most"):
            if not 0 <= (getattr(self, name) or 0) <= 1:
                raise ValueError(f"{name} is a share, 0 to 1")
        if (self.grace_minutes or 0) < 0:
            raise ValueError("grace_minutes must not be negative")

    def over(self, general: LatePolicy) -> LatePolicy:
        """This policy, and where it says nothing the general one."""
        merged = {**msgspec.to_builtins(general), **msgspec.to_builtins(self)}
        merged["extensions"] = {**general.extensions, **self.extensions}
        return msgspec.convert(merged, LatePolicy)

    def due_for(self, student: str) -> datetime | None:
        """When this student's submission is due."""
        text = self.extensions.get(student) or self.due
        return _aware(datetime.fromisoformat(text)) if text else None

    def share(self, student: str, submitted: datetime | None) -> float:
        """The share of the score that a submission loses. One whose time is not known loses nothing."""
        due = self.due_for(student)
        if submitted is None or due is None:
            return 0.0
        late = _aware(submitted) - due - timedelta(minutes=self.grace_minutes or 0)
        if late <= timedelta(0):
            return 0.0
        days = -(-late // timedelta(days=1))
        return min(days * (self.per_day or 0), 1.0 if self.most is None else self.most)

    def penalty(self, score: float, student: str, submitted: datetime | None) -> float:
        """Points to take off."""
        return round(score * self.share(student, submitted), 4)


def submitted_at(folder: Path) -> datetime | None:
    """When a folder was handed in: nbgrader's `timestamp.txt`. None when there is none that can be read."""
    try:
        text = (folder / "timestamp.txt").read_text(encoding="utf-8").strip().removesuffix("UTC").strip()
        return _aware(datetime.fromisoformat(text))
    except (OSError, ValueError):
        return None


def write_submitted(folder: Path, when: datetime) -> None:
    """Write `timestamp.txt` as nbgrader does."""
    text = _aware(when).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    (folder / "timestamp.txt").write_text(text, encoding="utf-8")


def parse_time(text: str, field: str) -> datetime:
    """An ISO time, UTC when it names no zone. Raises InputError."""
    try:
        return _aware(datetime.fromisoformat(text.strip().removesuffix("UTC").strip()))
    except ValueError:
        raise InputError(
            "is no ISO time", field=field, value=text, hint="such as 2026-03-01T23:59+01:00"
        ) from None


def _aware(when: datetime) -> datetime:
    return when if when.tzinfo else when.replace(tzinfo=UTC)
