"""Writes what the real tshark says of each capture here, to hold crates/core against. (tcptrace: ../flows/expected.py.)

NAME.tshark.tsv    sums over `tshark -T fields` (Debian 4.0) by tcp.stream and direction: packets, frame.len, IP length,
                   tcp.len, and SYN, FIN, RST flags. One capture's packets without tcp.len (headers cut) are left out.

Run it in this folder when a capture is added: python3 expected.py
"""

import collections
import pathlib
import subprocess

FIELDS = [
    "tcp.stream",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "frame.len",
    "ip.len",
    "ipv6.plen",
    "tcp.len",
    "tcp.flags.syn",
    "tcp.flags.fin",
    "tcp.flags.reset",
]


def tshark(path):
    options = [argument for field in FIELDS for argument in ("-e", field)]
    # One layer of each: the outermost.
    command = ["tshark", "-r", str(path), "-Y", "tcp.len", "-T", "fields", "-E", "occurrence=f", *options]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    sums = collections.defaultdict(lambda: [0] * 7)
    for line in text.splitlines():
        stream, v4, v6, port, to_v4, to_v6, to_port, frame, ip, plen, length, syn, fin, rst = line.split("\t")
        ip_bytes = int(ip) if ip else int(plen) + 40
        values = [1, int(frame), ip_bytes, int(length), *(int(flag in ("1", "True")) for flag in (syn, fin, rst))]
        total = sums[int(stream), v4 or v6, int(port), to_v4 or to_v6, int(to_port)]
        for at, value in enumerate(values):
            total[at] += value
    head = "stream source source_port destination destination_port packets frame_bytes bytes payload_bytes syn fin rst"
    return ["\t".join(head.split())] + ["\t".join(map(str, (*key, *sums[key]))) for key in sorted(sums)]


for capture in sorted(pathlib.Path().glob("*.pcap*")):
    if capture.suffix in (".pcap", ".pcapng") and len(rows := tshark(capture)) > 1:
        pathlib.Path(f"{capture.name}.tshark.tsv").write_text("\n".join(rows) + "\n")
