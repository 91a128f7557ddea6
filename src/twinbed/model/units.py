"""Quantities as a study file writes them: sizes, rates, durations, shares; base units inside.

Sizes are whole bytes: ``500B``, ``64KiB`` = 64 x 2^10, ``1MB`` = 10^6 (IEC 80000-13 prefixes).  Rates are whole bits per
second, named as tc(8) names them: ``100mbit``, ``1gbit`` (decimal prefixes).  Durations are seconds.  Shares are fractions of
one.  A plain number is in the base unit.  Arithmetic is decimal and exact: fractions of bytes or bits are refused.  So is
``bps``, which is bytes to tc(8) and bits to everybody else.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator

from twinbed.model.near import Near

SIZE_UNITS: Mapping[str, int] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
RATE_UNITS: Mapping[str, int] = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
DURATION_UNITS: Mapping[str, Decimal] = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}

SIZE_ALLOWED = "a size such as 500B, 64KiB (2^10), 1MiB (2^20), 1MB (10^6), or a plain number of bytes"
RATE_ALLOWED = "a rate such as 10kbit, 100mbit, 1gbit, 1Gbit/s, or a plain number of bits per second"
SAMPLE_ALLOWED = "all, or a random share such as random 10 %"
DURATION_ALLOWED = "a duration such as 5us, 100ms, 90s, 2m, 1h, or a plain number of seconds"
SHARE_ALLOWED = "a share between 0 and 1 such as 0.1 or 10%"

_NUMBER_AND_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([^\d\s.]\S*)?\s*", re.ASCII)
_EXACT = Context(prec=400)
"""Wide enough that no product here is rounded: the longest binary64 has 17 significant digits, the widest factor 2^40."""


class QuantityError(ValueError):
    """A value that is no quantity. ``allowed`` describes a right one, with examples."""

    def __init__(self, message: str, allowed: str, near: Near = ()) -> None:
        """Take the message; ``near`` is what was probably meant."""
        super().__init__(f"{message}; allowed: {allowed}")
        self.message = message
        self.allowed = allowed
        self.near = near


def parse_size(value: object) -> int:
    """Return bytes. Raises QuantityError."""
    return _whole_number(_parse(value, SIZE_UNITS, SIZE_ALLOWED), value, "bytes", SIZE_ALLOWED)


def parse_rate(value: object) -> int:
    """Return bits per second. Raises QuantityError. Units are read without regard to case, and may end in ``/s``."""
    text = value.strip().lower().removesuffix("/s") if isinstance(value, str) else value
    if isinstance(text, str) and text.endswith("bps"):
        near = (f"{text.removesuffix('bps')}bit",)
        raise QuantityError(f"{value!r} is ambiguous: bps is bits to some and bytes to tc", RATE_ALLOWED, near)
    return _whole_number(_parse(text, RATE_UNITS, RATE_ALLOWED, shown=value), value, "bits per second", RATE_ALLOWED)


def parse_duration(value: object) -> float:
    """Return seconds. Raises QuantityError."""
    text = value.replace("µ", "u").replace("μ", "u") if isinstance(value, str) else value
    return float(_parse(text, DURATION_UNITS, DURATION_ALLOWED, shown=value))


def parse_share(value: object) -> float:
    """Return a fraction of one, from 0 to 1. Raises QuantityError."""
    share = float(_parse(value, {"%": Decimal("0.01")}, SHARE_ALLOWED))
    if share > 1:
        raise QuantityError(f"{value!r} is more than 1", SHARE_ALLOWED)
    return share


def parse_sample(value: object) -> str:
    """Return ``all``, or the shortest text like ``random 10%``. Raises QuantityError."""
    words = value.split(maxsplit=1) if isinstance(value, str) else []
    if words == ["all"]:
        return "all"
    if len(words) != 2 or words[0] != "random":
        raise QuantityError(f"{value!r} does not select hosts", SAMPLE_ALLOWED)
    try:
        share = parse_share(words[1])
    except QuantityError as error:
        raise QuantityError(error.message, SAMPLE_ALLOWED) from error
    if not share:
        raise QuantityError(f"{value!r} draws no host", SAMPLE_ALLOWED)
    return f"random {format_share(share)}"


@lru_cache(4096)
def magnitude(text: str) -> tuple[str, float] | None:
    """Return a text's base unit and number, for an order by size; None for other texts. It tries sizes, rates and durations in
    this order, then sizes as tools take them (``64k`` = 64 x 2^10)."""
    for unit, parse in (("bytes", parse_size), ("bit/s", parse_rate), ("s", parse_duration)):
        with contextlib.suppress(QuantityError):
            return unit, parse(text)
    return _short_size(text)


def magnitudes(levels: Collection[object]) -> Sequence[tuple[str, float] | None]:
    """Return each level's unit (empty for plain numbers) and number; None for other texts. If all levels of a factor are
    numbers or sizes as tools take them, one of them surely, all are sizes: ``1m`` next to ``64k`` is 2^20 bytes, on its own a
    minute."""
    known = [
        ("", float(level)) if isinstance(level, int | float) and not isinstance(level, bool) else magnitude(str(level))
        for level in levels
    ]
    sizes = [
        _short_size(str(level)) or (("bytes", size[1]) if size is not None and size[0] in ("", "bytes") else None)
        for level, size in zip(levels, known, strict=True)
    ]
    is_sure = any(_short_size(str(level)) and not str(level).endswith("m") for level in levels)
    return sizes if is_sure and None not in sizes else known


_SHORT_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG])", re.ASCII)


def _short_size(text: str) -> tuple[str, float] | None:
    match = _SHORT_SIZE.fullmatch(text)
    return match and ("bytes", float(match[1]) * 1024.0 ** ("kmg".index(match[2].lower()) + 1))


def format_size(size_bytes: int) -> str:
    """Return the shortest text that ``parse_size`` reads as exactly this many bytes."""
    return _format(Decimal(size_bytes), SIZE_UNITS)


def format_rate(rate: int) -> str:
    """Return the shortest text that ``parse_rate`` reads as exactly this many bits per second."""
    return _format(Decimal(rate), RATE_UNITS)


def format_duration(duration_s: float) -> str:
    """Return the shortest text that ``parse_duration`` reads as exactly this many seconds."""
    return _format(Decimal(repr(float(duration_s))), DURATION_UNITS)


def format_share(share: float) -> str:
    """Return the shortest text in per cent that ``parse_share`` reads as exactly this share."""
    return _format(Decimal(repr(float(share))), {"%": Decimal("0.01")})


def _parse(value: object, units: Mapping[str, int] | Mapping[str, Decimal], allowed: str, shown: object = None) -> Decimal:
    shown = value if shown is None else shown
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise QuantityError(f"{shown!r} is not a quantity", allowed)
    if isinstance(value, str):
        match = _NUMBER_AND_UNIT.fullmatch(value)
        if match is None:
            raise QuantityError(f"{shown!r} is not a number with a unit", allowed)
        unit = match[2]
        if unit is not None and unit not in units:
            near = tuple(f"{match[1]}{meant}" for meant in _near_units(unit, units))
            raise QuantityError(f"{shown!r} has an unknown unit {unit!r}", f"{allowed}; units are {', '.join(units)}", near)
        return _EXACT.multiply(Decimal(match[1]), Decimal(units[unit] if unit else 1))
    number = Decimal(repr(value))
    if not number.is_finite() or number < 0:
        raise QuantityError(f"{shown!r} is not a quantity of zero or more", allowed)
    return number


_WORDS: Mapping[str, str] = {
    "ns": "nsec|nanos",
    "us": "usec|micros",
    "ms": "msec|millis",
    "s": "sec|second",
    "m": "min|minute",
    "h": "hr|hour",
}
"""Other words for a duration's unit: their beginnings, or whole words without the plural's s."""


def _near_units(unit: str, units: Mapping[str, int] | Mapping[str, Decimal]) -> Near:
    """Return the units that another spelling may mean: those with the same prefix, the binary one first."""
    plain = unit.lower()
    if units is DURATION_UNITS:
        return tuple(other for other, words in _WORDS.items() if plain.removesuffix("s") in words.split("|") or plain == other)
    alike = [other for other in units if other[0].lower() == plain[0] and (len(other) > 1 or plain[0] == "b")]
    return tuple(sorted(alike, key=lambda other: (other.lower() != plain, "i" not in other)))


def _whole_number(number: Decimal, shown: object, of: str, allowed: str) -> int:
    if number != int(number):
        raise QuantityError(f"{shown!r} is not a whole number of {of}", allowed)
    return int(number)


def _format(number: Decimal, units: Mapping[str, int] | Mapping[str, Decimal]) -> str:
    texts: list[str] = []
    for unit, factor in units.items():
        scaled = _EXACT.divide(number, Decimal(factor))
        if _EXACT.multiply(scaled, Decimal(factor)) == number:
            digits = format(scaled, "f")
            texts.append((digits.rstrip("0").rstrip(".") if "." in digits else digits) + unit)
    return min(texts, key=lambda text: (len(text), "." in text))


def parse_switch(value: object) -> object:
    """Return a switch as a truth: YAML 1.2 reads on and off as text."""
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Quantity:
    """The notation of a quantity: next to its parser in a setting's type, for manuals and editors."""

    name: str
    unit: str
    """The base unit, for a plain number."""
    allowed: str
    examples: tuple[str, ...]
    pattern: str
    """A pattern (ECMA 262's and Python's) of every text that the parser reads."""
    read: Callable[[object], float]
    """Return base units. Raises QuantityError."""
    write: Callable[[float], str]
    """Return a value in base units as a text."""


