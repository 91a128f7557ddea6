"""Makes guests: taps on the switches, QEMU processes side by side; what QEMU was told is read back through its monitor."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from twinbed.hosts.agent import AgentHost, cpus_allowed
from twinbed.hosts.site import Installed, Site
from twinbed.image import find, probe_path
from twinbed.links.lab_bed import Ground, Made, lab_bed
from twinbed.links.layout import Nic
from twinbed.model.caution import Caution, Kind
from twinbed.model.plugin import Applied, Bed, Check
from twinbed.model.topology import Topology
from twinbed.testbeds.qemu import monitor, trial
from twinbed.testbeds.qemu.accelerator import prove
from twinbed.testbeds.qemu.command_line import PROGRAM
from twinbed.testbeds.qemu.guest import Guest, boot
from twinbed.testbeds.qemu.settings import QemuSettings

_BOOT_LIMIT_S = 60.0
_TUN = "/dev/net/tun"
_DRIVERS = {"e1000": "e1000", "e1000e": "e1000e", "virtio-net-pci": "virtio_net", "vmxnet3": "vmxnet3", "rtl8139": "8139cp"}
"""The guest kernel's driver for each of QEMU's NIC models."""


class Qemu:
    name = "qemu"
    params = QemuSettings
    summary = "virtual machines under QEMU, joined by taps; KVM where it really boots a guest"

    def check(self, params: QemuSettings) -> Sequence[Check]:
        program = shutil.which(PROGRAM)
        sudo = "" if os.geteuid() == 0 else "sudo "
        checks = [
            Check("QEMU", program is not None, program or f"no {PROGRAM}", f"{sudo}apt-get install qemu-system-x86"),
            _taps(sudo),
        ]
        if params.accelerator == "kvm" and (image := find()) is not None:
            proof = prove(image, probe_path())
            checks.append(Check("KVM", proof.kvm, proof.found, "in the study file: accelerator: auto, which takes TCG here"))
        return checks

    def abilities(self, installed: Installed, *, boot: bool) -> Sequence[Check]:
        """The accelerator, proved by a boot, and every NIC."""
        proof = prove(installed.image, installed.probe)
        mend = "a machine without a hypervisor, or one whose hypervisor nests; guests run under TCG here, emulated"
        kvm = Check("accelerator: kvm", proof.kvm, proof.found, mend, required=False, group="parameter")
        return [kvm, *trial.nics(self, installed, boot=boot)]

    def up(self, params: QemuSettings, topology: Topology, site: Site) -> contextlib.AbstractContextManager[Bed]:
        maker = self.maker(params, site)
        return lab_bed(dict.fromkeys(("client", "server", "router"), maker), topology, site)

    def maker(self, params: QemuSettings, site: Site) -> GuestMaker:
        return GuestMaker(params, site)


class GuestMaker:
    own_kernel = True

    def __init__(self, settings: QemuSettings, site: Site) -> None:
        proof = prove(site.image, site.probe) if settings.accelerator == "auto" else None
        self.settings = settings
        self.cpus_each = settings.vcpus
        self.accelerator = settings.accelerator if proof is None else ("kvm" if proof.kvm else "tcg")
        self._why = proof.found if proof else "as asked"

    def start(self, ground: Ground, name: str, nics: Sequence[Nic], cpus: tuple[int, ...] | None) -> Made:
        for nic in nics:
            ground.fabric.attach_guest(nic)
        machine = ground.fabric.machines[nics[0].machine]
        guest = boot(
            ground.stack,
            ground.lab,
            machine,
            name,
            self.settings,
            self.accelerator,
            ground.site.image,
            evidence=ground.site.place(name),
            nics=nics,
            cpus=cpus,
            limit_s=_BOOT_LIMIT_S,
        )
        return Made(guest.host, partial(_read_back, machine, guest, self.settings, self.accelerator, cpus))

    def cautions(self) -> Sequence[Caution]:
        if self.accelerator == "tcg":
            return [Caution(Kind.SOFTWARE_CPU, re.sub(r"\s+", " ", self._why))]
        return []


def _taps(sudo: str) -> Check:
    try:
        os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError as error:
        return Check("tap devices", False, f"{_TUN}: {error.strerror}", f"{sudo}chmod 666 {_TUN}")
    except OSError as error:
        return Check("tap devices", False, f"{_TUN}: {error.strerror}", f"{sudo}modprobe tun")
    return Check("tap devices", True, f"{_TUN} can be opened")


def _read_back(
    machine: AgentHost,
    guest: Guest,
    params: QemuSettings,
    accelerator: str,
    cpus: Sequence[int] | None,
    facts: Mapping[str, Any],
) -> tuple[list[Applied], dict[str, Any]]:
    name = guest.host.name
    said = monitor.ask(guest.monitor, name)
    version = said["query-version"]["qemu"]
    running_on = {
        cpus_allowed(machine.read(f"/proc/{guest.process.pid}/task/{cpu['thread-id']}/status").decode())
        for cpu in said["query-cpus-fast"]
    }
    applied = [
        Applied(name, "accelerator", accelerator, "kvm" if said["query-kvm"]["enabled"] else "tcg", "QMP query-kvm"),
        Applied(name, "vcpus", params.vcpus, len(said["query-cpus-fast"]), "QMP query-cpus-fast"),
        Applied(
            *(name, "memory", params.megabytes() * 2**20, said["query-memory-size-summary"]["base-memory"]),
            "QMP query-memory-size-summary",
        ),
        Applied(name, "nic", _DRIVERS[params.nic], facts["NIC driver"], "ethtool -i, in the guest"),
        Applied(
            name, "cpus", cpus, running_on.pop() if len(running_on) == 1 else sorted(running_on), "/proc/PID/task/TID/status"
        ),
    ]
    return applied, {
        "QEMU": f"{version['major']}.{version['minor']}.{version['micro']}",
        "accelerator": accelerator,
        "NIC model": params.nic,
        "kernel command line": re.sub(r" twinbed\.\S+", "", guest.host.read("/proc/cmdline").decode().strip()),
    }


qemu = Qemu()
