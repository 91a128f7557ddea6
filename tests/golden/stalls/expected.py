"""Writes expected.tsv: the stalls of the golden captures by tshark's analysis of each packet, and none of twinbed's code.

A stall by the words of docs/stalls.md, computed the slow way: for each TCP stream, packets that go on are those with sequence
numbers that tshark does not flag as sent before (retransmission, keep-alive, window probe), with an acknowledgment above all
before, or that open a closed window; between two of them, something sent is unacknowledged, or probes a closed window; and
the time between is above 2 (SRTT + max(0.2 s, 4 RTTVAR)), by RFC 6298 over tshark's ``tcp.analysis.ack_rtt`` of each
direction, added up (1 s while there are none or a SYN is not acknowledged).
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

GOLDEN = Path(__file__).parent.parent
FIELDS = [
    "tcp.stream",
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "tcp.seq",
    "tcp.len",
    "tcp.ack",
    "tcp.flags.syn",
    "tcp.flags.fin",
    "tcp.flags.reset",
    "tcp.flags.ack",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.keep_alive",
    "tcp.analysis.zero_window_probe",
    "tcp.analysis.ack_rtt",
    "tcp.analysis.out_of_order",
    "tcp.window_size_value",
]
SENT_BEFORE = FIELDS[12:17]


def rows(capture: Path) -> list[dict[str, str]]:
    arguments = [each for field in FIELDS for each in ("-e", field)]
    command = ["tshark", "-n", "-r", str(capture), "-Y", "tcp && !icmp && !icmpv6", "-T", "fields", *arguments]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in text.splitlines()]


def nanoseconds(text: str) -> int:
    seconds, _, rest = text.partition(".")
    return int(seconds) * 10**9 + int(rest.ljust(9, "0"))


def rto(samples: dict[object, list[float]]) -> float:
    smoothed = variation = 0.0
    for of_side in samples.values():
        for at, sample in enumerate(of_side):
            if at == 0:
                s, v = sample, sample / 2
            else:
                v = v + (abs(s - sample) - v) / 4
                s = s + (sample - s) / 8
        smoothed, variation = smoothed + s, variation + v
    return smoothed + max(0.2, 4 * variation) if samples else 1.0


def stalls(packets: list[dict[str, str]], until: int) -> list[str]:
    found = []
    end: dict[object, int] = {}
    acknowledged: dict[object, int] = {}
    samples: dict[object, list[float]] = defaultdict(list)
    last, again, opened, syns = None, defaultdict(int), {}, set()
    probes, closed, was_closed = defaultdict(int), defaultdict(bool), defaultdict(bool)
    ends = [(p["ip.src"] or p["ipv6.src"], p["tcp.srcport"]) for p in packets]

    def ended(now: int) -> None:
        # Into a closed window the other end probes.
        shut = {side for side in opened if was_closed[side]}
        waiting = [
            side
            for side in opened
            if end.get(side, 0) > acknowledged.get(side, opened[side]) or (shut - {side} and probes[side])
        ]
        is_opening = any(side in syns and acknowledged.get(side, 0) < 1 for side in end)
        limit = max(rto(samples), 1.0 if is_opening else 0.0)
        if last is not None and waiting and (now - last) / 1e9 > 2 * limit:
            found.append(f"{last // 10**9}.{last % 10**9:09d}+{now - last}/{max(again[side] for side in waiting)}")

    for packet, own in zip(packets, ends, strict=True):
        peer = next((each for each in ends if each != own), None)
        now = nanoseconds(packet["frame.time_epoch"])
        syn, fin, reset, ack = (packet[f"tcp.flags.{each}"] in ("1", "True") for each in ("syn", "fin", "reset", "ack"))
        number = int(packet["tcp.seq"])
        length = int(packet["tcp.len"]) + syn + fin
        opened.setdefault(own, 0 if syn else number)
        syns |= {own} if syn else set()
        shuts = ack and not reset and packet["tcp.window_size_value"] == "0"
        opens = ack and not reset and not shuts and closed[own]
        closed[own] = shuts if ack and not reset else closed[own]
        was_closed[own] |= closed[own]
        sent_before = any(packet[field] for field in SENT_BEFORE)
        new = length > 0 and not sent_before and number + length > end.get(own, number)
        confirms = ack and peer in end and int(packet["tcp.ack"]) > acknowledged.get(peer, opened[peer])
        if not (new or confirms or reset or opens):
            probes[own] += bool(packet["tcp.analysis.keep_alive"] or packet["tcp.analysis.zero_window_probe"])
            again[own] += length > 0 and not packet["tcp.analysis.keep_alive"] and not packet["tcp.analysis.zero_window_probe"]
            continue
        ended(now)
        if packet["tcp.analysis.ack_rtt"]:
            samples[peer].append(float(packet["tcp.analysis.ack_rtt"]))
        if reset:
            return found
        if new:
            end[own] = number + length
        if confirms:
            acknowledged[peer] = int(packet["tcp.ack"])
        last, again, probes, was_closed = now, defaultdict(int), defaultdict(int), defaultdict(bool, closed)
    ended(until)
    return found


def main() -> None:
    lines = ["capture\tstalls: start + duration in ns / retransmissions"]
    for folder in ("captures", "packetisation", "tcp"):
        for capture in sorted([*(GOLDEN / folder).glob("*.pcap"), *(GOLDEN / folder).glob("*.pcapng")]):
            try:
                packets = rows(capture)
            except subprocess.CalledProcessError:
                continue
            command = ["tshark", "-n", "-r", str(capture), "-Y", "ip || ipv6", "-T", "fields", "-e", "frame.time_epoch"]
            times = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            streams: dict[str, list[dict[str, str]]] = defaultdict(list)
            for packet in packets:
                if packet["tcp.stream"] and packet["tcp.seq"]:
                    streams[packet["tcp.stream"]].append(packet)
            until = max(map(nanoseconds, times), default=0)
            found = sorted(each for stream in streams.values() for each in stalls(stream, until))
            lines.append(f"{folder}/{capture.name}\t{' '.join(found)}")
    (GOLDEN / "stalls" / "expected.tsv").write_text("\n".join(lines) + "\n")


main()
