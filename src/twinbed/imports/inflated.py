"""Whether a compressed file is one that only means to fill memory or time: far more comes out than any measurement packs."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

KINDS = ((b"\x1f\x8b\x08", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bz2"))
MOST_RATIO = 500
"""Captures and logs pack to a fifth, at most to a hundredth; zeros to a thousandth (gzip) and less."""
LOOKED_AT = 256 * 2**20
"""Decompressed bytes by which it is told; less than that does no harm."""
_PART = 2**20


def inflated(path: Path) -> str:
    """The reason to refuse a file; empty where there is none, or it is not compressed."""
    import pyarrow as pa

    with path.open("rb") as file:
        start = file.read(4)
        kind = next((kind for magic, kind in KINDS if start.startswith(magic)), None)
        if kind is None:
            return ""
        file.seek(0)
        try:
            stream = pa.CompressedInputStream(pa.PythonFile(file), kind)
            out, packed = _size(stream), file.tell()
        except OSError:
            return ""  # damaged: what reads it says where
    if out < LOOKED_AT or out <= MOST_RATIO * packed:
        return ""
    times = f"{out // max(packed, 1):,} times"
    return f"is packed {times}, as nothing measured is: {out // 2**20} MiB come out of {packed / 2**20:.1f}"


def _size(stream: BinaryIO) -> int:
    """Bytes that come out, as far as they are looked at."""
    found = 0
    while found < LOOKED_AT and (part := stream.read(_PART)):
        found += len(part)
    return found
