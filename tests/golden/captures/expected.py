"""Writes what the real tcptrace and tshark say of each capture here, to hold crates/core against.

NAME.tcptrace.csv  `tcptrace -l -n --csv` (Debian 6.6.7), as printed, without comments and spaces. pcapng files are converted by
                   `editcap -F pcap` first; files that tcptrace cannot read (Linux cooked v2, mixed links) have none.
NAME.tshark.tsv    sums over `tshark -T fields` (Debian 4.0) by tcp.stream and direction: packets, frame.len, IP length,
                   tcp.len, and SYN, FIN, RST flags. One capture's packets without tcp.len (headers cut) are left out.

Run it in this folder when a capture is added: python3 expected.py
"""

import collections
import pathlib
import subprocess
import tempfile

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


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def tcptrace(path):
    with tempfile.TemporaryDirectory() as folder:
        plain = f"{folder}/capture.pcap"
        if path.suffix == ".pcapng":
            # Fails for a file of several link types, which tcptrace cannot read either.
            run("editcap", "-F", "pcap", str(path), plain)
        else:
            plain = str(path)
        lines = run("tcptrace", "-l", "-n", "--csv", plain).splitlines()
    rows = [",".join(cell.strip() for cell in line.split(",")) for line in lines if line and not line.startswith("#")]
    return [row for row in rows if row.strip(",")]


def tshark(path):
    options = [argument for field in FIELDS for argument in ("-e", field)]
    # One layer of each: the outermost.
    text = run("tshark", "-r", str(path), "-Y", "tcp.len", "-T", "fields", "-E", "occurrence=f", *options)
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
    for name, rows in (("tcptrace.csv", tcptrace(capture)), ("tshark.tsv", tshark(capture))):
        if len(rows) > 1:
            pathlib.Path(f"{capture.name}.{name}").write_text("\n".join(rows) + "\n")
