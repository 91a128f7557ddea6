"""Numbers for readers: base units scaled by a thousand's power, digits that the interval's width can bear.

Metrics are kept in base units; only here are they scaled.  Decimal prefixes, as in SI.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_PREFIXED = {"bytes": "B", "B": "B", "bit": "bit", "bit/s": "bit/s", "bytes/s": "B/s", "s": "s", "seconds": "s", "Hz": "Hz"}
NONE = "–"
_LONG_S = 100.0
NOTHING = 1e-9
"""A per cent below it is the rounding of a difference of equal numbers."""


@dataclass(frozen=True, slots=True)
class UnitScale:
    """A value in the base unit times ``1 / factor`` is the number shown, in ``unit``."""

    factor: float
    unit: str


def unit_scale(unit: str, values: Sequence[float | None]) -> UnitScale:
    """Return one scaling for values that stand next to each other, chosen by the largest."""
    # The name of a metric per request says so; its unit need not.
    base, _, per = unit.partition("/")
    whole = unit if unit in _PREFIXED or per == "s" else base
    symbol = _PREFIXED.get(whole)
    if symbol is None:
        return UnitScale(1.0, {"1": "", "count": "", "1/s": "/s"}.get(whole, whole))
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if largest == 0:
        return UnitScale(1.0, symbol)
    for factor, prefix in _PREFIXES:
        if largest >= factor and not (factor < 1 and symbol[0] in "Bb"):
            return UnitScale(factor, prefix + symbol)
    return UnitScale(1.0, symbol)


def quantity(value: float | None, unit: str) -> str:
    """Return a value with its unit, to three digits: ``70.0 ms``, ``842 µs``, ``0 s``; longer times as by ``duration``."""
    if value is None or not math.isfinite(value):
        return NONE
    if unit == "s" and value >= _LONG_S:
        return duration(value)
    rounded = float(f"{value:.3g}")
    scale = unit_scale(unit, [rounded])
    shown = f"{rounded / scale.factor:#.3g}".removesuffix(".") if rounded else "0"
    return f"{shown} {scale.unit}".rstrip()


def number(value: float | None, half_width: float | None = None) -> str:
    """Return a number with the digits that matter: two of the half width where there is one, else four of its own."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:,.{_decimals(value, half_width)}f}"


def plus_minus(value: float | None, half_width: float | None) -> str:
    """``1,234 ± 56``; the number alone where there is no interval, ``± 0`` where nothing varies."""
    if value is None or half_width is None:
        return number(value)
    if half_width == 0:
        return f"{number(value)} ± 0"
    decimals = _decimals(value, half_width)
    if half_width < 0.5 * 10**-decimals:
        return f"{number(value)} ± <{10**-decimals:.{decimals}f}"
    return f"{value:,.{decimals}f} ± {half_width:,.{decimals}f}"


EVEN = 0.1
"""Share of the half width by which the two sides of an interval may differ, to be written as one."""
FOLD = 100.0
"""An interval that spans more than this says nothing that its bounds could tell."""
VAST = f"[>{FOLD:.0f}-fold]"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """``1,234 ± 56``, with the larger side, where both sides are about as long; else ``1,234 [1,150, 1,330]``, with two digits
    of the shorter side."""
    if value is None or low is None or high is None:
        return number(value)
    below, above = value - low, high - value
    if abs(above - below) <= EVEN * (above + below) / 2:
        return plus_minus(value, max(below, above))
    return _bounded(value, low, high)


def _bounded(value: float, low: float, high: float) -> str:
    """``1,234 [1,150, 1,330]``; ``1,200 [>100-fold]``."""
    if low > 0 and high > FOLD * low:
        return f"{number(value, value)} {VAST}"
    decimals = _decimals(value, min(value - low, high - value) or (high - low) / 2)
    return f"{value:,.{decimals}f} [{low:,.{decimals}f}, {high:,.{decimals}f}]"


def _decimals(value: float, half_width: float | None) -> int:
    if not value and not half_width:
        return 0
    own = 3 - math.floor(math.log10(abs(value))) if value else 3
    if not half_width:
        return 0 if value == round(value) and abs(value) < 1e15 else max(0, min(9, own))
    by_width = 1 - math.floor(math.log10(half_width))
    return max(0, min(9, by_width, own + 2))


def ratio(value: float | None) -> str:
    """Return a ratio with three decimals near 1, three significant digits elsewhere."""
    if value is None:
        return NONE
    if 0.1 <= value < 10 or value == 0:
        return f"{value:.3f}"
    return f"{value:#.3g}".removesuffix(".") if value < 1000 else f"{value:,.0f}"


