"""Driver ``container``: hosts are namespaces (network, mount, PID, UTS, IPC) and a control group over this machine's kernel.

The root file system is the image, read-only, with a private writable layer in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from twinbed.contracts.bed import Applied, Facts
from twinbed.contracts.check import Check
from twinbed.contracts.host_settings import LabHostSettings
from twinbed.contracts.params import HostNeed
from twinbed.contracts.site import Installed, Site
from twinbed.hosts import awake, cgroups, scratch
from twinbed.hosts.agent import PROBE, AgentHost, accept, cpus_allowed, listen, new_key
from twinbed.hosts.cgroups import Limits
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import IDS, Lab, first_id, open_lab
from twinbed.hosts.passport import own_cpus
from twinbed.image.probe import MOUNTED_AT
from twinbed.links.lab_bed import Ground, LabDriver, Made
from twinbed.links.layout import Nic
from twinbed.links.network import CONGESTION_CONTROLS
from twinbed.model.caution import Caution
from twinbed.model.declaration import Also
from twinbed.model.units import Size, format_size

_ARTIFACTS = "/run/twinbed"
_START_LIMIT_S = 30.0
_MOST_PROCESSES = 4096
"""The limit of a container, threads included: more than any workload here needs, less than the machine allows."""
_KEPT = 0x434FB
"""Capabilities of a program that is confined to its container (crates/probe/src/boundary.rs)."""
_ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
"""Lists the algorithms that every user may choose. Only the first network namespace has this file."""


class ContainerSettings(LabHostSettings):
    """Settings of containers. A cpuset enforces ``cpus: auto`` if the machine has cpusets, otherwise affinity alone does."""

    cpu_quota: Annotated[float | None, Also(("cores", "vcpus", "cpu_limit"))] = Field(
        None,
        ge=0.01,
        le=1024,
        examples=[0.5],
        description="CPU time that each container may use, in CPUs, such as 0.5; null: no limit",
    )
    memory: Annotated[Size | None, Also(("ram", "mem", "memory_limit"))] = Field(
        None,
        ge=16 * 2**20,
        examples=["64MiB"],
        description="memory of each container, files in memory included; beyond it programs are killed and the run fails",
    )

    def estimate_seconds(self) -> float:
        """Return the seconds that a run adds to its workload."""
        return 0.7

    @property
    def own_kernel(self) -> bool:
        return False

    def host_need(self) -> HostNeed:
        """Return the need of an idle container: 0.7 MB for two processes and 0.8 MB in the kernel, measured on 80 of them."""
        return HostNeed(2 * 2**20, 6, "a container", limit_bytes=self.memory)


class Container(LabDriver[ContainerSettings]):
    name = "container"
    params = ContainerSettings
    summary = "Linux namespaces over this machine's kernel, joined by veth pairs"
    also = ("docker", "podman", "lxc", "lxd", "namespace", "netns", "mininet", "containernet", "containerlab", "clab")

    def check(self, params: ContainerSettings) -> Sequence[Check]:
        overlay = "overlay" in Path("/proc/filesystems").read_text()
        return [
            Check(
                "overlay file system", overlay, "in the kernel" if overlay else "not in /proc/filesystems", "modprobe overlay"
            ),
            *(cgroups.check(controller) for controller in _limits(params, None, ()).controllers),
            *awake.asked(params.idle),
            *([_congestion_control(params.congestion_control)] if params.congestion_control else []),
        ]

    def abilities(self, installed: Installed, *, boot: bool) -> Sequence[Check]:
        """Set each limit alone in a control group of a lab, and read it back."""
        cpus = own_cpus()[:1]
        trials = {
            "cpu_quota": Limits(cpu_quota=0.5),
            "memory": Limits(memory_bytes=64 * 2**20),
            "cpus: auto": Limits(cpus=cpus),
            "processes": Limits(processes=_MOST_PROCESSES),
        }
        with scratch.folder() as folder, open_lab(installed.probe, folder) as lab:
            checks = [_limited(lab, f"container {setting}", limits) for setting, limits in trials.items()]
            command = _command(installed.image.rootfs, lab.scratch / "trial", "trial", folder, installed.probe)
            first, whose = _ids(lab, "trial", command, {installed.image.rootfs: "the image"})
            remedy = "use Linux 5.19 or newer, and keep the image on ext4, XFS or Btrfs (set TWINBED_CACHE to a folder there)"
            works = first is not None or os.geteuid() != 0
            return [*checks, Check("container user namespace", works, whose, remedy, required=False, group="parameter")]

    def maker(self, params: ContainerSettings, site: Site) -> ContainerMaker:
        return ContainerMaker(params)


def _congestion_control(name: str) -> Check:
    """Check that a container, which shares this machine's kernel but not its network, may use the algorithm."""
    available = Path(CONGESTION_CONTROLS).read_text().split()
    listed = Path(_ALLOWED)
    allowed = listed.read_text().split() if listed.exists() else available
    status = f"the kernel has {', '.join(available)}"
    if name in available:
        status += "" if name in allowed else f", and allows {', '.join(allowed)}"
        remedy = f"sysctl -w net.ipv4.tcp_allowed_congestion_control='{' '.join([*allowed, name])}'"
    else:
        remedy = f"modprobe tcp_{name} (if the kernel has this module), or set another congestion_control"
    return Check(f"congestion_control: {name}", name in available and name in allowed, status, remedy)


