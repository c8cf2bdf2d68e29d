"""How Go prints and reads what appears in kube-scheduler's messages: quoted text, JSON, durations."""

from __future__ import annotations

import json
import re
import struct
from decimal import Decimal
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


def go_float(value: float) -> str:
    """A finite float as Go's JSON encoder writes it."""
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return format(_shortest(value), "f")
    digits, power = _scientific(value)
    return f"{digits}e-{-power}" if power < 0 else f"{digits}e+{power}"


def float_g(value: float, limit: int = 6) -> str:
    """A finite float as Go's `%g` writes it; from 10**limit on with an exponent (21 for `%v`)."""
    digits, power = _scientific(value)
    if value == 0 or -4 <= power < limit:
        return format(_shortest(value), "f")
    return f"{digits}e{'-' if power < 0 else '+'}{abs(power):02d}"


def shortest_float32(value: float) -> float:
    """The float with the fewest digits that is the same float32 as `value`."""
    wanted = struct.pack("f", value)
    return next(
        near for digits in range(1, 18) if struct.pack("f", near := float(f"{value:.{digits}g}")) == wanted
    )


def _shortest(value: float) -> Decimal:
    return Decimal(repr(value)).normalize()


def _scientific(value: float) -> tuple[str, int]:
    digits, _, exponent = format(_shortest(value), "e").partition("e")
    return digits, int(exponent or "0")


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


def _quote_bytes(text: str) -> str:
    """The quoting of Go's package time: whatever is not printable ASCII byte by byte."""
    inner = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}"
        for byte in text.encode("utf-8", "replace")
    )
    return f'"{inner}"'


class DurationError(ValueError):
    """Text that is no Go duration; the message is Go's."""


def parse_duration(text: str) -> Duration:
    """Read `15s`, `1m30s`, `-1.5h`. Raises DurationError with Go's text."""
    shown = _quote_bytes(text)
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
            raise DurationError(f"time: unknown unit {_quote_bytes(unit)} in duration {shown}")
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
