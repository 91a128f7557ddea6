"""A path between two links, from both captures of it: losses, delays, reordering, splits and merges; and UDP streams.

The fate of packets is unknown where two captures share none: then no count of the way is a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from twinbed import _core
from twinbed.metrics.metric import Value
from twinbed.metrics.packets import PATH_COUNTS, value
from twinbed.readers.packets.link import CLIENT, Capture

if TYPE_CHECKING:
    import pyarrow as pa

Cell = TypeVar("Cell")
_AMOUNTS = ("lost", "partly_lost", "appeared", "duplicated", "edge_sent", "edge_arrived", "split", "merged")
UNKNOWN = frozenset(
    {
        *(f"{name}_{unit}" for name in _AMOUNTS for unit in ("packets", "payload_bytes")),
        *("lost_ranges", "reordered_packets", "three_reordered_packets", "capture_reordered_packets"),
        *("split_parts", "merged_parts"),
    }
)
"""Columns of the matching about the way between the captures."""


def unknown_row(row: Mapping[str, Cell]) -> dict[str, Cell | None]:
    """Return a row of the matching without unknown counts."""
    return {name: None if name in UNKNOWN else value for name, value in row.items()}


def unknown_table(table: pa.Table) -> pa.Table:
    """Return a table of the matching without unknown counts."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if field.name in UNKNOWN:
            nullable = field.with_nullable(True)
            table = table.set_column(at, nullable, pa.nulls(table.num_rows, field.type))
    return table


SERVER = "server"
WAYS = {"client_to_server": "sender_to_receiver_side", "server_to_client": "receiver_to_sender_side"}
"""A value's direction -> the matching's name of it, where the client's capture comes first."""


def pairs(captures: Sequence[Capture]) -> Iterator[tuple[Capture, Capture]]:
    """Return each client's capture with its server's: ``client-2`` and ``server-2``."""
    by_host = {capture.host: capture for capture in captures}
    for host, capture in by_host.items():
        peer = by_host.get(SERVER + host.removeprefix(CLIENT)) if host.startswith(CLIENT) else None
        if peer is not None:
            yield capture, peer


DENSITIES = {"reorder_density": "displacement", "reorder_buffer_occupancy_density": "occupancy"}
"""Table -> the quantity of its density (RFC 5236)."""


def match(client: Path, server: Path, *, tunnels: bool = False) -> dict[str, pa.Table]:
    """Return the table ``paths``, a row for each direction of a connection seen by both, and the tables of DENSITIES."""
    table, summary = _core.match_captures(str(client), str(server), tunnels=tunnels)
    if summary["nothing_matched"]:
        table = unknown_table(table)
    ways = {way: direction for direction, way in WAYS.items()}
    of_displacement = _density("displacement", summary["reorder_density"], ways)
    of_occupancy = _density("occupancy", summary["reorder_buffer_occupancy_density"], ways)
    return {"paths": table, "reorder_density": of_displacement, "reorder_buffer_occupancy_density": of_occupancy}


def _density(name: str, counts: Sequence[tuple[str, int, int]], ways: Mapping[str, str]) -> pa.Table:
    """Return direction, quantity, packets and their share of the direction's."""
    import pyarrow as pa

    whole = Counter[str]()
    for way, _, packets in counts:
        whole[way] += packets
    columns = {
        "direction": pa.array([ways[way] for way, _, _ in counts], pa.string()),
        name: pa.array([number for _, number, _ in counts], pa.int64()),
        "packets": pa.array([packets for _, _, packets in counts], pa.int64()),
        "share": pa.array([packets / whole[way] for way, _, packets in counts], pa.float64()),
    }
    return pa.table(columns)


def density_values(matched: Sequence[Mapping[str, pa.Table]], host: str) -> Iterator[Value]:
    """Yield how late late packets are, and how many a receiver holds, one way; nothing where no packet arrived."""
    for direction in WAYS:
        late, held = (
            [row for tables in matched for row in tables[table].to_pylist() if row["direction"] == direction]
            for table in DENSITIES
        )
        behind = [(row["displacement"], row["packets"]) for row in late if row["displacement"] > 0]
        if late:
            yield value("path_late_displacement", _mean(behind), host, direction)
            held_packets = [(row["occupancy"], row["packets"]) for row in held]
            yield value("path_reorder_buffer_occupancy", _mean(held_packets), host, direction)


def _mean(counts: Sequence[tuple[int, int]]) -> float | None:
    packets = sum(count for _, count in counts)
    return sum(number * count for number, count in counts) / packets if packets else None


def path_values(tables: Sequence[pa.Table], host: str) -> Iterator[Value]:
    """Yield the values of the paths, one way. Delays are of the connections' own quantiles, by their samples.

    Not of what nobody answers and only one link carries, such as a switch's own packets to one host.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    joined = pa.concat_tables(tables)
    joined = joined.filter(pc.or_(pc.not_equal(joined["passes_by"], "assumed"), pc.greater(joined["arrived_packets"], 0)))
    for direction, way in WAYS.items():
        rows = joined.filter(pc.equal(joined["passes"], way))
        if not rows.num_rows:
            continue
        for metric, column in PATH_COUNTS.items():
            yield value(metric, pc.sum(rows[column]).as_py(), host, direction)
        samples = rows["delay_samples"].cast(pa.float64()).to_numpy()
        if samples.sum() > 0:
            least, median = (rows[name].to_numpy() for name in ("raw_delay_min_s", "delay_variation_p50_s"))
            spread = rows["delay_p95_p50_s"].to_numpy()
            keep = samples > 0
            yield value("path_delay_median", _median((least + median)[keep], samples[keep]), host, direction)
            yield value("path_delay_variation", float(np.average(spread[keep], weights=samples[keep])), host, direction)


def _median(numbers: object, weights: object) -> float:
    """Return the weighted median."""
    import numpy as np

    values, heavy = np.asarray(numbers), np.asarray(weights)
    order = np.argsort(values)
    reached = np.cumsum(heavy[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def stream_values(streams: pa.Table, host: str, direction: str) -> Iterator[Value]:
    """Yield the values of iperf3's streams at their receiver's link; nothing where there are none."""
    import pyarrow.compute as pc

    rows = streams.filter(pc.is_valid(streams["header"]))
    if not rows.num_rows:
        return
    expected, lost = pc.sum(rows["expected_datagrams"]).as_py(), pc.sum(rows["lost_datagrams"]).as_py()
    yield value("udp_loss", lost / expected if expected else None, host, direction)
    yield value("udp_reordered", pc.sum(rows["reordered_datagrams"]).as_py(), host, direction)
    yield value("udp_jitter", pc.mean(rows["jitter_s"]).as_py(), host, direction)
