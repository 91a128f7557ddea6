"""2,040 reports of iperf3's imported by a pattern in at most 20 s on 2 cores, and compared.

Real reports of 1 to 17 streams, each way, in a network namespace, varied to 3 testbeds and 20 replicates; a hundredth is cut,
a fiftieth in a log, a hundredth there twice.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.iperf3_corpus import PATTERN, real_reports, write

from benchmarks import Figure
from twinbed.cli.main import run as twinbed

TRIES = 3


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder, results = Path(name, "in"), Path(name, "out")
        corpus = write(folder, real_reports(range(1, 18)), replicates=20, every=(97, 50, 101))
        command = ["import", str(folder), "-o", str(results), "--pattern", PATTERN.replace("{peer}", "{_}")]
        what = f"{corpus.files + len(corpus.copies):,} reports of iperf3"
        return [
            _figure(f"{what} imported", command, 1, 20.0, lambda: shutil.rmtree(results, ignore_errors=True)),
            _figure(f"{what} imported again: nothing to do", command, 1, None),
            _figure(
                f"{what} read and compared",
                ["compare", str(results)],
                4,
                None,
                lambda: shutil.rmtree(results / "tables", ignore_errors=True),
            ),
        ]


def _figure(
    what: str, command: Sequence[str], code: int, limit: float | None, before: Callable[[], None] = lambda: None
) -> Figure:
    seconds = []
    for _ in range(TRIES):
        before()
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            found = twinbed(command)
        seconds.append(time.perf_counter() - start)
        if found != code:
            raise RuntimeError(f"{' '.join(command)} ended with {found}, not {code}")
    return Figure(what, statistics.median(seconds), (min(seconds), max(seconds)), "s", limit)
