"""Puts the probe and the image on a host over SSH: once, by content, and complete or not at all.

The image's root file system travels as one archive, made once and kept in the cache.
"""

from __future__ import annotations

import fcntl
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from twinbed.hosts import cache, owned, ssh
from twinbed.hosts.error import HostError
from twinbed.hosts.process import run
from twinbed.hosts.ssh import Address
from twinbed.model.image import Image

_SLOWEST = 1e6
"""The slowest accepted copy, bytes/s."""
_UNPACK_LIMIT_S = 600.0

_APPEND = """
mkdir -p "$(dirname "$1")" && cat >> "$1" && [ "$(wc -c < "$1")" -eq "$2" ] || { rm -f "$3"; exit 1; }
"""
_PLACE = """
chmod 755 "$1" "$1"/* && { mv -T "$1" "$2" 2>/dev/null || rm -r "$1"; } && [ -d "$2" ]
"""
_STATE = """
for tool in zstd gzip cat; do command -v $tool >/dev/null && echo $tool; done
command -v tar >/dev/null || { echo "there is no tar" >&2; exit 1; }
for part in "$1"*; do [ -f "$part" ] && echo "$part $(wc -c < "$part")"; done
exit 0
"""
_UNPACK = """
work=$1.unpacking.$$
trap 'rm -rf "$work"' EXIT
mkdir -p "$work" || exit 1
case $3 in zst) zstd -dcq "$2";; gz) gzip -dc "$2";; *) cat "$2";; esac | tar -xpf - --numeric-owner -C "$work" || exit 1
[ -e "$work/$4" ] || { echo "the archive is not whole" >&2; rm -f "$2"; exit 1; }
mv -T "$work" "$1" 2>/dev/null || [ -d "$1" ] || exit 1
rm -f "$2"
"""
_READERS = {"zst": "zstd", "gz": "gzip", "tar": "cat"}


def programs(address: Address, folder: str, digest: str, files: Sequence[Path]) -> None:
    """Put programs into ``FOLDER/probes/DIGEST``."""
    work = f"{folder}/probes/{digest}.new"
    ssh.run(address, 'umask 022; mkdir -p "$(dirname "$1")" && rm -rf "$1"', [work])
    for file in files:
        _copy(address, file, f"{work}/{file.name}", 0)
    ssh.run(address, _PLACE, [work, f"{folder}/probes/{digest}"])


def image(address: Address, folder: str, wanted: Image) -> None:
    """Put an image's root file system into ``FOLDER/images/DIGEST``. An interrupted copy continues."""
    final = f"{folder}/images/{wanted.digest}"
    state = ssh.run(address, _STATE, [f"{final}.part"]).splitlines()
    tools, parts = {line for line in state if " " not in line}, dict(line.rsplit(" ", 1) for line in state if " " in line)
    kind = next((kind for kind in kinds() if _READERS[kind] in tools), None)
    if kind is None:
        raise HostError(
            f"{address.name}: it can unpack none of the archives that this machine can make ({', '.join(kinds())})",
            advice="install gzip or zstd on the host, or use its own tools: image: none",
        )
    packed = archive(wanted, kind)
    part = f"{final}.part.{kind}"
    _copy(address, packed, part, int(parts.get(part, 0)))
    ssh.run(address, _UNPACK, [final, part, kind, COMPLETE], limit_s=_UNPACK_LIMIT_S)


def _copy(address: Address, file: Path, to: str, begun: int) -> None:
    """Append the rest of a file, of which the host has ``begun`` bytes."""
    size = file.stat().st_size
    with file.open("rb") as source:
        source.seek(begun)
        limit_s = 60 + (size - begun) / _SLOWEST
        ssh.run(address, _APPEND, [to, str(size), to if begun > size else ""], stdin=source, limit_s=limit_s)


COMPLETE = ".twinbed-complete"
"""The last file in the archive: if it was unpacked, all others were."""
_PARTIAL = "partial-"
_COMPRESSORS = {"zst": ("zstd", "-T0", "-q"), "gz": ("gzip", "-n"), "tar": ("cat",)}


def kinds() -> tuple[str, ...]:
    """Return the kinds of archive that this machine can make, smallest first."""
    return tuple(kind for kind, program in _COMPRESSORS.items() if shutil.which(program[0]))


def archive(image: Image, kind: str) -> Path:
    """Return an image's archive, made if there is none. The same image gives the same file, so interrupted copies continue."""
    folder = cache.folder("archives")
    final = folder / f"{image.digest}.{kind}"
    if owned.is_own(final, stat.S_IFREG):
        return final
    with open(owned.lock_file(folder / "lock"), "w") as lock:  # noqa: PTH123  (a descriptor)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not owned.is_own(final, stat.S_IFREG):
            for killed in folder.glob(f"{_PARTIAL}*"):
                shutil.rmtree(killed)
            _make(image, kind, final)
    return final


def _make(image: Image, kind: str, final: Path) -> None:
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=_PARTIAL) as work:
        (Path(work) / COMPLETE).touch()
        plain, packed = Path(work) / "plain", Path(work) / "packed"
        content = ("-C", str(image.rootfs), ".", "-C", work, COMPLETE)
        run(["tar", "--sort=name", "--numeric-owner", "-cf", str(plain), *content], limit_s=300)
        with plain.open("rb") as source:
            run(_COMPRESSORS[kind], stdin=source, stdout=packed, limit_s=600)
        packed.rename(final)
