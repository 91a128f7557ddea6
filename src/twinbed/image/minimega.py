"""A kernel and an initrd for minimega's guests, from the image that every testbed runs.

The initrd is the root file system itself, which the kernel unpacks into memory: minimega gives such a guest no disk. The probe
is its first program, as in every guest: it mounts /proc and others, and loads the drivers of NICs and virtio-serial. Then
minimega_start.sh keeps minimega's client, miniccc, running. The user gives miniccc, since it must be of minimega's release.
"""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from twinbed.image import initramfs
from twinbed.image.cache import boot_modules
from twinbed.image.failure import ImageFailed
from twinbed.image.initramfs import Entry
from twinbed.image.probe import MOUNTED_AT
from twinbed.model.image import Image

KERNEL, INITRD = "twinbed.kernel", "twinbed.initrd"
_LEVEL = 6
_ELF_64_LITTLE_EXECUTABLE = b"\x7fELF\x02\x01"
_X86_64 = 0x3E
_MACHINE_AT = 18
_SHARE, _KERNEL_BYTES = 0.5, 128 * 2**20
"""Files of an initrd may take half of a booting guest's memory (tmpfs(5)), without the memory of kernel and archive."""


@dataclass(frozen=True, slots=True)
class Made:
    """The files written. ``megabytes``: the least memory of a guest that boots them."""

    kernel: Path
    initrd: Path
    megabytes: int
    has_client: bool


def client(path: Path) -> bytes:
    """Read minimega's client. Raises ImageFailed unless a guest can run it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ImageFailed(f"{path}: {error.strerror}", advice="miniccc is in the folder bin of minimega's release") from None
    machine = int.from_bytes(content[_MACHINE_AT : _MACHINE_AT + 2], "little")
    if not content.startswith(_ELF_64_LITTLE_EXECUTABLE) or machine != _X86_64:
        raise ImageFailed(
            f"{path}: it must be a program for Linux on x86-64",
            advice="miniccc, without a suffix, is in the folder bin of minimega's release; miniccc.exe is for Windows",
        )
    return content


def make(image: Image, folder: Path, miniccc: bytes | None) -> Made:
    """Write both files into a folder, each complete or not at all. The same inputs give the same bytes.

    Raises ImageFailed if they cannot be written."""
    entries = list(_entries(image, miniccc))
    archive = initramfs.archive(entries)
    packed = gzip.compress(archive, _LEVEL, mtime=0)
    least = len(archive) / _SHARE + _KERNEL_BYTES
    made = Made(folder / KERNEL, folder / INITRD, _rounded_up(least / 2**20), miniccc is not None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(made.kernel, image.kernel.read_bytes())
        _write(made.initrd, packed)
    except OSError as error:
        raise ImageFailed(f"{error.filename or folder}: {error.strerror}", advice="give another folder: --output") from None
    return made


def _rounded_up(megabytes: float) -> int:
    return 64 * (int(megabytes) // 64 + 1)


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def _entries(image: Image, miniccc: bytes | None) -> Iterator[Entry]:
    yield from _tree(image.rootfs)
    modules = boot_modules(image)
    yield initramfs.directory("boot-modules")
    yield from (initramfs.file(f"boot-modules/{name}", content) for name, content, _ in modules)
    lines = (f"/boot-modules/{name}{' optional' if optional else ''}\n" for name, _, optional in modules)
    yield initramfs.file("modules.list", "".join(lines).encode())
    yield initramfs.file("init", (image.rootfs / MOUNTED_AT.lstrip("/")).read_bytes(), 0o755)
    yield initramfs.file("start", (resources.files(__package__) / "minimega_start.sh").read_bytes(), 0o755)
    yield initramfs.file("etc/twinbed-image", f"{image.digest}\n".encode())
    if miniccc is not None:
        yield initramfs.file("miniccc", miniccc, 0o755)


def _tree(top: Path) -> Iterator[Entry]:
    """Yield folders, files, links and devices of a folder by name, parents first."""
    for path in sorted(top.rglob("*")):
        name, status = str(path.relative_to(top)), path.lstat()
        if stat.S_ISLNK(status.st_mode):
            yield Entry(name, status.st_mode, str(path.readlink()).encode())
        elif stat.S_ISREG(status.st_mode):
            yield Entry(name, status.st_mode, path.read_bytes())
        elif stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
            yield Entry(name, status.st_mode, device=(os.major(status.st_rdev), os.minor(status.st_rdev)))
        else:
            yield Entry(name, status.st_mode)
    if not (top / "dev/console").exists():
        yield Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
