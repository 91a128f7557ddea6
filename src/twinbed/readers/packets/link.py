"""One link's capture: its tables and their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.metrics.metric import Value
from twinbed.metrics.packets import COUNTED, MEASURED, value
from twinbed.model.caution import Caution, Kind
from twinbed.readers import tcpdump
from twinbed.readers.packets import unread

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

CLIENT = "client"
"""The beginning of clients' names (``Topology.names``): a run's packets are those on the clients' links."""
SIDES = {"client_to_server": ("originator", "_a2b"), "server_to_client": ("responder", "_b2a")}
"""A value's direction -> its names in the tables: clients open the connections."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One link's capture, read. ``tables`` maps connections, flows, packetisation, segment_sizes, exchanges, streams,
    fingerprints and windows to rows."""

    path: Path
    tables: Mapping[str, pa.Table]
    packets: int
    cautions: Sequence[Caution]
    counters: tcpdump.Counters | None
    hidden: frozenset[str] = frozenset()
    """Metrics that are unknown, since their packets could not be read."""

    @property
    def host(self) -> str:
        return self.path.stem

    @property
    def originators(self) -> frozenset[str]:
        """Return the addresses that opened a connection: the clients."""
        return frozenset(self.tables["connections"]["originator_address"].unique().to_pylist())


def read(path: Path, *, tunnels: bool = False, turns: Sequence[int] = ()) -> Capture:
    """Read a capture; ``turns`` has ports of servers whose requests and answers take turns, whatever the protocol.

    Raises OSError or ValueError where it cannot be read at all."""
    host = path.stem
    tables, summary = tables_of(path, tunnels=tunnels, turns=turns)
    stderr = path.with_name(f"{host}.tcpdump.err")
    counters = tcpdump.ended(stderr.read_bytes()) if stderr.exists() else None
    cautions = [*_drops(host, summary["packets"], counters), *checksums(f"on {host}'s link", summary["checksums"])]
    cautions += [Caution(Kind.UNREADABLE, f"{host}.pcap: {count} {words(why)}") for why, count in summary["skipped"].items()]
    cautions += [Caution(Kind.UNREADABLE, f"{host}.pcap: {text}") for text in unread.texts(summary, tunnels=tunnels)]
    return Capture(path, tables, summary["packets"], cautions, counters, unread.hidden(summary))


def tables_of(path: Path, *, tunnels: bool = False, turns: Sequence[int] = ()) -> tuple[dict[str, pa.Table], _core.LogSummary]:
    """Return a capture's tables and summary. Raises as ``read``."""
    tables, summary = _core.capture_tables(path, ignore_checksums=True, tunnels=tunnels, turns=turns)
    return {**tables, "segment_sizes": _by_size(tables["segment_sizes"])}, summary


def _by_size(sizes: pa.Table) -> pa.Table:
    """Sum up segment sizes over the link: connections' own sizes would be more rows than the connections."""
    keys = ["direction", "least_payload_bytes", "most_payload_bytes"]
    summed = sizes.group_by(keys).aggregate([("segments", "sum"), ("wire_packets", "sum")])
    return summed.rename_columns([*keys, "segments", "wire_packets"]).sort_by([(key, "ascending") for key in keys])


def words(reason: str) -> str:
    """Return ``last_record_cut_off`` as ``last record cut off``."""
    return reason.replace("_", " ")


def _drops(host: str, packets: int, counters: tcpdump.Counters | None) -> Iterator[Caution]:
    if counters is None:
        yield Caution(Kind.UNREADABLE, f"tcpdump on {host}'s link did not say what it dropped")
        return
    if counters.dropped:
        share = counters.dropped / max(counters.received, 1)
        yield Caution(Kind.CAPTURE_DROPS, f"{counters.dropped} of {counters.received} packets ({share:.2%}) on {host}'s link")
    if counters.captured != packets:
        yield Caution(Kind.UNREADABLE, f"{host}.pcap holds {packets} packets, tcpdump captured {counters.captured}")


def checksums(where: str, verdicts: Mapping[str, _core.ChecksumVerdicts]) -> Iterator[Caution]:
    """Yield cautions on bad checksums, and on those left to the NIC. Packets cut by the snap length cannot be checked."""
    bad = sum(verdict["bad"] for verdict in verdicts.values())
    partial = sum(verdict["partial"] for verdict in verdicts.values())
    checked = bad + partial + sum(verdict["good"] for verdict in verdicts.values())
    if bad:
        yield Caution(Kind.BAD_CHECKSUMS, f"{bad} of {checked} that could be checked {where}")
    if partial:
        yield Caution(Kind.CHECKSUM_OFFLOAD, f"{partial} of {checked} checksums {where}")


def values(captures: Sequence[Capture], host: str) -> Iterator[Value]:
    """Yield the values of some links' captures together: for each direction, and sums for both; null if hidden in one."""
    hidden = frozenset[str]().union(*(capture.hidden for capture in captures))
    yield from (
        replace(measured, value=None) if measured.metric in hidden else measured for measured in _values(captures, host)
    )


