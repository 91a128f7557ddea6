"""What seeing system calls costs: requests/s of ab (one thread, 500 B) that are lost, and nanoseconds a call.

Client and server are in network namespaces of their own, each pinned to one CPU; every way of looking is measured once in
each round, in random order, and compared with the rate without any in the same round.  The value is the median over rounds,
the range its 95 % interval from order statistics.  The others look where they are installed: strace at the client only,
perf (leaving itself out: it would trace what it writes) and bpftrace at everything.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import Figure

PROBE = Path(__file__).parents[1] / "src/twinbed/bin/twinbed-probe"
ROUNDS = 15
REQUESTS = 5000
SLOWED_REQUESTS = 500
LOOPS = 200_000
TRIES = 15
CLIENT_CPU, SERVER_CPU = "1", "0"
CONFIGURATION = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; sendfile on; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; server {{ listen 10.99.0.1:80; root {folder}/www; }} }}
"""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of looking: what is started beside ab and then says ``ready``, or what ab is started by; how much it may cost."""

    name: str
    beside: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    limit: float | None = None


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as name:
        folder = Path(name)
        with _control_group() as group, _served(folder, group) as client:
            ways = _ways(folder, group)
            rates: dict[str, list[float]] = {way.name: [] for way in ways}
            for _ in range(ROUNDS):
                for way in random.sample(ways, len(ways)):
                    rates[way.name].append(_rate(way, client, folder, group))
        nothing = rates.pop("nothing")
        figures = [_figure("ab 500 B, nothing looks", nothing, "requests/s")]
        for way in ways:
            if way.name in rates:
                lost = [100 * (1 - seen / alone) for seen, alone in zip(rates[way.name], nothing, strict=True)]
                figures.append(_figure(f"  lost to {way.name}", lost, "%", way.limit))
        return [*figures, *_a_call(folder)]


def _ways(folder: Path, group: Path) -> list[Way]:
    def probe(mode: str, method: str, *more: str) -> tuple[str, ...]:
        out = str(folder / "probe.out")
        return (str(PROBE), "syscalls", mode, "--method", method, "--cgroup", str(group), "--out", out, *more)

    ways = [
        Way("nothing"),
        Way("count, bpf", probe("count", "bpf"), limit=5.0),
        Way("count, bpf, all timed", probe("count", "bpf", "--times", "all")),
        Way("count, tracefs", probe("count", "tracefs")),
        Way("trace, bpf", probe("trace", "bpf"), limit=15.0),
        Way("trace, tracefs", probe("trace", "tracefs"), limit=15.0),
    ]
    if shutil.which("strace"):
        ways.append(Way("strace -f -c of ab", before=("strace", "-f", "-c", "-o", str(folder / "strace.out"))))
    if shutil.which("perf"):
        argv = ("perf", "record", "-q", "-e", "raw_syscalls:*", "--exclude-perf", "-a", "-o", str(folder / "perf.data"), "--")
        ways.append(Way("perf record -a -e raw_syscalls:*", before=argv))
    if shutil.which("bpftrace"):
        counting = 'tracepoint:raw_syscalls:sys_enter { @[tid, comm, args->id] = count(); } BEGIN { printf("ready\\n"); }'
        ways.append(Way("bpftrace counting entries", ("bpftrace", "-e", counting)))
    return ways


def _rate(way: Way, client: Sequence[str], folder: Path, group: Path) -> float:
    with _looking(way, folder):
        requests = SLOWED_REQUESTS if "strace" in way.before else REQUESTS
        argv = [
            *client,
            "taskset",
            "-c",
            CLIENT_CPU,
            *way.before,
            "ab",
            "-q",
            "-c",
            "1",
            "-n",
            str(requests),
            "http://10.99.0.1/",
        ]
        done = subprocess.run(_within(group, argv), capture_output=True, text=True, check=True)
    rate = re.search(r"Requests per second:\s+([\d.]+)", done.stdout)
    assert rate and re.search(r"Failed requests:\s+0\n", done.stdout), done.stdout
    return float(rate[1])


@contextlib.contextmanager
def _looking(way: Way, folder: Path) -> Iterator[None]:
    if not way.accompanying:
        yield
        return
    said = folder / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(way.accompanying, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        _until(lambda: "ready" in said.read_text(), process)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def _until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not holds():
        assert process.poll() is None, process.args
        time.sleep(0.01)


def _within(group: Path, argv: Sequence[str]) -> list[str]:
    return ["sh", "-c", f'echo 0 >{group}/cgroup.procs && exec "$@"', "sh", *argv]


@contextlib.contextmanager
def _control_group() -> Iterator[Path]:
    roots = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
    group = next(path for path in roots if (path / "cgroup.controllers").exists()) / f"twinbed-bench-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        group.rmdir()


@contextlib.contextmanager
def _served(folder: Path, group: Path) -> Iterator[list[str]]:
    """nginx in a namespace of its own; gives what a program in the client's is started by."""
    server, client = (f"twinbed-bench-{side}-{os.getpid()}" for side in "sc")
    (folder / "www").mkdir()
    (folder / "www/index.html").write_bytes(b"x" * 500)
    (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder))
    commands = [
        f"link add veth0 netns {server} type veth peer name veth0 netns {client}",
        *(f"-n {space} address add 10.99.0.{n}/24 dev veth0" for n, space in ((1, server), (2, client))),
        *(f"-n {space} link set veth0 up" for space in (server, client)),
    ]
    with contextlib.ExitStack() as stack:
        for space in (server, client):
            subprocess.run(["ip", "netns", "add", space], check=True)
            stack.callback(subprocess.run, ["ip", "netns", "delete", space], check=True)
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True)
        argv = ["ip", "netns", "exec", server, "taskset", "-c", SERVER_CPU, "nginx", "-c", str(folder / "nginx.conf")]
        nginx = subprocess.Popen(_within(group, argv))
        stack.callback(nginx.wait)
        stack.callback(nginx.terminate)
        _until((folder / "nginx.pid").exists, nginx)
        yield ["ip", "netns", "exec", client]


