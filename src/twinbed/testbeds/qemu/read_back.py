"""Compares what was asked of a guest with what QEMU's monitor, the guest's kernel and this machine's kernel report.

Threads of a guest's QEMU are pinned: each vCPU to a CPU of its own if there are enough, all other threads to the guest's CPUs.
Threads that move packets (vhost) are among QEMU's own threads since Linux 6.4, and so among these others.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence

from twinbed.contracts.bed import Applied, Fact, Facts
from twinbed.hosts.agent import AgentHost, cpus_allowed
from twinbed.hosts.error import HostError
from twinbed.links.layout import Nic
from twinbed.links.network import understood
from twinbed.model.nic import NIC_MODELS, VIRTIO
from twinbed.testbeds.qemu import monitor
from twinbed.testbeds.qemu.abilities import VHOST
from twinbed.testbeds.qemu.command_line import EMULATED_CPU, device_id
from twinbed.testbeds.qemu.guest import Guest
from twinbed.testbeds.qemu.monitor import Monitored
from twinbed.testbeds.qemu.settings import DEVICE_COALESCING, FEATURES, QemuSettings
from twinbed.testbeds.qemu.snapshot import FOLDER

THREAD_STATUS = "/proc/PID/task/TID/status"


def shares(vcpus: int, cpus: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the CPUs of each vCPU: one of its own, or all of the guest's if there are fewer than vCPUs.

    >>> shares(2, (0, 1, 5))
    [(0,), (1,)]
    >>> shares(2, (4,))
    [(4,), (4,)]
    """
    if vcpus > len(cpus):
        return [tuple(cpus)] * vcpus
    return [(cpu,) for cpu in cpus[:vcpus]]


def pin(machine: AgentHost, threads: Sequence[int], cpus: Sequence[int]) -> None:
    """Pin the threads of the vCPUs, given in order by their ids on the machine. QEMU was started on the guest's CPUs, and its
    other threads stay there."""
    for thread, share in zip(threads, shares(len(threads), cpus), strict=True):
        if len(share) < len(cpus):
            machine.run(["taskset", "--cpu-list", "--pid", ",".join(map(str, share)), str(thread)])


def pinned(
    machine: AgentHost, guest: str, pid: int, threads: Sequence[int], cpus: Sequence[int] | None
) -> tuple[list[Applied], Mapping[str, tuple[int, ...]]]:
    """Read back the CPUs that each thread may run on; and the same by thread names, which QEMU's own threads share."""
    asked: Sequence[tuple[int, ...] | None] = shares(len(threads), cpus) if cpus else [None] * len(threads)
    cpus_of: dict[str, tuple[int, ...]] = {}
    items = []
    for number, (thread, share) in enumerate(zip(threads, asked, strict=True)):
        own = _allowed(machine, pid, thread)
        cpus_of[f"vCPU {number}"] = own
        items.append(Applied(guest, f"vcpu{number}.cpus", share, own, THREAD_STATUS))
    others = set()
    for entry in machine.listdir(f"/proc/{pid}/task"):
        thread = int(entry.name)
        if thread in threads:
            continue
        with contextlib.suppress(HostError):  # QEMU's workers come and go
            own = _allowed(machine, pid, thread)
            others.add(own)
            cpus_of[_name(machine, pid, thread)] = own
    others_cpus = others.pop() if len(others) == 1 else tuple(sorted(others))
    return [Applied(guest, "cpus", tuple(cpus) if cpus else None, others_cpus, THREAD_STATUS), *items], cpus_of


def _allowed(machine: AgentHost, pid: int, thread: int) -> tuple[int, ...]:
    return cpus_allowed(machine.read(f"/proc/{pid}/task/{thread}/status").decode(errors="replace"))


def _name(machine: AgentHost, pid: int, thread: int) -> str:
    """Return a thread's name without the process number that the names of vhost's threads hold."""
    return machine.read(f"/proc/{pid}/task/{thread}/comm").decode(errors="replace").strip().removesuffix(f"-{pid}")


_MACHINES = {"q35": "q35", "i440fx": "pc"}
_KERNEL = "/proc/sys/kernel/osrelease"


