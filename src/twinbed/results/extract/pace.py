"""Stalls of a run's clients, and the drift of its rate.

Stalls are those of TCP connections on the clients' links (the table ``stalls`` of captures), and pauses far beyond the client's
own pace.  The pace is that of requests in captures; without any that of iperf3's intervals, or of the requests that ``ab -g``
wrote. Overlapping stalls are one.  If captures lost packets, mere silence may be the capture's own.  The clocks of iperf3 and
captures differ: the longer stall of both counts.  A run without any of these has none of the metrics.

Methods: ``crates/core/src/readers/stalls``, ``statistics.stalls``, ``statistics.steady``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinbed.metrics.metric import Metric, Value
from twinbed.metrics.runs import DRIFT, STALLED, STALLS
from twinbed.model.caution import Caution, Kind

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed.statistics.stalls import Stall

OF_IPERF3 = {"host", "end", "start_s", "seconds", "bytes"}
"""The columns of iperf3's intervals, unlike those of other tools."""
AB_RESOLUTION_S = 1.0
"""The precision to which ``ab -g`` cuts the starts of requests."""
CLIENT = "client"
"""The beginning of the names of clients' links."""


@dataclass(frozen=True, slots=True)
class _Client:
    """One client's pauses. ``stalls`` is None if too little happened to show a pace."""

    where: str
    stalls: Sequence[Stall] | None
    lasted: float
    begun_ns: int = 0
    """The time from which stalls' starts count, if known."""
    unclear: bool = False
    """True if there were further silences that may or may not be stalls."""


def pace(
    run: str, tables: Iterable[tuple[str, pa.Table]], *, lossy: bool = False
) -> tuple[list[tuple[Value, Metric]], list[Caution]]:
    """Return the metrics of a run's inside, and a caution for each client that stalled. With ``lossy`` captures lost
    packets."""
    named = {name: table for name, table in tables if name != "intervals" or set(table.column_names) >= OF_IPERF3}
    exchanges, intervals, requests = (named.get(name) for name in ("exchanges", "intervals", "requests"))
    of_connections = _of_connections(named.get("stalls"), named.get("connections"), lossy)
    if exchanges is not None and (exchanges.num_rows or not of_connections):
        clients, drift = [*_of_exchanges(exchanges, lossy)], _drift_of_exchanges(exchanges)
        clients = _with_connections(clients, of_connections)
    elif intervals is not None:
        clients, drift = [*_of_intervals(intervals)], _drift_of_intervals(intervals)
        clients = [_longer(client, of_connections.get(client.where)) for client in clients]
    elif requests is not None:
        clients, drift = [*_of_requests(requests)], None
        clients = [_longer(client, of_connections.get(client.where)) for client in clients]
    elif of_connections:
        clients, drift = list(of_connections.values()), None
    else:
        return [], []
    return [*_values(clients, drift)], [caution for client in clients for caution in _caution(run, client)]


def _longer(client: _Client, other: _Client | None) -> _Client:
    """Return the client record with the longer stalls, among the known ones."""
    known = [record for record in (client, other) if record is not None and record.stalls is not None]
    return max(known, key=_stalled_s, default=client)


def _stalled_s(client: _Client) -> float:
    return math.fsum(stall.seconds for stall in client.stalls or ())


def _of_connections(stalls: pa.Table | None, connections: pa.Table | None, lossy: bool) -> dict[str, _Client]:
    """Return by link the stalls of the clients' TCP connections, from the first packet to the last."""
    import pyarrow.compute as pc

    from twinbed.statistics.stalls import Stall, together

    if stalls is None or connections is None:
        return {}
    of_tcp = connections.filter(
        pc.and_(
            pc.and_(pc.starts_with(connections["link"], CLIENT), pc.equal(connections["protocol"], "tcp")),
            pc.is_valid(connections["start_ns"]),
        )
    )
    clients = {}
    for link in of_tcp["link"].unique().to_pylist():
        own = of_tcp.filter(pc.equal(of_tcp["link"], link))
        begun = pc.min(own["start_ns"]).as_py()
        since_s = pc.divide(pc.cast(pc.subtract(own["start_ns"], begun), "float64"), 1e9)
        lasts = pc.add(since_s, pc.fill_null(own["duration_s"], 0))
        rows = silent = stalls.filter(pc.equal(stalls["link"], link))
        if lossy:
            rows = rows.filter(pc.greater(pc.add(rows["retransmissions"], rows["probes"]), 0))
        pauses = [
            Stall((start - begun) / 1e9, seconds)
            for start, seconds in zip(rows["start_ns"].to_pylist(), rows["duration_s"].to_pylist(), strict=True)
        ]
        # Who waits until the capture ends may have sent its last packet long before.
        lasted = max([pc.max(lasts).as_py(), *(stall.end_s for stall in pauses)])
        clients[link] = _Client(link, together(pauses), lasted, begun, rows.num_rows < silent.num_rows)
    return clients


