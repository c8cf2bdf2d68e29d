"""Go's ways with text: durations, quoting, numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.config.goscalars import resolve
from labkit.config.gotext import Duration, DurationError, float_g, go_float, go_quote, parse_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds", "shown"),
    [
        ("15s", 15_000_000_000, "15s"),
        ("90s", 90_000_000_000, "1m30s"),
        ("10m", 600_000_000_000, "10m0s"),
        ("1h", 3_600_000_000_000, "1h0m0s"),
        ("-1.5h", -5_400_000_000_000, "-1h30m0s"),
        ("100ms", 100_000_000, "100ms"),
        ("1us", 1_000, "1µs"),
        ("1.5ms", 1_500_000, "1.5ms"),
        ("0", 0, "0s"),
        ("+2s", 2_000_000_000, "2s"),
        ("1h1m1.001s", 3_661_001_000_000, "1h1m1.001s"),
    ],
)
def test_duration(text: str, nanoseconds: int, shown: str) -> None:
    """Text -> nanoseconds -> Go's own text; the value itself is seconds."""
    duration = parse_duration(text)
    assert duration.nanoseconds == nanoseconds
    assert str(duration) == shown
    assert duration == pytest.approx(nanoseconds / 1e9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("x", 'time: invalid duration "x"'),
        ("5", 'time: missing unit in duration "5"'),
        ("5 s", 'time: unknown unit " s" in duration "5 s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        (".s", 'time: invalid duration ".s"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
    ],
)
def test_bad_duration(text: str, message: str) -> None:
    """Text that is no duration -> Go's words."""
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


@given(st.integers(-(1 << 63) + 1, (1 << 63) - 1))
def test_duration_round_trip(nanoseconds: int) -> None:
    """Whatever is written is read back exactly."""
    assert parse_duration(str(Duration(nanoseconds))).nanoseconds == nanoseconds


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", '"a"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("a\n\t\x01", '"a\\n\\t\\x01"'),
        ("é", '"é"'),
        ("\u200b", '"\\u200b"'),
    ],
)
def test_quote(text: str, quoted: str) -> None:
    """Text -> `%q`."""
    assert go_quote(text) == quoted


@pytest.mark.parametrize(
    ("value", "json", "short"),
    [
        (16.0, "16", "16"),
        (0.1, "0.1", "0.1"),
        (1e-7, "1e-7", "1e-07"),
        (1e20, "100000000000000000000", "1e+20"),
        (1e21, "1e+21", "1e+21"),
        (-2.5e30, "-2.5e+30", "-2.5e+30"),
    ],
)
def test_floats(value: float, json: str, short: str) -> None:
    """A float -> as in JSON, and as `%g`."""
    assert go_float(value) == json
    assert float_g(value) == short


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_round_trip(value: float) -> None:
    """Both ways of writing a float lose nothing."""
    assert float(go_float(value)) == float(float_g(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("Off", False), ("y", True), ("~", None), ("", None), ("0777", 511), ("0o17", 15), ("0x1F", 31),
        ("1_000", 1000), ("1e3", 1000.0), (".5", 0.5), ("08", 8.0), ("2020-01-01", "2020-01-01"), ("12:30", "12:30"),
        ("x", "x"), ("tRUE", "tRUE"), ("9223372036854775808", 9223372036854775808),
    ],
)  # fmt: skip
def test_yaml_scalars(text: str, value: object) -> None:
    """A plain scalar -> its value under YAML 1.1 as Kubernetes reads it."""
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)
