"""The cache of images: where finished ones are, and how a new one gets there whole or not at all.

The cache's folder (``hosts.cache``) holds

    images/<digest>/   rootfs/ disk.erofs vmlinux initramfs.cpio contents manifest.json
    bases/<digest>/    the same without the probe: rootfs/ vmlinux modules/ contents manifest.json
    current/<key>      a link to the folder that a specification was last built to
    checked/<digest>-<user>   the state in which a finished folder was last found to hold what its ``contents`` say
    tmp/               what is being built; swept by the next build
    lock, build.log

A finished folder is never changed, as running containers and guests use it; that it is as it was built is checked whenever it
is opened.  Root builds in root's own cache; a user finds images in the user's own cache first, then in root's.  No link in a
cache is followed: of ``current/<key>`` the target is read, which must be one of the cache's own folders.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, cast

from twinbed.hosts.cache import cache_root, keep, places, recall
from twinbed.hosts.cache import folder as cache_folder
from twinbed.hosts.owned import is_own, lock_file
from twinbed.hosts.process import run
from twinbed.image import contents
from twinbed.image.failure import ImageFailed
from twinbed.model.image import Image
from twinbed.model.json import Document, loads

FORMAT = 2
MANIFEST = "manifest.json"
MOUNTS = Path("/proc/self/mountinfo")
_TARGET = re.compile(r"\.\./(images|bases)/([0-9A-Za-z_-]+)")
"""Where a link in ``current`` leads."""


class Manifest(TypedDict):
    """What manifest.json holds, as far as it is read here."""

    digest: str
    base: str
    """Of an image: the base that it was made of."""
    contents: str
    """The hash of the list of its files and their hashes."""
    specification: str
    packages: Mapping[str, str]
    kernel_package: str
    kernel_version: str
    disk_type: str
    """Of an image; a base has none."""


def current(key: str) -> Path | None:
    """The finished folder that this key was last built to, in the first cache that has one."""
    for top in places():
        with contextlib.suppress(OSError):
            target = _TARGET.fullmatch(str((top / "current" / key).readlink())) if _has(top, "current") else None
            if target and _has(top, target[1]) and _is_finished(folder := top / target[1] / target[2]):
                return folder
    return None


def _has(top: Path, name: str) -> bool:
    return is_own(top / name, stat.S_IFDIR)


def _is_finished(folder: Path) -> bool:
    return is_own(folder, stat.S_IFDIR) and is_own(folder / MANIFEST, stat.S_IFREG)


def checked(folder: Path) -> Manifest:
    """A finished folder's manifest. Raises ImageFailed where it cannot be read, or a file is not as it was built."""
    data = _manifest(folder)
    note = cache_root() / "checked" / f"{folder.name}-{os.geteuid()}"
    advice = f"remove {folder} and run `twinbed image build`"
    try:
        state = contents.state(folder)
        if recall(note) == {"right": state}:
            return data
        listed = (folder / contents.LISTING).read_text(errors="surrogateescape")
        if _hash(listed) != data["contents"]:
            raise ImageFailed(f"{folder / contents.LISTING}: is not as it was built", advice=advice)
        if (path := contents.differing(folder, listed)) is not None:
            raise ImageFailed(f"{folder / path}: is not as it was built", advice=advice)
    except (OSError, ValueError, KeyError) as error:
        raise ImageFailed(f"{folder}: cannot be checked: {error}", advice=advice) from None
    with contextlib.suppress(OSError):  # who may not write here looks again each time
        keep(note, {"right": state})
    return data


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        data = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ImageFailed(f"{path}: {error}", advice=f"remove {folder} and run `twinbed image build`") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ImageFailed(f"{path}: not a manifest of format {FORMAT}", advice=f"remove {folder} and build it again")
    return cast(Manifest, data)


def opened(folder: Path) -> Image:
    """The image in a finished folder, whose files are as they were built."""
    return _image(folder, checked(folder))


