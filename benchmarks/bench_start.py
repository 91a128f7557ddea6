"""How quickly the command answers: `twinbed --help`, beside an interpreter that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks import Figure

TRIES = 15


def run() -> list[Figure]:
    """Interleaved, so that what else the machine does hits both alike."""
    commands = {"twinbed --help": ["-m", "twinbed.cli.main", "--help"], "python -c pass": ["-c", "pass"]}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(TRIES):
        for name, arguments in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            seconds[name].append(time.perf_counter() - start)
    figures = [
        Figure(name, statistics.median(found), (min(found), max(found)), "s", 0.2 if "help" in name else None)
        for name, found in seconds.items()
    ]
    ratios = [help_s / nothing_s for help_s, nothing_s in zip(*seconds.values(), strict=True)]
    return [*figures, Figure("  its ratio to that", statistics.median(ratios), (min(ratios), max(ratios)), "x")]
