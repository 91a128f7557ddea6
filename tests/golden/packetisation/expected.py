"""Expected values of the captures here, from tshark: writes NAME.tshark.tsv for each NAME.pcap, and NAME.http.tsv where it has
heads.

Columns of tshark.tsv: stream, source address, source port, frames, frames with payload, TCP payload bytes, highest
tcp.analysis.bytes_in_flight, frames of tcp.analysis.retransmission. Of http.tsv: response's frame, http.time (empty where
tshark finds none), code; http.time is to the response's first segment, because streams are not put together.
"""

import subprocess
from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).parent
FIELDS = ["tcp.stream", "ip.src", "tcp.srcport", "tcp.len", "tcp.analysis.bytes_in_flight", "tcp.analysis.retransmission"]


def tshark(path: Path, *arguments: str) -> list[list[str]]:
    command = ["tshark", "-n", "-r", str(path), *arguments]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def fields(names: list[str]) -> list[str]:
    return ["-T", "fields", *(part for name in names for part in ("-e", name))]


for path in sorted(FOLDER.glob("*.pcap")):
    rows: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0] * 5)
    for stream, source, port, length, flight, again in tshark(path, "-Y", "tcp", *fields(FIELDS)):
        row = rows[int(stream), source, port]
        row[0] += 1
        row[1] += int(length) > 0
        row[2] += int(length)
        row[3] = max(row[3], int(flight or 0))
        row[4] += bool(again)
    lines = ["\t".join(map(str, [*key, *row])) for key, row in sorted(rows.items())]
    path.with_suffix(".tshark.tsv").write_text("\n".join(lines) + "\n")
    options = ["-o", "tcp.desegment_tcp_streams:FALSE", "-Y", "http.response"]
    http = tshark(path, *options, *fields(["frame.number", "http.time", "http.response.code"]))
    if http:
        path.with_suffix(".http.tsv").write_text("\n".join("\t".join(row) for row in http) + "\n")