def _with_connections(clients: Sequence[_Client], of_connections: Mapping[str, _Client]) -> list[_Client]:
    """Join pauses with stalls of connections, by one clock."""
    from twinbed.statistics.stalls import Stall, together

    joined = []
    for client in clients:
        other = of_connections.get(client.where)
        if other is not None:
            begun = min(client.begun_ns, other.begun_ns)
            both = [
                Stall(stall.start_s + (record.begun_ns - begun) / 1e9, stall.seconds)
                for record in (client, other)
                for stall in record.stalls or ()
            ]
            lasted = max(record.lasted + (record.begun_ns - begun) / 1e9 for record in (client, other))
            client = _Client(client.where, together(both), lasted, begun, client.unclear or other.unclear)
        joined.append(client)
    return [*joined, *(other for link, other in of_connections.items() if link not in {client.where for client in clients})]


def _of_requests(table: pa.Table) -> Iterator[_Client]:
    """Find pauses among requests by when they began, and their durations. ab writes starts in whole seconds."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from twinbed.statistics import stalls

    known = table.filter(pc.and_(pc.is_valid(table["start_s"]), pc.is_valid(table["total_s"])))
    resolution_s = AB_RESOLUTION_S if pa.types.is_integer(table["start_s"].type) else 0.0
    for host in known["host"].unique().to_pylist():
        own = known.filter(pc.equal(known["host"], host))
        starts, lasts = (own[name].to_numpy().astype(float) for name in ("start_s", "total_s"))
        lasted = float(np.max(starts + lasts) - np.min(starts))
        yield _Client(host, stalls.of_requests(starts, lasts, resolution_s), lasted)


def _values(clients: Sequence[_Client], drift: float | None) -> Iterator[tuple[Value, Metric]]:
    known = [client.stalls for client in clients if client.stalls is not None]
    lasted = math.fsum(client.lasted for client in clients)
    whole = bool(known) and len(known) == len(clients) and lasted > 0 and not any(client.unclear for client in clients)
    stalled = math.fsum(stall.seconds for stalls in known for stall in stalls)
    yield Value(STALLS.name, sum(map(len, known)) if whole else None, STALLS.unit), STALLS
    yield Value(STALLED.name, stalled / lasted if whole else None, STALLED.unit), STALLED
    yield Value(DRIFT.name, drift, DRIFT.unit), DRIFT


def _caution(run: str, client: _Client) -> Iterator[Caution]:
    stalls = client.stalls
    if stalls:
        longest, in_all = max(stall.seconds for stall in stalls), sum(stall.seconds for stall in stalls)
        count = f"{len(stalls)} pauses, " if len(stalls) > 1 else ""
        share = f"{100 * in_all / client.lasted:.2g} % of {client.lasted:.3g} s"
        detail = f"{client.where or 'client'}: {count}the longest {longest:.2g} s; {share}"
        yield Caution(Kind.STALL, detail, run)


def _of_exchanges(table: pa.Table, lossy: bool) -> Iterator[_Client]:
    import numpy as np
    import pyarrow.compute as pc

    from twinbed.statistics import stalls

    of_clients = answered(table)
    for link in of_clients["link"].unique().to_pylist():
        own = of_clients.filter(pc.equal(of_clients["link"], link))
        begun = own["start_ns"].to_numpy()
        first = int(begun.min())
        begun = (begun - first) / 1e9
        events = np.concatenate([begun, begun + own["duration_s"].to_numpy()])
        pauses = stalls.of_events(events)
        yield _Client(link, [] if lossy and pauses else pauses, float(np.ptp(events)), first, lossy and bool(pauses))


def answered(table: pa.Table) -> pa.Table:
    """Return the requests on clients' links whose time is known."""
    import pyarrow.compute as pc

    known = pc.and_(pc.is_valid(table["start_ns"]), pc.is_valid(table["duration_s"]))
    return table.filter(pc.and_(pc.starts_with(table["link"], CLIENT), known))


def _drift_of_exchanges(table: pa.Table) -> float | None:
    from twinbed.statistics.steady import drift, rates_of_answers

    own = answered(table)
    series = rates_of_answers(own["start_ns"].to_numpy(), own["duration_s"].to_numpy())
    return drift(series.rates) if series else None


def _of_intervals(table: pa.Table) -> Iterator[_Client]:
    """Yield the end of each client that stalled longer: a buffer may hide from one end what the other counts."""
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
            yield max(of_ends, key=lambda client: math.fsum(stall.seconds for stall in client.stalls or ()))


def _drift_of_intervals(table: pa.Table) -> float | None:
    from twinbed.statistics.steady import drift, rates_of_intervals

    series = rates_of_intervals(table.to_pylist())
    return drift(series.rates) if series else None
