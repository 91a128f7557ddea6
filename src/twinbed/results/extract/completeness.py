"""Checks that captures hold all of the workload: requests in captures over requests that clients counted.

A capture that was cut off, began late or lost packets in the kernel has fewer.  A request under way when the client stopped
counting is only in the capture, so slightly more than all is no fault.  Encrypted requests cannot be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from twinbed.metrics.completeness import COMPLETENESS
from twinbed.metrics.metric import Metric, Value
from twinbed.model.caution import Caution, Kind

if TYPE_CHECKING:
    import pyarrow as pa

CLIENT, SERVER = "client", "server"


def completeness(
    run: str, tables: Iterable[tuple[str, pa.Table]], requests: float | None, of_each: Mapping[str, float], pairs: int
) -> tuple[list[tuple[Value, Metric]], list[Caution]]:
    """Return shares of captured requests, and cautions for missing ones.

    ``requests`` are those of the whole run, ``of_each`` those of each client if there are several. Nothing is returned without
    captured requests, or if their number is unknown.
    """
    for name, table in tables:
        if name == "exchanges" and table.num_rows:
            shares = list(_shares(table, requests, of_each, pairs))
            values = [Value(COMPLETENESS.name, seen / counted, COMPLETENESS.unit, link) for link, seen, counted in shares]
            return [(each, COMPLETENESS) for each in values], [_caution(run, *each) for each in shares if each[1] < each[2]]
    return [], []


def _shares(
    table: pa.Table, requests: float | None, of_each: Mapping[str, float], pairs: int
) -> Iterator[tuple[str, int, float]]:
    """Yield (link, complete requests on it, requests that its client counted)."""
    import pyarrow.compute as pc

    complete = table.filter(table["complete"])
    for link in sorted(set(table["link"].to_pylist())):
        client = link.replace(SERVER, CLIENT, 1)
        counted = requests if pairs == 1 else of_each.get(client)
        if counted and link.startswith((CLIENT, SERVER)):
            yield link, int(pc.sum(pc.equal(complete["link"], link), min_count=0).as_py()), counted


def _caution(run: str, link: str, seen: int, counted: float) -> Caution:
    lacking = f"{100 * (1 - seen / counted):.2g} % lack"
    return Caution(Kind.INCOMPLETE_CAPTURE, f"{link}: {seen} of {counted:.0f} requests, {lacking}", run)
