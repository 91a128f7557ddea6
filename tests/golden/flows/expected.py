"""Makes the random captures here, and writes what the real tcptrace says of them and of the captures in ../captures.

random-SEED.pcap        by ../../differential/captures.py, for the seeds below
NAME.tcptrace.csv       `tcptrace -n -l -r -W --csv NAME` (Debian 6.6.7) as printed, without comments and spaces; pcapng files
                        are converted by `editcap -F pcap` first; files that tcptrace cannot read have none

full-size.tsv           by full_size.py, with tcptrace built for 32 bits

Run it in this folder: python3 expected.py
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, "../../differential")
import captures

# The first forty from 100000 on that are below 12 kB, whatever they hold.
WANTED, FIRST, MAX_BYTES = 40, 100_000, 12_000
# And those in which duplicate ACKs, handshakes' round trips and DSACKs were counted otherwise once.
ALSO = (93, 278, 330, 481, 668, 780)


def tcptrace(path):
    with tempfile.TemporaryDirectory() as folder:
        plain = str(path)
        if path.suffix == ".pcapng":
            plain = f"{folder}/capture.pcap"
            subprocess.run(["editcap", "-F", "pcap", str(path), plain], capture_output=True, check=False)
        argv = ["tcptrace", "-n", "-l", "-r", "-W", "--csv", plain]
        text = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False).stdout
    lines = [",".join(cell.strip() for cell in line.split(",")) for line in text.splitlines() if "," in line and line[0] != "#"]
    return [line for line in lines if line.strip(",")]


def main():
    seed, found = FIRST, 0
    while found < WANTED:
        path = pathlib.Path(f"random-{seed}.pcap")
        captures.write(seed, path)
        if path.stat().st_size < MAX_BYTES:
            found += 1
        else:
            path.unlink()
        seed += 1
    for seed in ALSO:
        captures.write(seed, pathlib.Path(f"random-{seed}.pcap"))
    for path in sorted([*pathlib.Path().glob("*.pcap"), *pathlib.Path("../captures").glob("*.pcap*")]):
        if path.suffix in (".pcap", ".pcapng"):
            lines = tcptrace(path)
            if len(lines) > 1:
                pathlib.Path(f"{path.name}.tcptrace.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
