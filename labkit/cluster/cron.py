"""Schedules of CronJobs: the five fields of cron, names such as @daily, and @every; in any time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_MONTHS = {
    **{"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6},
    **{"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12},
}
_DAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
#: (least, most, names) of minute, hour, day of the month, month and day of the week.
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:h|m|s|ms|us|µs|ns))+")
_PART = re.compile(r"(\d+(?:\.\d*)?)(h|ms|m|s|us|µs|ns)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
#: A schedule such as "0 0 30 2 *" names no day that there is.
_YEARS = 5


class CronError(ValueError):
    """A schedule or a time zone that cannot be read; the text says why."""


@dataclass(frozen=True)
class Schedule:
    """When a CronJob is due. `every`: seconds, when it is no matter of fields."""

    fields: tuple[frozenset[int], ...] = ()
    any_day: bool = True
    every: float = 0.0

    def next_after(self, moment: float, zone: tzinfo = UTC) -> float | None:
        """The first time after `moment` (seconds since the epoch), in whole seconds; None when there is none."""
        if self.every:
            return float(int(moment + self.every))
        at = datetime.fromtimestamp(int(moment), zone).replace(second=0) + timedelta(minutes=1)
        last = at.year + _YEARS
        minutes, hours, _, months, _ = self.fields
        while at.year <= last:
            if at.month not in months:
                at = (at.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1)
            elif not self._day(at):
                at = at.replace(hour=0, minute=0) + timedelta(days=1)
            elif at.hour not in hours:
                at = at.replace(minute=0) + timedelta(hours=1)
            elif at.minute not in minutes or at.timestamp() <= moment or _skipped(at):
                at += timedelta(minutes=1)
            else:
                return at.timestamp()
        return None

    def _day(self, at: datetime) -> bool:
        in_month, in_week = at.day in self.fields[2], at.isoweekday() % 7 in self.fields[4]
        # Where both are given either will do: cron has always had it so.
        return in_month and in_week if self.any_day else in_month or in_week


def _skipped(at: datetime) -> bool:
    """Whether clocks never show this time, for they are put forward over it."""
    back = datetime.fromtimestamp(at.timestamp(), at.tzinfo)
    return (back.hour, back.minute) != (at.hour, at.minute)


@lru_cache(maxsize=256)
def parse_schedule(text: str) -> Schedule:
    """The schedule that a text means. CronError."""
    if "TZ" in text:
        raise CronError("cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    if text.startswith(_EVERY):
        return Schedule(every=_duration(text))
    if text.startswith("@"):
        if text not in _WORDS:
            raise CronError(f"unrecognized descriptor: {text}")
        text = _WORDS[text]
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise CronError(f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]")
    fields = tuple(_field(part, *limits) for part, limits in zip(parts, _FIELDS, strict=True))
    starred = any(p.split("/")[0] in ("*", "?") for one in (parts[2], parts[4]) for p in one.split(","))
    return Schedule(fields, starred)


def zone_of(name: str | None) -> tzinfo:
    """A time zone of the IANA database; UTC for None. CronError."""
    if name in (None, "UTC"):
        # Also where no database of zones is installed.
        return UTC
    if not name:
        raise CronError("timeZone must be nil or non-empty string")
    if name.lower() == "local":
        raise CronError(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as e:
        raise CronError(f"unknown time zone {name}") from e


def _duration(text: str) -> float:
    wanted = text.removeprefix(_EVERY)
    if not _DURATION.fullmatch(wanted):
        raise CronError(f'failed to parse duration {text}: time: invalid duration "{wanted}"')
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(wanted))
    return max(1.0, float(int(seconds)))


def _field(text: str, least: int, most: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        found.update(_range(part, least, most, names))
    return frozenset(found)


def _range(part: str, least: int, most: int, names: dict[str, int]) -> range | set[int]:
    bounds, *steps = part.split("/")
    if not part:
        return set()
    ends = bounds.split("-")
    if len(steps) > 1:
        raise CronError(f"too many slashes: {part}")
    if ends[0] in ("*", "?"):
        low, high = least, most
    elif len(ends) > 2:
        raise CronError(f"too many hyphens: {part}")
    else:
        low = _number(ends[0], names)
        # "5/10" begins at 5 and goes on to the end.
        high = _number(ends[1], names) if len(ends) == 2 else most if steps else low
    step = _number(steps[0], {}) if steps else 1
    if low < least:
        raise CronError(f"beginning of range ({low}) below minimum ({least}): {part}")
    if high > most:
        raise CronError(f"end of range ({high}) above maximum ({most}): {part}")
    if low > high:
        raise CronError(f"beginning of range ({low}) beyond end of range ({high}): {part}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {part}")
    return range(low, high + 1, step)


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[-+]?[0-9]+", text):
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise CronError(f"negative number ({text}) not allowed: {text}")
    # As many digits as fit into 64 bits, with their sign.
    if int(text) >= 1 << 63:
        raise CronError(
            f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range'
        )
    return int(text)
