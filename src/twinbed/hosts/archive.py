"""The image's root file system as one file, for hosts that are not on this machine: made once, kept in the cache."""

from __future__ import annotations

import fcntl
import shutil
import stat
import tempfile
from pathlib import Path

from twinbed.hosts import cache, owned
from twinbed.hosts.process import run
from twinbed.model.image import Image

COMPLETE = ".twinbed-complete"
"""The last file in the archive: where it came out, all others did."""
_PARTIAL = "partial-"
_COMPRESSORS = {"zst": ("zstd", "-T0", "-q"), "gz": ("gzip", "-n"), "tar": ("cat",)}


def kinds() -> tuple[str, ...]:
    """The kinds of archive that can be made here, smallest first."""
    return tuple(kind for kind, program in _COMPRESSORS.items() if shutil.which(program[0]))


def archive(image: Image, kind: str) -> Path:
    """The archive, made where there is none. The same file for the same image, so that an interrupted copy can go on."""
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
