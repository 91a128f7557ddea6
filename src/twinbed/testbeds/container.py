"""Driver ``container``: hosts are namespaces (network, mount, PID, UTS, IPC) and a control group over this machine's kernel.

The root file system is the image, read-only, with a private writable layer in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twinbed.hosts.agent import AgentHost, accept, cpus_allowed, listen
from twinbed.hosts.error import HostError
from twinbed.hosts.site import Site
from twinbed.links.lab_bed import Ground, Made, lab_bed
from twinbed.links.layout import Nic
from twinbed.model.caution import Caution
from twinbed.model.hostsettings import HostSettings
from twinbed.model.plugin import Applied, Bed, Check
from twinbed.model.topology import Topology

_ARTIFACTS = "/run/twinbed"
_START_LIMIT_S = 10.0


class ContainerSettings(HostSettings):
    """Nothing beyond what all hosts have."""

    def estimate_seconds(self) -> float:
        """What a run takes beside its workload."""
        return 0.7


class Container:
    name = "container"
    params = ContainerSettings
    summary = "Linux namespaces over this machine's kernel, joined by veth pairs"

    def check(self, params: ContainerSettings) -> Sequence[Check]:
        overlay = "overlay" in Path("/proc/filesystems").read_text()
        return [
            Check(
                "overlay file system", overlay, "in the kernel" if overlay else "not in /proc/filesystems", "modprobe overlay"
            )
        ]

    def up(self, params: ContainerSettings, topology: Topology, site: Site) -> contextlib.AbstractContextManager[Bed]:
        maker = self.maker(params, site)
        return lab_bed(dict.fromkeys(("client", "server", "router"), maker), topology, site)

    def maker(self, params: ContainerSettings, site: Site) -> ContainerMaker:
        return ContainerMaker(params)


class ContainerMaker:
    own_kernel = False
    cpus_each = 1

    def __init__(self, settings: ContainerSettings) -> None:
        self.settings = settings

    def start(self, ground: Ground, name: str, nics: Sequence[Nic], cpus: tuple[int, ...] | None) -> Made:
        lab, site = ground.lab, ground.site
        scratch = lab.scratch / name
        scratch.mkdir()
        artifacts = site.place(name)
        with listen(lab.scratch / f"{name}.sock") as server:
            command = [
                *("twinbed-probe", "container", "--root", str(site.image.rootfs), "--scratch", str(scratch)),
                *("--hostname", name, "--connect", str(lab.scratch / f"{name}.sock")),
                *("--bind", f"{artifacts}:{_ARTIFACTS}", "--bind", f"{site.probe}:/usr/bin/twinbed-probe:ro"),
            ]
            if lab.cgroup:
                cgroup = lab.cgroup / name
                cgroup.mkdir()
                command += ["--cgroup", str(cgroup)]
            running = lab.machine.start(command, cpus=cpus)
            pid = running.started()
            connection = accept(server, name, running, _START_LIMIT_S)
        ground.stack.callback(connection.close)
        try:
            connection.hello(_START_LIMIT_S)
        except HostError as error:
            said = bytes(running.stderr).decode(errors="replace").strip()
            raise HostError(f"{error}{': ' if said else ''}{said}") from None
        for nic in nics:
            ground.fabric.attach_container(nic, pid)
        host = AgentHost(name, connection, _ARTIFACTS, shared=artifacts)

        def read_back(facts: Mapping[str, Any]) -> tuple[list[Applied], dict[str, Any]]:
            found = cpus_allowed(host.read("/proc/self/status").decode())
            return [Applied(name, "cpus", cpus, found, "/proc/self/status")], {}

        return Made(host, read_back, lambda: None)

    def cautions(self) -> Sequence[Caution]:
        return []


container = Container()