def _a_call(folder: Path) -> list[Figure]:
    """perf's own loop over getppid, the quickest of many short ones, without and with the probe; then its memory and losses."""
    if not shutil.which("perf"):
        return []
    out = folder / "probe.out"
    ways = [Way("nothing looks")]
    timed = [("count", "bpf", ("--times", times)) for times in ("sampled", "all", "none")]
    for mode, method, more in (*timed, ("trace", "bpf", ()), ("trace", "tracefs", ())):
        argv = (str(PROBE), "syscalls", mode, "--method", method, "--system-wide", "--out", str(out), *more)
        ways.append(Way(" ".join((f"{mode}, {method}", *more)), argv))
    figures = []
    for way in ways:
        with _looking(way, folder):
            spans = [_loop() for _ in range(TRIES)]
        figures.append(Figure(f"a call, {way.name}", min(spans), (min(spans), statistics.median(spans)), "ns"))
        if way.accompanying:
            figures.extend(_resident(way, folder))
    return figures


def _loop() -> float:
    argv = ["taskset", "-c", CLIENT_CPU, "perf", "bench", "-f", "simple", "syscall", "basic", "-l", str(LOOPS)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1]) / LOOPS * 1e9


def _resident(way: Way, folder: Path) -> list[Figure]:
    """Two loops side by side, some million calls/s."""
    with _looking(way, folder):
        argv = ["perf", "bench", "-f", "simple", "syscall", "basic", "-l", str(40 * LOOPS)]
        loops = [subprocess.Popen(["taskset", "-c", cpu, *argv], stdout=subprocess.PIPE) for cpu in (CLIENT_CPU, SERVER_CPU)]
        seconds = [float(loop.communicate()[0].split()[-1]) for loop in loops]
        rate = sum(40 * LOOPS / span for span in seconds) / 1e6
        peak = _peak_mib(way)
    figures = [Figure(f"  resident at {rate:.1f} million calls/s", peak, (peak, peak), "MiB", 64.0)]
    if "count" in way.name:
        lost = float((folder / "probe.out").read_text().split()[-1])
        figures.append(Figure("  calls lost then", lost, (lost, lost), "calls", 0.0))
    return figures


def _peak_mib(way: Way) -> float:
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if (status.parent / "cmdline").read_bytes() == b"".join(word.encode() + b"\0" for word in way.accompanying):
                return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024  # type: ignore[index]
    raise ProcessLookupError(way.name)


def _figure(what: str, values: list[float], unit: str, limit: float | None = None) -> Figure:
    """The median; for 15 values its 95 % interval is from the 4th to the 12th."""
    ordered = sorted(values)
    beyond = int(max(0, (len(ordered) - 1.96 * len(ordered) ** 0.5) / 2))
    return Figure(what, statistics.median(values), (ordered[beyond], ordered[-1 - beyond]), unit, limit)
