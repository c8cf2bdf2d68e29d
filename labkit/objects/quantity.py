"""Resource quantities: exact, with Kubernetes' rounding and canonical text (spec 11 §11.1).

`Value()` rounds away from zero to whole units, `MilliValue()` to thousandths. Sums are exact; round once at
the end.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache, total_ordering

_MAX_INT64 = 2**63 - 1
_NANO = 10**9
#: Exponents beyond this would only make astronomically long numbers.
_MAX_EXPONENT = 400
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BY_EXPONENT = {v: k for k, v in _DECIMAL.items()}
_FORMAT = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+")

BINARY_SI, DECIMAL_SI, DECIMAL_EXPONENT = "BinarySI", "DecimalSI", "DecimalExponent"


class QuantityError(ValueError):
    """Text that is no quantity; the message is the API server's."""


_MALFORMED = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BAD_SUFFIX = "unable to parse quantity's suffix"
_BAD_NUMBER = "unable to parse numeric part of quantity"


@total_ordering
class Quantity:
    """An exact amount with the format it prints in. Immutable; compares by amount alone."""

    __slots__ = ("_text", "amount", "format")

    def __init__(self, amount: Fraction | int, format: str = DECIMAL_SI, text: str | None = None) -> None:
        self.amount = Fraction(amount)
        self.format = format
        self._text = text

    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _away_from_zero(self.amount)

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero."""
        return _away_from_zero(self.amount * 1000)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount + other.amount, self.format if self.amount else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount - other.amount, self.format if self.amount else other.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __lt__(self, other: Quantity) -> bool:
        return self.amount < other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __bool__(self) -> bool:
        return self.amount != 0

    def __str__(self) -> str:
        """As given when parsed, canonical when computed."""
        return self._text if self._text is not None else self.canonical()

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def canonical(self) -> str:
        """The canonical text: the largest suffix that keeps the mantissa a whole number."""
        amount = self.amount
        if amount == 0:
            return "0"
        if self.format == BINARY_SI and amount.denominator == 1 and abs(amount) >= 1024:
            mantissa, k = amount.numerator, 0
            while mantissa % 1024 == 0 and k < 6:
                mantissa //= 1024
                k += 1
            return f"{mantissa}{('', *_BINARY)[k]}"
        exponent = -9
        mantissa = _away_from_zero(amount * _NANO)
        limit = 18 if self.format != DECIMAL_EXPONENT else 3 * (_MAX_EXPONENT // 3)
        while mantissa % 1000 == 0 and exponent < limit:
            mantissa //= 1000
            exponent += 3
        if self.format == DECIMAL_EXPONENT:
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        return f"{mantissa}{_BY_EXPONENT[exponent]}"


def parse_quantity(text: str | int | float) -> Quantity:
    """Read a quantity; numbers are read as their text. QuantityError with the API server's text when malformed."""
    if isinstance(text, bool):
        raise QuantityError(_MALFORMED)
    return _parse(text if isinstance(text, str) else repr(text))


@lru_cache(maxsize=65536)
def _parse(text: str) -> Quantity:
    stripped = text.strip()
    if not stripped:
        raise QuantityError(_MALFORMED)
    shape = _SHAPE.fullmatch(stripped)
    if shape is None:
        raise QuantityError(_MALFORMED)
    sign, whole, point, fraction, suffix = shape.groups()
    if point is not None and "." in suffix:
        raise QuantityError(_BAD_NUMBER if _FORMAT.fullmatch(stripped) else _MALFORMED)
    scale, format_ = _suffix(suffix, stripped)
    digits = (whole or "") + (fraction or "")
    number = Fraction(int(digits or "0"), 10 ** len(fraction or ""))
    amount = number * scale * (-1 if sign == "-" else 1)
    amount = Fraction(_away_from_zero(amount * _NANO), _NANO)
    if format_ == BINARY_SI:
        amount = max(min(amount, Fraction(_MAX_INT64)), Fraction(-_MAX_INT64))
        if 0 < abs(amount) < 1:
            format_ = DECIMAL_SI
    return Quantity(amount, format_, _kept_text(stripped, amount, format_))


def _suffix(suffix: str, whole_text: str) -> tuple[Fraction, str]:
    if suffix in _BINARY:
        return Fraction(_BINARY[suffix]), BINARY_SI
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix], DECIMAL_SI
    if _EXPONENT.fullmatch(suffix):
        exponent = int(suffix[1:])
        if abs(exponent) > _MAX_EXPONENT:
            raise QuantityError(_BAD_SUFFIX)
        return Fraction(10) ** exponent, DECIMAL_EXPONENT
    if re.fullmatch(r"[eEinumkKMGTP]*[-+]?[0-9]*", suffix):
        raise QuantityError(_BAD_SUFFIX)
    raise QuantityError(_MALFORMED)


def _kept_text(text: str, amount: Fraction, format_: str) -> str | None:
    # Text that already says a whole mantissa is printed as it was given; fractions are made canonical.
    if "." in text.rstrip("."):
        head = text.split(".", 1)[1]
        if head and head[0].isdigit():
            return None
    canonical = Quantity(amount, format_)
    return text if amount and _is_canonical_magnitude(text, canonical) else None


def _is_canonical_magnitude(text: str, quantity: Quantity) -> bool:
    digits = re.sub(r"[^0-9]", "", re.split(r"[a-zA-Z]", text, maxsplit=1)[0]).lstrip("0")
    own = re.sub(r"[^0-9]", "", re.split(r"[a-zA-Z]", quantity.canonical(), maxsplit=1)[0])
    return digits == own


@lru_cache(maxsize=65536)
def _value(text: str) -> int:
    return _parse(text).value()


@lru_cache(maxsize=65536)
def _milli_value(text: str) -> int:
    return _parse(text).milli_value()


def value_of(quantity: str | int | float) -> int:
    """`parse_quantity(quantity).value()`, cached."""
    return _value(quantity if isinstance(quantity, str) else repr(quantity))


def milli_value_of(quantity: str | int | float) -> int:
    """`parse_quantity(quantity).milli_value()`, cached."""
    return _milli_value(quantity if isinstance(quantity, str) else repr(quantity))


def _away_from_zero(amount: Fraction) -> int:
    magnitude = -(-abs(amount.numerator) // amount.denominator)
    return magnitude if amount >= 0 else -magnitude
