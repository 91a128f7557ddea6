"""Taking the kernel out of a bzImage; the offsets are those of the kernel's boot.rst."""

from __future__ import annotations

import lzma
import struct

import pyarrow as pa
import pytest

from twinbed.image.kernel import uncompressed

ELF = b"\x7fELF" + bytes(range(256)) * 40


def bzimage(payload: bytes, *, setup_sects: int = 27, offset: int = 700, version: int = 0x20F) -> bytes:
    image = bytearray((max(setup_sects, 1) + 1) * 512 + offset)
    image[0x1F1] = setup_sects
    image[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", image, 0x206, version)
    struct.pack_into("<II", image, 0x248, offset, len(payload))
    return bytes(image) + payload + b"what follows is not the kernel"


def test_the_kernel_comes_out_whole() -> None:
    size = struct.pack("<I", len(ELF))  # the kernel's build appends the size to what xz wrote
    assert uncompressed(bzimage(lzma.compress(ELF) + size)) == ELF


def test_newer_kernels_are_compressed_by_zstd() -> None:
    packed = bytes(pa.Codec("zstd").compress(ELF))
    assert uncompressed(bzimage(packed + struct.pack("<I", len(ELF)))) == ELF


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (b"", "not a bzImage"),
        (bytes(4096), "not a bzImage"),
        (bzimage(lzma.compress(ELF), version=0x207), "boot protocol 2.07"),
        (bzimage(lzma.compress(ELF))[:-200], "truncated"),
        (bzimage(b"\x1f\x8b\x08 gzip"), "must be compressed by xz or zstd, and begins with 1f8b08"),
        (bzimage(b"\x28\xb5\x2f\xfd zstd" + struct.pack("<I", 9)), "the kernel at offset"),
        (bzimage(lzma.compress(b"MZ not a kernel")), "no ELF file"),
        (bzimage(lzma.compress(ELF)[:20] + bytes(200)), "the kernel at offset"),
    ],
)
def test_what_is_wrong_is_said(image: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        uncompressed(image)
