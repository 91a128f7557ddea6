"""What the instrument ``events`` costs: requests/s of ab (one thread, 500 B) in containers, with it over without it.

The value is the median over pairs of runs (``instrument_cost``), in percent lost; the range its 95 % interval from order
statistics.  This workload is the worst for it: a request of 0.1 ms has a hundred events.

Two parts of the cost are measured apart, since they can still be told where the machine is busy with something else: what a
packet takes longer with all programs attached, sent over a veth in turns with and without; and the processor time that the
probe itself takes to attach and detach them once a second.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import Figure
from benchmarks.instrument_cost import interval, side_by_side
from twinbed.image import probe_path

PAIRS = 20
ROUNDS = 10
LIMIT_PERCENT = 1.0
SHARE = 0.1
PACKETS = 200_000
EVENTS_A_PACKET = 6
SECONDS = 10
STUDY = """
study: events
testbeds: {container: {driver: container, cpus: auto}}
workload: {kind: http, tool: ab, payload: 500B, duration: 3s, max_requests: 10000000}
factors: {instruments: [none, events]}
replicates: 1
order: sequential
"""
SENDER = f"""
import socket, subprocess, time
subprocess.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1; ip link add e0 type veth peer name e1; ip link set e0 up; "
    "ip link set e1 up", shell=True, check=True)
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("e0", 0))
frame = b"\\xff" * 12 + b"\\x88\\xb5" + b"x" * 100
begun = time.perf_counter()
for _ in range({PACKETS}):
    sender.send(frame)
print((time.perf_counter() - begun) / {PACKETS} * 1e9)
"""
"""On one CPU: the packet is queued, sent, received and dropped before the next."""


def run() -> list[Figure]:
    alone, lost = side_by_side(STUDY, PAIRS)
    every = sorted(_ns_a_packet(attached=True) - _ns_a_packet(attached=False) for _ in range(ROUNDS))
    hits = [each / EVENTS_A_PACKET for each in every]
    return [
        Figure("ab 500 B in containers, no instrument", statistics.median(alone), (alone[0], alone[-1]), "requests/s"),
        Figure("  lost to events", statistics.median(lost), interval(lost), "%", LIMIT_PERCENT),
        Figure("  a hit, while attached", statistics.median(hits), (hits[0], hits[-1]), "ns"),
        _processor(),
    ]


def _ns_a_packet(*, attached: bool) -> float:
    with _probe(1.0) if attached else tempfile.TemporaryDirectory():
        cpu = str(max(os.sched_getaffinity(0)))
        argv = ["unshare", "--net", "taskset", "--cpu-list", cpu, "python3", "-c", SENDER]
        return float(subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout)


def _processor() -> Figure:
    """Percent of one CPU that the probe takes, most of it to attach and detach."""
    taken = []
    for _ in range(5):
        with _probe(SHARE) as process:
            before = _used_s(process)
            time.sleep(SECONDS)
            taken.append(100 * (_used_s(process) - before) / SECONDS)
    return Figure("  a CPU's time taken by its probe", statistics.median(taken), (min(taken), max(taken)), "%", LIMIT_PERCENT)


def _used_s(process: subprocess.Popen[bytes]) -> float:
    """Fields 14 and 15 of /proc/PID/stat, in ticks (proc(5))."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _probe(share: float) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        argv = [str(probe_path()), "events", "--out", f"{folder}/kernel.events", "--share", f"{share:g}"]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