def _pattern(units: str) -> str:
    return rf"^\s*(\d+(\.\d+)?|\.\d+)\s*({units})?\s*$"


def _any_case(units: Mapping[str, int]) -> str:
    return "|".join("".join(f"[{letter.upper()}{letter}]" for letter in unit) for unit in units) + "|"


SIZE = Quantity(
    "size",
    "bytes",
    SIZE_ALLOWED,
    ("64KiB", "1MiB", "1MB", "500B"),
    _pattern("|".join(SIZE_UNITS)),
    parse_size,
    lambda value: format_size(int(value)),
)
RATE = Quantity(
    "rate",
    "bits per second",
    RATE_ALLOWED,
    ("100mbit", "10kbit", "1gbit", "1Gbit/s"),
    _pattern(f"({_any_case(RATE_UNITS)})(/[Ss])?"),
    parse_rate,
    lambda value: format_rate(int(value)),
)
DURATION = Quantity(
    "duration",
    "seconds",
    DURATION_ALLOWED,
    ("10ms", "5us", "1s", "90s", "2m", "1h"),
    _pattern("|".join((*DURATION_UNITS, "µs", "μs"))),
    parse_duration,
    format_duration,
)
SHARE = Quantity("share", "of one", SHARE_ALLOWED, ("10%", "0.1"), _pattern("%"), parse_share, format_share)
QUANTITIES = (SIZE, RATE, DURATION, SHARE)

Size: TypeAlias = Annotated[int, BeforeValidator(parse_size), SIZE]
"""Bytes."""
Rate: TypeAlias = Annotated[int, BeforeValidator(parse_rate), RATE]
"""Bits per second."""
Duration: TypeAlias = Annotated[float, BeforeValidator(parse_duration), DURATION]
"""Seconds."""
Sample: TypeAlias = Annotated[str, BeforeValidator(parse_sample)]
"""Hosts: ``all``, or ``random`` and a share."""
Share: TypeAlias = Annotated[float, BeforeValidator(parse_share), SHARE]
"""A fraction of one."""
Switch: TypeAlias = Annotated[bool, BeforeValidator(parse_switch)]
"""``on`` or ``off``."""
