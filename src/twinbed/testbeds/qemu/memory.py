"""What booting a guest has shown, remembered for this boot of the machine, this image, this user and this QEMU."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from twinbed.image import Image
from twinbed.testbeds.qemu.command_line import PROGRAM

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def place(folder: Path, image: Image, *about: str) -> Path:
    """The file in which the findings ``about`` something are kept. Needs QEMU to be installed."""
    program = shutil.which(PROGRAM) or PROGRAM
    tried = " ".join(
        (_BOOT.read_text().strip(), image.digest, str(os.geteuid()), program, str(Path(program).stat().st_mtime_ns), *about)
    )
    return folder / f"{hashlib.sha256(tried.encode()).hexdigest()[:16]}.json"