def read_back(
    machine: AgentHost,
    guest: Guest,
    settings: QemuSettings,
    accelerator: str,
    *,
    boot: str,
    kernel: str,
    nics: Sequence[Nic],
    cpus: Sequence[int] | None,
    vhost_used: bool,
    facts: Facts,
) -> tuple[list[Applied], Facts]:
    """Read all settings of a guest back. ``boot``: how it came up, with the reason if it could not resume. ``kernel``: version
    of the image's kernel. ``facts``: the guest's own report."""
    name = guest.host.name
    coalesces = DEVICE_COALESCING.get(settings.nic)
    devices = [(device_id(number), coalesces) for number in range(len(nics))] if coalesces else []
    monitored = monitor.ask(guest.monitor, name, tuple(settings.cpu_flags()), devices)
    pins, running_on = pinned(machine, name, guest.pid, monitored.threads, cpus)
    applied = [
        Applied(
            *(name, "boot", None if settings.boot == "auto" else settings.boot),
            *("snapshot" if monitored.resumed else "fresh", "QMP query-migrate"),
        ),
        Applied(name, "accelerator", accelerator, "kvm" if monitored.kvm else "tcg", "QMP query-kvm"),
        *_computer(name, settings, accelerator, monitored),
        Applied(name, "vcpus", settings.vcpus, len(monitored.threads), "QMP query-cpus-fast"),
        Applied(name, "vcpus.online", settings.vcpus, facts["cpus"], "/proc/cpuinfo, in the guest"),
        Applied(name, "memory", settings.megabytes() * 2**20, monitored.memory_bytes, "QMP query-memory-size-summary"),
        Applied(name, "kernel", kernel, facts["kernel"], f"{_KERNEL}, in the guest"),
        Applied(name, "nic", NIC_MODELS[settings.nic].driver, facts["NIC driver"], "ETHTOOL_GDRVINFO, in the guest"),
        *(
            Applied(name, "coalescing", settings.coalescing, "on" if on else "off", f"QMP qom-get {device} {what}")
            for (device, what), on in monitored.devices.items()
        ),
        *_confined(machine, guest),
        *(_only_reads(machine, guest) if monitored.resumed else ()),
        *pins,
    ]
    virtio_facts: dict[str, Fact] = {}
    if settings.nic == VIRTIO and facts["NIC driver"] == NIC_MODELS[VIRTIO].driver:
        for number, nic in enumerate(nics):
            prefix = "" if len(nics) == 1 else f"{nic.device}."
            more, features = _virtio(guest.host, nic.device, settings, prefix)
            applied += more
            if number == 0:
                virtio_facts["NIC features"] = features
        applied.append(_vhost(machine, guest, nics, settings, vhost_used))
    return applied, {
        "QEMU": monitored.version,
        "accelerator": accelerator,
        "boot": boot,
        "machine": monitored.machine,
        "CPU model": monitored.cpu,
        "NIC model": settings.nic,
        "threads": "; ".join(f"{thread} on {','.join(map(str, on))}" for thread, on in running_on.items()),
        "kernel command line": re.sub(r" twinbed\.\S+", "", guest.host.read("/proc/cmdline").decode(errors="replace").strip()),
        **virtio_facts,
    }


def set_queues(host: AgentHost, settings: QemuSettings, nics: Sequence[Nic]) -> None:
    """Set the number of queues: a driver takes at most as many as there are CPUs, and may use fewer than the device offers."""
    if settings.queues > 1:
        for nic in nics:
            host.run(["ethtool", "-L", nic.device, "combined", str(settings.queues)])


def negotiated(bits: str) -> dict[str, str]:
    """Read a virtio device's ``features`` in sysfs, bit 0 first: name to on or off. Raises ValueError for other text."""
    if not re.fullmatch(r"[01]{64,}", bits):
        raise ValueError(f"a virtio device's features must be a row of bits, not {bits!r}")
    return {name: "on" if bits[bit] == "1" else "off" for name, bit in FEATURES.items()}


