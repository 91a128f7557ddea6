"""A row of the table ``fingerprints``: observer, host, feature, text, value, seen.

observer is ``passive`` (of captures alone), ``active`` (of answers to requests) or ``host`` (of a program on it).  text is the
value as text, value the number of a numeric one.  Both are null where it is missing.  seen is the number of packets or probes
behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Observer: TypeAlias = Literal["passive", "active", "host"]


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a host. Units are in its name."""

    observer: Observer
    host: str
    name: str
    text: str | None
    value: float | None
    seen: int


def word(observer: Observer, host: str, name: str, text: str | None, seen: int = 1) -> Feature:
    return Feature(observer, host, name, text, None, seen)


def number(observer: Observer, host: str, name: str, value: float | None, seen: int = 1) -> Feature:
    return Feature(observer, host, name, None if value is None else f"{value:.12g}", value, seen)


def moments(observer: Observer, host: str, name: str, unit: str, values: Sequence[float]) -> Iterator[Feature]:
    """Yield mean, standard deviation (n - 1), skewness and kurtosis (0 and 3 for normal values); null of too few values."""
    count = len(values)
    mean = sum(values) / count if count else None
    powers = [sum((value - mean) ** power for value in values) for power in (2, 3, 4)] if mean is not None else [0.0] * 3
    second, third, fourth = powers
    spread = second > 0
    yield number(observer, host, f"{name}_mean{unit}", mean, count)
    yield number(observer, host, f"{name}_sd{unit}", (second / (count - 1)) ** 0.5 if count > 1 else None, count)
    yield number(observer, host, f"{name}_skewness", count**0.5 * third / second**1.5 if spread and count > 2 else None, count)
    yield number(observer, host, f"{name}_kurtosis", count * fourth / second**2 if spread and count > 3 else None, count)


def table(features: Iterable[Feature]) -> pa.Table:
    import pyarrow as pa

    types = {
        "observer": pa.string(),
        "host": pa.string(),
        "feature": pa.string(),
        "text": pa.string(),
        "value": pa.float64(),
        "seen": pa.int64(),
    }
    rows = [(feature.observer, feature.host, feature.name, feature.text, feature.value, feature.seen) for feature in features]
    columns = zip(*rows, strict=True) if rows else ([] for _ in types)
    return pa.table({name: pa.array(column, types[name]) for name, column in zip(types, columns, strict=True)})
