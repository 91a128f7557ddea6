"""Makes guests: taps on the switches and QEMU processes side by side. QEMU's settings are read back through its monitor."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from twinbed.contracts.check import Check
from twinbed.contracts.site import Installed, Site
from twinbed.hosts import awake, packages
from twinbed.hosts.error import HostError
from twinbed.image import Image, find, probe_path, with_kernel
from twinbed.image.modules import module_name, names
from twinbed.links.lab_bed import Ground, LabDriver, Made
from twinbed.links.layout import Nic
from twinbed.model.caution import Caution, Kind
from twinbed.model.nic import NIC_MODELS, VIRTIO
from twinbed.testbeds.qemu import abilities, monitor
from twinbed.testbeds.qemu.abilities import prove, vhost
from twinbed.testbeds.qemu.command_line import PROGRAM
from twinbed.testbeds.qemu.guest import Guest, boot, trouble, tsc_khz
from twinbed.testbeds.qemu.read_back import pin, read_back, set_queues
from twinbed.testbeds.qemu.settings import DEFAULT_BOOT, QemuSettings
from twinbed.testbeds.qemu.snapshot import Model, held

_BOOT_LIMIT_S = 60.0
"""The limit for as many vCPUs as there are CPUs; it grows in proportion to the vCPUs."""
_TUN = "/dev/net/tun"


class Qemu(LabDriver[QemuSettings]):
    name = "qemu"
    params = QemuSettings
    summary = "virtual machines under QEMU, joined by taps; with KVM if it really boots a guest"
    also = (
        *("kvm", "vm", "virtual_machine", "guest", "libvirt", "virsh", "vagrant"),
        *("virtualbox", "vmware", "proxmox", "hypervisor"),
    )

    def check(self, params: QemuSettings) -> Sequence[Check]:
        program, needs = shutil.which(PROGRAM), packages.of_programs(PROGRAM)
        sudo = "" if os.geteuid() == 0 else "sudo "
        checks = [
            Check("QEMU", program is not None, program or packages.absent(needs), packages.mend(needs)),
            _taps(sudo),
            *awake.asked(params.idle),
        ]
        if program is not None:
            checks += abilities.asked(params)
        if params.kernel is not None:
            checks.append(_kernel(params, sudo))
        if params.accelerator == "kvm" and (image := find()) is not None:
            proof = prove(image, probe_path())
            remedy = "in the study file, set accelerator: auto (guests then run under TCG here, emulated)"
            checks.append(Check("KVM", proof.kvm, proof.found, remedy))
        return checks

    def abilities(self, installed: Installed, *, boot: bool) -> Sequence[Check]:
        """Prove the accelerator by a boot, and check every NIC."""
        proof = prove(installed.image, installed.probe)
        remedy = "use a physical machine, or turn on nested virtualisation in this one's hypervisor; guests run under TCG here"
        kvm = Check("accelerator: kvm", proof.kvm, proof.found, remedy, required=False, group="parameter")
        return [kvm, *abilities.tried_nics(self, installed, boot=boot)]

    def maker(self, params: QemuSettings, site: Site) -> GuestMaker:
        return GuestMaker(params, site)


class GuestMaker:
    def __init__(self, settings: QemuSettings, site: Site) -> None:
        self._image = _image_with(settings.kernel, site)
        proof = prove(self._image, site.probe) if settings.accelerator == "auto" else None
        self.settings = settings
        self.cpus_each = settings.vcpus
        self.accelerator = settings.accelerator if proof is None else ("kvm" if proof.kvm else "tcg")
        self._why = proof.found if proof else "as asked"
        can, reason = vhost() if settings.nic == VIRTIO and settings.vhost != "off" else (False, "")
        if settings.vhost == "on" and not can:
            raise HostError(f"vhost: on, but {reason}", advice="modprobe vhost_net, or set vhost: auto in the study file")
        self._vhost = can

    def start(self, ground: Ground, name: str, nics: Sequence[Nic], cpus: tuple[int, ...] | None) -> Made:
        settings = self.settings
        for nic in nics:
            ground.fabric.attach_guest(nic, settings.queues)
        machine = ground.fabric.machines[nics[0].machine]
        guests = len(ground.fabric.layout.nics)
        start = partial(
            boot,
            ground.stack,
            ground.lab,
            machine,
            name,
            settings,
            self.accelerator,
            self._image,
            evidence=ground.site.place(name),
            nics=nics,
            cpus=cpus,
            limit_s=_BOOT_LIMIT_S * max(1.0, guests * settings.vcpus / len(ground.site.cpus)),
            vhost=self._vhost,
        )
        guest, how = self._resumed(start, ground.site.probe, nics) if self._resumes else (start(), "fresh")
        if cpus:
            pin(machine, monitor.ask(guest.monitor, name).threads, cpus)
        set_queues(guest.host, settings, nics)
        return Made(
            guest.host,
            lambda facts: read_back(
                machine,
                guest,
                settings,
                self.accelerator,
                boot=how,
                kernel=self._image.kernel_version,
                nics=nics,
                cpus=cpus,
                vhost_used=self._vhost,
                facts=facts,
            ),
            partial(trouble, guest),
        )

    @property
    def _resumes(self) -> bool:
        return self.settings.boot == "snapshot" or (self.settings.boot == "auto" and DEFAULT_BOOT == "snapshot")

    def _resumed(self, start: partial[Guest], probe: Path, nics: Sequence[Nic]) -> tuple[Guest, str]:
        """Resume a guest from a snapshot and return it with how it came up. If this fails it boots, unless a study asks for
        snapshots."""
        model = Model.of(self.settings, self.accelerator, self._image, nics, vhost=self._vhost, tsc_khz=tsc_khz())
        try:
            with held(model, probe, _BOOT_LIMIT_S) as snapshot:
                return start(snapshot=snapshot), "snapshot"
        except (HostError, OSError) as error:
            why = " ".join(str(error).split())
            if self.settings.boot == "snapshot":
                raise HostError(
                    f"boot: snapshot, but a guest cannot resume here: {why}", advice="set boot: fresh or boot: auto"
                ) from None
            return start(), f"fresh: {why}"

    def cautions(self) -> Sequence[Caution]:
        if self.accelerator == "tcg":
            return [Caution(Kind.SOFTWARE_CPU, re.sub(r"\s+", " ", self._why))]
        return []


def _image_with(kernel: str | None, site: Site) -> Image:
    """Return the run's image, or the one with another kernel. Raises HostError if it has not been built; preflight has
    reported this already."""
    if kernel is None:
        return site.image
    image = find(with_kernel(kernel), site.added)
    if image is None:
        raise HostError(f"no image has the kernel {kernel}", advice=f"twinbed image build --kernel {kernel}")
    return image


def _taps(sudo: str) -> Check:
    try:
        os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError as error:
        return Check("tap devices", False, f"{_TUN}: {error.strerror}", f"{sudo}chmod 666 {_TUN}")
    except OSError as error:
        return Check("tap devices", False, f"{_TUN}: {error.strerror}", f"{sudo}modprobe tun")
    return Check("tap devices", True, f"{_TUN} can be opened")


def _kernel(params: QemuSettings, sudo: str) -> Check:
    what = f"guest kernel {params.kernel}"
    image = find(with_kernel(str(params.kernel)))
    if image is None:
        return Check(what, False, "no image has this kernel", f"{sudo}twinbed image build --kernel {params.kernel}")
    driver = NIC_MODELS[params.nic].driver
    if module_name(driver) not in names(image.rootfs / "usr/lib/modules" / image.kernel_version):
        return Check(
            what, False, f"it has no driver {driver} for {params.nic}", "set another nic, or a kernel that is no cloud kernel"
        )
    return Check(what, True, f"{image.digest}, kernel {image.kernel_version}")


qemu = Qemu()
