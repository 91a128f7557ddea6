"""What a run does inside: pauses of its clients, and the drift of its rate.

By the requests of captures, or where there are none by iperf3's intervals; a run without either has none of the metrics.
Methods: ``statistics.stalls`` and ``statistics.steady``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinbed.metrics.metric import Metric, Value
from twinbed.metrics.pace import DRIFT, STALLED, STALLS
from twinbed.model.caution import Caution, Kind

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed.statistics.stalls import Stall

OF_IPERF3 = {"host", "end", "start_s", "seconds", "bytes"}
"""The columns that iperf3's intervals have, unlike those of other tools."""
CLIENT = "client"
"""How the names of clients' links begin."""


@dataclass(frozen=True, slots=True)
class _Client:
    """One client's pauses. ``stalls`` is None where too little happened to show a pace."""

    where: str
    stalls: Sequence[Stall] | None
    lasted: float


def pace(run: str, tables: Iterable[tuple[str, pa.Table]]) -> tuple[list[tuple[Value, Metric]], list[Caution]]:
    """The metrics of a run's inside, and a caution for each client that stalled."""
    for name, table in tables:
        if name == "exchanges":
            clients, drift = [*_of_exchanges(table)], _drift_of_exchanges(table)
        elif name == "intervals" and set(table.column_names) >= OF_IPERF3:
            clients, drift = [*_of_intervals(table)], _drift_of_intervals(table)
        else:
            continue
        return [*_values(clients, drift)], [caution for client in clients for caution in _caution(run, client)]
    return [], []


def _values(clients: Sequence[_Client], drift: float | None) -> Iterator[tuple[Value, Metric]]:
    known = [each.stalls for each in clients if each.stalls is not None]
    lasted = math.fsum(each.lasted for each in clients)
    whole = bool(known) and len(known) == len(clients) and lasted > 0
    stalled = math.fsum(stall.seconds for stalls in known for stall in stalls)
    yield Value(STALLS.name, sum(map(len, known)) if whole else None, STALLS.unit), STALLS
    yield Value(STALLED.name, stalled / lasted if whole else None, STALLED.unit), STALLED
    yield Value(DRIFT.name, drift, DRIFT.unit), DRIFT


def _caution(run: str, client: _Client) -> Iterator[Caution]:
    stalls = client.stalls
    if stalls:
        longest, in_all = max(each.seconds for each in stalls), sum(each.seconds for each in stalls)
        count = f"{len(stalls)} pauses, " if len(stalls) > 1 else ""
        detail = (
            f"{client.where}: {count}the longest {longest:.2g} s; {100 * in_all / client.lasted:.2g} % of {client.lasted:.3g} s"
        )
        yield Caution(Kind.STALL, detail, run)


def _of_exchanges(table: pa.Table) -> Iterator[_Client]:
    import numpy as np
    import pyarrow.compute as pc

    from twinbed.statistics import stalls

    of_clients = answered(table)
    for link in of_clients["link"].unique().to_pylist():
        own = of_clients.filter(pc.equal(of_clients["link"], link))
        begun = own["start_ns"].to_numpy()
        begun = (begun - begun.min()) / 1e9
        events = np.concatenate([begun, begun + own["duration_s"].to_numpy()])
        yield _Client(link, stalls.of_events(events), float(np.ptp(events)))


def answered(table: pa.Table) -> pa.Table:
    """The requests on clients' links whose time is known."""
    import pyarrow.compute as pc

    known = pc.and_(pc.is_valid(table["start_ns"]), pc.is_valid(table["duration_s"]))
    return table.filter(pc.and_(pc.starts_with(table["link"], CLIENT), known))


def _drift_of_exchanges(table: pa.Table) -> float | None:
    from twinbed.statistics.steady import drift, rates_of_answers

    own = answered(table)
    series = rates_of_answers(own["start_ns"].to_numpy(), own["duration_s"].to_numpy())
    return drift(series.rates) if series else None


def _of_intervals(table: pa.Table) -> Iterator[_Client]:
    """What one end counts may be hidden from the other by a buffer: of both ends, the one that stalled longer."""
    import pyarrow.compute as pc

    from twinbed.statistics import stalls

    for host in table["host"].unique().to_pylist():
        of_ends = []
        for end in table["end"].unique().to_pylist():
            own = table.filter(pc.and_(pc.equal(table["host"], host), pc.equal(table["end"], end))).sort_by("start_s")
            seconds, done = own["seconds"].to_pylist(), own["bytes"].to_pylist()
            if None not in (*seconds, *done):
                of_ends.append(_Client(host, stalls.of_intervals(seconds, done), math.fsum(seconds)))
        if of_ends:
            yield max(of_ends, key=lambda each: math.fsum(stall.seconds for stall in each.stalls or ()))


def _drift_of_intervals(table: pa.Table) -> float | None:
    from twinbed.statistics.steady import drift, rates_of_intervals

    series = rates_of_intervals(table.to_pylist())
    return drift(series.rates) if series else None
