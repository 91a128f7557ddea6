"""Compare `flows` with the peers installed here, on the same capture, alternately, on one core.

Peers: tcptrace, tshark, and by CPU time nfdump's nfpcapd and argus, which are fast and count far fewer statistics.
Promised: 20 times as fast as tcptrace, 40 times as tshark, at most a third of nfpcapd's CPU time, at most 0.6 s as a whole
process, 1.7 times as fast on two cores, 1.5 GB/s on few large connections or what `cat` reaches, at most 700 MB, and a cost
that grows linearly. ``TWINBED_BENCH_LARGEST=1e8`` takes it to 1e8 packets (8 GB of disk).
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks import Figure

CONNECTIONS = 500_000
PACKETS = 12
"""Of each."""
LARGE_BYTES = 2_000_000_000
TRIES = 5
TWINBED = "import sys; from twinbed import _core; _core.flows_to_parquet(sys.argv[1:2], sys.argv[2], threads=int(sys.argv[3]))"


class Cost(NamedTuple):
    seconds: float
    cpu_seconds: float
    """In the program and in the kernel for it, all threads."""
    peak_bytes: int


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as name:
        folder = Path(name)
        return [*_peers(folder), *_large(folder), *_linear(folder)]


def _make(kind: str, capture: Path, size: int) -> None:
    subprocess.run([sys.executable, "-m", "benchmarks.captures", kind, str(capture), str(size)], check=True)


def _run(argv: list[str], cpus: set[int]) -> Cost:
    """A program from start to end, on these CPUs."""
    pinned = ["taskset", "-c", ",".join(map(str, sorted(cpus))), *argv]
    start = time.perf_counter()
    process = subprocess.Popen(pinned, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _twinbed(capture: Path, threads: int = 1) -> list[str]:
    return [sys.executable, "-c", TWINBED, str(capture), str(capture.with_suffix(".parquet")), str(threads)]


def _command(capture: Path, *counted_by: str) -> list[str]:
    output = str(capture.with_suffix(".parquet"))
    return [sys.executable, "-m", "twinbed.cli.main", "flows", str(capture), *counted_by, "-o", output]


def _cpus() -> tuple[set[int], set[int]]:
    """One CPU, and two where there are two."""
    allowed = sorted(os.sched_getaffinity(0))
    return {allowed[-1]}, set(allowed[-2:])


def _figure(what: str, values: list[float], unit: str, limit: float | None = None, least: float | None = None) -> Figure:
    return Figure(what, statistics.median(values), (min(values), max(values)), unit, limit, least)


def _ratios(slower: list[Cost], faster: list[Cost]) -> list[float]:
    return [one.seconds / other.seconds for one, other in zip(slower, faster, strict=True)]


def _seconds(costs: list[Cost]) -> list[float]:
    return [cost.seconds for cost in costs]


def _peers(folder: Path) -> list[Figure]:
    capture = folder / "short.pcap"
    _make("short_connections", capture, CONNECTIONS)
    one, two = _cpus()
    jobs = {"twinbed": (_twinbed(capture), one), "command": (_command(capture, "--threads", "1"), one)}
    if len(two) == 2:
        jobs["two"] = (_twinbed(capture, threads=2), two)
        jobs["workers"] = (_command(capture, "--on", "local:2"), two)
    if tcptrace := shutil.which("tcptrace"):
        jobs["tcptrace"] = ([tcptrace, "-n", "-l", "--csv", str(capture)], one)
    if tshark := shutil.which("tshark"):
        jobs["tshark"] = ([tshark, "-n", "-q", "-z", "conv,tcp", "-r", str(capture)], one)
    if nfpcapd := shutil.which("nfpcapd"):
        flows = folder / "nfpcapd"
        flows.mkdir()
        jobs["nfpcapd"] = ([nfpcapd, "-r", str(capture), "-w", str(flows)], one)
    if argus := shutil.which("argus"):
        jobs["argus"] = ([argus, "-r", str(capture), "-w", str(folder / "argus")], one)
    costs: dict[str, list[Cost]] = {name: [] for name in jobs}
    for _ in range(TRIES):
        for name, (argv, cpus) in jobs.items():
            (folder / "argus").unlink(missing_ok=True)  # It appends.
            costs[name].append(_run(argv, cpus))
    capture.unlink()
    ours = costs["twinbed"]
    what = f"{CONNECTIONS * PACKETS:,} packets of {CONNECTIONS:,} connections to Parquet"
    figures = [
        _figure(what, _seconds(ours), "s"),
        _figure("  as a command, from start to end", _seconds(costs["command"]), "s", limit=0.6),
        _figure("  peak memory", [cost.peak_bytes / 1e6 for cost in ours], "MB", limit=700),
    ]
    for name, least in (("tcptrace", 20), ("tshark", 40)):
        if name in costs:
            figures.append(_figure(f"  {name}", _seconds(costs[name]), "s"))
            figures.append(_figure(f"  times as fast as {name}", _ratios(costs[name], ours), "x", least=least))
    figures.append(_figure("  CPU time", [cost.cpu_seconds for cost in ours], "s"))
    for name, limit in (("nfpcapd", 1 / 3), ("argus", None)):
        if name in costs:
            theirs = [cost.cpu_seconds for cost in costs[name]]
            shares = [cost.cpu_seconds / other for cost, other in zip(ours, theirs, strict=True)]
            figures.append(_figure(f"  CPU time of {name}", theirs, "s"))
            figures.append(_figure(f"  CPU time, as a multiple of {name}'s", shares, "x", limit=limit))
    if "two" in costs:
        figures.append(_figure("  two threads on two cores", _seconds(costs["two"]), "s"))
        figures.append(_figure("  times as fast as on one", _ratios(ours, costs["two"]), "x", least=1.7))
        figures.append(_figure("  two workers (--on local:2), from start to end", _seconds(costs["workers"]), "s"))
        figures.append(_figure("  times as fast as the command on one", _ratios(costs["command"], costs["workers"]), "x"))
    return figures


def _large(folder: Path) -> list[Figure]:
    capture = folder / "large.pcap"
    _make("large_connections", capture, LARGE_BYTES)
    size = capture.stat().st_size
    one, _ = _cpus()
    ours, cat = [], []
    for _ in range(TRIES):
        cat.append(_run(["cat", str(capture)], one))
        ours.append(_run(_twinbed(capture), one))
    capture.unlink()
    rates = [[size / cost.seconds / 1e9 for cost in costs] for costs in (ours, cat)]
    least = min(1.5, statistics.median(rates[1]))
    return [
        _figure(f"{size / 1e9:.1f} GB of 4 large connections", rates[0], "GB/s", least=least),
        _figure("  cat of the same file", rates[1], "GB/s"),
        _figure("  peak memory", [cost.peak_bytes / 1e6 for cost in ours], "MB", limit=700),
    ]


def _linear(folder: Path) -> list[Figure]:
    """The cost of a packet as captures grow: at most twice what it is where all fits a cache, without what starting costs."""
    one, _ = _cpus()
    sizes = [size for size in (10**5, 10**6, 6 * 10**6, 10**8) if size <= float(os.environ.get("TWINBED_BENCH_LARGEST", "6e6"))]
    figures: list[Figure] = []
    empty = folder / "empty.pcap"
    _make("short_connections", empty, 0)
    starting = statistics.median(_seconds([_run(_twinbed(empty), one) for _ in range(TRIES)]))
    base = 0.0
    for size in sizes:
        capture = folder / f"{size}.pcap"
        _make("short_connections", capture, size // PACKETS)
        costs = [_run(_twinbed(capture), one) for _ in range(TRIES if size <= 10**7 else 1)]
        capture.unlink()
        nanoseconds = [(cost.seconds - starting) / size * 1e9 for cost in costs]
        limit = 2 * base if base else None
        base = base or statistics.median(nanoseconds)
        figures.append(_figure(f"a packet of {size:,}", nanoseconds, "ns", limit=limit))
        figures.append(_figure("  peak memory", [cost.peak_bytes / 1e6 for cost in costs], "MB", limit=700))
    return figures