def _values(captures: Sequence[Capture], host: str) -> Iterator[Value]:
    import pyarrow as pa
    import pyarrow.compute as pc

    tables = {name: pa.concat_tables([capture.tables[name] for capture in captures]) for name in captures[0].tables}
    for direction in SIDES:
        rows = _Rows(tables, direction)
        for name in COUNTED:
            yield value(name, rows.count(name), host, direction)
        for name in MEASURED:
            yield value(name, rows.measured(name), host, direction)
    both = [_Rows(tables, direction) for direction in SIDES]
    for name in COUNTED:
        yield value(name, sum(rows.count(name) for rows in both), host)
    log = tables["connections"]
    yield value("connections", log.num_rows, host)
    incomplete = pc.and_(pc.equal(log["protocol"], "tcp"), pc.not_equal(log["state"], "SF"))
    yield value("incomplete_connections", pc.sum(incomplete, min_count=0).as_py(), host)
    yield from _exchanges(tables["exchanges"], host)


def of_the_file(capture: Capture) -> Iterator[Value]:
    """Yield the values of the capture itself."""
    log = capture.tables["connections"]
    in_connections = sum(_total(log, f"{side}_packets") for side, _ in SIDES.values())
    others = None if "packets" in capture.hidden else capture.packets - in_connections
    yield value("other_packets", others, capture.host)
    yield value("captured_packets", capture.packets, capture.host)
    yield value("capture_drops", capture.counters.dropped if capture.counters else None, capture.host)


def _total(table: pa.Table, column: str) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(table[column], min_count=0).as_py())


def _numbers(table: pa.Table, column: str) -> npt.NDArray[np.float64]:
    """Return a column as floats, NaN for null."""
    import pyarrow as pa

    numbers: npt.NDArray[np.float64] = table[column].cast(pa.float64(), safe=False).to_numpy()
    return numbers


class _Rows:
    """The rows of one direction and their values."""

    def __init__(self, tables: Mapping[str, pa.Table], direction: str) -> None:
        import pyarrow.compute as pc

        self.side, self.ending = SIDES[direction]
        self.log, self.flows = tables["connections"], tables["flows"]
        packetisation = tables["packetisation"]
        self.cut = packetisation.filter(pc.equal(packetisation["direction"], self.side))

    def count(self, name: str) -> int:
        if name in ("packets", "bytes", "payload_bytes"):
            return _total(self.log, f"{self.side}_{'ip_bytes' if name == 'bytes' else name}")
        if name == "wire_packets":
            # A connection without payload has no row there, and no packet that stands for more than one.
            return self.count("packets") + _total(self.cut, "wire_packets") - _total(self.cut, "packets")
        of_flows = {
            "data_segments": "actual_data_pkts",
            "pure_acks": "pure_acks_sent",
            "retransmitted_segments": "rexmt_data_pkts",
            "out_of_order_segments": "outoforder_pkts",
        }
        if name in of_flows:
            return _total(self.flows, of_flows[name] + self.ending)
        return _total(self.cut, name)

    def measured(self, name: str) -> float | None:
        import pyarrow.compute as pc

        if name == "mean_segment_bytes":
            return _ratio(_total(self.flows, f"actual_data_bytes{self.ending}"), self.count("data_segments"))
        if name == "max_segment_bytes":
            return _most(self._flow("max_segm_size"))
        if name == "retransmission_rate":
            again = _total(self.cut, "retransmitted_packets") + _total(self.cut, "recovered_packets")
            return _ratio(again, _total(self.cut, "wire_data_packets"))
        if name == "reordering_extent_max":
            return _most(self._cut("reordering_extent_max"))
        if name == "max_in_flight":
            return _most(self._cut("in_flight_max_bytes"))
        if name == "mean_in_flight":
            return _mean(self._cut("in_flight_mean_bytes"), self._cut("data_phase_s"))
        if name == "burst_packets":
            return _mean(self._cut("burst_packets_mean"), self._cut("bursts"))
        if name == "burst_gap":
            return _mean(self._cut("gap_mean_s"), self._cut("bursts") - 1)
        if name == "acks_per_data_packet":
            return _mean(self._cut("acks_per_data_packet"), self._cut("wire_data_packets"))
        if name == "rtt":
            return _mean(self._flow("rtt_avg"), self._flow("rtt_samples"))
        # Seconds since 1970 as floats are 0.24 us apart.
        begun, ended = pc.min(self.flows["first_packet_ns"]).as_py(), pc.max(self.flows["last_packet_ns"]).as_py()
        span_s = (ended - begun) * 1e-9 if begun is not None else 0.0
        return _ratio(8 * _total(self.flows, f"unique_bytes_sent{self.ending}"), span_s)

    def _flow(self, column: str) -> npt.NDArray[np.float64]:
        return _numbers(self.flows, column + self.ending)

    def _cut(self, column: str) -> npt.NDArray[np.float64]:
        return _numbers(self.cut, column)


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _most(numbers: npt.NDArray[np.float64]) -> float | None:
    import numpy as np

    present = numbers[~np.isnan(numbers)]
    return float(present.max()) if len(present) else None


def _mean(numbers: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float | None:
    """Return the weighted mean of the numbers that there are; None where there are none."""
    import numpy as np

    keep = ~np.isnan(numbers) & ~np.isnan(weights) & (weights > 0)
    return float(np.average(numbers[keep], weights=weights[keep])) if keep.any() else None


def _exchanges(table: pa.Table, host: str) -> Iterator[Value]:
    """Yield times of HTTP exchanges; nothing where the run has none."""
    import numpy as np

    for name, column in (("first_byte", "time_to_first_byte_s"), ("exchange", "duration_s")):
        times = _numbers(table, column)
        times = times[~np.isnan(times)]
        if len(times):
            yield value(f"wire_{name}_time_mean", float(times.mean()), host)
            yield value(f"wire_{name}_time_p95", float(np.quantile(times, 0.95)), host)
