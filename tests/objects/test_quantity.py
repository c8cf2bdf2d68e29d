"""Quantities agree with Kubernetes to the integer and to the letter (spec 11 §11.1)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from labkit.objects.quantity import (
    Quantity,
    QuantityError,
    milli_value_of,
    parse_quantity,
    value_of,
)

from tests.strategies import quantities

MALFORMED = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
BAD_SUFFIX = "unable to parse quantity's suffix"

# Recorded: text, Value, MilliValue, canonical.
READ = [
    ("100m", 1, 100, "100m"),
    ("0.1", 1, 100, "100m"),
    ("1500m", 2, 1500, "1500m"),
    ("0.1m", 1, 1, "100u"),
    ("1n", 1, 1, "1n"),
    ("-1.5", -2, -1500, "-1500m"),
    ("1024Mi", 1073741824, 1073741824000, "1Gi"),
    ("1000M", 10**9, 10**12, "1G"),
    ("1.5Gi", 1610612736, 1610612736000, "1536Mi"),
    ("0.5Ki", 512, 512000, "512"),
    ("0.1Ki", 103, 102400, "102400m"),
    ("100.035Ki", 102436, 102435840, "102435840m"),
    ("1e3", 1000, 1000000, "1e3"),
    ("1.5e3", 1500, 1500000, "1500"),
    ("1025Mi", 1074790400, 1074790400000, "1025Mi"),
    ("123Mi", 128974848, 128974848000, "123Mi"),
    ("500M", 500000000, 500000000000, "500M"),
    ("1E3", 1000, 1000000, "1e3"),
    ("1E", 10**18, 0, "1E"),
    (".5", 1, 500, "500m"),
    ("1.G", 10**9, 10**12, "1G"),
    ("0.0000000001", 1, 1, "1n"),
    ("3.001n", 1, 1, "4n"),
]


@pytest.mark.parametrize(("text", "value", "milli", "canonical"), READ)
def test_reading(text: str, value: int, milli: int, canonical: str) -> None:
    """A text's whole units and thousandths, rounded away from zero, and its canonical text."""
    quantity = parse_quantity(text)
    assert (quantity.value(), quantity.milli_value(), quantity.canonical()) == (value, milli, canonical)
    assert (value_of(text), milli_value_of(text)) == (value, milli)


@pytest.mark.parametrize("text", [".", "+", "-", "Ki", "m", "0", "0Mi", "00", "-0", "0.000"])
def test_texts_for_zero(text: str) -> None:
    """Odd texts that Kubernetes reads as zero."""
    assert (parse_quantity(text).value(), str(parse_quantity(text))) == (0, "0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", MALFORMED),
        ("  ", MALFORMED),
        ("abc", MALFORMED),
        ("1_000", MALFORMED),
        ("0x10", MALFORMED),
        ("1 000", MALFORMED),
        ("1Gb", MALFORMED),
        ("1.2.3", MALFORMED),
        ("--1", BAD_SUFFIX),
        ("١", MALFORMED),
        ("1K", BAD_SUFFIX),
        ("1e", BAD_SUFFIX),
        ("1e+", BAD_SUFFIX),
        ("1Mi1", BAD_SUFFIX),
        ("1i", BAD_SUFFIX),
        ("Pi", "unable to parse numeric part of quantity"),
        ("-.Ei", "unable to parse numeric part of quantity"),
        ("e-12", "unable to parse numeric part of quantity"),
        ("1MI", MALFORMED),
        ("1mi", BAD_SUFFIX),
    ],
)
def test_refused(text: str, message: str) -> None:
    """What is no quantity is refused with the API server's text."""
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    ["1e2147483648", "1e401", "1e-401", "1e" + "9" * 5000, "9" * 5000, 10**6000],
    ids=["2^31", "401", "-401", "long exponent", "long", "number"],
)
def test_astronomical_numbers_are_refused(text: str | int) -> None:
    """Numbers that would take long or for ever to write out are refused at once."""
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("number", "same"), [(2, "2"), (0.1, "0.1"), (1.5, "1500m"), (-3, "-3"), (1e22, "1e22")]
)
def test_numbers_are_read_as_their_text(number: float, same: str) -> None:
    """JSON numbers stand for the text they are written as."""
    assert parse_quantity(number) == parse_quantity(same)


