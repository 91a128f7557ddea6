"""Make every capture here anew, with what tcptrace and tshark say of it: ``python -m tests.golden.tcp.make`` as root.

Nothing here comes from twinbed. Each kind of traffic in tests/traffic is two captures, KIND-a.pcap and KIND-b.pcap, at the
two ends, and KIND-trunk.pcap where frames are tagged between them.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.traffic.kinds import KINDS
from tests.traffic.run import make
from tests.traffic.tshark import TOTALS, totals

HERE = Path(__file__).parent
TCPTRACE = ("tcptrace", "-n", "-l", "-r", "-W")


def said(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE).stdout.splitlines()


def changed_later() -> None:
    """What no few seconds of real traffic show: packets and their order are left alone."""
    with tempfile.TemporaryDirectory() as folder:
        first, rest = f"{folder}/first.pcap", f"{folder}/rest.pcap"
        said("editcap", "-F", "pcap", "loss-both-ways-a.pcap", "late-a.pcap", "1-30")
        for name, pause_s in (("keystrokes-a", "200"), ("plain-a", "300"), ("half-closed-a", "300")):
            said("editcap", "-F", "pcap", "-r", f"{name}.pcap", first, "1-20")
            said("editcap", "-F", "pcap", "-t", pause_s, f"{name}.pcap", rest, "1-20")
            said("mergecap", "-F", "pcap", "-w", f"paused-{pause_s}-{name}.pcap", first, rest)
    for path in (*HERE.glob("paused-*.pcap"), HERE / "late-a.pcap"):
        expectations(path.name)


def expectations(capture: str) -> None:
    """``capture`` is a name in this folder."""
    rows = [line for line in said(*TCPTRACE, "--csv", capture) if line.strip() and not line.startswith("#")]
    write(f"{capture}.tcptrace.csv", (",".join(cell.strip() for cell in row.split(",")) for row in rows))
    write(f"{capture}.tcptrace.txt", (line for line in said(*TCPTRACE, capture) if line.startswith(("TCP conn", "\t"))))
    write(f"{capture}.tshark.tsv", ("\t".join(map(str, row)) for row in (TOTALS, *totals(HERE / capture))))


def write(name: str, lines: Iterable[str]) -> None:
    (HERE / name).write_text("".join(f"{line}\n" for line in lines))


def main() -> None:
    lines = []
    for old in (*HERE.glob("*.pcap"), *HERE.glob("*.pcap.*")):
        old.unlink()
    for kind in KINDS.values():
        with tempfile.TemporaryDirectory() as folder:
            for place, path in make(kind, Path(folder)).items():
                name = f"{kind.name.replace('_', '-')}-{place}.pcap"
                (HERE / name).write_bytes(path.read_bytes())
                expectations(name)
        settings = kind.settings
        lines.append(f"| `{kind.name.replace('_', '-')}` | {kind.says} | {settings.snaplen or 'whole'} |\n")
    readme = HERE / "README.md"
    before, _, _ = readme.read_text().partition("| kind |")
    changed_later()
    lines.sort()
    readme.write_text(before + "| kind | what happens | bytes kept |\n|---|---|---|\n" + "".join(lines))


if __name__ == "__main__":
    main()
