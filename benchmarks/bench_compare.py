"""10,000 run folders: listed in at most 1 s, and read into tables and compared from nothing in at most 10 s.

Makes a study of 4 testbeds, 100 cells and 25 replicates in a temporary folder, which takes some seconds itself.  Prints one line
a figure, with its limit, and ends with code 1 where a limit is exceeded.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from synthetic_results import planted_response, write_study

from twinbed.analyses.compare import compare
from twinbed.extract import extract
from twinbed.store import Store
from twinbed.workloads.planted import planted

TESTBEDS = {"physical": 1.0, "container": 1.0, "virtio": 1.05, "e1000": 1.2}
RUNS = 10_000


def best_of(times: int, work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """Seconds of the fastest of several tries: what the work takes, without what else the machine does."""
    seconds = []
    for _ in range(times):
        before()
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> int:
    exceeded = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        factors = {"payload": [f"{size}B" for size in range(50)], "offload": ["on", "off"]}
        write_study(folder, list(TESTBEDS), factors, RUNS // 400, planted_response(TESTBEDS, 0.02, seed=1))

        def from_nothing() -> None:
            compare.run(extract(folder, {"planted": planted}, {}))

        for what, seconds, limit in (
            ("listed", best_of(3, lambda: Store.open(folder)), 1.0),
            (
                "extracted and compared from nothing",
                best_of(3, from_nothing, lambda: shutil.rmtree(folder / "tables", True)),
                10.0,
            ),
            ("compared again", best_of(3, from_nothing), 10.0),
        ):
            exceeded += seconds > limit
            sys.stdout.write(f"{RUNS:,} run folders {what}: {seconds:.2f} s (limit {limit:g} s)\n")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
