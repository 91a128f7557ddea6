"""Cautions that need both settings and measurements.

Checks that captures hold all of the workload: requests in captures over requests that clients counted.

A capture that was cut off, began late or lost packets in the kernel has fewer.  A request under way when the client stopped
counting is only in the capture, so slightly more than all is no fault.  Encrypted requests cannot be checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from twinbed.metrics.metric import Metric, Value
from twinbed.metrics.runs import COMPLETENESS
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document, Json
from twinbed.model.record import IMPORTED, Record
from twinbed.model.topology import topology_of
from twinbed.statistics.physics import Accounting, Path, tcp_goodput

if TYPE_CHECKING:
    import pyarrow as pa

FINGERPRINT = "fingerprint"
"""The instrument whose user wants hosts' hellos."""
LEAST_DIGITS = 3
"""The fewest digits that tools print of a rate."""
OF_HELLOS = ("ja3", "ja3s", "ja4")
"""Features of the table ``fingerprints``."""


def above_link_rate(record: Record, values: Iterable[Value]) -> Iterator[Caution]:
    """Doubt goodput above what a wire of the link's rate carries, by more than its last digit. Its limit is then not that of a
    real link."""
    topology = topology_of(record.settings["topology"])
    if topology.link.rate is None:
        return
    most, shaped = (
        tcp_goodput(topology.link.rate, Path(mtu=topology.link.mtu, accounting=counted))
        for counted in (Accounting.WIRE, Accounting.SHAPER)
    )
    for value in values:
        links = 1 if value.host else len(topology.names())
        if value.metric == "goodput" and value.value is not None and _is_above(value.value, most * links):
            detail = f"{value.value / 1e6:.1f} Mbit/s over links that carry at most {most * links / 1e6:.1f}"
            if record.settings["testbed"]["kind"] == IMPORTED:
                yield Caution(Kind.ABOVE_GIVEN_RATE, detail, record.id)  # no shaper of ours is there, and none is known of
            else:
                yield Caution(Kind.ABOVE_LINK_RATE, f"{detail} ({shaped * links / 1e6:.1f} as the shaper counts)", record.id)


def _is_above(value: float, limit: float) -> bool:
    """Return whether a value is above a limit by more than rounding to its last digit, the third at least, explains."""
    if not limit < value < math.inf:
        return value > limit
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    return value - 0.5 * 10.0 ** (int(exponent) + min(0, len(digits) - LEAST_DIGITS)) > limit


def hellos_cut(record: Record, tables: Iterable[tuple[str, pa.Table]]) -> Iterator[Caution]:
    """Caution if hosts' fingerprints are asked for and a host spoke TLS, but none of its hellos was captured whole."""
    instruments = record.settings["instruments"]
    if not isinstance(instruments, Mapping) or FINGERPRINT not in (settings.get("kind") for settings in _settings(instruments)):
        return
    missing = [
        f"{row['feature']} of {row['host']}"
        for name, table in tables
        if name == "fingerprints"
        for row in table.to_pylist()
        if row["feature"] in OF_HELLOS and row["text"] is None
    ]
    if missing:
        yield Caution(Kind.HELLOS_CUT, ", ".join(missing), record.id)


def _settings(instruments: Mapping[str, Json]) -> Sequence[Document]:
    return [settings for settings in instruments.values() if isinstance(settings, Mapping)]


CLIENTS, SERVERS = "client", "server"


def completeness(
    run: str, tables: Iterable[tuple[str, pa.Table]], requests: float | None, of_each: Mapping[str, float], pairs: int
) -> tuple[list[tuple[Value, Metric]], list[Caution]]:
    """Return shares of captured requests, and cautions for missing ones. ``requests`` are those of the whole run, ``of_each``
    those of each client if there are several. Nothing is returned without captured requests, or if their number is unknown."""
    for name, table in tables:
        if name == "exchanges" and table.num_rows:
            shares = list(_shares(table, requests, of_each, pairs))
            values = [Value(COMPLETENESS.name, seen / counted, COMPLETENESS.unit, link) for link, seen, counted in shares]
            return [(value, COMPLETENESS) for value in values], [
                _caution(run, *share) for share in shares if share[1] < share[2]
            ]
    return [], []


def _shares(
    table: pa.Table, requests: float | None, of_each: Mapping[str, float], pairs: int
) -> Iterator[tuple[str, int, float]]:
    """Yield (link, complete requests on it, requests that its client counted)."""
    import pyarrow.compute as pc

    complete = table.filter(table["complete"])
    for link in sorted(set(table["link"].to_pylist())):
        client = link.replace(SERVERS, CLIENTS, 1)
        counted = requests if pairs == 1 else of_each.get(client)
        if counted and link.startswith((CLIENTS, SERVERS)):
            yield link, int(pc.sum(pc.equal(complete["link"], link), min_count=0).as_py()), counted


def _caution(run: str, link: str, seen: int, counted: float) -> Caution:
    lacking = f"{100 * (1 - seen / counted):.2g} % lack"
    return Caution(Kind.INCOMPLETE_CAPTURE, f"{link}: {seen} of {counted:.0f} requests, {lacking}", run)
