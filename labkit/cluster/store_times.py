"""Times as the Kubernetes API writes them: UTC, whole seconds (Time) or six decimals (MicroTime)."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

_WHOLE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Where the store takes the time from."""

    def now(self) -> float:
        """Seconds since the Unix epoch."""


class RealTime:
    """The machine's clock."""

    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()


def _parse(text: str) -> tuple[datetime, int]:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no RFC 3339 time")
    stem, fraction, zone = match.groups()
    moment = datetime.fromisoformat(stem.upper() + ("+00:00" if zone in "Zz" else zone))
    return moment.astimezone(UTC), int((fraction or "0").ljust(6, "0")[:6])


@lru_cache(maxsize=4096)
def time_text(text: str) -> str:
    """An RFC 3339 time in whole seconds, UTC. ValueError when it is none."""
    if text.endswith("Z") and _WHOLE.fullmatch(text[:-1]):
        return text
    return _parse(text)[0].strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=4096)
def micro_time(text: str) -> str:
    """An RFC 3339 time with six decimals, UTC. ValueError when it is none."""
    moment, micros = _parse(text)
    return f"{moment.strftime('%Y-%m-%dT%H:%M:%S')}.{micros:06}Z"


@lru_cache(maxsize=1024)
def _format(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_time(seconds: float) -> str:
    """Seconds since the epoch as a Time."""
    return _format(int(seconds // 1))


def format_micro_time(seconds: float) -> str:
    """Seconds since the epoch as a MicroTime."""
    micros = round(seconds * 1_000_000)
    return f"{_format(micros // 1_000_000)[:-1]}.{micros % 1_000_000:06}Z"


@lru_cache(maxsize=4096)
def seconds_of(text: str) -> float:
    """A Time or MicroTime as seconds since the epoch. ValueError when it is none."""
    moment, micros = _parse(text)
    return (moment - _EPOCH).total_seconds() + micros / 1_000_000
