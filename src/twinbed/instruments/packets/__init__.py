"""Instrument ``packets``: a capture of every link with tcpdump, at the machine's side, and metrics from the captures.

Runs one ``tcpdump`` an interface, on the machine that carries the lab, with nanosecond timestamps.  Without such a machine
(hosts over SSH) it runs on the hosts. It then takes their CPU time, and sees segments before the NIC cuts and after it joins
them.

Gives packets, bytes, segments, retransmissions, bytes in flight and so on for every link (``host``) and direction.  Values of
the whole run (host empty) cover the clients' links, so a packet that crosses the switch counts once.  Where both links of a
client and its server are captured, the fate of each packet on the way is known.

With ``hosts: random 10 %`` only the links of some pairs are captured, drawn for each run, and totals are estimates.

Tables by link: ``connections`` (as Zeek's log), ``flows`` (tcptrace's statistics), ``packetisation``, ``segment_sizes``,
``stalls``, ``exchanges`` (HTTP), ``streams`` (UDP) and ``windows`` (blocks of packets).  By host: ``fingerprints`` (features of
SYNs).  Others: ``paths``, ``reorder_density`` and ``reorder_buffer_occupancy_density``.

Limits: lengths come from IP headers, so they are right for every snap length. Segments that the NIC or the kernel joins or
splits after the point of capture count as captured.  The metric ``wire_packets`` counts them as on the wire. But a receiver
that gets joined segments sends fewer acknowledgements, and those are not added.  The probes of the instrument ``latency`` and
background traffic are left out, by their ports: they are not packets of the workload.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted, concatenated
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import BACKGROUND_PORTS, PROBE_PORT, Target
from twinbed.metrics.metric import Value
from twinbed.metrics.packets import METRICS
from twinbed.model.caution import Caution, Kind
from twinbed.model.drawn import Drawn
from twinbed.model.services import Service
from twinbed.model.units import Sample, Size, parse_share
from twinbed.readers import tcpdump
from twinbed.readers.packets import fingerprints, link, path, sample

if TYPE_CHECKING:
    import pyarrow as pa

WITHOUT_PROBES = (
    f"not udp port {PROBE_PORT}"
    f" and not (icmp[icmptype] == icmp-unreach and (icmp[28:2] == {PROBE_PORT} or icmp[30:2] == {PROBE_PORT}))"
)
"""A filter that also leaves out the ICMP error for a last probe that nobody received, which quotes the probe's ports."""
OF_THE_WORKLOAD = f"{WITHOUT_PROBES} and not portrange {BACKGROUND_PORTS[0]}-{BACKGROUND_PORTS[-1]}"

TUNNEL_SNAPLEN = 192
"""Ethernet 14, IPv6 40, UDP 8, VXLAN 8, and inside Ethernet 14, IPv6 40, TCP with all options 60: 184."""

PACKET_BYTES = 1000
"""Bytes of a typical packet: with requests and acknowledgements among full segments, captures average 500 to 1000 bytes."""
PACKET_HEADER_BYTES = 16
"""Bytes of a packet's header in a pcap file."""

_THREADS_FROM_BYTES = 8 * 2**20
"""Total bytes below which reading captures one after another is faster."""


