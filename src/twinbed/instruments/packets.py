"""Instrument ``packets``: a capture of every link with tcpdump, at the machine's side, and what the captures show.

Runs one ``tcpdump`` an interface, on the machine only, with nanosecond timestamps.  Gives, for every link (host: the one
whose link it is) and direction, packets, bytes of IP packets, payload bytes, retransmitted segments and so on, summed over the
link's connections; for the whole run (host empty, no direction) packets and bytes at the clients' links, so that a packet that
crosses the switch counts once; and the table ``connections``, one row a connection and link.

Ending: tcpdump 4.99 asks the kernel for blocks that are handed over when full or after 1 s, and what is still in one when it is
interrupted would be lost.  So it is first asked with SIGUSR1 until it has captured what it had received when first asked.  A
preloaded library (crates/preload) has blocks handed over every 20 ms; without it the same takes up to 1 s.
``--immediate-mode`` needs no such wait but wakes tcpdump for every packet: in two noisy series on
two shared CPUs ApacheBench then had 0.77 to 0.84 of the requests without a capture, and 0.85 to 1.00 with blocks.

Limits: lengths come from IP headers, so they hold whatever the snap length; segments that the NIC or the kernel joins or splits
after the point of capture count as they are there.  ``wire_packets`` counts them as the MTU would split them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from twinbed import _core
from twinbed.model.caution import Caution, Kind
from twinbed.model.metric import Layer, Metric, Value
from twinbed.model.plugin import MACHINE, Command, Extracted, Ready, Target
from twinbed.model.units import Size

if TYPE_CHECKING:
    import pyarrow as pa

SIGINT = 2
CLIENT = "client"
"""What clients' names begin with (``Topology.names``)."""

_ASKED = re.compile(rb"(\d+) packets captured, (\d+) packets received by filter, (\d+) packets dropped by kernel\n")
_ENDED = re.compile(rb"(\d+) packets? captured\n(\d+) packets? received by filter\n(\d+) packets? dropped by kernel\n")
_SIDES = {"client_to_server": "originator", "server_to_client": "responder"}
"""A value's direction, and the prefix of its columns in the table of connections: clients open the connections."""


class PacketsParams(BaseModel):
    """How links are captured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Ethernet 14, IPv4 20, TCP with all options 60; an IPv6 header is 20 longer.
    snaplen: int = Field(96, ge=64, le=65535, description="bytes kept of each packet; headers need 96, with IPv6 116")
    buffer: Size = Field(
        64 * 2**20, ge=2**20, le=2**31 - 2**10, description="kernel buffer of each capture; larger loses less in bursts"
    )

    def estimate_seconds(self) -> float:
        return 0.2


@dataclass(frozen=True, slots=True)
class Counters:
    """What tcpdump says of a capture; ``received`` includes what was dropped."""

    captured: int
    received: int
    dropped: int

    @property
    def handled(self) -> int:
        return self.captured + self.dropped


def has_drained(said: bytes) -> bool:
    """Whether tcpdump has by now dealt with all it had received when it was first asked by SIGUSR1.

    ``said`` is all of its error output so far. Not all it has received by now: a link is never wholly silent.
    """
    asked = [Counters(*map(int, found)) for found in _ASKED.findall(said)]
    return bool(asked) and asked[-1].handled >= asked[0].received


def ended(said: bytes) -> Counters | None:
    """The counters that tcpdump prints when it ends; None where it has not."""
    found = _ENDED.findall(said)
    return Counters(*map(int, found[-1])) if found else None


COUNTED: Mapping[str, tuple[str, str]] = {
    "packets": ("1", "IP packets"),
    "bytes": ("bytes", "bytes of IP packets, headers included"),
    "payload_bytes": ("bytes", "payload bytes, repeated ones included"),
    "retransmitted_segments": ("1", "TCP segments with at least one repeated sequence number"),
    "out_of_order_segments": ("1", "TCP segments with new data below the highest sequence number seen"),
    "pure_acks": ("1", "TCP segments that only acknowledge"),
    "data_segments": ("1", "TCP segments with payload"),
    "super_packets": ("1", "packets above the MTU, as segmentation offload makes them"),
    "wire_packets": ("1", "packets that would be on a wire with an MTU of 1500 bytes"),
}
"""Metric, which is a column of both sides in the table of connections: (unit, what it counts)."""
HEADLINES = frozenset({"packets", "bytes"})


def _metric(name: str, unit: str, description: str, *, extensive: bool = False, headline: bool = False) -> Metric:
    return Metric(name, unit, Layer.NETWORK, description, extensive=extensive, headline=headline)


METRICS = (
    *(
        _metric(
            name, unit, f"{meaning}, on a link; of the run: on the clients' links", extensive=True, headline=name in HEADLINES
        )
        for name, (unit, meaning) in COUNTED.items()
    ),
    _metric("connections", "1", "TCP and UDP connections on a link; of the run: on the clients' links", extensive=True),
    _metric("mean_segment_bytes", "bytes", "mean payload of the segments that have any"),
    _metric("max_segment_bytes", "bytes", "longest payload of a segment"),
    _metric("link_goodput", "bit/s", "payload bits a second, each counted once, from a link's first to its last packet"),
    _metric("other_packets", "1", "captured frames of no connection: ARP, ICMP, neighbour discovery"),
    _metric("captured_packets", "1", "packets in the capture file"),
    _metric("capture_drops", "1", "packets that the capture lost"),
)
_UNITS = {metric.name: metric.unit for metric in METRICS}


def _value(metric: str, value: float | None, host: str = "", direction: str = "") -> Value:
    return Value(metric, value, _UNITS[metric], host, direction)


@dataclass(frozen=True, slots=True)
class Link:
    """One link's capture, read."""

    host: str
    values: Sequence[Value]
    cautions: Sequence[Caution]
    connections: pa.Table


