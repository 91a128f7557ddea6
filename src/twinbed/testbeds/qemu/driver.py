"""Puts up a testbed of guests: switch, taps, QEMU processes side by side, addresses; everything read back."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from twinbed.hosts.agent import cpus_allowed
from twinbed.hosts.lab import Lab, open_lab
from twinbed.hosts.passport import describe
from twinbed.hosts.site import Site
from twinbed.image import find, probe_path
from twinbed.links import bridge, network
from twinbed.model.caution import Caution, Kind
from twinbed.model.hostsettings import share_cpus
from twinbed.model.plugin import MACHINE, Applied, Bed, Check, Target
from twinbed.model.topology import Topology
from twinbed.testbeds.qemu import monitor
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

    @contextlib.contextmanager
    def up(self, params: QemuSettings, topology: Topology, site: Site) -> Iterator[Bed]:
        proof = prove(site.image, site.probe) if params.accelerator == "auto" else None
        accelerator = params.accelerator if proof is None else ("kvm" if proof.kvm else "tcg")
        addresses = network.addresses(topology)
        cpus = (
            dict(zip(addresses, share_cpus(len(addresses), params.vcpus, site.cpus), strict=True))
            if params.cpus == "auto"
            else {}
        )
        with open_lab(site.probe, site.place(MACHINE)) as lab, contextlib.ExitStack() as stack:
            network.make_switch(lab.machine)
            plan = "".join(bridge.tap(name, topology.link.mtu) for name in addresses)
            lab.machine.run(["ip", "-batch", "-"], stdin=plan.encode())
            network.shape(lab.machine, list(addresses), topology)

            def start(name: str) -> tuple[Guest, list[Applied], dict[str, Any]]:
                guest = boot(
                    *(stack, lab, name, params, accelerator, site.image),
                    evidence=site.place(name),
                    tap=bridge.port(name),
                    mac=network.mac(addresses[name]),
                    cpus=cpus.get(name),
                    limit_s=_BOOT_LIMIT_S,
                )
                network.configure(guest.host, addresses[name], topology, params)
                applied = network.applied_on_host(guest.host, addresses[name], topology, params)
                facts = describe(guest.host, bridge.HOST_DEVICE)
                more, about = _read_back(lab, guest, params, accelerator, cpus.get(name), facts)
                return guest, applied + more, {**facts, **about}

            answers = network.on_all(list(addresses), start)
            applied = network.applied_on_machine(lab.machine, dict.fromkeys(addresses, "tun"), topology)
            yield Bed(
                hosts={MACHINE: lab.machine, **{guest.host.name: guest.host for guest, _, _ in answers}},
                addresses=addresses,
                targets=[
                    Target(MACHINE, {bridge.port(name): name for name in addresses}),
                    *(Target(name, {bridge.HOST_DEVICE: name}, own_kernel=True) for name in addresses),
                ],
                applied=applied + [item for _, found, _ in answers for item in found],
                passport={
                    MACHINE: describe(lab.machine, None),
                    **{guest.host.name: facts for guest, _, facts in answers},
                },
                cautions=_cautions(params, accelerator, proof.found if proof else "as asked", len(addresses), site.cpus),
                lab=lab.id,
            )


def _taps(sudo: str) -> Check:
    try:
        os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError as error:
        return Check("tap devices", False, f"{_TUN}: {error.strerror}", f"{sudo}chmod 666 {_TUN}")
    except OSError as error:
        return Check("tap devices", False, f"{_TUN}: {error.strerror}", f"{sudo}modprobe tun")
    return Check("tap devices", True, f"{_TUN} can be opened")


def _read_back(
    lab: Lab, guest: Guest, params: QemuSettings, accelerator: str, cpus: Sequence[int] | None, facts: dict[str, Any]
) -> tuple[list[Applied], dict[str, Any]]:
    name = guest.host.name
    said = monitor.ask(guest.monitor, name)
    version = said["query-version"]["qemu"]
    running_on = {
        cpus_allowed(lab.machine.read(f"/proc/{guest.process.pid}/task/{cpu['thread-id']}/status").decode())
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


def _cautions(params: QemuSettings, accelerator: str, why: str, hosts: int, cpus: tuple[int, ...]) -> list[Caution]:
    cautions = []
    if accelerator == "tcg":
        cautions.append(Caution(Kind.SOFTWARE_CPU, re.sub(r"\s+", " ", why)))
    if params.cpus == "none":
        cautions.append(Caution(Kind.UNPINNED))
    elif hosts * params.vcpus > len(cpus):
        cautions.append(Caution(Kind.SHARED_CPU, f"{hosts * params.vcpus} virtual CPUs on {len(cpus)} CPUs"))
    return cautions


qemu = Qemu()
