"""The guests' kernel: decompressed for a fast boot, and another kernel in place of the image's.

Debian's compressed vmlinuz is decompressed once here instead of in every guest. QEMU enters an ELF kernel with a PVH note
directly. This skips the firmware's boot loader and the kernel's own decompressor, which take an emulated CPU more than 2 s.
Source of the layout: the kernel's Documentation/arch/x86/boot.rst.

An image with another kernel shares all other files with the standard image. The machine's own apt fetches the kernel and checks
its signature; nothing is installed on the machine.
"""

from __future__ import annotations

import lzma
import re
import shutil
import struct
from pathlib import Path

from twinbed.hosts.process import ProcessFailed, run
from twinbed.image.failure import ImageFailed

_XZ = b"\xfd7zXZ\0"
_ZSTD = b"\x28\xb5\x2f\xfd"


def uncompressed(vmlinuz: bytes) -> bytes:
    """Return the ELF kernel inside a bzImage. Raises ValueError with the problem and its offset if there is none.

    Offsets: setup_sects 0x1f1, "HdrS" 0x202, version 0x206, payload_offset 0x248, payload_length 0x24c.
    """
    if len(vmlinuz) < 0x250 or vmlinuz[0x202:0x206] != b"HdrS":
        raise ValueError("not a bzImage: no HdrS at offset 0x202")
    (version,) = struct.unpack_from("<H", vmlinuz, 0x206)
    if version < 0x208:
        raise ValueError(f"boot protocol {version >> 8}.{version & 255:02} must be 2.08 or newer, to give the kernel's offset")
    offset, length = struct.unpack_from("<II", vmlinuz, 0x248)
    begin = ((vmlinuz[0x1F1] or 4) + 1) * 512 + offset
    payload = vmlinuz[begin : begin + length]
    if len(payload) != length:
        raise ValueError(f"truncated: {length} bytes of kernel from offset {begin}, of which {len(payload)} exist")
    kernel = _decompressed(payload, begin)
    if not kernel.startswith(b"\x7fELF"):
        raise ValueError(f"the kernel at offset {begin} is no ELF file")
    return kernel


def _decompressed(payload: bytes, begin: int) -> bytes:
    """Decompress the kernel. The last four bytes of a zstd payload are the kernel's size."""
    try:
        if payload.startswith(_XZ):
            return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(payload)
        if payload.startswith(_ZSTD):
            import pyarrow as pa  # the standard library's own zstd comes with Python 3.14

            (size,) = struct.unpack("<I", payload[-4:])
            return bytes(pa.Codec("zstd").decompress(payload[:-4], size))
    except (lzma.LZMAError, OSError) as error:
        raise ValueError(f"the kernel at offset {begin}: {error}") from None
    raise ValueError(f"the kernel at offset {begin} must be compressed by xz or zstd, and begins with {payload[:6].hex()}")


_META = re.compile(r"^Depends: .*?(linux-image-\d[^ ,]*)", re.MULTILINE)


def fetch(package: str, to: Path) -> None:
    """Download a kernel's package, or the one that a meta package leads to. Raises ImageFailed."""
    try:
        description = run(["apt-cache", "show", "--no-all-versions", package]).text
        real = leads_to(description) or package
        run(["apt-get", "-o", "APT::Sandbox::User=root", "download", real], cwd=to, limit_s=600)
    except ProcessFailed as error:
        raise ImageFailed(
            f"the kernel {package} cannot be fetched: {error}",
            advice="apt-get update; apt-cache search ^linux-image-   (lists kernel packages)",
        ) from None


def leads_to(description: str) -> str | None:
    """Return the kernel that a meta package, described by `apt-cache show`, depends on; None for a kernel itself."""
    match = _META.search(description)
    return match[1] if match else None


def share(common: Path, rootfs: Path) -> None:
    """Copy the root file system without a kernel's modules, as hard links, since a finished image never changes."""
    run(["cp", "--archive", "--link", str(common), str(rootfs)], limit_s=120)
    shutil.rmtree(rootfs / "usr/lib/modules")
