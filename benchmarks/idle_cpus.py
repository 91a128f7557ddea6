"""How much the quickstart's container cells at 500 B vary from run to run, with idle CPUs as they are and kept awake.

python -m benchmarks.idle_cpus                          ten runs of each, in random order within blocks, six minutes
python -m benchmarks.idle_cpus --replicates 2 --duration 1s

Runs of all three
are in the same blocks, so that what the machine does meanwhile meets them alike. Run it on a quiet machine: CPUs that have
other work are not idle. The share of time is what the runs' own passports say (docs/testbeds.md).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks import twinbed
from twinbed import open as open_results
from twinbed.contracts.place import MACHINE
from twinbed.model.wake_ups import WAITED_SHARE, WAKE_UP_S

STUDY = """
study: idle-cpus
testbeds:
  normal: {{driver: container, congestion_control: reno, idle: normal}}
  busy: {{driver: container, congestion_control: reno, idle: busy}}
  shared: {{driver: container, congestion_control: reno, idle: busy, cpus: shared}}
reference: normal
topology: {{kind: pairs, switch: bridge, link: {{rate: 1gbit}}}}
workload: {{kind: http, tool: ab, threads: 1, duration: {duration}, max_requests: 500000, payload: 500B}}
factors: {{testbed: [normal, busy, shared], pairs: [1, 4]}}
instruments: [packets, counters]
replicates: {replicates}
seed: 20190221
"""
RATE = "requests_per_second"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--duration", default="5s", help="of the workload")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        study, results = Path(folder) / "study.yaml", Path(folder) / "results"
        study.write_text(STUDY.format(replicates=options.replicates, duration=options.duration))
        twinbed("run", str(study), "-o", str(results), "--no-report")
        _print(_rates(results), load)


def _rates(results: Path) -> dict[tuple[str, int], list[tuple[float, float, float | None]]]:
    """Testbed and pairs -> of each run its requests a second and pair, what a wake-up took in microseconds, and the share of
    time that its programs waited for idle CPUs."""
    values = {
        row["run"]: row["value"]
        for row in open_results(results).metrics(RATE).to_pylist()
        if not row["host"] and row["value"] is not None
    }
    found: dict[tuple[str, int], list[tuple[float, float, float | None]]] = defaultdict(list)
    for path in sorted((results / "runs").glob("*/run.json")):
        record = json.loads(path.read_text())
        facts = json.loads((path.parent / "passport.json").read_text())[MACHINE]
        pairs = int(record["levels"]["pairs"])
        one = (values[record["id"]] / pairs, 1e6 * facts[WAKE_UP_S], facts[WAITED_SHARE])
        found[record["levels"]["testbed"], pairs].append(one)
    return found


def _print(found: dict[tuple[str, int], list[tuple[float, float, float | None]]], load: float) -> None:
    heads = ("idle", "pairs", "runs", "requests/s a pair, mean", "variation (%)", "wake-up (us)", "time waiting (%)")
    sys.stdout.write(f"load before the first run: {load:.2f}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n")
    for (testbed, pairs), runs in sorted(found.items(), key=lambda item: (item[0][1], item[0][0] != "normal", item[0][0])):
        rates, wake_ups, shares = zip(*runs, strict=True)
        known = [share for share in shares if share is not None]
        mean = statistics.fmean(rates)
        varies = f"{100 * statistics.stdev(rates) / mean:.1f}" if len(rates) > 1 else ""
        waiting = f"{100 * statistics.median(known):.0f}" if known else ""
        row = (testbed, pairs, len(runs), f"{mean:,.0f}", varies, f"{statistics.median(wake_ups):.1f}", waiting)
        sys.stdout.write(f"| {' | '.join(map(str, row))} |\n")


if __name__ == "__main__":
    main()