class PacketsParams(InstrumentParams):
    """Settings of how links are captured."""

    # Ethernet 14, IPv4 20, TCP with all options 60; an IPv6 header is 20 longer.
    snaplen: int = Field(96, ge=64, le=65535, description="bytes kept of each packet; headers need 96, with IPv6 116")
    buffer: Size = Field(
        64 * 2**20, ge=2**20, le=2**31 - 2**10, description="kernel buffer of each capture; a larger one loses less in bursts"
    )

    hosts: Sample = Field(
        "all",
        examples=["random 10%"],
        description="all, or random and a share such as random 10 %: only the links of pairs drawn for each run, at least two;"
        " totals of all hosts are then estimates with a confidence interval",
    )

    tunnels: bool = Field(
        False,
        description="count the packets inside tunnels (VXLAN, GRE, GENEVE, GTP-U, ...), not the packets that carry them;"
        f" needs snaplen {TUNNEL_SNAPLEN} or more",
    )

    @model_validator(mode="after")
    def _deep_enough(self) -> PacketsParams:
        if self.tunnels and self.snaplen < TUNNEL_SNAPLEN:
            raise ValueError(f"tunnels: true needs the headers inside tunnels: set snaplen to {TUNNEL_SNAPLEN} or more")
        return self

    @model_serializer(mode="wrap")
    def _of_all_as_ever(self, plain: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out settings with their first values, so that runs made before these settings keep their identity."""
        first_values = {"hosts": "all", "tunnels": False}
        return {name: value for name, value in plain(self).items() if name not in first_values or first_values[name] != value}

    def share_of_hosts(self) -> float | None:
        return None if self.hosts == "all" else parse_share(self.hosts.removeprefix("random "))

    def estimate_seconds(self) -> float:
        return 0.2

    def estimate_bytes(self, link_rate: int) -> float:
        """Estimate a capture of one link that is full both ways."""
        packets = 2 * link_rate / 8 / PACKET_BYTES
        return packets * (min(self.snaplen, PACKET_BYTES) + PACKET_HEADER_BYTES)


class Packets(Instrument[PacketsParams]):
    """The instrument."""

    name = "packets"
    params = PacketsParams
    summary = "a capture of every link (tcpdump): packets, segments, connections, flight, bursts, exchanges, loss on the way"
    also = ("tcpdump", "pcap", "capture", "wireshark", "tshark")
    files = ("*.pcap", "*.tcpdump", "*.tcpdump.err")
    raw = "single packets: `twinbed flows`, `connections` and `match` of its captures"
    metrics = METRICS

    def plan(self, params: PacketsParams, target: Target) -> Sequence[Command]:
        if not target.captures:
            return ()
        return [
            tcpdump.command(
                interface,
                f"{host}.pcap",
                snaplen=params.snaplen,
                buffer_bytes=params.buffer,
                on=target.name,
                expression=(OF_THE_WORKLOAD,),
            )
            for interface, host in sorted(target.interfaces.items())
        ]

    def extract(self, params: PacketsParams, artifacts: Path) -> Extracted:
        return self.extract_of(params, artifacts, ())

    def extract_of(self, params: PacketsParams, artifacts: Path, services: Sequence[Service]) -> Extracted:
        turns = tuple(
            service.port for service in services if service.turns and service.protocol == "tcp" and service.port is not None
        )
        files = sorted(artifacts.glob("*/*.pcap"), key=lambda file: file.name)
        if not files:
            raise FileNotFoundError(f"no *.pcap in the folders of {artifacts}")
        captures = _read(files, tunnels=params.tunnels, turns=turns)
        values: list[Value] = []
        clients = [capture for capture in captures if capture.host.startswith(link.CLIENT)]
        if clients:
            values += link.values(clients, "")
        for capture in captures:
            values += [*link.values([capture], capture.host), *link.of_the_file(capture)]
        tables = {name: [_of_link(capture.host, capture.tables[name]) for capture in captures] for name in captures[0].tables}
        tables["fingerprints"] = [fingerprints.of_link(capture.host, capture.tables["fingerprints"]) for capture in captures]
        _add_paths(captures, values, tables, tunnels=params.tunnels)
        _add_streams(captures, values)
        cautions = [caution for capture in captures for caution in capture.cautions]
        if at_hosts := [file.stem for file in files if file.parent.name == file.stem]:
            cautions.append(Caution(Kind.CAPTURED_AT_HOSTS, ", ".join(at_hosts)))
        return Extracted(values, {name: concatenated(parts) for name, parts in tables.items()}, cautions)

    def of_all(self, drawn: Drawn, extracted: Extracted, work: Mapping[str, float]) -> Extracted:
        values = list(sample.of_all(extracted.values, drawn, work))
        return replace(extracted, values=values, cautions=[*extracted.cautions, sample.caution(values, drawn)])


def _read(files: Sequence[Path], *, tunnels: bool, turns: Sequence[int]) -> list[link.Capture]:
    """Read captures; large ones in parallel, as the compiled readers work outside Python's lock."""
    if sum(file.stat().st_size for file in files) < _THREADS_FROM_BYTES:
        return [link.read(file, tunnels=tunnels, turns=turns) for file in files]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(partial(link.read, tunnels=tunnels, turns=turns), files))


Tables: TypeAlias = dict[str, list["pa.Table"]]


def _of_link(host: str, table: pa.Table) -> pa.Table:
    """Return the table with the link as its first column."""
    import pyarrow as pa

    return table.add_column(0, "link", pa.array([host] * table.num_rows, pa.string()))


def _add_paths(captures: Sequence[link.Capture], values: list[Value], tables: Tables, *, tunnels: bool) -> None:
    pairs = path.pairs(captures)
    matched = {client.host: path.match(client.path, server.path, tunnels=tunnels) for client, server in pairs}
    if not matched:
        return
    for name in ("paths", *path.DENSITIES):
        tables[name] = [_of_link(host, table[name]) for host, table in matched.items()]
    groups = {"": list(matched.values())}
    if len(matched) > 1:
        groups |= {host: [table] for host, table in matched.items()}
    for host, of_host in groups.items():
        values += path.path_values([table["paths"] for table in of_host], host)
        values += path.density_values(of_host, host)


def _add_streams(captures: Sequence[link.Capture], values: list[Value]) -> None:
    """Add values of streams where they arrive: clients' streams on the servers' links, and the other way round."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for capture in captures:
        streams = capture.tables["streams"]
        from_client = pc.is_in(streams["source_address"], pa.array(sorted(capture.originators), pa.string()))
        is_client = capture.host.startswith(link.CLIENT)
        arrived = streams.filter(pc.invert(from_client) if is_client else from_client)
        values += path.stream_values(arrived, capture.host, "server_to_client" if is_client else "client_to_server")


packets = Packets()
