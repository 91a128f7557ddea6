"""Which accelerator runs guests on this machine: proved by booting one, since /dev/kvm may exist and boot nothing.

The proof is remembered for this boot of the machine, this image and this QEMU.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from twinbed.hosts import scratch
from twinbed.hosts.cache import cache_root, keep, recall
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import open_lab
from twinbed.image import Image
from twinbed.testbeds.qemu import memory
from twinbed.testbeds.qemu.command_line import PROGRAM
from twinbed.testbeds.qemu.guest import GuestLost, boot
from twinbed.testbeds.qemu.settings import QemuSettings

_LIMIT_S = 6.0
_KVM = Path("/dev/kvm")


@dataclass(frozen=True, slots=True)
class Proof:
    """``kvm`` is whether a guest booted with it; ``found`` says what happened."""

    kvm: bool
    found: str


def prove(image: Image, probe: Path) -> Proof:
    """Boot a guest under KVM, once a boot of this machine. Obstacles to trying are looked for each time, as they can be
    mended."""
    if not _KVM.exists():
        return Proof(False, f"{_KVM} does not exist")
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return Proof(False, f"{_KVM} may not be opened by this user")
    if shutil.which(PROGRAM) is None:
        return Proof(False, f"no {PROGRAM}")
    remembered = memory.place(cache_root() / "accelerator", image)
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
                    limit_s=_LIMIT_S,
                )
                return Proof(True, f"a guest booted with KVM in {guest.seconds:.1f} s")
        except GuestLost as error:
            return Proof(False, f"KVM boots no guest here: {error.output.splitlines()[0].removeprefix(f'{PROGRAM}: ')}")
        except HostError as error:
            return Proof(False, f"KVM boots no guest here: {error}")
