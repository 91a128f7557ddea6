"""Captures read a second time: headers by ``tshark -T fields``, TCP's rules of repeats and round trips by ``tcptrace -l -r``.

What the two do not say is counted here from tshark's fields, by the definitions of docs/packets.md and docs/metrics.md:
packets on the wire, trains, flight, exchanges, iperf3's jitter.  Where ``tcptrace`` reads no file (pcapng of two link types)
repeats are counted from the fields too.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

Sums = dict[str, str]
FIELDS = [
    "frame.time_epoch",
    "ip.src",
    "ip.dst",
    "ip.len",
    "ip.id",
    "ip.hdr_len",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.hdr_len",
    "tcp.flags",
    "udp.length",
    "tcp.options.mss_val",
    "udp.payload",
]
THERE, BACK = "client_to_server", "server_to_client"
FIN, SYN, RST, ACK = 1, 2, 4, 16


@dataclass(frozen=True)
class Packet:
    ns: int
    there: bool
    size: int
    ident: int
    tcp: bool
    seq: int
    ack: int
    payload: int
    options: int
    flags: int
    mss: int
    data: bytes


@dataclass
class Connection:
    packets: list[Packet] = field(default_factory=list)


def captured(case: Path, folder: Path) -> Path:
    """The capture without its compression; of one that is cut what there is."""
    (file,) = case.glob("input*")
    whole = file.read_bytes()
    if file.suffix == ".gz":
        stream = zlib.decompressobj(31)
        whole = stream.decompress(whole)
        # Of a stream that does not end the last part of less than 4096 bytes is lost.
        whole = whole if stream.eof else whole[: len(whole) // 4096 * 4096]
    elif file.suffix == ".zst":
        whole = subprocess.run(["zstd", "-dc", str(file)], capture_output=True, check=True).stdout
    plain = folder / "capture"
    plain.write_bytes(whole)
    return plain


def connections(plain: Path) -> tuple[list[Connection], int]:
    options = ["-o", "tcp.desegment_tcp_streams:false", "-o", "ip.defragment:false"]
    command = ["tshark", "-n", "-r", str(plain), *options, "-T", "fields", *(f"-e{each}" for each in FIELDS)]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    found: dict[tuple[object, ...], Connection] = {}
    firsts: dict[tuple[object, ...], tuple[str, str]] = {}
    for line in lines:
        cell = dict(zip(FIELDS, line.split("\t"), strict=True))
        tcp = cell["tcp.srcport"] != ""
        if not tcp and cell["udp.srcport"] == "":
            continue
        layer = "tcp" if tcp else "udp"
        source = cell["ip.src"], cell[f"{layer}.srcport"]
        target = cell["ip.dst"], cell[f"{layer}.dstport"]
        key = (layer, *sorted((source, target)))
        there = firsts.setdefault(key, source) == source
        header = int(cell["tcp.hdr_len"] or 0)
        seconds, _, fraction = cell["frame.time_epoch"].partition(".")
        found.setdefault(key, Connection()).packets.append(
            Packet(
                int(seconds) * 10**9 + int(fraction.ljust(9, "0")),
                there,
                int(cell["ip.len"]),
                int(cell["ip.id"], 16),
                tcp,
                int(cell["tcp.seq_raw"] or 0),
                int(cell["tcp.ack_raw"] or 0),
                int(cell["tcp.len"]) if tcp else int(cell["udp.length"]) - 8,
                header - 20,
                int(cell["tcp.flags"] or "0", 16),
                int(cell["tcp.options.mss_val"] or 0),
                bytes.fromhex(cell["udp.payload"].replace(":", "")),
            )
        )
    return list(found.values()), len(lines)


def tcptrace(plain: Path) -> list[dict[str, str]]:
    command = ["tcptrace", "-n", "-l", "-r", "-W", "--csv", str(plain)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = [line for line in answer.splitlines() if line and not line.startswith("#")]
    if not lines or not lines[0].startswith("conn_"):
        return []
    names = [name.strip() for name in lines[0].split(",")]
    return [dict(zip(names, (cell.strip() for cell in line.split(",")), strict=False)) for line in lines[1:]]


@dataclass
class Way:
    """One direction of a connection that carried payload."""

    wire: int = 0
    super: int = 0
    wire_data: int = 0
    data: int = 0
    again: int = 0
    recovered: int = 0
    reordered: int = 0
    extent: int = 0
    bursts: int = 0
    gaps: list[int] = field(default_factory=list)
    most: int = 0
    area: int = 0
    phase: int = 0
    acks: int = 0
    tcp: bool = True


def way_of(connection: Connection, there: bool) -> Way:
    mine = [p for p in connection.packets if p.there == there and p.payload]
    way = Way(data=len(mine), tcp=connection.packets[0].tcp, wire=sum(p.there == there for p in connection.packets))
    way.acks = sum(p.there != there and p.tcp and not p.payload and p.flags & 23 == ACK for p in connection.packets)
    offers = [p.mss for p in connection.packets if p.flags & SYN and p.mss]
    for packet in mine:
        capacity = min(offers) - packet.options if offers else 1460 - packet.options
        parts = math.ceil(packet.payload / capacity) if packet.tcp else 1
        way.wire += parts - 1
        way.wire_data += parts
        way.super += parts > 1
    way.bursts = bool(mine)
    for one, two in pairwise(mine):
        if two.ns - one.ns >= 10**6:
            way.bursts += 1
            way.gaps.append(two.ns - one.ns)
    if not mine or not mine[0].tcp:
        return way
    base = mine[0].seq
    highest, acknowledged = 0, 0
    seen: list[tuple[int, int, int]] = []
    last_end = max((p.seq - base) % 2**32 + p.payload if (p.seq - base) % 2**32 < 2**31 else 0 for p in mine)
    since = done = None
    flight = now = 0
    for packet in connection.packets:
        before = flight
        if since is not None and done is None:
            way.area += before * (packet.ns - now)
        now = packet.ns
        if packet.there == there and packet.payload:
            start = (packet.seq - base) % 2**32
            start = start if start < 2**31 else start - 2**32
            end = start + packet.payload
            if start < highest:
                if any(a < end and start < b for a, b, _ in seen):
                    way.again += 1
                else:
                    over = [ident for a, _, ident in seen if a > start]
                    if any((packet.ident - ident) % 65536 < 32768 for ident in over):
                        way.recovered += 1
                    else:
                        way.reordered += 1
                        first = next(i for i, (a, _, _) in enumerate(seen) if a > start)
                        way.extent = max(way.extent, len(seen) - first)
            seen.append((start, end, packet.ident))
            highest = max(highest, end)
            if since is None:
                since = packet.ns
        elif packet.there != there and packet.flags & ACK and since is not None:
            got = (packet.ack - base) % 2**32
            if got < 2**31:
                acknowledged = max(acknowledged, got)
            if acknowledged >= last_end and highest >= last_end and done is None:
                done = packet.ns
        flight = max(0, highest - acknowledged)
        way.most = max(way.most, flight)
    way.phase = (done or now) - (since or now)
    return way


def round_trips(connection: Connection, there: bool) -> list[int]:
    """As tcptrace: from a segment that was sent once to the ACK of exactly its end; SYN and FIN are of the numbers.

    No sample of a segment that waited behind a hole: its ACK says when the hole was filled.
    """
    sent: dict[int, tuple[int, int]] = {}
    numbers: list[tuple[int, int]] = []
    samples = []
    for packet in connection.packets:
        length = packet.payload + bool(packet.flags & SYN) + bool(packet.flags & FIN)
        if packet.there == there and length:
            end = (packet.seq + length) % 2**32
            times = sent[end][1] + 1 if end in sent else 1
            sent[end] = packet.ns, times
            numbers.append((end, packet.ns))
        if packet.there != there and packet.flags & ACK and packet.ack in sent:
            ns, times = sent.pop(packet.ack)
            below = [at for end, at in numbers if (packet.ack - end) % 2**32 < 2**31 and end != packet.ack]
            if times == 1 and all(at <= ns for at in below):
                samples.append(packet.ns - ns)
    return samples


def exchanges(connection: Connection) -> Iterator[tuple[int, int | None]]:
    """A client's data after a server's begins the next; to the first and to the last byte of the answer.

    An answer after which the capture shows neither another request nor a FIN may go on: its last byte is not known.
    """
    asked = first = last = None
    for packet in connection.packets:
        if not packet.payload:
            continue
        if packet.there and (asked is None or first is not None):
            if asked is not None and first is not None and last is not None:
                yield first - asked, last - asked
            asked, first = packet.ns, None
        elif not packet.there and asked is not None:
            first, last = first or packet.ns, packet.ns
    if asked is not None and first is not None and last is not None:
        closed = any(packet.flags & (FIN | RST) and packet.ns >= last for packet in connection.packets)
        yield first - asked, last - asked if closed else None


def complete(connection: Connection) -> bool:
    flags = {(p.there, bit) for p in connection.packets for bit in (SYN, FIN, RST) if p.flags & bit}
    return flags == {(True, SYN), (False, SYN), (True, FIN), (False, FIN)}


def quantile(numbers: list[int], share: float) -> float:
    ordered = sorted(numbers)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def capture(case: Path) -> Iterator[Sums]:
    with tempfile.TemporaryDirectory() as folder:
        plain = captured(case, Path(folder))
        found, frames = connections(plain)
        trace = tcptrace(plain)
    sums: Sums = {"captured_packets": str(frames), "connections": str(len(found))}
    in_connections = sum(len(each.packets) for each in found)
    sums["other_packets"] = f"{frames}-{in_connections}"
    tcp = [each for each in found if each.packets[0].tcp]
    sums["incomplete_connections"] = str(sum(not complete(each) for each in tcp))
    both: dict[str, list[str]] = {}
    all_tcp = [p.ns for each in tcp for p in each.packets]
    for there, name, end in ((True, THERE, "a2b"), (False, BACK, "b2a")):
        packets = [p for each in found for p in each.packets if p.there == there]
        ways = [way_of(each, there) for each in found]
        data = [way for way in ways if way.data]
        segments = [p.payload for p in packets if p.tcp and p.payload]
        counted = {
            "packets": str(len(packets)),
            "bytes": str(sum(p.size for p in packets)),
            "payload_bytes": str(sum(p.payload for p in packets)),
            "wire_packets": str(sum(way.wire for way in ways)),
            "super_packets": str(sum(way.super for way in ways)),
            "data_segments": str(len(segments)),
            "pure_acks": str(sum(p.tcp and not p.payload and p.flags & 23 == ACK for p in packets)),
            "reordered_packets": str(sum(way.reordered for way in ways)),
            "bursts": str(sum(way.bursts for way in ways)),
        }
        if trace:
            counted["retransmitted_segments"] = "+".join(row[f"rexmt_data_pkts_{end}"] for row in trace)
            counted["out_of_order_segments"] = "+".join(row[f"outoforder_pkts_{end}"] for row in trace)
            unique = "+".join(row[f"unique_bytes_sent_{end}"] for row in trace)
        else:
            counted["retransmitted_segments"] = str(sum(way.again for way in ways))
            counted["out_of_order_segments"] = str(sum(way.recovered + way.reordered for way in ways))
            unique = str(sum(segments))
        for each, sum_ in counted.items():
            sums[f"{each}>{name}"] = sum_
            both.setdefault(each, []).append(sum_)
        if segments:
            sums[f"mean_segment_bytes>{name}"] = f"{sum(segments)}/{len(segments)}"
            sums[f"max_segment_bytes>{name}"] = str(max(segments))
        # tcptrace divides a connection's sum by its samples and 0.0001, which it adds against division by 0.
        samples = [each for connection in tcp if (each := round_trips(connection, there))]
        if samples:
            terms = "+".join(f"{sum(each)}*{len(each)}/{len(each) + 0.0001!r}" for each in samples)
            sums[f"rtt>{name}"] = f"({terms})/{sum(map(len, samples))}*1e-9"
        if all_tcp:
            sums[f"link_goodput>{name}"] = f"8*({unique})/{(max(all_tcp) - min(all_tcp)) or 1}*1e9"
        if data:
            wire = sum(way.wire_data for way in data)
            sums[f"retransmission_rate>{name}"] = f"{sum(way.again + way.recovered for way in data)}/{wire}"
            sums[f"reordering_extent_max>{name}"] = str(max(way.extent for way in data))
            sums[f"max_in_flight>{name}"] = str(max(way.most for way in data))
            if phase := sum(way.phase for way in data):
                sums[f"mean_in_flight>{name}"] = f"{sum(way.area for way in data)}/{phase}"
            bursts = sum(way.bursts for way in data)
            sums[f"burst_packets>{name}"] = f"{wire}/{bursts}"
            gaps = [gap for way in data for gap in way.gaps]
            if gaps:
                sums[f"burst_gap>{name}"] = f"{sum(gaps)}/{len(gaps)}*1e-9"
            of_tcp = sum(way.wire_data for way in data if way.tcp)
            sums[f"acks_per_data_packet>{name}"] = f"{sum(way.acks for way in data)}/{of_tcp}"
    sums |= {each: "+".join(terms) for each, terms in both.items()}
    times = [each for connection in tcp for each in exchanges(connection)]
    for place, name in enumerate(("wire_first_byte_time", "wire_exchange_time")):
        if times:
            ns = [length for each in times if (length := each[place]) is not None]
            sums[f"{name}_mean"] = f"{sum(ns)}/{len(ns)}*1e-9"
            sums[f"{name}_p95"] = f"{quantile(ns, 0.95)!r}*1e-9"
    for connection in found:
        if not connection.packets[0].tcp:
            sums[f"udp_jitter>{THERE}"] = f"{jitter(connection)!r}*1e-9"
    yield sums


def jitter(connection: Connection) -> float:
    """RFC 3550, 6.4.1: a sixteenth of each difference of transit times; the sender's second, microsecond and number lead."""
    smooth, before = 0.0, None
    for packet in connection.packets:
        if not packet.there or packet.payload < 1000:
            continue
        second, micro = (int.from_bytes(packet.data[at : at + 4]) for at in (0, 4))
        transit = packet.ns - second * 10**9 - micro * 1000
        if before is not None:
            smooth += (abs(transit - before) - smooth) / 16
        before = transit
    return smooth


READERS = {"capture": capture}
