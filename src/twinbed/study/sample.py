"""Levels that are drawn, not listed: ``payload: {log_uniform: [500B, 16MiB], samples: 50}``.

Draws follow van der Corput's sequence in base 2, shuffled and scrambled by nested uniform permutations (Owen 1995, in
Monte Carlo and Quasi-Monte Carlo Methods, 299; independent for each factor as in Burley 2020, J. Comput. Graph. Tech. 9(4):1).
Each draw on its own is uniform.  Each of 2^m equal parts of the range has one of the first 2^m draws, so several factors that
are drawn together form a Latin hypercube.  A study that asks for more draws keeps the earlier ones.  Draws depend only on the
study's seed and the factor's name: SHA-256 decides each digit, so every version of every library gives the same draws.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

from twinbed.model.near import nearest
from twinbed.model.run import Level
from twinbed.model.units import QuantityError, format_duration, format_size, magnitudes
from twinbed.study.document import Entries, Items, Node, Problem, Scalar, listed
from twinbed.study.params import shown

SAMPLES = "samples"
MOST = 10_000
DIGITS = 40
"""Digits of a draw in base 2."""
PLACES = 4
"""Significant digits of drawn numbers, rates and times; sizes are drawn to the byte."""
TRIES = 4
"""Draws made for each level that is asked for, before too few different ones are an error."""
EXAMPLE = "such as {log_uniform: [500B, 16MiB], samples: 50}"


def uniform(seed: int, name: str, index: int) -> float:
    """Return the draw of this index, at least 0 and below 1."""
    place = 0
    for digit in reversed(range(DIGITS)):
        above = index >> digit + 1
        place |= ((index >> digit & 1) ^ _flips(seed, name, "place", digit, above)) << digit
    value = 0.0
    for digit in range(DIGITS):
        below = place & (1 << digit) - 1
        value += ((place >> digit & 1) ^ _flips(seed, name, "digit", digit, below)) / 2 ** (digit + 1)
    return value


def independent(seed: int, name: str, index: int) -> float:
    """Return an uncertain input's draw of this index, between 0 and 1. Draws are independent, as Monte Carlo assumes."""
    text = json.dumps([seed, "uncertain", name, index], separators=(",", ":"))
    place = int.from_bytes(hashlib.sha256(text.encode()).digest()[: DIGITS // 8])
    return (place + 0.5) / float(1 << DIGITS)


def _flips(*what: object) -> int:
    return hashlib.sha256(json.dumps(what, separators=(",", ":")).encode()).digest()[0] & 1


def is_sample(node: Node) -> bool:
    """Return whether a factor's levels are drawn."""
    return isinstance(node, Entries)


def read_sample(
    key: str,
    node: Entries,
    at: Callable[[int], float],
    together: int | None,
    problems: list[Problem],
) -> list[Scalar] | None:
    """Return the drawn levels, all different; None, with a problem, where the node does not say how to draw.

    ``at`` gives the draw of each index, between 0 and 1. ``together``: the number of draws of factors that are drawn together,
    whose levels may repeat.
    """
    for other, place in node.keys.items():
        if other not in KINDS and (other != SAMPLES or together is not None):
            near = nearest(other, KINDS)
            problems.append(Problem.at(place, f"{key}.{other}", "is not a way to draw levels", listed(KINDS), near))
            return None
    kinds = [kind for kind in node.entries if kind in KINDS]
    if len(kinds) != 1:
        allowed = f"one of {listed(KINDS)}; {EXAMPLE}"
        problems.append(Problem.at(node.place, key, "does not name one distribution", allowed))
        return None
    samples = read_count(key, node, problems) if together is None else together
    within = node.entries[kinds[0]]
    if samples is None:
        return None
    try:
        draw = KINDS[kinds[0]](_values(within))
    except QuantityError as error:
        problems.append(Problem.at(within.place, f"{key}.{kinds[0]}", error.message, error.allowed))
        return None
    known: dict[tuple[type, Level], Scalar] = {}
    levels: list[Scalar] = []
    for index in range(TRIES * samples):
        value = draw(at(index))
        new = (type(value), value) not in known
        level = known.setdefault((type(value), value), Scalar(value, node.place))
        if new or together is not None:
            levels.append(level)
        if len(levels) == samples:
            return levels
    problems.append(
        Problem.at(node.place, key, f"has fewer than {samples} different levels", "fewer samples, or a wider range")
    )
    return None


def read_count(key: str, node: Entries, problems: list[Problem]) -> int | None:
    """Return how many levels are drawn; None, with a problem, where that is missing or wrong."""
    given = node.entries.get(SAMPLES)
    allowed = f"a whole number from 1 to {MOST:,}; {EXAMPLE}"
    if given is None:
        problems.append(Problem.at(node.place, f"{key}.{SAMPLES}", "is required: how many levels are drawn", allowed))
        return None
    value = given.value if isinstance(given, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        problems.append(Problem.at(given.place, f"{key}.{SAMPLES}", f"{shown(value)} is not a number of levels", allowed))
        return None
    return value


Draw = Callable[[float], Level]


def _values(node: Node) -> list[Level]:
    if not isinstance(node, Items) or not all(isinstance(item, Scalar) for item in node.items):
        raise QuantityError("is not a list", "a list of levels, or of the two ends of a range")
    return [item.value for item in node.items if isinstance(item, Scalar)]


def _ends(values: Sequence[Level], *, ordered: bool = True) -> tuple[float, float, Callable[[float], Level]]:
    """Return the two ends in base units, and a function that writes a value between them."""
    if len(values) != 2:
        raise QuantityError("is not a range", "two values, the smaller first")
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        low, high = (float(value) for value in values if isinstance(value, int | float))
        write: Callable[[float], Level] = _rounded
    else:
        sizes = magnitudes([str(value) for value in values])
        units = {size[0] for size in sizes if size is not None}
        if None in sizes or len(units) != 1:
            raise QuantityError("is not a range", "two numbers, sizes, rates or durations")
        low, high = (size[1] for size in sizes if size is not None)
        write = _WRITTEN[units.pop()]
    if ordered and not low < high:
        raise QuantityError("is not a range", "the smaller value first")
    return low, high, write


def _rounded(value: float) -> float:
    return float(f"{value:.{PLACES}g}")


_WRITTEN: Mapping[str, Callable[[float], Level]] = {
    "bytes": lambda value: format_size(round(value)),
    "bit/s": lambda value: f"{round(_rounded(value))}bit",
    "s": lambda value: format_duration(_rounded(value)),
}


def _uniform(values: Sequence[Level]) -> Draw:
    low, high, write = _ends(values)
    return lambda at: write(low + at * (high - low))


def _log_uniform(values: Sequence[Level]) -> Draw:
    low, high, write = _ends(values)
    if low <= 0:
        raise QuantityError("has no logarithm", "a range above 0")
    return lambda at: write(low * math.exp(at * math.log(high / low)))


def _normal(values: Sequence[Level]) -> Draw:
    centre, spread, write = _ends(values, ordered=False)
    if spread <= 0:
        raise QuantityError("does not vary", "a mean, and a standard deviation above 0")
    return lambda at: write(centre + spread * _quantile(at))


def _log_normal(values: Sequence[Level]) -> Draw:
    if len(values) != 2 or not isinstance(values[1], int | float) or isinstance(values[1], bool) or values[1] <= 1:
        raise QuantityError("is not a median and a factor", "such as [64KiB, 3]: two thirds of draws are within a factor of 3")
    centre, _, write = _ends((values[0], values[0]), ordered=False)
    if centre <= 0:
        raise QuantityError("has no logarithm", "a median above 0")
    factor = math.log(values[1])
    return lambda at: write(centre * math.exp(factor * _quantile(at)))


def _quantile(at: float) -> float:
    """Return a quantile of the standard normal distribution; both ends are half a digit away."""
    return NormalDist().inv_cdf(max(at, 0.5 / 2**DIGITS))


def _integers(values: Sequence[Level]) -> Draw:
    ends = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if len(ends) != 2 or len(values) != 2 or not ends[0] < ends[1]:
        raise QuantityError("is not a range of whole numbers", "two whole numbers, the smaller first, such as [1, 64]")
    low, high = ends
    return lambda at: low + math.floor(at * (high - low + 1))


def _choice(values: Sequence[Level]) -> Draw:
    if not values:
        raise QuantityError("has no levels", "a list of levels")
    return lambda at: values[math.floor(at * len(values))]


KINDS: Mapping[str, Callable[[Sequence[Level]], Draw]] = {
    "log_uniform": _log_uniform,
    "uniform": _uniform,
    "log_normal": _log_normal,
    "normal": _normal,
    "integers": _integers,
    "choice": _choice,
}


def subset(seed: int, name: str, levels: Sequence[Scalar], count: int, *, drawn: bool) -> list[Scalar]:
    """Return ``count`` random levels of a factor, in their order. A larger count keeps the levels of a smaller one.

    The first of drawn levels are as random as any others and evenly spread; listed levels are chosen by the smallest hashes.
    """
    if drawn:
        return list(levels[:count])

    def rank(level: Scalar) -> bytes:
        text = json.dumps([seed, "only", name, level.value], separators=(",", ":"))
        return hashlib.sha256(text.encode()).digest()

    chosen = sorted(levels, key=rank)[:count]
    return [level for level in levels if level in chosen]
