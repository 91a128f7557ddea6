"""Writes pcap files of versions before 2.4 from a capture of version 2.4, and what tcpdump reads in each.

    python3 make.py ../captures/zeek-get.pcap      # needs tcpdump (libpcap)

A file's name says version, byte order, and which of a record's two lengths comes first.
"""

import re
import struct
import subprocess
import sys
from pathlib import Path

SNAPLEN = 80
FILES = {
    "2.2-little-original-first.pcap": (2, 2, "<", True),
    "2.2-big-original-first.pcap": (2, 2, ">", True),
    "2.3-little-original-first.pcap": (2, 3, "<", True),
    "2.3-little-captured-first.pcap": (2, 3, "<", False),
    "543.0-big-original-first.pcap": (543, 0, ">", True),
}


def records(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """Seconds, microseconds, original length and at most SNAPLEN bytes of each record of a little-endian file."""
    found, at = [], 24
    while at < len(data):
        seconds, fraction, captured, original = struct.unpack_from("<4I", data, at)
        found.append((seconds, fraction, original, data[at + 16 : at + 16 + min(captured, SNAPLEN)]))
        at += 16 + captured
    return found


def main() -> None:
    source = records(Path(sys.argv[1]).read_bytes())
    with Path("expected.tsv").open("w") as expected:
        for name, (major, minor, order, original_first) in FILES.items():
            file = struct.pack(f"{order}IHHiIII", 0xA1B2C3D4, major, minor, 0, 0, SNAPLEN, 1)
            for seconds, fraction, original, data in source:
                lengths = (original, len(data)) if original_first else (len(data), original)
                file += struct.pack(f"{order}4I", seconds, fraction, *lengths) + data
            Path(name).write_bytes(file)
            # -e says the original length; a packet's hexadecimal dump (-xx) has the captured bytes.
            command = ["tcpdump", "-r", name, "-nn", "-e", "-xx", "-tt"]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            # A packet is a line and, under it, its dump, which is indented.
            for packet in re.split(r"\n(?=\S)", text.rstrip("\n")):
                line, *dump = packet.split("\n")
                captured = sum(len(word) // 2 for row in dump for word in row.split(":", 1)[1].split())
                original = line.split("length ", 1)[1].split(":", 1)[0]
                expected.write(f"{name}\t{line.split(' ', 1)[0]}\t{original}\t{captured}\n")


main()
