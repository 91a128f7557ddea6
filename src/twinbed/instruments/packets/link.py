"""One link's capture: its tables, and the values that they come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinbed import _core
from twinbed.instruments.packets import tcpdump
from twinbed.instruments.packets.metrics import COUNTED, MEASURED, value
from twinbed.model.caution import Caution, Kind
from twinbed.model.metric import Value

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

CLIENT = "client"
"""What clients' names begin with (``Topology.names``): a run's packets are those on the clients' links."""
SIDES = {"client_to_server": ("originator", "_a2b"), "server_to_client": ("responder", "_b2a")}
"""A value's direction, and how the tables say it: clients open the connections."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One link's capture, read. ``tables`` maps connections, flows, packetisation, segment_sizes and exchanges to rows."""

    path: Path
    tables: Mapping[str, pa.Table]
    packets: int
    cautions: Sequence[Caution]
    counters: tcpdump.Counters | None

    @property
    def host(self) -> str:
        return self.path.stem


def read(path: Path) -> Capture:
    """Raises OSError or ValueError where the capture cannot be read at all."""
    host, file = path.stem, str(path)
    log, summary = _core.connection_log(file, ignore_checksums=True)
    flows, read_flows = _core.flows([file])
    directions, sizes, _ = _core.packetisation(file)
    exchanges, _ = _core.requests(file)
    tables = {"connections": log, "flows": flows, "packetisation": directions, "segment_sizes": sizes, "exchanges": exchanges}
    said = path.with_name(f"{host}.tcpdump.err")
    counters = tcpdump.ended(said.read_bytes()) if said.exists() else None
    cautions = [*_drops(host, summary["packets"], counters), *_checksums(host, summary["checksums"])]
    cautions += [Caution(Kind.UNREADABLE, f"{host}.pcap: {count} {_words(why)}") for why, count in summary["skipped"].items()]
    cautions += [Caution(Kind.UNREADABLE, f"{host}.pcap: {each['reason']}") for each in read_flows["truncated"]]
    return Capture(path, tables, summary["packets"], cautions, counters)


def _words(reason: str) -> str:
    """``last_record_cut_off`` -> ``last record cut off``."""
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


def _checksums(host: str, verdicts: Mapping[str, Mapping[str, int]]) -> Iterator[Caution]:
    """Bad checksums, and those that the NIC was to finish; most segments cannot be checked because the snap length cuts them."""
    bad = sum(each["bad"] for each in verdicts.values())
    partial = sum(each["partial"] for each in verdicts.values())
    checked = bad + partial + sum(each["good"] for each in verdicts.values())
    if bad:
        yield Caution(Kind.BAD_CHECKSUMS, f"{bad} of {checked} that could be checked on {host}'s link")
    if partial:
        yield Caution(Kind.CHECKSUM_OFFLOAD, f"{partial} of {checked} checksums on {host}'s link")


def values(captures: Sequence[Capture], host: str) -> Iterator[Value]:
    """What the captures of some links come to, together: for each direction, and sums for both."""
    tables = {name: _together([capture.tables[name] for capture in captures]) for name in captures[0].tables}
    for direction in SIDES:
        rows = _Rows(tables, direction)
        for name in COUNTED:
            yield value(name, rows.counted(name), host, direction)
        for name in MEASURED:
            yield value(name, rows.measured(name), host, direction)
    both = [_Rows(tables, direction) for direction in SIDES]
    for name in COUNTED:
        yield value(name, sum(rows.counted(name) for rows in both), host)
    log = tables["connections"]
    states = [state for state, protocol in zip(log["state"], log["protocol"], strict=True) if protocol == "tcp"]
    yield value("connections", len(log["state"]), host)
    yield value("incomplete_connections", sum(state != "SF" for state in states), host)
    yield from _exchanges(tables["exchanges"], host)


def of_the_file(capture: Capture) -> Iterator[Value]:
    """What is about the capture itself."""
    log = capture.tables["connections"]
    in_connections = sum(_total(log, f"{side}_packets") for side, _ in SIDES.values())
    yield value("other_packets", capture.packets - in_connections, capture.host)
    yield value("captured_packets", capture.packets, capture.host)
    yield value("capture_drops", capture.counters.dropped if capture.counters else None, capture.host)


def _total(table: pa.Table, column: str) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(table[column], min_count=0).as_py())