def _image(folder: Path, data: Manifest) -> Image:
    try:
        return Image(
            digest=data["digest"],
            rootfs=folder / "rootfs",
            disk=folder / f"disk.{data['disk_type']}",
            disk_type=data["disk_type"],
            kernel=folder / "vmlinux",
            initramfs=folder / "initramfs.cpio",
            kernel_version=data["kernel_version"],
            packages=data["packages"],
        )
    except KeyError as error:
        raise ImageFailed(f"{folder / MANIFEST}: no {error}", advice=f"remove {folder} and run `twinbed image build`") from None


def boot_modules(image: Image) -> Sequence[tuple[str, bytes, bool]]:
    """The kernel modules that a guest loads at its start, in their order: file name, content, whether it does without."""
    base = image.rootfs.parents[2] / "bases" / Path(_manifest(image.rootfs.parent)["base"]).name
    if not (is_own(base.parent, stat.S_IFDIR) and _is_finished(base)):
        raise ImageFailed(f"{base}: no finished base of this user's or root's", advice="run `twinbed image build --force`")
    checked(base)
    folder = base / "modules"
    try:
        order = loads((folder / "modules.json").read_text())
        return [(item["name"], (folder / item["name"]).read_bytes(), item["optional"]) for item in order]
    except (OSError, ValueError) as error:
        raise ImageFailed(f"{folder}: {error}", advice="run `twinbed image build --force`") from None


def images() -> Sequence[Image]:
    """Return every finished image, oldest first, without images of older versions of twinbed, which are of no use to this one.
    Files are not checked: who uses an image opens it by its key."""
    manifests = [path for top in places() if _has(top, "images") for path in (top / "images").glob(f"*/{MANIFEST}")]
    found = sorted(filter(lambda path: _is_finished(path.parent), manifests), key=lambda path: path.stat().st_mtime)
    return [_image(path.parent, _manifest(path.parent)) for path in found if not _is_older(path)]


@contextlib.contextmanager
def building(say: Callable[[str], None]) -> Iterator[Path]:
    """An empty folder to build in, on the cache's file system, while nobody else builds. It is removed in any case."""
    top = cache_root()
    try:
        for name in ("images", "bases", "current", "checked", "tmp"):
            cache_folder(name)
        lock = open(lock_file(top / "lock"), "w")  # noqa: SIM115, PTH123  (a descriptor, held by the block below)
    except OSError as error:
        raise ImageFailed(
            f"{error.filename or top}: cannot be written: {error.strerror}",
            advice="set TWINBED_CACHE to a folder that you may write",
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in (top / "tmp").iterdir():
            _remove(left)
        folder = Path(tempfile.mkdtemp(dir=top / "tmp"))
        try:
            yield folder
        finally:
            _remove(folder)


def publish(folder: Path, kind: str, key: str, data: Document) -> Path:
    """Write what the folder holds and the manifest, make the folder durable, give it its final name, and let the key lead to
    it."""
    listed = contents.listing(folder)
    (folder / contents.LISTING).write_text(listed, errors="surrogateescape")
    complete = {"format": FORMAT, "contents": _hash(listed), **data}
    (folder / MANIFEST).write_text(json.dumps(complete, indent=1, sort_keys=True) + "\n")
    run(["sync", "--file-system", str(folder)], limit_s=120)
    final = cache_root() / kind / str(data["digest"])
    if not (final / MANIFEST).is_file():
        folder.chmod(0o755)
        folder.rename(final)
    link = cache_root() / "current" / f"{key}.new"
    link.unlink(missing_ok=True)
    link.symlink_to(Path("..") / kind / final.name)
    link.rename(link.with_name(key))
    return final


def _is_older(path: Path) -> bool:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return int(loads(path.read_bytes()).get("format", FORMAT)) < FORMAT
    return False


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _remove(folder: Path) -> None:
    """Remove a folder, but never through a mount: a builder that was killed may have left the machine's /dev in it."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    if not folder.exists():
        return
    mounted = [line.split()[4] for line in MOUNTS.read_text(errors="surrogateescape").splitlines()]
    inside = [place for place in mounted if Path(place).is_relative_to(folder)]
    if inside:
        raise ImageFailed(f"{folder}: {inside[0]} is mounted in it", advice=f"umount {inside[0]}")
    shutil.rmtree(folder)
