"""Writes full-size.tsv here and in ../tcp: round trips of full-size segments by tcptrace built for 32 bits, of every capture.

    python3 full_size.py TCPTRACE     # Debian's tcptrace 6.6.7-6 for i386

The build for 64 bits takes a segment of one number for longer than all others: a length of -1 is a large number there. The
build for 32 bits agrees with the manual ("full-size segments are the segments of the largest size seen in the connection").

Columns: capture, connection (from 0), direction, samples, least, greatest, mean and deviation in ms.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS = ("smpls", "min", "max", "avg", "stdev")


def printed(program: str, capture: Path) -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as scratch:
        if capture.suffix == ".pcapng":
            converted = Path(scratch) / "capture.pcap"
            subprocess.run(["editcap", "-F", "pcap", capture, converted], check=True)
            capture = converted
        command = [program, "-n", "-l", "-r", "-W", "--csv", str(capture)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.replace(" ", "").split(",") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:  # It reads none of stacked tags.
        return []
    # One name is spelt otherwise for a to b.
    head = [name.replace("RTTfull_sz_stdev", "RTT_full_sz_stdev") for name in lines[0]]
    return [dict(zip(head, line, strict=False)) for line in lines[1:]]


def write(folder: Path) -> None:
    with (folder / "full-size.tsv").open("w") as file:
        for csv in sorted(folder.glob("*.tcptrace.csv")):
            name = csv.name.removesuffix(".tcptrace.csv")
            capture = next(path for path in (folder / name, folder / "../captures" / name) if path.exists())
            for number, row in enumerate(printed(sys.argv[1], capture)):
                for way in ("a2b", "b2a"):
                    print(name, number, way, *(row[f"RTT_full_sz_{column}_{way}"] for column in COLUMNS), sep="\t", file=file)


write(Path())
write(Path("../tcp"))
