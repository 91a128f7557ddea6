"""Metrics: the name, unit, layer and scale of each, and one measured value.

Units are base units (seconds, bytes, bit/s, 1); reports scale them.  The scale is Stevens's (1946) and decides how values are
compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MOST = 1e60
"""Larger values, and values below its inverse but for 0, are not computed with: squares of squares would leave a double's
range."""


class Layer(StrEnum):
    """The layer of the system that a metric describes."""

    APPLICATION = "application"
    OS = "os"
    NETWORK = "network"
    HOST = "host"


class Scale(StrEnum):
    """Stevens's scale of measurement: which arithmetic is meaningful on the values."""

    NOMINAL = "nominal"
    ORDINAL = "ordinal"
    INTERVAL = "interval"
    RATIO = "ratio"


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity to measure.

    Extensive metrics grow with the work done (packets, interrupts).  Extraction adds ``<name>_per_request`` for them, so that
    testbeds with different amounts of work in the same time stay comparable.  Headline metrics are shown in the summary, the
    others in the full tables.
    """

    name: str
    unit: str
    layer: Layer
    description: str
    scale: Scale = Scale.RATIO
    extensive: bool = False
    headline: bool = False
    margin: float | None = None
    """Only for an interval scale, whose 0 is arbitrary: the largest difference that counts as equivalent, in the unit."""
    also: tuple[str, ...] = ()
    """Other words that users look for."""


@dataclass(frozen=True, slots=True)
class Value:
    """One measured value; ``value`` is None where it is missing (never 0)."""

    metric: str
    value: float | None
    unit: str
    host: str = ""
    """The host it was measured on; empty for the run as a whole, ``machine`` for the machine that carries the lab."""
    direction: str = ""
    """``client_to_server``, ``server_to_client``, or empty where it has none."""
    low: float | None = None
    """Only for a value estimated from a sample of the hosts: the ends of its 95 % interval."""
    high: float | None = None


def computable(largest: float) -> bool:
    """Return whether statistics of values, the largest of which is this, stay in a double's range."""
    return largest == 0 or 1 / MOST <= abs(largest) <= MOST