Columns = Mapping[str, "np.ndarray[Any, Any]"]


def _together(tables: Sequence[pa.Table]) -> Columns:
    """Columns of several tables one after the other; numbers as floats with NaN for null."""
    import numpy as np
    import pyarrow as pa

    joined = pa.concat_tables(tables)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, column in zip(joined.column_names, joined.columns, strict=True):
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        found[name] = column.cast(pa.float64()).to_numpy() if is_number else column.to_numpy(zero_copy_only=False)
    return found


class _Rows:
    """The rows of one direction, and what they come to."""

    def __init__(self, tables: Mapping[str, Columns], direction: str) -> None:
        self.side, self.ending = SIDES[direction]
        self.log, self.flows = tables["connections"], tables["flows"]
        packetisation = tables["packetisation"]
        keep = packetisation["direction"] == self.side
        self.cut = {name: column[keep] for name, column in packetisation.items()}

    def counted(self, name: str) -> int:
        if name in ("packets", "bytes", "payload_bytes"):
            return round(self.log[f"{self.side}_{'ip_bytes' if name == 'bytes' else name}"].sum())
        if name == "wire_packets":
            # A connection without payload has no row there, and no packet that stands for more than one.
            return self.counted("packets") + round(self._sum("wire_packets") - self._sum("packets"))
        of_flows = {
            "data_segments": "actual_data_pkts",
            "pure_acks": "pure_acks_sent",
            "retransmitted_segments": "rexmt_data_pkts",
            "out_of_order_segments": "outoforder_pkts",
        }
        if name in of_flows:
            return round(self._flow(of_flows[name]).sum())
        return round(self._sum(name))

    def measured(self, name: str) -> float | None:
        import numpy as np

        cut = self.cut
        if name == "mean_segment_bytes":
            return _ratio(self._flow("actual_data_bytes").sum(), self._flow("actual_data_pkts").sum())
        if name == "max_segment_bytes":
            return _most(self._flow("max_segm_size"))
        if name == "retransmission_rate":
            again = self._sum("retransmitted_packets") + self._sum("recovered_packets")
            return _ratio(again, self._sum("wire_data_packets"))
        if name == "reordering_extent_max":
            return _most(cut["reordering_extent_max"])
        if name == "max_in_flight":
            return _most(cut["in_flight_max_bytes"])
        if name == "mean_in_flight":
            return _mean(cut["in_flight_mean_bytes"], cut["data_phase_s"])
        if name == "burst_packets":
            return _mean(cut["burst_packets_mean"], cut["bursts"])
        if name == "burst_gap":
            return _mean(cut["gap_mean_s"], cut["bursts"] - 1)
        if name == "acks_per_data_packet":
            return _mean(cut["acks_per_data_packet"], cut["wire_data_packets"])
        if name == "rtt":
            return _mean(self._flow("rtt_avg"), self._flow("rtt_samples"))
        begun, ended = self.flows["first_packet"], self.flows["last_packet"]
        span_s = float(np.nanmax(ended) - np.nanmin(begun)) if len(begun) else 0.0
        return _ratio(8 * self._flow("unique_bytes_sent").sum(), span_s)

    def _flow(self, column: str) -> np.ndarray[Any, Any]:
        return self.flows[column + self.ending]

    def _sum(self, column: str) -> float:
        import numpy as np

        return float(np.nansum(self.cut[column]))


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _most(numbers: np.ndarray[Any, Any]) -> float | None:
    import numpy as np

    present = numbers[~np.isnan(numbers)]
    return float(present.max()) if len(present) else None


def _mean(numbers: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> float | None:
    """The mean of the numbers that there are, by weight; None where there are none."""
    import numpy as np

    keep = ~np.isnan(numbers) & ~np.isnan(weights) & (weights > 0)
    return float(np.average(numbers[keep], weights=weights[keep])) if keep.any() else None


def _exchanges(table: Columns, host: str) -> Iterator[Value]:
    """Times of HTTP exchanges; nothing where the run has none."""
    import numpy as np

    for name, column in (("first_byte", "time_to_first_byte_s"), ("exchange", "duration_s")):
        times = table[column]
        times = times[~np.isnan(times)]
        if len(times):
            yield value(f"wire_{name}_time_mean", float(times.mean()), host)
            yield value(f"wire_{name}_time_p95", float(np.quantile(times, 0.95)), host)