@pytest.mark.parametrize("bad", [True, False, float("nan"), float("inf")])
def test_no_numbers(bad: float) -> None:
    """Booleans and what JSON cannot write are no quantities."""
    with pytest.raises(QuantityError):
        parse_quantity(bad)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        *[(t, t) for t in ("+5", "5.", "1e+3", "00012", "1.500", "1025Mi", "12Ki", "+12Ki")],
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5e3", "1500"),
        ("8Ki", "8Ki"),
        (" 3 ", "3"),
        ("1000000000000000000000m", "1E"),
    ],
)
def test_nearly_canonical_text_is_kept(text: str, printed: str) -> None:
    """Kubernetes prints a text again as it was when it looks canonical enough."""
    assert str(parse_quantity(text)) == printed


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("9223372036854775807", 2**63 - 1, -1000),
        ("7Ei", 7 * 2**60, -(2**63)),
        ("10E", 0, 0),
        ("1E", 10**18, 0),
        ("56377974312432G", 4724423175610261504, 0),
        ("83614967963078e3", 83614967963078000, -8618752405469758080),
        ("9223372036854775808", -(2**63), 0),
    ],
)
def test_overflow_is_kubernetes_own(text: str, value: int, milli: int) -> None:
    """What does not fit an int64 reads as the garbage that Kubernetes reads."""
    assert (value_of(text), milli_value_of(text)) == (value, milli)


@pytest.mark.parametrize("text", ["8Ei", "9Ei", "100Ei"])
def test_binary_amounts_are_capped(text: str) -> None:
    """Only binary suffixes have a ceiling, the greatest int64."""
    assert (value_of(text), value_of(f"-{text}")) == (2**63 - 1, -(2**63 - 1))


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("1500m", "0.5Ki", "513500m"),
        ("0", "1Ki", "1Ki"),
        ("0.4", "0.4", "800m"),
        ("1Gi", "1G", "2073741824"),
        ("+5", "0", "5"),
    ],
)
def test_sums(left: str, right: str, total: str) -> None:
    """Sums are exact, take the left format unless that is zero, and print canonically."""
    assert str(parse_quantity(left) + parse_quantity(right)) == total


def test_rounded_once() -> None:
    """0.4 + 0.4 is one unit, not two."""
    assert (parse_quantity("0.4") + parse_quantity("0.4")).value() == 1


def test_comparison_ignores_the_format() -> None:
    """`1Ki` equals `1024`, also as a dictionary key, and lies between its neighbours."""
    binary, decimal = parse_quantity("1Ki"), parse_quantity("1024")
    assert binary == decimal
    assert len({binary, decimal}) == 1
    assert parse_quantity("1023") < binary < parse_quantity("1025")
    assert binary <= decimal >= binary


def rounded(exact: Fraction, unit: int) -> int:
    """Away from zero, by the definition: first to 10^-9, then to the unit."""
    for per in (10**9, unit):
        scaled = abs(exact) * per
        up = scaled.numerator // scaled.denominator + (scaled.denominator != 1)
        exact = Fraction(up, per) if exact >= 0 else -Fraction(up, per)
    return int(exact * unit)


@given(quantities())
def test_any_text_rounds_away_from_zero(given_text: tuple[str, Fraction]) -> None:
    """Value and MilliValue of every text are its exact value, rounded by the definition."""
    text, exact = given_text
    assert (value_of(text), milli_value_of(text)) == (rounded(exact, 1), rounded(exact, 1000))


@given(quantities(), quantities())
def test_order_is_that_of_the_amounts(a: tuple[str, Fraction], b: tuple[str, Fraction]) -> None:
    """Comparing quantities is comparing amounts (to 10^-9)."""
    one, other = rounded(a[1], 10**9), rounded(b[1], 10**9)
    assert (parse_quantity(a[0]) < parse_quantity(b[0])) == (one < other)
    assert (parse_quantity(a[0]) == parse_quantity(b[0])) == (one == other)


@given(quantities())
def test_canonical_text_says_the_same(given_text: tuple[str, Fraction]) -> None:
    """Reading the canonical text again gives the same amount and the same canonical text; so does the printed text."""
    quantity = parse_quantity(given_text[0])
    for text in (quantity.canonical(), str(quantity)):
        again = parse_quantity(text)
        assert (again, again.canonical()) == (quantity, quantity.canonical())


@given(quantities(), quantities())
def test_sums_and_differences_undo_each_other(a: tuple[str, Fraction], b: tuple[str, Fraction]) -> None:
    """(a + b) - b is a, and a + b is b + a, exactly."""
    one, other = parse_quantity(a[0]), parse_quantity(b[0])
    assert (one + other) - other == one
    assert one + other == other + one


def test_made_from_numbers() -> None:
    """A quantity can be made from an exact amount."""
    assert (str(Quantity(200)), str(Quantity(Fraction(1, 2)))) == ("200", "500m")
