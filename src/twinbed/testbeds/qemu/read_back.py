"""What was asked of a guest, held against what QEMU's monitor, the guest's kernel and this machine's say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from twinbed.contracts.bed import Applied, Fact, Facts
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.links.layout import Nic
from twinbed.links.network import understood
from twinbed.model.nic import NIC_MODELS, VIRTIO
from twinbed.testbeds.qemu import monitor, pinning, vhost
from twinbed.testbeds.qemu.command_line import EMULATED_CPU, device_id
from twinbed.testbeds.qemu.guest import Guest
from twinbed.testbeds.qemu.monitor import Monitored
from twinbed.testbeds.qemu.settings import DEVICE_COALESCING, FEATURES, QemuSettings
from twinbed.testbeds.qemu.snapshot import FOLDER

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
    """``boot`` is how the guest came up, with the reason where it booted although guests resume by default; ``kernel`` is the
    version that was booted; ``facts`` is what the guest says of itself."""
    name = guest.host.name
    coalesces = DEVICE_COALESCING.get(settings.nic)
    devices = [(device_id(number), coalesces) for number in range(len(nics))] if coalesces else []
    monitored = monitor.ask(guest.monitor, name, tuple(settings.cpu_flags()), devices)
    pinned, running_on = pinning.applied(machine, name, guest.pid, monitored.threads, cpus)
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
        *pinned,
    ]
    about: dict[str, Fact] = {}
    if settings.nic == VIRTIO and facts["NIC driver"] == NIC_MODELS[VIRTIO].driver:
        for number, nic in enumerate(nics):
            prefix = "" if len(nics) == 1 else f"{nic.device}."
            more, features = _virtio(guest.host, nic.device, settings, prefix)
            applied += more
            if number == 0:
                about["NIC features"] = features
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
        **about,
    }


def set_queues(host: AgentHost, settings: QemuSettings, nics: Sequence[Nic]) -> None:
    """The driver takes as many queues as it has CPUs at most, and may be left with fewer than the device offers."""
    if settings.queues > 1:
        for nic in nics:
            host.run(["ethtool", "-L", nic.device, "combined", str(settings.queues)])


def negotiated(bits: str) -> dict[str, str]:
    """From a virtio device's ``features`` in sysfs, bit 0 first: name -> on or off. Raises ValueError where it is not that."""
    if not re.fullmatch(r"[01]{64,}", bits):
        raise ValueError(f"a virtio device's features are not a row of bits: {bits!r}")
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
    """QEMU opens the device once for each queue pair, and keeps it open."""
    descriptors = [name for _, name in _open_files(machine, guest) if name == str(vhost.DEVICE)]
    asked = len(nics) * settings.queues if used else 0
    return Applied(guest.host.name, "vhost", asked, len(descriptors), f"/proc/PID/fd: times that {vhost.DEVICE} is open")


def _open_files(machine: AgentHost, guest: Guest) -> list[tuple[str, str]]:
    """Mode and name of each file that QEMU has open. It opens and closes some meanwhile, for which find(1) ends with 1."""
    done = machine.run(["find", f"/proc/{guest.pid}/fd", "-type", "l", "-printf", "%m %l\n"], check=False)
    files = [(mode, name) for mode, _, name in (line.partition(" ") for line in done.text.splitlines())]
    if not files:
        raise HostError(f"{guest.host.name}: no file is known that its QEMU has open: {done.why}")
    return files


def _only_reads(machine: AgentHost, guest: Guest) -> Iterator[Applied]:
    """Guests of a snapshot share its memory's file, and none of them may change it."""
    modes = [mode for mode, name in _open_files(machine, guest) if re.search(rf"/{FOLDER}/[0-9a-f]+/memory$", name)]
    found = "read" if modes and set(modes) == {"500"} else f"mode {' '.join(modes)}"
    yield Applied(guest.host.name, "snapshot.memory", "read", found, "/proc/PID/fd of QEMU: mode of the memory's file")


def _confined(machine: AgentHost, guest: Guest) -> Iterator[Applied]:
    """What QEMU itself cannot do. It was built without a sandbox where there is none."""
    lines = machine.read(f"/proc/{guest.pid}/status").decode(errors="replace").splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    yield Applied(guest.host.name, "sandbox", "2", status["Seccomp"], "/proc/PID/status of QEMU: Seccomp")
    if guest.user is not None:
        # Real, effective, saved, and of files.
        of_qemu, asked = "/proc/PID/status of QEMU", "\t".join([str(guest.user)] * 4)
        yield Applied(guest.host.name, "user", asked, status["Uid"], f"{of_qemu}: Uid")
        yield Applied(guest.host.name, "group", asked, status["Gid"], f"{of_qemu}: Gid")
        yield Applied(guest.host.name, "capabilities", f"{0:016x}", status["CapEff"], f"{of_qemu}: CapEff")
