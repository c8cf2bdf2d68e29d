"""Resource quantities: exact, with Kubernetes' rounding and canonical text (spec 11 §11.1).

`Value()` rounds away from zero to whole units, `MilliValue()` to thousandths. Sums are exact; round once at
the end. The finest amount is 10^-9, so an amount is kept as a whole number of billionths.
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

_NANO = 10**9
_MICRO = 10**6
_MAX_INT64 = 2**63 - 1
#: Exponents and digits beyond these would only make astronomically long numbers.
_MAX_EXPONENT = 400
_MAX_DIGITS = 1000
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BY_EXPONENT = {v: k for k, v in _DECIMAL.items()}
_SHAPE = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")

BINARY_SI, DECIMAL_SI, DECIMAL_EXPONENT = "BinarySI", "DecimalSI", "DecimalExponent"


class QuantityError(ValueError):
    """Text that is no quantity; the message is the API server's."""


_MALFORMED = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BAD_SUFFIX = "unable to parse quantity's suffix"
_BAD_NUMBER = "unable to parse numeric part of quantity"


@total_ordering
class Quantity:
    """An exact amount with the format it prints in. Immutable; compares by amount alone."""

    __slots__ = ("_nanos", "_scale", "_text", "format")

    def __init__(self, amount: Fraction | int, format: str = DECIMAL_SI) -> None:
        nanos = amount * _NANO
        self._nanos = nanos if isinstance(nanos, int) else _divide_up(nanos.numerator, nanos.denominator)
        self.format = format
        self._text: str | None = None
        self._scale: int | None = None

    @classmethod
    def _of(cls, nanos: int, format_: str, text: str | None = None, scale: int | None = None) -> Quantity:
        made = cls.__new__(cls)
        made._nanos, made.format, made._text, made._scale = nanos, format_, text, scale
        return made

    @property
    def amount(self) -> Fraction:
        """The exact amount, in units."""
        from fractions import Fraction

        return Fraction(self._nanos, _NANO)

    def value(self) -> int:
        """Whole units, rounded away from zero; an int64 (see `_int64` for what does not fit)."""
        return self._int64(_divide_up(self._nanos, _NANO), 0)

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero; an int64 (see `_int64` for what does not fit)."""
        return self._int64(_divide_up(self._nanos, _MICRO), 3)

    def _int64(self, number: int, zeros: int) -> int:
        if -_MAX_INT64 <= number <= _MAX_INT64:
            return number
        # Kubernetes does not notice overflow. It keeps short texts as a number with a decimal scale (`_scale`); adding
        # zeros to those gives 0 unless there is one multiplication for so many. All else wraps around.
        if self._scale is not None and self._scale + zeros not in (0, 1, 2, 3, 6, 9):
            return 0
        return (number + 2**63) % 2**64 - 2**63

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity._of(self._nanos + other._nanos, self.format if self._nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity._of(self._nanos - other._nanos, self.format if self._nanos else other.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self._nanos == other._nanos

    def __lt__(self, other: Quantity) -> bool:
        return self._nanos < other._nanos

    def __gt__(self, other: Quantity) -> bool:
        return self._nanos > other._nanos

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __bool__(self) -> bool:
        return self._nanos != 0

    def __str__(self) -> str:
        """As given when that is all but canonical, else canonical."""
        return self._text if self._text is not None else self.canonical()

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def canonical(self) -> str:
        """The canonical text: the largest suffix that keeps the mantissa a whole number."""
        mantissa = self._nanos
        if mantissa == 0:
            return "0"
        if self.format == BINARY_SI and mantissa % _NANO == 0 and abs(mantissa) >= 1024 * _NANO:
            mantissa //= _NANO
            k = 0
            while mantissa % 1024 == 0 and k < len(_BINARY):
                mantissa //= 1024
                k += 1
            return f"{mantissa}{('', *_BINARY)[k]}"
        exponent = -9
        limit = _MAX_EXPONENT if self.format == DECIMAL_EXPONENT else 18
        while mantissa % 1000 == 0 and exponent + 3 <= limit:
            mantissa //= 1000
            exponent += 3
        if self.format == DECIMAL_EXPONENT:
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        return f"{mantissa}{_BY_EXPONENT[exponent]}"


def parse_quantity(text: str | int | float) -> Quantity:
    """Read a quantity; numbers are read as their text. QuantityError with the API server's text when malformed."""
    if isinstance(text, bool):
        raise QuantityError(_MALFORMED)
    return _parse(text if isinstance(text, str) else _written(text))


