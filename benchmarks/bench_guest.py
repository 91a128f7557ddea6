"""Guests: from nothing to two that are ready side by side, files out of them, and what sixteen of them take of memory."""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import Figure
from twinbed.contracts.site import Site
from twinbed.image import build, probe_path
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.qemu import qemu

TRIES = 5
FILE_MB = 60
MEGABYTE = 2**20


def run() -> list[Figure]:
    ready: dict[str, list[float]] = {"e1000": [], "virtio-net-pci": []}
    fetched: list[float] = []
    image, probe = build(), probe_path()
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        site = Site("bench", probe, image, Path(folder), tuple(sorted(os.sched_getaffinity(0))))
        for _ in range(TRIES):
            for nic, seconds in ready.items():
                start = time.perf_counter()
                with qemu.up(qemu.params(nic=nic), Topology(link=Link(rate=10**9)), site) as bed:
                    seconds.append(time.perf_counter() - start)
                    client = bed.hosts["client"]
                    client.run(["dd", "if=/dev/zero", "of=/run/file", "bs=1M", f"count={FILE_MB}", "status=none"])
                    start = time.perf_counter()
                    size = client.fetch("/run/file", Path(folder) / "file")
                    fetched.append((time.perf_counter() - start) * 100e6 / size)
        sixteen = _memory(Site("bench", probe, image, Path(folder), site.cpus), 8)
    return [
        *(
            Figure(f"two guests with {nic} ready", statistics.median(found), (min(found), max(found)), "s", 4.0)
            for nic, found in ready.items()
        ),
        Figure("100 MB out of a guest", statistics.median(fetched), (min(fetched), max(fetched)), "s", 2.0),
        Figure("memory of each of 16 guests", statistics.median(sixteen), (min(sixteen), max(sixteen)), "MiB"),
        Figure("  of 192 MiB given, and a disk image of", image.disk.stat().st_size / MEGABYTE, (0, 0), "MiB"),
    ]


def _memory(site: Site, pairs: int) -> list[float]:
    """MiB of each guest: its proportional share (Pss) of what it maps. The disk image is in the page cache, once for all."""
    with qemu.up(qemu.params(), Topology(pairs=pairs), site):
        shares = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cmdline").read_bytes().startswith(b"qemu-system"):
                    found = re.search(r"^Pss:\s+(\d+) kB", (process / "smaps_rollup").read_text(), re.MULTILINE)
                    shares.append(int(found[1]) / 1024 if found else 0.0)
            except OSError:
                continue
        return shares
