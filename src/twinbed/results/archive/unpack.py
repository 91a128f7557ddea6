"""Opens an archive as a results folder, and trusts nothing in it.

Names stay inside the folder, files are plain, sizes are counted while they are read, and every checksum is verified.
"""

from __future__ import annotations

import hashlib
import lzma
import shutil
import stat
import struct
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path, PurePosixPath

from twinbed.hosts import scratch
from twinbed.model.error import TwinbedError
from twinbed.results.archive.layout import CHECKSUMS, METADATA, most_bytes
from twinbed.results.bucket.address import address_of

MOST_FILES = 1_000_000
_LEFT_BYTES = 2**28
"""Bytes that unpacking leaves free on the disk."""
_BLOCK_BYTES = 4096
"""The least space of a file on the disk."""
_LOCAL_HEADER_BYTES = 30
_SUM = "0" * 64 + "  \n"
_PART_BYTES = 2**20


class ArchiveRefused(TwinbedError):
    """The file is no archive of results, is damaged, or would do harm."""


_NO_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""Errors of zipfile for a file that is no zip file; UnicodeDecodeError, a ValueError, for a name that is no text."""


def is_archive(path: Path) -> bool:
    return path.is_file() and zipfile.is_zipfile(path)


def unpack(file: Path, folder: Path) -> None:
    """Unpack into a folder that does not exist yet. Raises ArchiveRefused; then nothing remains."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        with zipfile.ZipFile(file) as archive:
            entries = _entries(file, archive)
            _refuse_full(file, entries.values(), partial)
            sums = _sums(file, archive, entries)
            for name, entry in entries.items():
                if name != CHECKSUMS:
                    _one(file, archive, entry, partial / name, sums[name])
        partial.rename(folder)
    except _NO_ZIP as error:
        raise ArchiveRefused(
            f"{file} is damaged, or no zip file: {error}", advice="get it again, and check its checksum"
        ) from error
    except OSError as error:
        raise ArchiveRefused(
            f"{file} cannot be unpacked: {error.strerror or error}",
            advice=f"make room in {tempfile.gettempdir()}, or check its access",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_results(path: Path) -> bool:
    """Return whether it is a folder, an archive, or an address; opening it shows whether there are results."""
    return path.is_dir() or is_archive(path) or address_of(path) is not None


def folder_of(path: Path) -> Path:
    """Return the path itself; for an archive a results folder with its content, which lasts as long as this process."""
    return _opened(path.resolve()) if is_archive(path) else path


@cache
def _opened(file: Path) -> Path:
    stack = ExitStack()
    home = stack.enter_context(scratch.folder(large=True))
    weakref.finalize(_KEPT, stack.close)
    folder = home / file.stem
    unpack(file, folder)
    return folder


class _Kept:
    """An object that lasts as long as the process."""


_KEPT = _Kept()


def _entries(file: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    entries: dict[str, zipfile.ZipInfo] = {}
    listed = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]  # a name may be empty
    if len(listed) > MOST_FILES:
        raise ArchiveRefused(f"{file} has {len(listed)} files, more than {MOST_FILES}")
    for entry in listed:
        name, path = entry.filename, PurePosixPath(entry.filename)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or str(path) != name:
            raise ArchiveRefused(f"{file}: the name {name!r} leads out of the archive", advice="do not trust its source")
        if kind not in (0, stat.S_IFREG):
            raise ArchiveRefused(f"{file}: {name!r} is not a plain file", advice="do not trust its source")
        if name in entries:
            raise ArchiveRefused(f"{file}: {name!r} occurs twice", advice="do not trust its source")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveRefused(f"{file}: {name!r} is not compressed by deflate", advice="`twinbed archive` uses deflate")
        entries[name] = entry
    _refuse_overlap(file, listed)
    together, packed = sum(entry.file_size for entry in listed), file.stat().st_size
    if together > most_bytes(packed):
        raise ArchiveRefused(
            f"{file}: its {len(listed):,} files would be {together:,} bytes from {packed:,}",
            advice="no results compress so well: do not trust its source",
        )
    return entries


def _refuse_overlap(file: Path, listed: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse files that overlap: many names may list the same packed bytes."""
    end = 0
    for entry in sorted(listed, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            raise ArchiveRefused(f"{file}: {entry.filename!r} overlaps another file", advice="do not trust its source")
        end = entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size


def _refuse_full(file: Path, entries: Collection[zipfile.ZipInfo], folder: Path) -> None:
    needed = sum(entry.file_size for entry in entries) + _BLOCK_BYTES * len(entries)
    free = shutil.disk_usage(folder).free
    if needed + _LEFT_BYTES > free:
        raise ArchiveRefused(
            f"{file} needs {needed:,} bytes and {_LEFT_BYTES:,} to spare, but {folder.parent} has {free:,} free",
            advice=f"make room, or give TMPDIR another folder than {tempfile.gettempdir()}",
        )


def _sums(file: Path, archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> dict[str, str]:
    """Return name -> SHA-256, of exactly the existing files."""
    if CHECKSUMS not in entries or METADATA not in entries:
        raise ArchiveRefused(
            f"{file} is not an archive of results: {CHECKSUMS} or {METADATA} is missing", advice="`twinbed archive` makes them"
        )
    most = sum(len(_SUM) + len(name.encode()) for name in entries)
    if entries[CHECKSUMS].file_size > most:
        raise ArchiveRefused(f"{file}: {CHECKSUMS} is longer than {most:,} bytes, enough for its {len(entries):,} files")
    text = archive.read(CHECKSUMS).decode(errors="replace")
    sums = {name: sum_ for sum_, _, name in (line.partition("  ") for line in text.splitlines())}
    unknown = sorted(entries.keys() - sums.keys() - {CHECKSUMS})
    missing = sorted(sums.keys() - entries.keys())
    if unknown or missing:
        first = unknown[0] if unknown else missing[0]
        raise ArchiveRefused(f"{file}: {first!r} is {'not in' if unknown else 'only in'} {CHECKSUMS}", advice="get it again")
    return sums


def _one(file: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, wanted: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with archive.open(entry) as stream, target.open("xb") as out:
        while part := stream.read(_PART_BYTES):
            size += len(part)
            if size > entry.file_size:
                raise ArchiveRefused(f"{file}: {entry.filename!r} is longer than its stated size")
            digest.update(part)
            out.write(part)
    if digest.hexdigest() != wanted:
        raise ArchiveRefused(f"{file}: {entry.filename!r} does not match {CHECKSUMS}", advice="it was changed or damaged")
