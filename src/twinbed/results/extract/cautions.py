"""Cautions that need both what was set and what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from twinbed.metrics.metric import Value
from twinbed.model.caution import Caution, Kind
from twinbed.model.record import IMPORTED, Record
from twinbed.model.topology import Topology
from twinbed.statistics.physics import Accounting, Path, tcp_goodput

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed.statistics.stalls import Stall

OF_IPERF3 = {"host", "end", "start_s", "seconds", "bytes"}
"""The columns that iperf3's intervals have, unlike those of other tools."""
CLIENT = "client"
"""How the names of clients' links begin."""


def above_link_rate(record: Record, values: Iterable[Value]) -> Iterator[Caution]:
    """Goodput that no wire of the link's rate would carry: what limits it is not what limits a real one."""
    topology = Topology.model_validate(record.settings["topology"])
    if topology.link.rate is None:
        return
    most, shaped = (
        tcp_goodput(topology.link.rate, Path(mtu=topology.link.mtu, accounting=counted))
        for counted in (Accounting.WIRE, Accounting.SHAPER)
    )
    for value in values:
        links = 1 if value.host else topology.pairs
        if value.metric == "goodput" and value.value is not None and value.value > most * links:
            detail = f"{value.value / 1e6:.1f} Mbit/s over links that carry {most * links / 1e6:.1f}"
            if record.settings["testbed"]["kind"] == IMPORTED:
                yield Caution(Kind.ABOVE_GIVEN_RATE, detail, record.id)  # no shaper of ours is there, and none is known of
            else:
                yield Caution(Kind.ABOVE_LINK_RATE, f"{detail} ({shaped * links / 1e6:.1f} as the shaper counts)", record.id)


def stalled(record: Record, tables: Iterable[tuple[str, pa.Table]]) -> Iterator[Caution]:
    """Pauses inside the run, of each client: by the requests of captures, or where there are none by iperf3's intervals."""
    import numpy as np
    import pyarrow.compute as pc

    from twinbed.statistics import stalls

    for name, table in tables:
        if name == "exchanges":
            of_clients = table.filter(pc.starts_with(table["link"], CLIENT))
            for link in of_clients["link"].unique().to_pylist():
                own = of_clients.filter(pc.equal(of_clients["link"], link))
                own = own.filter(pc.and_(pc.is_valid(own["start_ns"]), pc.is_valid(own["duration_s"])))
                begun = own["start_ns"].to_numpy()
                if len(begun):
                    begun = (begun - begun.min()) / 1e9
                    events = np.concatenate([begun, begun + own["duration_s"].to_numpy()])
                    yield from _stall(record, link, stalls.of_events(events), float(np.ptp(events)))
        elif name == "intervals" and set(table.column_names) >= OF_IPERF3:
            # What one end counts may be hidden from the other by a buffer.
            for host in table["host"].unique().to_pylist():
                of_ends = []
                for end in table["end"].unique().to_pylist():
                    own = table.filter(pc.and_(pc.equal(table["host"], host), pc.equal(table["end"], end))).sort_by("start_s")
                    seconds, done = own["seconds"].to_pylist(), own["bytes"].to_pylist()
                    if None not in (*seconds, *done):
                        of_ends.append((stalls.of_intervals(seconds, done), math.fsum(seconds)))
                if of_ends:
                    yield from _stall(record, host, *max(of_ends, key=lambda each: sum(stall.seconds for stall in each[0])))


def _stall(record: Record, where: str, stalls: Sequence[Stall], lasted: float) -> Iterator[Caution]:
    if stalls:
        longest, in_all = max(each.seconds for each in stalls), sum(each.seconds for each in stalls)
        count = f"{len(stalls)} pauses, " if len(stalls) > 1 else ""
        detail = f"{where}: {count}the longest {longest:.2g} s; {100 * in_all / lasted:.2g} % of {lasted:.3g} s"
        yield Caution(Kind.STALL, detail, record.id)