def read_link(capture: Path) -> Link:
    """Raises OSError or ValueError where the capture cannot be read at all."""
    import pyarrow as pa

    host = capture.stem
    table, summary = _core.connections(str(capture))

    values = [*_counted(host, table), _value("connections", table.num_rows, host)]
    packets = summary["packets"]
    in_connections = sum(_sum(table, f"{side}_packets") for side in _SIDES.values())
    said = _said(capture)
    counters = ended(said) if said is not None else None
    values += [
        _value("other_packets", packets - in_connections, host),
        _value("captured_packets", packets, host),
        _value("capture_drops", counters.dropped if counters else None, host),
    ]
    connections = table.add_column(0, "link", pa.array([host] * table.num_rows, pa.string()))
    cautions = list(_cautions(host, packets, counters))
    cautions += [Caution(Kind.UNREADABLE, f"{host}.pcap: {count} {_words(why)}") for why, count in summary["skipped"].items()]
    return Link(host, values, cautions, connections)


def _words(reason: str) -> str:
    """``last_record_cut_off`` -> ``last record cut off``."""
    return reason.replace("_", " ")


def _said(capture: Path) -> bytes | None:
    file = capture.with_name(f"{capture.stem}.tcpdump.err")
    return file.read_bytes() if file.exists() else None


def _cautions(host: str, packets: int, counters: Counters | None) -> Iterator[Caution]:
    if counters is None:
        yield Caution(Kind.UNREADABLE, f"tcpdump on {host}'s link did not say what it dropped")
        return
    if counters.dropped:
        share = counters.dropped / max(counters.received, 1)
        yield Caution(Kind.CAPTURE_DROPS, f"{counters.dropped} of {counters.received} packets ({share:.2%}) on {host}'s link")
    if counters.captured != packets:
        yield Caution(Kind.UNREADABLE, f"{host}.pcap holds {packets} packets, tcpdump captured {counters.captured}")


def _counted(host: str, table: pa.Table) -> Iterator[Value]:
    import pyarrow.compute as pc

    begun, ended_s = pc.min(table["start_s"]).as_py(), pc.max(pc.add(table["start_s"], table["duration_s"])).as_py()
    span_s = ended_s - begun if begun is not None else 0.0
    for direction, side in _SIDES.items():
        for name in COUNTED:
            yield _value(name, _sum(table, f"{side}_{name}"), host, direction)
        segments = _sum(table, f"{side}_data_segments")
        mean = _sum(table, f"{side}_payload_bytes") / segments if segments else None
        yield _value("mean_segment_bytes", mean, host, direction)
        longest = pc.max(table[f"{side}_max_segment_bytes"]).as_py() if segments else None
        yield _value("max_segment_bytes", longest, host, direction)
        bits = 8 * _sum(table, f"{side}_unique_payload_bytes")
        yield _value("link_goodput", bits / span_s if span_s else None, host, direction)


def _sum(table: pa.Table, column: str) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(table[column], min_count=0).as_py())


def totals(links: Sequence[Link]) -> Iterator[Value]:
    """The run's values: sums over the clients' links and both directions; None where a part is missing or there is none."""
    for name in (*COUNTED, "connections"):
        parts = [value.value for link in links if link.host.startswith(CLIENT) for value in link.values if value.metric == name]
        present = [part for part in parts if part is not None]
        yield _value(name, sum(present) if present and len(present) == len(parts) else None)


class Packets:
    """The instrument."""

    name = "packets"
    params = PacketsParams
    summary = "a capture of every link (tcpdump): packets, bytes and segments each way, connections"
    metrics = METRICS

    def plan(self, params: Any, target: Target) -> Sequence[Command]:
        if target.name != MACHINE:
            return ()
        return [_capture(params, interface, host, has_drained) for interface, host in sorted(target.interfaces.items())]

    def extract(self, params: Any, artifacts: Path) -> Extracted:
        captures = sorted((artifacts / MACHINE).glob("*.pcap"))
        if not captures:
            raise FileNotFoundError(f"no *.pcap in {artifacts / MACHINE}")
        import pyarrow as pa

        links = [read_link(capture) for capture in captures]
        return Extracted(
            [*totals(links), *(value for link in links for value in link.values)],
            {"connections": pa.concat_tables([link.connections for link in links])},
            [caution for link in links for caution in link.cautions],
        )


def _capture(params: PacketsParams, interface: str, host: str, drained: Callable[[bytes], bool]) -> Command:
    argv = (
        "tcpdump",
        *("-i", interface),
        *("-w", f"{{artifacts}}/{host}.pcap"),
        *("-s", str(params.snaplen)),
        *("-B", str(params.buffer // 1024)),
        "-n",
        *("-Z", "root"),
        "--time-stamp-precision=nano",
    )
    return Command(
        *(MACHINE, argv, f"{host}.tcpdump", Ready(says=b"listening on")),
        stop=SIGINT,
        drained=drained,
        env={"LD_PRELOAD": "{bin}/libtwinbed_preload.so"},
    )


packets = Packets()
