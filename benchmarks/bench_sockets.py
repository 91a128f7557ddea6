"""What the instrument ``sockets`` costs: processor time of its probe beside 10 and 1,000 sockets, and what a workload loses.

Sockets are the ends of connections over the loopback of a network namespace of their own, at rest: what the kernel does to
answer is the same.  The probe runs at its default interval; how far apart samples of a socket really are is shown beside it.  A
search for new sockets is measured by connections that are opened all the time.  Requests/s are those of ab in containers, with
the instrument over without it (``instrument_cost``).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import Figure
from benchmarks.instrument_cost import interval, side_by_side
from twinbed.image import probe_path
from twinbed.instruments.sockets import MOST_SAMPLES, SocketsParams
from twinbed.readers.sockets.samples import read
from twinbed.readers.sockets.summary import Summary

PAIRS = 20
TRIES = 5
SECONDS = 5
LIMIT_PERCENT = 1.0
STUDY = """
study: sockets
testbeds: {container: {driver: container, cpus: auto}}
workload: {kind: http, tool: ab, payload: 500B, duration: 3s, max_requests: 10000000}
factors: {instruments: [none, sockets]}
replicates: 1
order: sequential
"""
SCENE = """
import json, os, resource, socket, subprocess, sys, time
probe, options, file, connections, opening, seconds = json.loads(sys.argv[1])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
listener = socket.create_server(("127.0.0.1", 5001), backlog=1024)
kept = []
def connect():
    return socket.create_connection(("127.0.0.1", 5001)), listener.accept()[0]
process = subprocess.Popen([probe, "sockets", "--out", file, *options], stdout=subprocess.PIPE)
assert process.stdout.readline() == b"ready\\n"
kept += [connect() for _ in range(connections)]
end = time.monotonic() + seconds
while time.monotonic() < end:
    if opening:
        for each in connect():
            each.close()
    time.sleep(0.001)
process.terminate()
_, _, used = os.wait4(process.pid, 0)
print(used.ru_utime + used.ru_stime)
"""


def run() -> list[Figure]:
    figures = []
    for what, connections, opening in (
        ("beside 10 sockets", 5, False),
        ("beside 1,000 sockets", 500, False),
        ("beside 10 sockets, while others are opened and closed", 5, True),
    ):
        tries = [_percent(connections, opening=opening) for _ in range(TRIES)]
        taken, apart = (sorted(each) for each in zip(*tries, strict=True))
        limit = LIMIT_PERCENT
        figures += [
            Figure(f"a CPU's time taken by sockets {what}", statistics.median(taken), (taken[0], taken[-1]), "%", limit),
            Figure("  between two samples of a socket", statistics.median(apart), (apart[0], apart[-1]), "ms"),
        ]
    alone, lost = side_by_side(STUDY, PAIRS)
    return [
        *figures,
        Figure("ab 500 B in containers, no instrument", statistics.median(alone), (alone[0], alone[-1]), "requests/s"),
        Figure("  lost to sockets", statistics.median(lost), interval(lost), "%", LIMIT_PERCENT),
    ]


def _percent(connections: int, *, opening: bool) -> tuple[float, float]:
    """Percent of a CPU that the probe takes, and ms between two samples."""
    params = SocketsParams()
    options = ["--interval", f"{params.interval:g}", "--bytes", str(params.limit), "--samples", str(MOST_SAMPLES)]
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        file = Path(folder) / "host" / "sockets.tcp"
        file.parent.mkdir()
        argument = json.dumps([str(probe_path()), options, str(file), connections, opening, SECONDS])
        argv = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", SCENE, argument]
        used_s = float(subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True, env=os.environ).stdout)
        values = {value.metric: value.value for value in Summary(read(file)).values()}
    apart_s = values["socket_sample_interval"]
    assert apart_s is not None
    return 100 * used_s / SECONDS, 1e3 * apart_s
