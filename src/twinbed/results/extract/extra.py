"""Connections seen by the instrument ``monitor`` that are not the workload's: each gets a class, by rules that are data.

They are found at extraction, since an instrument does not know the workload's connections.  Table ``extra_connections`` has a
row for each such connection: the columns of ``monitored_connections`` and ``class``.  Table ``extra_classes`` has a row for
each link, observer, checksums and class: connections, frames (of ARP, whose frames are in no connection), packets, seconds, and
rate, low and high a second (95 %, Poisson's).  Table ``monitored_connections`` itself is dropped: it is as long as the
workload's own log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from twinbed.metrics.metric import Metric, Value
from twinbed.metrics.monitor import EXTRA, EXTRA_RATE, value
from twinbed.model.services import Service
from twinbed.readers.monitor.classes import CLASSES, NEIGHBOURS, UNESTABLISHED, WORKLOAD, class_of
from twinbed.readers.monitor.rows import CHECKED, IGNORED, TWINBED

if TYPE_CHECKING:
    import pyarrow as pa

CONNECTIONS, LINKS = "monitored_connections", "monitored_links"
CLIENT = "client"
Table = tuple[str, "pa.Table"]


def extra(tables: Sequence[Table], services: Sequence[Service]) -> tuple[list[tuple[Value, Metric]], list[Table]]:
    """Return the values, and the tables to keep. A run without the instrument has no values. They are missing if the workload
    does not declare its connections."""
    named = dict(tables)
    if CONNECTIONS not in named:
        return [], list(tables)
    kept = [named for named in tables if named[0] != CONNECTIONS]
    links = {row["link"]: row for row in named[LINKS].to_pylist()}
    if not services:
        return [(value(metric.name, None, ""), metric) for metric in (EXTRA, EXTRA_RATE)], kept
    classed = _classed(named[CONNECTIONS], services)
    classes = _by_class(named[CONNECTIONS], classed, links)
    return list(_values(classed, links)), [*kept, ("extra_connections", classed), ("extra_classes", classes)]


def _classed(connections: pa.Table, services: Sequence[Service]) -> pa.Table:
    """Return the rows that are not the workload's, with their class."""
    import pyarrow as pa

    rest = connections.filter(_may_be_extra(connections, services))
    of = [class_of(row, services) for row in rest.select(list(_DECIDE)).to_pylist()]
    rest = rest.append_column("class", pa.array(of, pa.string()))
    return rest.filter(pa.array([name != WORKLOAD for name in of], pa.bool_()))


_DECIDE = ("protocol", "ip_protocol", "originator_port", "responder_port", "state")


def _may_be_extra(connections: pa.Table, services: Sequence[Service]) -> pa.BooleanArray:
    """Exclude connections established to a service: a fast filter, as most connections are the workload's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    own = pa.chunked_array([pa.array([False] * connections.num_rows, pa.bool_())])
    for service in services:
        of = pc.equal(connections["protocol"], service.protocol)
        if service.port is not None:
            of = pc.and_(of, pc.equal(connections["responder_port"], service.port))
        own = pc.or_(own, of)
    never = pc.is_in(connections["state"], pa.array(sorted(UNESTABLISHED), pa.string()))
    return pc.or_(pc.invert(own), never)


def _by_class(connections: pa.Table, classed: pa.Table, links: Mapping[str, Mapping[str, object]]) -> pa.Table:
    import pyarrow as pa

    from twinbed.statistics.counts import rate_bounds

    counts: dict[tuple[str, str, str, str], list[int]] = {}
    keys = connections.select(["link", "observer", "checksums"]).group_by(["link", "observer", "checksums"]).aggregate([])
    observed = {tuple(row.values()) for row in keys.to_pylist()} | {
        (link, TWINBED, checksums) for link in links for checksums in (IGNORED, CHECKED)
    }
    for row in classed.select(["link", "observer", "checksums", "class", "packets"]).to_pylist():
        count = counts.setdefault((row["link"], row["observer"], row["checksums"], row["class"]), [0, 0])
        count[0] += 1
        count[1] += row["packets"]
    rows = []
    for link, observer, checksums in sorted(observed):
        seconds = links[link]["seconds"]
        for name in CLASSES:
            number, packets = counts.get((link, observer, checksums, name), (0, 0))
            frames = links[link]["arp_frames"] if name == NEIGHBOURS and observer == TWINBED else 0
            assert isinstance(frames, int) and isinstance(seconds, float | None)
            events = number + frames
            bounds = rate_bounds(events, seconds) if seconds else None
            rows.append(
                {
                    "link": link,
                    "observer": observer,
                    "checksums": checksums,
                    "class": name,
                    "connections": number,
                    "frames": frames,
                    "packets": packets,
                    "seconds": seconds,
                    "rate": events / seconds if seconds else None,
                    "low": bounds.low if bounds else None,
                    "high": bounds.high if bounds else None,
                }
            )
    texts, counted = ("link", "observer", "checksums", "class"), ("connections", "frames", "packets")
    fields = [(name, pa.string()) for name in texts] + [(name, pa.int64()) for name in counted]
    return pa.Table.from_pylist(
        rows, pa.schema([*fields, *((name, pa.float64()) for name in ("seconds", "rate", "low", "high"))])
    )


def _values(classed: pa.Table, links: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[Value, Metric]]:
    """Yield values by twinbed's own reader with checksums ignored: for each link, and for the clients together."""
    import pyarrow.compute as pc

    own = classed.filter(pc.and_(pc.equal(classed["observer"], TWINBED), pc.equal(classed["checksums"], IGNORED)))
    number = {link: int(pc.sum(pc.equal(own["link"], link), min_count=0).as_py()) for link in links}
    clients = [link for link in links if link.startswith(CLIENT)]
    for host, those in (*((("", clients),) if clients else ()), *((link, [link]) for link in links)):
        count = sum(number[link] for link in those)
        spans = [seconds for link in those if isinstance(seconds := links[link]["seconds"], float)]
        yield value(EXTRA.name, count, host), EXTRA
        whole = len(spans) == len(those)
        yield value(EXTRA_RATE.name, count / max(spans) if whole and spans else None, host), EXTRA_RATE
