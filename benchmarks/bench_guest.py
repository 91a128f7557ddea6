"""Guests that boot and guests that resume, in turn: from nothing to two that are ready side by side, and what sixteen of them
take of memory; files out of a guest."""

from __future__ import annotations

import os
import re
import resource
import statistics
import tempfile
import time
from itertools import product
from pathlib import Path

from benchmarks import Figure
from twinbed.contracts.site import Site
from twinbed.image import build, probe_path
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.qemu import qemu

TRIES = 10
NICS = ("e1000", "virtio-net-pci")
BOOTS = {"fresh": None, "snapshot": 0.8}
"""How guests come up, and the most seconds that two may take on a quiet machine of two CPUs."""
FILE_MB = 60
MEGABYTE = 2**20


def run() -> list[Figure]:
    ready: dict[tuple[str, str], list[float]] = {case: [] for case in product(NICS, BOOTS)}
    cpu: dict[tuple[str, str], list[float]] = {case: [] for case in product(NICS, BOOTS)}
    fetched: list[float] = []
    image, probe = build(), probe_path()
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        site = Site("bench", probe, image, Path(folder), tuple(sorted(os.sched_getaffinity(0))))
        for nic in NICS:
            with qemu.up(qemu.params(nic=nic, boot="snapshot"), Topology(), site):
                pass  # The first one saves it.
        for _ in range(TRIES):
            for nic, boot in ready:
                start, used_s = time.perf_counter(), _cpu_s()
                with qemu.up(qemu.params(nic=nic, boot=boot), Topology(link=Link(rate=10**9)), site):
                    ready[nic, boot].append(time.perf_counter() - start)
                cpu[nic, boot].append(_cpu_s() - used_s)
            fetched.append(_fetch(site))
        memory = {boot: _memory(site, boot, 8) for boot in BOOTS}
    return [
        *(
            Figure(f"two guests with {nic} ready, {boot}", *_typical(found), "s", BOOTS[boot])
            for (nic, boot), found in ready.items()
        ),
        *(
            Figure(f"  CPU time of all, to their end, {nic}, {boot}", *_typical(found), "s", _part(cpu, nic, boot, 3))
            for (nic, boot), found in cpu.items()
        ),
        Figure("100 MB out of a guest", *_typical(fetched), "s", 2.0),
        *(
            Figure(
                *(f"memory of each of 16 guests, {boot}", *_typical(found), "MiB"),
                None if boot == "fresh" else statistics.median(memory["fresh"]) / 2,
            )
            for boot, found in memory.items()
        ),
        Figure("  of 192 MiB given, and a disk image of", image.disk.stat().st_size / MEGABYTE, (0, 0), "MiB"),
    ]


def _typical(values: list[float]) -> tuple[float, tuple[float, float]]:
    return statistics.median(values), (min(values), max(values))


def _part(found: dict[tuple[str, str], list[float]], nic: str, boot: str, parts: int) -> float | None:
    """The most for guests that resume: a part of what guests take that boot."""
    return None if boot == "fresh" else statistics.median(found[nic, "fresh"]) / parts


def _cpu_s() -> float:
    """Of this process and of all that has ended below it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _fetch(site: Site) -> float:
    """Seconds for 100 MB."""
    with qemu.up(qemu.params(boot="snapshot"), Topology(), site) as bed:
        client = bed.hosts["client"]
        client.run(["dd", "if=/dev/zero", "of=/run/file", "bs=1M", f"count={FILE_MB}", "status=none"])
        start = time.perf_counter()
        size = client.fetch("/run/file", site.artifacts / "file")
        return (time.perf_counter() - start) * 100e6 / size


def _memory(site: Site, boot: str, pairs: int) -> list[float]:
    """MiB of each guest: its proportional share (Pss) of what it maps. The disk image is in the page cache, once for all."""
    with qemu.up(qemu.params(boot=boot), Topology(pairs=pairs), site):
        shares = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cmdline").read_bytes().startswith(b"qemu-system") and os.getpid() in _above(process):
                    found = re.search(r"^Pss:\s+(\d+) kB", (process / "smaps_rollup").read_text(), re.MULTILINE)
                    shares.append(int(found[1]) / 1024 if found else 0.0)
            except OSError:
                continue
        return shares


def _above(process: Path) -> set[int]:
    """The processes from which one descends: other labs of the machine have guests too."""
    found: set[int] = set()
    number = int(process.name)
    while number > 1:
        number = int((Path("/proc") / str(number) / "stat").read_text().rpartition(")")[2].split()[1])
        found.add(number)
    return found