def bind(source: Path, target: str, *, read_only: bool = False, programs: bool = False) -> str:
    """Return an argument of `twinbed-probe container --bind`: JSON, since a path may hold any character."""
    return json.dumps({"source": str(source), "target": target, "read_only": read_only, "programs": programs})


class ContainerMaker:
    cpus_each = 1

    def __init__(self, settings: ContainerSettings) -> None:
        self.settings = settings

    def start(self, ground: Ground, name: str, nics: Sequence[Nic], cpus: tuple[int, ...] | None) -> Made:
        lab, site = ground.lab, ground.site
        layer = lab.scratch / name
        layer.mkdir()
        artifacts = site.place(name)
        limits = _limits(self.settings, cpus, lab.cgroups.by_controller)
        groups, key = lab.cgroups.host(name, limits), new_key()
        with listen(lab.scratch / f"{name}.sock") as server:
            command = _command(site.image.rootfs, layer, name, artifacts, site.probe)
            first, whose = _ids(lab, name, command, {site.image.rootfs: "the image", artifacts: "the results"}, site.real_root)
            command += [word for group in groups.join for word in ("--cgroup", str(group))]
            command += ["--connect", str(lab.scratch / f"{name}.sock"), "--key", key]
            command += [] if first is None else ["--first-id", str(first)]
            running = lab.machine.start(command, cpus=cpus)
            pid = running.started()
            connection = accept(server, name, running, _START_LIMIT_S, key)
        ground.stack.callback(connection.close)
        try:
            connection.hello(_START_LIMIT_S)
        except HostError as error:
            stderr = bytes(running.stderr).decode(errors="replace").strip()
            raise HostError(f"{error}{': ' if stderr else ''}{stderr}") from None
        for nic in nics:
            ground.fabric.attach_container(nic, pid)
        host = AgentHost(name, connection, _ARTIFACTS, shared=artifacts)

        def read_back(facts: Facts) -> tuple[list[Applied], Facts]:
            allowed = cpus_allowed(host.read("/proc/self/status").decode(errors="replace"))
            pinned = Applied(name, "cpus", cpus, allowed, "/proc/self/status")
            applied = [pinned, *groups.applied(name, limits), *_boundary(host)]
            if limits.cpus is None:  # recorded on every container, so that testbeds can be compared in it
                applied.append(Applied(name, "cpuset", None, allowed, "/proc/self/status"))
            ids = [int(word) for word in host.run(["cat", "/proc/self/uid_map"]).text.split()]
            if first is not None:
                applied.append(Applied(name, "uid_map", [0, first, IDS], ids, "cat /proc/self/uid_map"))
            # Each range has its first id inside, first id outside, and length.
            return applied, {"control groups": groups.kinds(), "user namespace": whose, "ids": sum(ids[2::3])}

        def trouble() -> str | None:
            killed = groups.out_of_memory()
            limit = format_size(limits.memory_bytes or 0)
            return f"{name}: out of memory: the kernel killed {killed} programs at the limit of {limit}" if killed else None

        return Made(host, read_back, trouble)

    def cautions(self) -> Sequence[Caution]:
        return []


