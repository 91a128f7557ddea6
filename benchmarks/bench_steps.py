"""A million HTTP exchanges taken apart into their steps, beside tcptrace on the same capture, alternately, on one core.

Promised: at most 5 s, and a bounded number of exchanges whose steps are kept. tcptrace takes a minute.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import Figure

EXCHANGES = 1_000_000
TRIES = 3
STEPS = """
import re, sys
from twinbed import _core
tables, _ = _core.capture_tables(sys.argv[1], sys.argv[2:])
print(tables[sys.argv[2]].num_rows, re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
"""


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as name:
        capture, output = Path(name) / "exchanges.pcap", Path(name) / "output"
        make = [sys.executable, "-m", "benchmarks.captures", "short_connections", str(capture), str(EXCHANGES)]
        subprocess.run(make, check=True)
        jobs = {kind: [sys.executable, "-c", STEPS, str(capture), kind] for kind in ("steps", "exchanges")}
        if tcptrace := shutil.which("tcptrace"):
            jobs["tcptrace"] = [tcptrace, "-n", "-l", "--csv", str(capture)]
        seconds: dict[str, list[float]] = {kind: [] for kind in jobs}
        said: dict[str, str] = {}
        for _ in range(TRIES):
            for kind, argv in jobs.items():
                start = time.perf_counter()
                with output.open("wb") as out:
                    subprocess.run(_pinned(argv), stdout=out, stderr=subprocess.DEVNULL, check=True)
                seconds[kind].append(time.perf_counter() - start)
                sys.stderr.write(f"{kind}: {seconds[kind][-1]:.1f} s\n")
                if kind != "tcptrace":
                    said[kind] = output.read_text()
    figures = [_figure(f"{EXCHANGES:,} HTTP exchanges into steps, from start to end", seconds["steps"], "s", limit=5.0)]
    rows, peak = map(int, said["steps"].split())
    figures.append(_figure("  exchanges whose steps are kept", [float(rows)], "", limit=2.0**18))
    figures.append(_figure("  peak memory", [peak / 1e3], "MB"))
    figures.append(_figure("  the exchanges alone", seconds["exchanges"], "s"))
    if "tcptrace" in seconds:
        ratios = [peer / own for peer, own in zip(seconds["tcptrace"], seconds["steps"], strict=True)]
        figures.append(_figure("  times as fast as tcptrace, which has no steps", ratios, "x", least=1.0))
    return figures


def _pinned(argv: list[str]) -> list[str]:
    return ["taskset", "-c", str(max(os.sched_getaffinity(0))), *argv]


def _figure(what: str, values: list[float], unit: str, limit: float | None = None, least: float | None = None) -> Figure:
    return Figure(what, statistics.median(values), (min(values), max(values)), unit, limit, least)