def _computer(name: str, settings: QemuSettings, accelerator: str, monitored: Monitored) -> list[Applied]:
    kind = re.fullmatch(r"pc-(q35|i440fx)-.*-machine", monitored.machine)
    machine = _MACHINES[kind[1]] if kind else monitored.machine
    model = (settings.cpu or ("host" if accelerator == "kvm" else EMULATED_CPU)).partition(",")[0]
    return [
        Applied(name, "machine", settings.machine, machine, "QMP qom-get /machine type"),
        Applied(name, "cpu", model, monitored.cpu.removesuffix("-x86_64-cpu"), "QMP qom-get CPU type"),
        *(
            Applied(name, f"cpu.{flag}", asked, monitored.cpu_flags[flag], f"QMP qom-get CPU {flag}")
            for flag, asked in settings.cpu_flags().items()
        ),
    ]


def _virtio(host: AgentHost, device: str, settings: QemuSettings, prefix: str) -> tuple[list[Applied], str]:
    source = f"/sys/class/net/{device}/device/features"
    bits = host.read(source).decode(errors="replace").strip()
    with understood(host):
        features_in_use = negotiated(bits)
    asked = settings.features()
    features = [
        Applied(host.name, f"{prefix}nic_features.{name}", asked.get(name), value, f"{source}, in the guest")
        for name, value in features_in_use.items()
    ]
    queues, queues_source = host.nic(device).queues, f"ETHTOOL_GCHANNELS of {device}, in the guest"
    queues_applied = Applied(host.name, f"{prefix}queues", settings.queues, queues, queues_source)
    return [queues_applied, *features], ",".join(f"{name}={value}" for name, value in features_in_use.items())


def _vhost(machine: AgentHost, guest: Guest, nics: Sequence[Nic], settings: QemuSettings, used: bool) -> Applied:
    """Count how often QEMU holds the device open: once for each queue pair."""
    descriptors = [name for _, name in _open_files(machine, guest) if name == str(VHOST)]
    asked = len(nics) * settings.queues if used else 0
    return Applied(guest.host.name, "vhost", asked, len(descriptors), f"/proc/PID/fd: times that {VHOST} is open")


def _open_files(machine: AgentHost, guest: Guest) -> list[tuple[str, str]]:
    """List mode and name of each file that QEMU has open. It may close some meanwhile, and find(1) then ends with 1."""
    done = machine.run(["find", f"/proc/{guest.pid}/fd", "-type", "l", "-printf", "%m %l\n"], check=False)
    files = [(mode, name) for mode, _, name in (line.partition(" ") for line in done.text.splitlines())]
    if not files:
        raise HostError(f"{guest.host.name}: the open files of its QEMU cannot be listed: {done.why}")
    return files


def _only_reads(machine: AgentHost, guest: Guest) -> Iterator[Applied]:
    """Check that QEMU only reads the memory's file, which all guests of a snapshot share."""
    modes = [mode for mode, name in _open_files(machine, guest) if re.search(rf"/{FOLDER}/[0-9a-f]+/memory$", name)]
    mode_found = "read" if modes and set(modes) == {"500"} else f"mode {' '.join(modes)}"
    yield Applied(guest.host.name, "snapshot.memory", "read", mode_found, "/proc/PID/fd of QEMU: mode of the memory's file")


def _confined(machine: AgentHost, guest: Guest) -> Iterator[Applied]:
    """Check what QEMU itself is kept from doing. A QEMU that was built without a sandbox fails here."""
    lines = machine.read(f"/proc/{guest.pid}/status").decode(errors="replace").splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    yield Applied(guest.host.name, "sandbox", "2", status["Seccomp"], "/proc/PID/status of QEMU: Seccomp")
    if guest.user is not None:
        # Real, effective, saved and file system id.
        of_qemu, asked = "/proc/PID/status of QEMU", "\t".join([str(guest.user)] * 4)
        yield Applied(guest.host.name, "user", asked, status["Uid"], f"{of_qemu}: Uid")
        yield Applied(guest.host.name, "group", asked, status["Gid"], f"{of_qemu}: Gid")
        yield Applied(guest.host.name, "capabilities", f"{0:016x}", status["CapEff"], f"{of_qemu}: CapEff")
