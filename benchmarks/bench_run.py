"""Time outside the workload per run, testbed by testbed: everything that a run costs beyond the workload itself.

Boot, read-back, capture, draining, collection, syncing to disk and tear-down are in it.  Stated limits: a container run at
most 0.7 s, a guest run under TCG at most 6 s.  Runs are interleaved by the study's own randomised blocks.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

from benchmarks import Figure, twinbed

STUDY = """
study: overhead
testbeds:
  container: {driver: container}
  e1000: {driver: qemu, nic: e1000}
  virtio: {driver: qemu, nic: virtio-net-pci}
workload: {kind: http, duration: 2s}
topology: {link: {rate: 1gbit}}
factors: {testbed: [container, e1000, virtio], payload: [500B, 1MiB]}
instruments: [packets, counters]
replicates: 5
"""


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        study, results = Path(folder) / "study.yaml", Path(folder) / "results"
        study.write_text(STUDY)
        twinbed("run", str(study), "-o", str(results), "--no-report")
        totals = {
            event["run"]: event["seconds"]
            for line in (results / "events.jsonl").read_text().splitlines()
            if (event := json.loads(line)).get("status") == "complete"
        }
        outside: dict[str, list[float]] = {}
        for path in (results / "runs").glob("*/run.json"):
            record = json.loads(path.read_text())
            seconds = totals[record["id"]] - record["phases"]["workload"]
            outside.setdefault(record["levels"]["testbed"], []).append(seconds)
    limits = {"container": 0.7, "e1000": 6.0, "virtio": 6.0}
    return [
        Figure(f"seconds outside the workload, {name}", statistics.median(found), (min(found), max(found)), "s", limits[name])
        for name, found in sorted(outside.items())
    ]
