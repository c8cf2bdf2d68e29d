"""What an unquoted YAML scalar means to Kubernetes' YAML reader (YAML 1.1, as go-yaml v2 has it)."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

_TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE = frozenset(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_NULL = frozenset(["", "~", "null", "Null", "NULL"])
_NAN = frozenset([".nan", ".NaN", ".NAN"])
_INF = frozenset([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"])
_NEG_INF = frozenset(["-.inf", "-.Inf", "-.INF"])
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DATE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)"
    r"| (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d+)?)?"
)


def resolve(text: str) -> Any:
    """A plain scalar's value by the rules of go-yaml v2."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text in _NAN:
        return math.nan
    if text in _INF or text in _NEG_INF:
        return -math.inf if text in _NEG_INF else math.inf
    if text[0] == ".":
        return _float(text)
    if text[0] not in "+-0123456789" or is_date(text):
        return text
    plain = text.replace("_", "")
    if _INT.fullmatch(plain):
        value = _int(plain)
        if -(1 << 63) <= value < 1 << 63 or (plain[0] not in "+-" and value < 1 << 64):
            return value
    if _FLOAT.fullmatch(plain):
        return _float(plain, otherwise=text)
    return text


def _int(plain: str) -> int:
    sign = -1 if plain.startswith("-") else 1
    digits = plain.lstrip("+-").lower()
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567":
        digits = "0o" + digits[1:]
    return sign * int(digits, 0)


def _float(text: str, otherwise: str | None = None) -> Any:
    try:
        value = float(text)
    except ValueError:
        return otherwise or text
    return value if math.isfinite(value) else otherwise or text


def is_date(text: str) -> bool:
    """Is this a timestamp? It is kept as text, but other tags do not fit it."""
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day, *clock = (int(part) if part else 0 for part in found.groups())
    hour, minute, second = (early + late for early, late in zip(clock[:3], clock[3:], strict=True))
    try:
        datetime.datetime(year or 1, month, day, hour, minute, second)
    except ValueError:
        return False
    return True


def is_plain_text(text: str) -> bool:
    """Would this text, written without quotes, be read as text again?"""
    return (
        bool(text) and isinstance(resolve(text), str) and not is_date(text) and not _BASE_60.fullmatch(text)
    )
