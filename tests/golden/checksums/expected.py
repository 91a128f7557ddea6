"""Writes expected.tsv: what tshark says of every packet's checksums, a character a packet, from the captures beside it and
in ../captures. Characters: g good, b bad (tshark has no word for partial), n not verified, - no such checksum."""

import subprocess
from pathlib import Path

HERE = Path(__file__).parent
FIELDS = ["ip", "tcp", "udp", "icmp", "icmpv6"]
WORDS = {"": "-", "0": "b", "1": "g", "2": "n", "3": "n", "4": "b"}
OPTIONS = ["tcp.check_checksum:TRUE", "udp.check_checksum:TRUE", "ip.check_checksum:TRUE"]
OPTIONS += ["ip.defragment:FALSE", "ipv6.defragment:FALSE"]

lines = []
for capture in sorted([*HERE.glob("*.pcap"), *HERE.parent.glob("captures/*.pcap"), *HERE.parent.glob("captures/*.pcapng")]):
    command = ["tshark", "-nr", str(capture), "-T", "fields", *(word for option in OPTIONS for word in ("-o", option))]
    command += [word for field in FIELDS for word in ("-e", f"{field}.checksum.status")]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    rows = [line.split("\t") for line in output.splitlines()]
    for column, field in enumerate(FIELDS):
        # An ICMP error has the headers of the packet that it is about, too.
        verdicts = "".join(WORDS[row[column].split(",")[0]] for row in rows)
        if verdicts.strip("-"):
            lines.append(f"{capture.parent.name}/{capture.name}\t{field}\t{verdicts}\n")
(HERE / "expected.tsv").write_text("".join(lines))
