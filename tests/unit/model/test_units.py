"""Quantities: values from IEC 80000-13 and tc(8), exact round trips, refusals that say what is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from twinbed.model import units
from twinbed.model.units import Duration, QuantityError, Rate, Share, Size, magnitudes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("500B", 500),
        ("64KiB", 65536),
        ("1MiB", 1048576),
        ("1GiB", 1073741824),
        ("1TiB", 1099511627776),
        ("1kB", 1000),
        ("1MB", 1000000),
        ("1.5MiB", 1572864),
        (".5kB", 500),
        (" 16 MiB ", 16777216),
        ("0B", 0),
        ("1500", 1500),
        (1500, 1500),
        (1e6, 1000000),
    ],
)
def test_sizes(text: object, size_bytes: int) -> None:
    assert units.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "rate_bit_s"),
    [
        ("10kbit", 10_000),
        ("100mbit", 100_000_000),
        ("1gbit", 1_000_000_000),
        ("1Gbit/s", 1_000_000_000),
        ("941.5Mbit/s", 941_500_000),
        ("9600bit", 9600),
        (9600, 9600),
    ],
)
def test_rates(text: object, rate_bit_s: int) -> None:
    assert units.parse_rate(text) == rate_bit_s


@pytest.mark.parametrize(
    ("text", "duration_s"),
    [
        ("90s", 90.0),
        ("2m", 120.0),
        ("1.5h", 5400.0),
        ("100ms", 0.1),
        ("5us", 5e-6),
        ("5µs", 5e-6),
        ("3ns", 3e-9),
        (0.25, 0.25),
        (90, 90.0),
    ],
)
def test_durations(text: object, duration_s: float) -> None:
    assert units.parse_duration(text) == duration_s


@pytest.mark.parametrize(
    ("text", "share"), [("10%", 0.1), (0.1, 0.1), ("0.05", 0.05), ("2.5%", 0.025), ("100%", 1.0), (0, 0.0)]
)
def test_shares(text: object, share: float) -> None:
    assert units.parse_share(text) == share


@pytest.mark.parametrize(
    ("parse", "value", "said"),
    [
        (units.parse_size, "1mb", "unknown unit 'mb'"),
        (units.parse_size, "1KB", "unknown unit 'KB'"),
        (units.parse_size, "big", "not a number with a unit"),
        (units.parse_size, "", "not a number with a unit"),
        (units.parse_size, "-1B", "not a number with a unit"),
        (units.parse_size, "1e3B", "unknown unit"),
        (units.parse_size, "٣B", "not a number with a unit"),
        (units.parse_size, "0.5B", "not a whole number of bytes"),
        (units.parse_size, 0.5, "not a whole number of bytes"),
        (units.parse_size, -1, "zero or more"),
        (units.parse_size, True, "not a quantity"),
        (units.parse_size, None, "not a quantity"),
        (units.parse_size, [1], "not a quantity"),
        (units.parse_rate, "1Gbps", "ambiguous"),
        (units.parse_rate, "1MB", "unknown unit"),
        (units.parse_rate, "0.5bit", "not a whole number of bits per second"),
        (units.parse_duration, "1d", "unknown unit 'd'"),
        (units.parse_duration, "1 min", "unknown unit 'min'"),
        (units.parse_duration, float("nan"), "zero or more"),
        (units.parse_duration, float("inf"), "zero or more"),
        (units.parse_share, "101%", "more than 1"),
        (units.parse_share, 2, "more than 1"),
    ],
)
def test_what_is_refused_says_what_is_allowed(parse: Any, value: object, said: str) -> None:
    with pytest.raises(QuantityError, match=said) as caught:
        parse(value)
    assert "such as" in caught.value.allowed
    assert str(caught.value) == f"{caught.value.message}; allowed: {caught.value.allowed}"


@pytest.mark.parametrize(
    ("formatted", "text"),
    [
        (units.format_size(1048576), "1MiB"),
        (units.format_size(1000000), "1MB"),
        (units.format_size(1536), "1536B"),
        (units.format_size(0), "0B"),
        (units.format_duration(90.0), "90s"),
        (units.format_duration(3600.0), "1h"),
        (units.format_duration(5e-6), "5us"),
        (units.format_share(0.1), "10%"),
    ],
)
def test_formats_are_short(formatted: str, text: str) -> None:
    assert formatted == text


@given(st.integers(0, 2**70))
def test_sizes_are_read_back_exactly(number: int) -> None:
    assert units.parse_size(units.format_size(number)) == number


@given(st.floats(0, allow_nan=False, allow_infinity=False))
def test_durations_are_read_back_exactly(duration_s: float) -> None:
    assert units.parse_duration(units.format_duration(duration_s)) == duration_s


@given(st.floats(0, 1))
def test_shares_are_read_back_exactly(share: float) -> None:
    assert units.parse_share(units.format_share(share)) == share


class Settings(BaseModel):
    size: Size
    rate: Rate | None
    duration: Duration = Field(gt=0)
    share: Share


def test_models_hold_and_write_base_units() -> None:
    settings = Settings.model_validate({"size": "1MiB", "rate": "1gbit", "duration": "100ms", "share": "10%"})
    assert settings.model_dump(mode="json") == {"size": 1048576, "rate": 1000000000, "duration": 0.1, "share": 0.1}
    assert Settings.model_validate(settings.model_dump(mode="json")) == settings


def test_models_hold_limits_on_quantities() -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"size": "1", "rate": None, "duration": "0s", "share": 3})
    assert [error["loc"] for error in caught.value.errors()] == [("duration",), ("share",)]


@pytest.mark.parametrize(
    ("levels", "units", "numbers"),
    [
        (["64k", "1m", "256K"], {"bytes"}, [65536, 1048576, 262144]),
        ([512, "1k", "64k"], {"bytes"}, [512, 1024, 65536]),
        (["1m", "5m"], {"s"}, [60, 300]),
        (["1M", "16M"], {"bytes"}, [1048576, 16777216]),
        (["1.5g", "2G"], {"bytes"}, [1.5 * 2**30, 2**31]),
        (["64KiB", "1MiB"], {"bytes"}, [65536, 1048576]),
        ([1, 10], {""}, [1, 10]),
    ],
)
def test_levels_of_a_factor_are_read_together(levels: list[object], units: set[str], numbers: list[float]) -> None:
    """As iperf3, fio and netperf have them: k is 2^10 (their manuals)."""
    found = magnitudes(levels)
    assert {each[0] for each in found if each} == units
    assert [each[1] for each in found if each] == numbers


def test_one_text_leaves_the_others_as_they_are() -> None:
    assert magnitudes(["64k", "wifi"])[1] is None
    assert magnitudes([True, "64k"])[0] is None
