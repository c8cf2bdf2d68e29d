"""How Go prints and reads what appears in kube-scheduler's messages: quoted text, JSON, durations."""

from __future__ import annotations

import json
import re
from typing import Any

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def go_quote(text: str) -> str:
    """Text in double quotes as Go's `%q` writes it."""
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_json(value: Any) -> str:
    """JSON as Go's `json.Marshal` writes it: compact, with `<`, `>`, `&` escaped, keys in the given order."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    return escape_html(text)


def escape_html(text: str) -> str:
    """The escapes that Go's JSON encoder makes on top of JSON's own."""
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def go_float(value: float, bits: int = 64) -> str:
    """A finite float as Go's JSON encoder writes it."""
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    if 1e-6 <= abs(value) < 1e21:
        text = format(value, "f") if value.is_integer() else _positional(repr(value))
        return text.split(".")[0] if value.is_integer() else text
    mantissa, _, exponent = format(float(repr(value)), "e").partition("e")
    shortest = repr(value)
    mantissa = shortest.partition("e")[0] if "e" in shortest else mantissa.rstrip("0").rstrip(".")
    sign = exponent[0]
    digits = exponent[1:].lstrip("0")
    if mantissa.endswith(".0"):
        mantissa = mantissa[:-2]
    if bits == 64 and sign == "-" and len(digits) == 1:
        return f"{mantissa}e-{digits}"
    return f"{mantissa}e{sign}{digits.zfill(2)}"


def _positional(text: str) -> str:
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    shift = -int(exponent)
    return f"{sign}0.{'0' * (shift - 1)}{whole}{fraction if fraction != '0' else ''}"


# --- durations ------------------------------------------------------------------------------------

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_MAX = 1 << 63


class Duration(float):
    """A Go duration: its value is in seconds; `nanoseconds` is exact; `str()` is Go's text (`1m30s`)."""

    nanoseconds: int

    def __new__(cls, nanoseconds: int) -> Duration:
        self = super().__new__(cls, nanoseconds / 1e9)
        self.nanoseconds = nanoseconds
        return self

    def __str__(self) -> str:
        return _duration_text(self.nanoseconds)

    def __repr__(self) -> str:
        return f"Duration({_duration_text(self.nanoseconds)})"


def seconds(count: int) -> Duration:
    """A duration of whole seconds."""
    return Duration(count * 1_000_000_000)


def _duration_text(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    rest = abs(nanoseconds)
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if rest < size * 1000:
            return f"{sign}{_with_fraction(rest, size)}{unit}"
    whole_seconds, fraction = divmod(rest, 1_000_000_000)
    minutes, left = divmod(whole_seconds, 60)
    text = _with_fraction(left * 1_000_000_000 + fraction, 1_000_000_000) + "s"
    if minutes == 0:
        return sign + text
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}h{minutes}m{text}" if hours else f"{sign}{minutes}m{text}"


def _with_fraction(amount: int, size: int) -> str:
    whole, fraction = divmod(amount, size)
    if fraction == 0:
        return str(whole)
    digits = str(fraction).zfill(len(str(size)) - 1).rstrip("0")
    return f"{whole}.{digits}"


class DurationError(ValueError):
    """Text that is no Go duration; the message is Go's."""


def parse_duration(text: str) -> Duration:
    """Read `15s`, `1m30s`, `-1.5h`. Raises DurationError with Go's text."""
    shown = go_quote(text)
    rest = text
    negative = False
    if rest[:1] in ("-", "+"):
        negative = rest[0] == "-"
        rest = rest[1:]
    if rest == "0":
        return Duration(0)
    if not rest:
        raise DurationError(f"time: invalid duration {shown}")
    total = 0
    while rest:
        number = re.match(r"[0-9]*(?:\.[0-9]*)?", rest)
        literal = number.group() if number else ""
        if literal in ("", "."):
            raise DurationError(f"time: invalid duration {shown}")
        rest = rest[len(literal) :]
        unit_match = re.match(r"[^.0-9]*", rest)
        unit = unit_match.group() if unit_match else ""
        if not unit:
            raise DurationError(f"time: missing unit in duration {shown}")
        rest = rest[len(unit) :]
        if unit not in _UNITS:
            raise DurationError(f"time: unknown unit {go_quote(unit)} in duration {shown}")
        whole, _, fraction = literal.partition(".")
        size = _UNITS[unit]
        total += int(whole or "0") * size
        if fraction:
            total += int(fraction) * size // 10 ** len(fraction)
        if total > _MAX:
            raise DurationError(f"time: invalid duration {shown}")
    if not negative and total > _MAX - 1:
        raise DurationError(f"time: invalid duration {shown}")
    return Duration(-total if negative else total)
