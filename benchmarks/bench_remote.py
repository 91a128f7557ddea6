"""Hosts over SSH: what a run costs beside its workload, and how fast artifacts come, held against ``scp`` of the same file.

Two real sshd on two namespaces' worth of machine (tests/remote/machines.py), all on this machine: encryption of both ends and
what is measured share its CPUs.  Agent and scp take turns, in the same minute.  Stated limits: a run at most 1.5 s outside its
workload; artifacts at 90 % of scp's speed at least.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tests.remote.machines import Machines, machines

from benchmarks import Figure, twinbed
from twinbed.contracts.site import Site
from twinbed.image import build, probe_path
from twinbed.model.topology import Topology
from twinbed.testbeds.remote import remote

RUNS = 5
COPIES = 7
FILE_MB = 256
MEGABYTE = 2**20


def run() -> list[Figure]:
    build()
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder, machines(Path(folder), disk="2g") as two:
        outside = {image: _outside(Path(folder), two, image) for image in ("archive", "none")}
        agent, scp = _copies(Path(folder), two)
    ratio = statistics.median(there / ours for there, ours in zip(scp, agent, strict=True))
    ratios = [there / ours for there, ours in zip(scp, agent, strict=True)]
    speeds = {
        name: [FILE_MB * MEGABYTE / 1e6 / seconds for seconds in found] for name, found in (("agent", agent), ("scp", scp))
    }
    return [
        *(
            Figure(
                f"seconds outside the workload, image: {image}", statistics.median(found), (min(found), max(found)), "s", 1.5
            )
            for image, found in outside.items()
        ),
        *(
            Figure(f"{FILE_MB} MiB by {name}", statistics.median(found), (min(found), max(found)), "MB/s")
            for name, found in speeds.items()
        ),
        Figure("speed of the agent by scp's", ratio, (min(ratios), max(ratios)), "", least=0.9),
    ]


def _outside(folder: Path, two: Machines, image: str) -> list[float]:
    """Of each run but the first, which puts the probe and the image on the hosts."""
    study, results = folder / f"{image}.yaml", folder / image
    text = {
        "study": "overhead",
        "testbeds": {"physical": {"driver": "remote", **two.settings(image=image)}},
        "workload": {"kind": "http", "duration": "2s"},
        "topology": {"link": {"rate": "1gbit"}},
        "instruments": ["packets", "counters"],
        "replicates": RUNS + 1,
    }
    study.write_text(json.dumps(text))
    twinbed("run", str(study), "-o", str(results), "--no-report")
    events = [json.loads(line) for line in (results / "events.jsonl").read_text().splitlines()]
    totals = {event["run"]: event["seconds"] for event in events if event.get("status") == "complete"}
    records = [json.loads(path.read_text()) for path in (results / "runs").glob("*/run.json")]
    records.sort(key=lambda record: record["position"])
    return [totals[record["id"]] - record["phases"]["workload"] for record in records[1:]]


def _copies(folder: Path, two: Machines) -> tuple[list[float], list[float]]:
    """Seconds of each copy by the agent and by scp, in turns. scp's own start and its login are not in its time."""
    site = Site("bench", probe_path(), build(), folder / "artifacts", tuple(sorted(os.sched_getaffinity(0))))
    agent, scp = [], []
    with remote.up(remote.params(**two.settings()), Topology(), site) as bed:
        client = bed.hosts["client"]
        path = f"{client.artifacts}/file"
        client.run(["dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={FILE_MB}", "status=none"], limit_s=60)
        client.run(["truncate", "-s", "0", f"{client.artifacts}/empty"])
        there = two.hosts["client"].run("sh", "-c", "ls -d /var/lib/twinbed/leases/*/artifacts").strip()
        for _ in range(COPIES):
            start = time.perf_counter()
            client.fetch(path, folder / "by-agent", limit_s=120)
            agent.append(time.perf_counter() - start)
            login = _scp(two, f"{there}/empty", folder / "empty")
            scp.append(_scp(two, f"{there}/file", folder / "by-scp") - login)
    return agent, scp


def _scp(two: Machines, path: str, to: Path) -> float:
    start = time.perf_counter()
    subprocess.run(["scp", "-q", "-F", str(two.config), f"client:{path}", str(to)], check=True)
    return time.perf_counter() - start
