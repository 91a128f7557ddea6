"""How quickly the command answers, as a whole process, beside an interpreter that does nothing: `--version`, `--help`, and the
commands that read captures, on one of 20 connections (limit 0.15 s). Also the CPU time, which other work on the machine changes
less.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import Figure

TRIES = 15
CAPTURE = str(Path(__file__).parents[1] / "tests" / "golden" / "captures" / "http-short.pcap")
TWINBED = ["-m", "twinbed.cli.main"]


def run() -> list[Figure]:
    """Interleaved, so that what else the machine does hits all alike."""
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        return _measured(_commands(Path(folder)))


def _commands(folder: Path) -> dict[str, tuple[list[str], float | None]]:
    """Arguments of the interpreter, and the limit in seconds."""
    return {
        "python -c pass": (["-c", "pass"], None),
        "twinbed --version": ([*TWINBED, "--version"], 0.15),
        "twinbed --help": ([*TWINBED, "--help"], 0.2),
        "twinbed flows, 20 connections": ([*TWINBED, "flows", CAPTURE], 0.15),
        "  to Parquet": ([*TWINBED, "flows", CAPTURE, "-o", str(folder / "flows.parquet")], 0.15),
        "  as CSV": ([*TWINBED, "flows", CAPTURE, "--format", "csv"], None),
        "twinbed connections": ([*TWINBED, "connections", CAPTURE], 0.15),
        "twinbed match": ([*TWINBED, "match", CAPTURE, CAPTURE], 0.15),
        "twinbed compare --help": ([*TWINBED, "compare", "--help"], 0.2),
    }


def _measured(commands: dict[str, tuple[list[str], float | None]]) -> list[Figure]:
    wall: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(TRIES):
        for name, (arguments, _limit) in commands.items():
            start = time.perf_counter()
            process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            wall[name].append(time.perf_counter() - start)
            cpu[name].append(usage.ru_utime + usage.ru_stime)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, arguments)
    figures = []
    for name, (_arguments, limit) in commands.items():
        figures.append(_figure(name, wall[name], limit))
        figures.append(_figure("    its CPU time", cpu[name], None))
    ratios = [help_s / nothing_s for help_s, nothing_s in zip(wall["twinbed --help"], wall["python -c pass"], strict=True)]
    return [*figures, Figure("--help to python -c pass", statistics.median(ratios), (min(ratios), max(ratios)), "x")]


def _figure(what: str, values: list[float], limit: float | None) -> Figure:
    return Figure(what, statistics.median(values), (min(values), max(values)), "s", limit)
