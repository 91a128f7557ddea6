"""Numbers of each client of a run as values: of one client, the run's; of several, each one's and the run's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from twinbed.metrics.metric import Value

Numbers = Mapping[str, float | None]
"""Metric -> number; None where it is missing."""


def values(
    clients: Sequence[tuple[str, Numbers]], units: Mapping[str, str], together: Callable[[Sequence[Numbers]], Numbers]
) -> Iterator[Value]:
    """Yield values of (host, numbers). ``together`` makes the run's numbers of several clients'."""
    if len(clients) == 1:
        yield from (Value(name, number, units[name]) for name, number in clients[0][1].items())
        return
    for host, numbers in clients:
        yield from (Value(name, number, units[name], host) for name, number in numbers.items())
    for name, number in together([numbers for _, numbers in clients]).items():
        yield Value(name, number, units[name])


def total(numbers: Sequence[float | None]) -> float | None:
    """Return the sum; None where one is missing, or there is none."""
    present = [number for number in numbers if number is not None]
    return math.fsum(present) if present and len(present) == len(numbers) else None
