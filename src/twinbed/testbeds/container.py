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
from twinbed.hosts.lab import Lab, open_lab
from twinbed.hosts.own_ids import IDS, first_id
from twinbed.hosts.processors import own_cpus
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
"""Of a container, threads too: more than any workload here has, and less than the machine."""
_KEPT = 0x434FB
"""Capabilities of a program that is kept within its container (crates/probe/src/boundary.rs)."""
_ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
"""Lists what everybody may use. There is no such file in a network namespace other than the first."""


class ContainerSettings(LabHostSettings):
    """``cpus: auto`` of all hosts is held by a cpuset where the machine has them, else by affinity alone."""

    cpu_quota: Annotated[float | None, Also(("cores", "vcpus", "cpu_limit"))] = Field(
        None,
        ge=0.01,
        le=1024,
        examples=[0.5],
        description="CPUs' worth of time that each container may use, such as 0.5; null: no limit",
    )
    memory: Annotated[Size | None, Also(("ram", "mem", "memory_limit"))] = Field(
        None,
        ge=16 * 2**20,
        examples=["64MiB"],
        description="that each container may use, with its files in memory; beyond it programs are killed and the run fails",
    )

    def estimate_seconds(self) -> float:
        """What a run takes beside its workload."""
        return 0.7

    @property
    def own_kernel(self) -> bool:
        return False

    def host_need(self) -> HostNeed:
        """Measured on each of 80 containers without programs: 0.7 MB of its two processes, 0.8 MB of the kernel's."""
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
        """Each limit is set by itself in a control group of a lab, and read back."""
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
            mend = "Linux 5.19 or newer, and the image on a file system whose mounts map ids (ext4, XFS, Btrfs)"
            works = first is not None or os.geteuid() != 0
            return [*checks, Check("container user namespace", works, whose, mend, required=False, group="parameter")]

    def maker(self, params: ContainerSettings, site: Site) -> ContainerMaker:
        return ContainerMaker(params)


def _congestion_control(name: str) -> Check:
    """Whether a container, which has this machine's kernel but not its network, may be given it."""
    there = Path(CONGESTION_CONTROLS).read_text().split()
    listed = Path(_ALLOWED)
    allowed = listed.read_text().split() if listed.exists() else there
    status = f"the kernel has {', '.join(there)}"
    if name in there:
        status += "" if name in allowed else f", and allows {', '.join(allowed)}"
        mend = f"sysctl -w net.ipv4.tcp_allowed_congestion_control='{' '.join([*allowed, name])}'"
    else:
        mend = f"modprobe tcp_{name}, if there is such a module"
    return Check(f"congestion_control: {name}", name in there and name in allowed, status, mend)


def bind(source: Path, target: str, *, read_only: bool = False, programs: bool = False) -> str:
    """A word of `twinbed-probe container --bind`. A path may hold any character, so it is JSON."""
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
            # First id within, first outside, how many; for each range.
            return applied, {"control groups": groups.kinds(), "user namespace": whose, "ids": sum(ids[2::3])}

        def trouble() -> str | None:
            killed = groups.out_of_memory()
            limit = format_size(limits.memory_bytes or 0)
            return (
                f"{name}: out of memory: the kernel killed {killed} of its programs at its limit of {limit}" if killed else None
            )

        return Made(host, read_back, trouble)

    def cautions(self) -> Sequence[Caution]:
        return []


def _limits(settings: ContainerSettings, cpus: tuple[int, ...] | None, controllers: Collection[str]) -> Limits:
    """CPUs and processes are limited where this machine has a control group for it."""
    processes = _MOST_PROCESSES if "pids" in controllers else None
    return Limits(settings.cpu_quota, settings.memory, cpus if "cpuset" in controllers else None, processes)


def _command(rootfs: Path, layer: Path, name: str, artifacts: Path, probe: Path) -> list[str]:
    """What makes a container's root, and shows whether it can be made."""
    return [
        *(PROBE, "container", "--root", str(rootfs), "--scratch", str(layer), "--hostname", name),
        *("--bind", bind(artifacts, _ARTIFACTS)),
        *("--bind", bind(probe, MOUNTED_AT, read_only=True, programs=True)),
    ]


def _ids(
    lab: Lab, name: str, command: Sequence[str], places: Mapping[Path, str], real_root: Collection[str] = ()
) -> tuple[int | None, str]:
    """The machine's id for root of a container, None where it has no user namespace of its own; and why so, in the same words
    in each run. ``places``: what to call folders.

    Its root is made once to see whether it can be: file systems and kernels differ in whether a mount may map ids."""
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
    """What keeps the container's programs from this machine, as one of them finds it (proc_pid_status(5)). A root who lacks
    some of the capabilities cannot keep them."""
    there, found = (
        dict(line.split(":\t", 1) for line in text.splitlines())
        for text in (host.read("/proc/self/status").decode(errors="replace"), host.run(["cat", "/proc/self/status"]).text)
    )
    kept = f"{_KEPT & int(there['CapBnd'], 16):016x}"
    asked = {"CapBnd": kept, "CapEff": kept, "NoNewPrivs": "1", "Seccomp": "2"}
    return [Applied(host.name, name, value, found[name], "cat /proc/self/status") for name, value in asked.items()]


def _limited(lab: Lab, what: str, limits: Limits) -> Check:
    (controller,) = limits.controllers
    basis = cgroups.check(controller)
    if not basis.works:
        return replace(basis, what=what, required=False, group="parameter")
    try:
        applied = lab.cgroups.host(controller, limits).applied("container", limits)
    except HostError as error:
        return Check(what, False, str(error), "a kernel that lets groups have it", required=False, group="parameter")
    wrong = [f"{item.setting} is {item.found!r}, not {item.asked!r}" for item in applied if not item.agrees]
    result = "; ".join(wrong) or f"set in a control group, {basis.found}, and read back"
    return Check(what, not wrong, result, "a machine whose control group holds it", required=False, group="parameter")


container = Container()