def ratio_with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """``1.032 [0.981, 1.087]`` with two digits of the shorter side; ``1.000 ± <0.001`` where it is below what a ratio is given
    to, the ratio alone where nothing is known of it, or where it is exact."""
    if value is None or low is None or high is None or low == high:
        return ratio(value)
    if high - low < FINEST_RATIO * value:
        return f"{ratio(value)} ± <{FINEST_RATIO * value:.1g}"
    return _bounded(value, low, high)


FINEST_RATIO = 1e-3
"""Share of itself that no reader asks a ratio to be known better than."""


def change(value: float, reference: str) -> str:
    """Return a ratio in words: ``4.1 % less than container``, ``3.4 times as much as container``."""
    if value >= 2:
        return f"{value:.3g} times as much as {reference}"
    if value == 0:
        return f"none, unlike {reference}"
    if value < 0.01:
        return f"1/{round(1 / value):,} of {reference}"
    percent = abs(value - 1) * 100
    if percent < 0.05:
        return f"the same as {reference} to 0.1 %"
    return f"{percent:.{0 if percent >= 10 else 1}f} % {'more' if value > 1 else 'less'} than {reference}"


TIMES = 1.5
"""A ratio from here on is shown as a multiple, below it as a share more or less."""


SAME = "the same"
"""Said of a ratio that is 1 to 0.05 %."""


def changed(value: float, *, sentence: bool = False) -> str:
    """Return how far a ratio is from 1, as a cell of a table or as part of a sentence.

    >>> changed(0.7), changed(1.17), changed(12.46), changed(0.004), changed(1.0002)
    ('-30 %', '+17 %', '12x', '1/250', '0 %')
    >>> changed(0.7, sentence=True), changed(12.46, sentence=True), changed(1.0002, sentence=True)
    ('30 % lower', '12 times as high', 'the same')
    """
    if value >= TIMES:
        times = _multiple(value)
        return f"{times} times as high" if sentence else f"{times}x"
    if value == 0:
        return "0 throughout" if sentence else "none"
    if value < 0.01:
        return f"1/{round(1 / value):,}" + (" as high" if sentence else "")
    if abs(value - 1) < 0.0005:
        return SAME if sentence else "0 %"
    if sentence:
        return f"{_percent(value)} % {'higher' if value > 1 else 'lower'}"
    return f"{'+' if value > 1 else '-'}{_percent(value)} %"


def _multiple(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def _percent(value: float) -> str:
    percent = abs(value - 1) * 100
    return f"{percent:.{0 if percent >= 9.95 else 1}f}"


def changed_range(value: float, low: float, high: float) -> str:
    """Return the bounds of a ratio in the form in which ``changed`` says the ratio itself.

    >>> changed_range(0.7, 0.64, 0.76), changed_range(12.5, 9.6, 16.1), changed_range(0.95, 0.85, 1.06)
    ('24-36 %', '9.6-16 times', '15 % lower to 6.0 % higher')
    >>> changed_range(1.41, 1.1, 1.7)
    '10-70 %'
    """
    if low > 0 and high > FOLD * low:
        return f"spans more than {FOLD:.0f}-fold"
    if low > 0 and high < 1 and value >= 0.01:
        return f"{_percent(high)}-{_percent(low)} %"
    if low >= 1 and value < TIMES:
        return f"{_percent(low)}-{_percent(high)} %"
    if low >= 1:
        short = f"{_multiple(low)}-{_multiple(high)} times"
        return short if _multiple(low) != _multiple(high) else f"{low:.3g}-{high:.3g} times"
    return f"{changed(max(low, 0.0), sentence=True)} to {changed(high, sentence=True)}"


def two_digits(value: float, sign: str = "") -> str:
    """Return ``4.1``, ``29``, ``1,234``; with ``sign`` "+" of both signs. No powers of ten; 0 of what arithmetic left.

    >>> two_digits(-3e-14, "+"), two_digits(0.000123, "+"), two_digits(-0.5)
    ('0', '+0.00012', '-0.5')
    """
    if abs(value) < NOTHING:
        return "0"
    return f"{value:{sign},.0f}" if abs(value) >= 99.5 else f"{Decimal(f'{value:.2g}'):{sign}f}"


def share(value: float) -> str:
    """Return such as ``10 %``; what rounding left of a difference of equal numbers is ``0 %``."""
    return f"{0 if abs(value) * 100 < NOTHING else value * 100:g} %"


def duration(seconds: float) -> str:
    """``8 s``, ``4 min 10 s``, ``3 h 12 min``."""
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
