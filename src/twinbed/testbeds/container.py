"""Driver ``container``: hosts are namespaces (network, mount, PID, UTS, IPC) and a control group over this machine's kernel.

The root file system is the image, read-only, with a private writable layer in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from twinbed.hosts.agent import AgentHost, accept, cpus_allowed, listen
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab, open_lab
from twinbed.hosts.passport import describe
from twinbed.hosts.site import Site
from twinbed.links import bridge, network
from twinbed.model.caution import Caution, Kind
from twinbed.model.hostsettings import HostSettings, share_cpus
from twinbed.model.plugin import MACHINE, Applied, Bed, Check, Target
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

    @contextlib.contextmanager
    def up(self, params: ContainerSettings, topology: Topology, site: Site) -> Iterator[Bed]:
        addresses = network.addresses(topology)
        cpus = dict(zip(addresses, share_cpus(len(addresses), 1, site.cpus), strict=True)) if params.cpus == "auto" else {}
        with open_lab(site.probe, site.place(MACHINE)) as lab, contextlib.ExitStack() as stack:
            network.make_switch(lab.machine)
            hosts, plan = [], ""
            for name in addresses:
                host, pid = _start(stack, lab, site, name, cpus.get(name))
                hosts.append(host)
                plan += bridge.veth(name, topology.link.mtu, pid)
            lab.machine.run(["ip", "-batch", "-"], stdin=plan.encode())
            network.shape(lab.machine, list(addresses), topology)

            def configure(host: AgentHost) -> tuple[list[Applied], dict[str, Any]]:
                address = addresses[host.name]
                network.configure(host, address, topology, params)
                applied = network.applied_on_host(host, address, topology, params)
                found = cpus_allowed(host.read("/proc/self/status").decode())
                applied.append(Applied(host.name, "cpus", cpus.get(host.name), found, "/proc/self/status"))
                return applied, describe(host, bridge.HOST_DEVICE)

            answers = network.on_all(hosts, configure)
            applied = network.applied_on_machine(lab.machine, dict.fromkeys(addresses, "veth"), topology)
            yield Bed(
                hosts={MACHINE: lab.machine, **{host.name: host for host in hosts}},
                addresses=addresses,
                targets=[
                    Target(MACHINE, {bridge.port(name): name for name in addresses}),
                    *(Target(name, {bridge.HOST_DEVICE: name}) for name in addresses),
                ],
                applied=applied + [item for found, _ in answers for item in found],
                passport={
                    MACHINE: describe(lab.machine, None),
                    **{host.name: facts for host, (_, facts) in zip(hosts, answers, strict=True)},
                },
                cautions=_cautions(params, len(addresses), site.cpus),
                lab=lab.id,
            )


def _start(stack: contextlib.ExitStack, lab: Lab, site: Site, name: str, cpus: Sequence[int] | None) -> tuple[AgentHost, int]:
    """A container, and its process id inside the lab."""
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
    stack.callback(connection.close)
    try:
        connection.hello(_START_LIMIT_S)
    except HostError as error:
        said = bytes(running.stderr).decode(errors="replace").strip()
        raise HostError(f"{error}{': ' if said else ''}{said}") from None
    return AgentHost(name, connection, _ARTIFACTS, shared=artifacts), pid


def _cautions(params: ContainerSettings, hosts: int, cpus: tuple[int, ...]) -> list[Caution]:
    if params.cpus == "none":
        return [Caution(Kind.UNPINNED)]
    if hosts > len(cpus):
        return [Caution(Kind.SHARED_CPU, f"{hosts} hosts on {len(cpus)} CPUs")]
    return []


container = Container()
