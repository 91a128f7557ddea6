"""The kernel in the form that QEMU boots fastest: Debian's compressed vmlinuz is decompressed once here instead of in every
guest.

QEMU enters an ELF kernel with a PVH note directly, past the firmware's boot loader and the kernel's own decompressor, which
take an emulated CPU more than two seconds.  Source of the layout: the kernel's Documentation/arch/x86/boot.rst.
"""

from __future__ import annotations

import lzma
import struct

_XZ = b"\xfd7zXZ\0"
_ZSTD = b"\x28\xb5\x2f\xfd"


def uncompressed(vmlinuz: bytes) -> bytes:
    """The ELF kernel inside a bzImage. Raises ValueError, with what was wrong and where, if there is none.

    Offsets: setup_sects 0x1f1, "HdrS" 0x202, version 0x206, payload_offset 0x248, payload_length 0x24c.
    """
    if len(vmlinuz) < 0x250 or vmlinuz[0x202:0x206] != b"HdrS":
        raise ValueError("not a bzImage: no HdrS at offset 0x202")
    (version,) = struct.unpack_from("<H", vmlinuz, 0x206)
    if version < 0x208:
        raise ValueError(f"boot protocol {version >> 8}.{version & 255:02} does not say where the kernel is; 2.08 does")
    offset, length = struct.unpack_from("<II", vmlinuz, 0x248)
    begin = ((vmlinuz[0x1F1] or 4) + 1) * 512 + offset
    payload = vmlinuz[begin : begin + length]
    if len(payload) != length:
        raise ValueError(f"truncated: {length} bytes of kernel from offset {begin}, {len(payload)} there")
    kernel = _decompressed(payload, begin)
    if not kernel.startswith(b"\x7fELF"):
        raise ValueError(f"what is compressed at offset {begin} is not an ELF file")
    return kernel


def _decompressed(payload: bytes, begin: int) -> bytes:
    """The last four bytes of a zstd payload are the kernel's size."""
    try:
        if payload.startswith(_XZ):
            return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(payload)
        if payload.startswith(_ZSTD):
            import pyarrow as pa  # the standard library's own zstd comes with Python 3.14

            (size,) = struct.unpack("<I", payload[-4:])
            return bytes(pa.Codec("zstd").decompress(payload[:-4], size))
    except (lzma.LZMAError, OSError) as error:
        raise ValueError(f"the kernel at offset {begin}: {error}") from None
    raise ValueError(f"the kernel at offset {begin} is not compressed by xz or zstd: it begins with {payload[:6].hex()}")
