"""Abilities of QEMU on this machine: NIC models, CPU models, vhost and KVM, each with its reason and remedy.

QEMU itself lists NIC and CPU models. KVM is proved by booting a guest, since /dev/kvm may exist and boot nothing. NICs are
proved, only if asked, by booting a client and a server with each model and reading everything back. The proofs are kept for
this boot of the machine, this image and this QEMU.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from twinbed.contracts.check import Check
from twinbed.contracts.site import Installed, Site
from twinbed.hosts import packages, scratch
from twinbed.hosts.cache import cache_root, keep, recall
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import open_lab
from twinbed.hosts.process import ProcessFailed, run
from twinbed.image import Image
from twinbed.links.lab_bed import LabDriver
from twinbed.model.json import Document
from twinbed.model.nic import NIC_MODELS
from twinbed.model.topology import Topology
from twinbed.testbeds.qemu.command_line import PROGRAM
from twinbed.testbeds.qemu.guest import GuestLost, boot
from twinbed.testbeds.qemu.settings import QemuSettings
from twinbed.testbeds.qemu.snapshot import place

VHOST = Path("/dev/vhost-net")
GROUP = "NIC"
AT_ONCE = 2
"""Pairs that boot side by side. More pairs would only share the same CPUs."""
_KVM = Path("/dev/kvm")
_KVM_LIMIT_S = 6.0


def vhost() -> tuple[bool, str]:
    """Try to open the kernel's device that moves a virtio NIC's packets. Return whether it opened, and the reason."""
    try:
        os.close(os.open(VHOST, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return False, f"{VHOST}: {error.strerror}"
    return True, f"{VHOST} can be opened"


def nic(model: str) -> Check:
    """Check that QEMU has this NIC model."""
    what = f"NIC {model}"
    try:
        listed = f'name "{model}"' in _output("-device", "help")
    except ProcessFailed as error:
        return Check(what, False, str(error).replace("\n", " "), packages.mend(packages.of_programs(PROGRAM)))
    if listed:
        return Check(what, True, f"`{PROGRAM} -device help` lists it")
    first = NIC_MODELS[model].since
    needed = f"QEMU {first} or newer" if first else "a QEMU that was built with it"
    remedy = f"in the study file, set nic to one of {', '.join(nics())}; or install {needed}"
    return Check(what, False, f"{_version()} lacks it", remedy)


def nics() -> list[str]:
    """List the NIC models that a study can ask for and that QEMU has here."""
    listed = _output("-device", "help")
    return [model for model in NIC_MODELS if f'name "{model}"' in listed]


def asked(settings: QemuSettings) -> list[Check]:
    """Check everything that these settings need of QEMU and of this machine."""
    checks = [nic(settings.nic)]
    if settings.cpu is not None:
        checks.append(_cpu(settings))
    if settings.vhost == "on":
        works, reason = vhost()
        sudo = "" if os.geteuid() == 0 else "sudo "
        remedy = f"{sudo}chmod 666 {VHOST}" if VHOST.exists() else f"{sudo}modprobe vhost_net, or set vhost: auto"
        checks.append(Check("vhost", works, reason, remedy))
    return checks


def _cpu(settings: QemuSettings) -> Check:
    """Start QEMU with the CPU: it refuses an unknown CPU before anything else."""
    what = f"CPU {settings.cpu}"
    accelerator = "kvm" if settings.accelerator == "kvm" else "tcg"
    command = ("-machine", f"{settings.machine},accel={accelerator}", "-cpu", f"{settings.cpu}", "-display", "none")
    try:
        run([PROGRAM, *command, "-nodefaults", "-S", "-monitor", "stdio"], stdin=b"quit\n", limit_s=10)
    except ProcessFailed as error:
        return Check(what, False, str(error).splitlines()[-1].strip(), f"choose a CPU that `{PROGRAM} -cpu help` lists")
    return Check(what, True, f"{PROGRAM} starts with it")


def _version() -> str:
    match = re.search(r"version (\S+)", _output("--version"))
    return f"QEMU {match[1]}" if match else "this QEMU"


def _output(*arguments: str) -> str:
    program = shutil.which(PROGRAM)
    if program is None:
        raise ProcessFailed([PROGRAM], "no such program")
    return _asked_once(program, Path(program).stat().st_mtime_ns, arguments)


@functools.cache
def _asked_once(program: str, _changed_ns: int, arguments: tuple[str, ...]) -> str:
    """Ask each question once: a study with many testbeds repeats it."""
    return run([program, *arguments], limit_s=10).text


@dataclass(frozen=True, slots=True)
class Proof:
    """``kvm``: a guest booted with KVM; ``found``: what happened."""

    kvm: bool
    found: str


def prove(image: Image, probe: Path) -> Proof:
    """Boot a guest under KVM, once per boot of this machine. Obstacles that a user can remove are looked for each time."""
    if not _KVM.exists():
        return Proof(False, f"{_KVM} does not exist")
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return Proof(False, f"this user may not open {_KVM}")
    if shutil.which(PROGRAM) is None:
        return Proof(False, f"{PROGRAM} is not installed")
    remembered = place(cache_root() / "accelerator", image)
    known = recall(remembered)
    if known is not None and known.keys() == Proof.__dataclass_fields__.keys():
        return Proof(bool(known["kvm"]), str(known["found"]))
    proof = _try(image, probe)
    keep(remembered, asdict(proof))
    return proof


def _try(image: Image, probe: Path) -> Proof:
    with scratch.folder() as evidence:
        try:
            with open_lab(probe, evidence) as lab, contextlib.ExitStack() as stack:
                settings = QemuSettings(accelerator="kvm")
                guest = boot(
                    stack,
                    lab,
                    lab.machine,
                    "proof",
                    settings,
                    "kvm",
                    image,
                    evidence=evidence,
                    nics=(),
                    cpus=None,
                    limit_s=_KVM_LIMIT_S,
                )
                return Proof(True, f"a guest booted with KVM in {guest.seconds:.1f} s")
        except GuestLost as error:
            first_line = error.output.splitlines()[0].removeprefix(f"{PROGRAM}: ")
            return Proof(False, f"KVM cannot boot a guest on this machine: {first_line}")
        except HostError as error:
            return Proof(False, f"KVM cannot boot a guest on this machine: {error}")


def tried_nics(driver: LabDriver[QemuSettings], installed: Installed, *, boot: bool) -> list[Check]:
    """Check every NIC model that a study can ask for. Without ``boot``, models that have not booted yet count as not tried."""
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return list(pool.map(lambda model: _tried_nic(driver, model, installed, boot), NIC_MODELS))


def _tried_nic(driver: LabDriver[QemuSettings], model: str, installed: Installed, boot: bool) -> Check:
    settings = QemuSettings(nic=model, boot="fresh")
    refused = next((check for check in driver.check(settings) if not check.works), None)
    if refused is not None:
        return Check(model, False, refused.found, refused.mend, required=False, group=GROUP)
    file = place(cache_root() / "nics", installed.image, model)
    known = recall(file)
    if known is None and boot:
        known = _boot_pair(driver, settings, installed)
        keep(file, known)
    if known is None:
        return Check(
            *(model, False, "no guest has booted with this NIC since this machine started"),
            "twinbed check --boot (boots two guests with each NIC)",
            required=False,
            group=GROUP,
            tried=False,
        )
    remedy = "" if known["works"] else "leave this NIC out of the study, or install another QEMU"
    return Check(model, bool(known["works"]), str(known["found"]), remedy, required=False, group=GROUP)


def _boot_pair(driver: LabDriver[QemuSettings], settings: QemuSettings, installed: Installed) -> Document:
    began = time.monotonic()
    with scratch.folder() as folder:
        site = Site("check", installed.probe, installed.image, folder, tuple(sorted(os.sched_getaffinity(0))))
        try:
            with driver.up(settings, Topology(), site) as bed:
                wrong = [item for item in bed.applied if not item.agrees]
        except HostError as error:
            return {"works": False, "found": " ".join(str(error).split())}
    if wrong:
        differences = "; ".join(f"{item.subject}: {item.setting} is {item.found!r}, not {item.asked!r}" for item in wrong)
        return {"works": False, "found": differences}
    return {"works": True, "found": f"two guests booted and had a link after {time.monotonic() - began:.1f} s"}