def _limits(settings: ContainerSettings, cpus: tuple[int, ...] | None, controllers: Collection[str]) -> Limits:
    """Return the limits. CPUs and processes are limited if this machine has control groups for them."""
    processes = _MOST_PROCESSES if "pids" in controllers else None
    return Limits(settings.cpu_quota, settings.memory, cpus if "cpuset" in controllers else None, processes)


def _command(rootfs: Path, layer: Path, name: str, artifacts: Path, probe: Path) -> list[str]:
    """Return the command that makes a container's root, which also shows whether this machine can."""
    return [
        *(PROBE, "container", "--root", str(rootfs), "--scratch", str(layer), "--hostname", name),
        *("--bind", bind(artifacts, _ARTIFACTS)),
        *("--bind", bind(probe, MOUNTED_AT, read_only=True, programs=True)),
    ]


def _ids(
    lab: Lab, name: str, command: Sequence[str], places: Mapping[Path, str], real_root: Collection[str] = ()
) -> tuple[int | None, str]:
    """Return the machine's id for a container's root, None if it has no user namespace, and the reason in the same words in
    each run. ``places``: names for folders in this reason.

    A trial makes the root once, since not every file system and kernel can map the ids of a mount."""
    first = first_id(lab.id, name)
    if first is None:
        return None, f"the lab's, of user {os.geteuid()}"
    if name in real_root:
        return None, "none: the run starts a program here that needs the machine's root"
    tried = lab.machine.run([*command, "--first-id", str(first)], check=False)
    if tried.code != 0:
        why = tried.stderr.decode(errors="replace").strip().removeprefix(f"{PROBE}: ")
        for path, word in places.items():
            why = why.replace(str(path.resolve()), word).replace(str(path), word)
        return None, f"none: {why}"
    return first, "its own"


def _boundary(host: AgentHost) -> list[Applied]:
    """Read back, from a program in the container, what confines it (proc_pid_status(5)). Capabilities that root itself lacks
    cannot be kept."""
    outer, inner = (
        dict(line.split(":\t", 1) for line in text.splitlines())
        for text in (host.read("/proc/self/status").decode(errors="replace"), host.run(["cat", "/proc/self/status"]).text)
    )
    kept = f"{_KEPT & int(outer['CapBnd'], 16):016x}"
    asked = {"CapBnd": kept, "CapEff": kept, "NoNewPrivs": "1", "Seccomp": "2"}
    return [Applied(host.name, name, value, inner[name], "cat /proc/self/status") for name, value in asked.items()]


def _limited(lab: Lab, what: str, limits: Limits) -> Check:
    (controller,) = limits.controllers
    basis = cgroups.check(controller)
    if not basis.works:
        return replace(basis, what=what, required=False, group="parameter")
    try:
        applied = lab.cgroups.host(controller, limits).applied("container", limits)
    except HostError as error:
        remedy = "use a kernel whose control groups have this limit, or leave the setting out"
        return Check(what, False, str(error), remedy, required=False, group="parameter")
    wrong = [f"{item.setting} is {item.found!r}, not {item.asked!r}" for item in applied if not item.agrees]
    result = "; ".join(wrong) or f"set in a control group, {basis.found}, and read back"
    remedy = "use a machine whose control groups enforce this limit, or leave the setting out"
    return Check(what, not wrong, result, remedy, required=False, group="parameter")


container = Container()
