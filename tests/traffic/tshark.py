"""What tshark says of a capture."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

_FLAGS = ("tcp.flags.syn", "tcp.flags.fin", "tcp.flags.reset")
_SUMMED = ("frame.len", "ip.len", "ipv6.plen", "tcp.len", *_FLAGS, "tcp.checksum.status")
_ENDS = ("ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport")
TOTALS = ("stream", "source", "source_port", "destination", "destination_port", "packets", "frame_bytes", "bytes")
TOTALS += ("payload_bytes", "syn", "fin", "rst", "bad_checksum", "good_checksum")


def packets(capture: Path, *fields: str, chosen: str = "tcp") -> list[dict[str, str]]:
    """The first occurrence of each field in each packet that the display filter chooses; "" is absent."""
    options = [argument for field in fields for argument in ("-e", field)]
    command = ["tshark", "-n", "-r", str(capture), "-Y", chosen, "-T", "fields", "-E", "occurrence=f"]
    command += ["-o", "tcp.check_checksum:TRUE", *options]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [dict(zip(fields, line.split("\t"), strict=True)) for line in lines]


def counts(capture: Path, *filters: str) -> list[int]:
    """How many packets each display filter chooses."""
    statistics = ",".join(["io,stat,0", *(f"frame && ({each})" for each in filters)])
    command = ["tshark", "-n", "-r", str(capture), "-o", "tcp.check_checksum:TRUE", "-q", "-z", statistics]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (row,) = [line for line in said.splitlines() if re.match(r"\| +[\d.]+ <> ", line)]
    return [int(cell) for cell in row.split("|")[2 : 2 + 2 * len(filters) : 2]]


def totals(capture: Path) -> list[tuple[object, ...]]:
    """One row, as ``TOTALS`` names it, a connection (tcp.stream) and direction. Bytes are IP's, with its header."""
    sums: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0] * 9)
    for packet in packets(capture, "tcp.stream", *_ENDS, *_SUMMED, chosen="tcp.len"):
        source, destination = (packet[f"ip.{end}"] or packet[f"ipv6.{end}"] for end in ("src", "dst"))
        key = (int(packet["tcp.stream"]), source, int(packet["tcp.srcport"]), destination, int(packet["tcp.dstport"]))
        ip_bytes = int(packet["ip.len"]) if packet["ip.len"] else int(packet["ipv6.plen"]) + 40
        flags = [int(packet[flag] in ("1", "True")) for flag in _FLAGS]
        checksums = [int(packet["tcp.checksum.status"] == status) for status in ("0", "1")]
        for at, value in enumerate([1, int(packet["frame.len"]), ip_bytes, int(packet["tcp.len"]), *flags, *checksums]):
            sums[key][at] += value
    return [(*key, *sums[key]) for key in sorted(sums, key=str)]
