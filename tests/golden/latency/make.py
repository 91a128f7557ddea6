"""Makes the files beside it: `python tests/golden/latency/make.py`, as root, with an image built. Two minutes.

Real irtt 0.9 between two guests (QEMU), whose kernel has netem, and between two containers; what netem does stands in the name.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from twinbed.contracts.site import Site
from twinbed.image import find, probe_path
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS

HERE = Path(__file__).parent
PLANS = {
    "lossy-there": ("client", ("delay", "2ms", "loss", "10%")),
    "lossy-back": ("server", ("delay", "2ms", "loss", "10%")),
    "reordered-there": ("client", ("delay", "20ms", "8ms")),
    "duplicated-back": ("server", ("delay", "2ms", "duplicate", "10%")),
}


def measure(bed: Any, name: str, disturbed: str = "", how: tuple[str, ...] = (), *, interrupt: bool = False) -> None:
    """The link is disturbed once the client is connected: irtt gives up where an answer to its opening comes twice."""
    client, server = bed.hosts["client"], bed.hosts["server"]
    listening = server.start(["irtt", "server", "-b", ":2112"])
    listening.says(b"starting IPv4 listener", 10.0)
    argv = ["irtt", "client", "-i", "10ms", "-d", "1h" if interrupt else "1s", "-q", "-o", "/run/irtt.json"]
    probing = client.start([*argv, f"{bed.addresses['server']}:2112"])
    probing.says(b"[Connected]", 10.0)
    if disturbed:
        bed.hosts[disturbed].run(["tc", "qdisc", "replace", "dev", "eth0", "root", "netem", *how])
    if interrupt:
        server.run(["sleep", "1"])
        probing.signal(2)
    probing.wait(60.0)
    if disturbed:
        bed.hosts[disturbed].run(["tc", "qdisc", "del", "dev", "eth0", "root"])
    listening.signal(15)
    listening.wait(10.0)
    client.fetch("/run/irtt.json", HERE / f"{name}.json")


def main() -> None:
    image = find()
    assert image is not None
    with tempfile.TemporaryDirectory() as folder:
        site = Site("golden", probe_path(), image, Path(folder), tuple(sorted(os.sched_getaffinity(0))))
        container, qemu = PLUGINS.drivers["container"], PLUGINS.drivers["qemu"]
        with container.up(container.params(), Topology(), site) as bed:
            measure(bed, "containers")
        with qemu.up(qemu.params(), Topology(), site) as bed:
            for name, (host, how) in PLANS.items():
                measure(bed, name, host, how)
            measure(bed, "interrupted", "client", ("delay", "100ms"), interrupt=True)


if __name__ == "__main__":
    main()