@lru_cache(maxsize=65536)
def _parse(text: str) -> Quantity:
    text = text.strip()
    shape = _SHAPE.fullmatch(text)
    if shape is None or not text:
        raise QuantityError(_MALFORMED)
    sign, zeros, whole, fraction, suffix = shape.groups()
    # Where Kubernetes has to compute exactly it wants a digit; else no digit at all is zero.
    has_digit = bool(zeros or whole or fraction)
    whole, fraction = whole or "0", fraction or ""
    digits = whole + fraction
    if len(digits) > _MAX_DIGITS:
        raise QuantityError(_BAD_NUMBER)
    number = int(digits) * (-1 if sign == "-" else 1)
    if suffix in _BINARY:
        power = _BINARY[suffix]
        if not fraction and 15 - len(whole) - power * 3 // 10 - 1 >= 0:
            keeps = number & 7 != 0
            return Quantity._of((number << power) * _NANO, BINARY_SI, text if keeps else None, 0)
        nanos, format_ = _divide_up((number << power) * _NANO, 10 ** len(fraction)), BINARY_SI
        nanos = max(min(nanos, _MAX_INT64 * _NANO), -_MAX_INT64 * _NANO)
        if 0 < abs(nanos) < _NANO:
            # Below one unit there is nothing binary to print.
            format_ = DECIMAL_SI
    else:
        exponent, format_ = _exponent(suffix)
        exponent -= len(fraction)
        if len(digits) <= 18 and exponent >= -9:
            keeps = exponent % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
            return Quantity._of(number * 10 ** (exponent + 9), format_, text if keeps else None, exponent)
        scale = exponent + 9
        nanos = number * 10**scale if scale >= 0 else _divide_up(number, 10**-scale)
    if not has_digit:
        raise QuantityError(_BAD_NUMBER)
    return Quantity._of(nanos, format_)


def _exponent(suffix: str) -> tuple[int, str]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], DECIMAL_SI
    found = _EXPONENT.fullmatch(suffix)
    if found is None or len(found[1]) > 9 or abs(int(found[1])) > _MAX_EXPONENT:
        raise QuantityError(_BAD_SUFFIX)
    return int(found[1]), DECIMAL_EXPONENT


@lru_cache(maxsize=65536)
def _value(text: str) -> int:
    return _parse(text).value()


@lru_cache(maxsize=65536)
def _milli_value(text: str) -> int:
    return _parse(text).milli_value()


def value_of(quantity: str | int | float) -> int:
    """`parse_quantity(quantity).value()`, cached."""
    return _value(quantity if isinstance(quantity, str) else _written(quantity))


def milli_value_of(quantity: str | int | float) -> int:
    """`parse_quantity(quantity).milli_value()`, cached."""
    return _milli_value(quantity if isinstance(quantity, str) else _written(quantity))


def _written(number: int | float) -> str:
    # repr of an int of thousands of digits is refused by Python itself.
    if isinstance(number, int) and number.bit_length() > 4 * _MAX_DIGITS:
        raise QuantityError(_BAD_NUMBER)
    return repr(number)


def _divide_up(a: int, b: int) -> int:
    """a / b, away from zero; b > 0."""
    return -(-a // b) if a >= 0 else a // b
