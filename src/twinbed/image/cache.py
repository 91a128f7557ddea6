"""The cache of images: finished ones, and how a new one gets there complete or not at all.

The cache's folder (``hosts.cache``) holds

    images/<digest>/   rootfs/ disk.erofs vmlinux initramfs.cpio contents manifest.json
    bases/<digest>/    the same without the probe: rootfs/ vmlinux modules/ contents manifest.json
    current/<key>      a link to the folder that a specification was last built to
    checked/<digest>-<user>   the state of a finished folder when its files last matched its ``contents``
    tmp/               builds under way; removed by the next build
    lock, build.log

A finished folder never changes, since running containers and guests use it. Each time it is opened, its files are compared
with ``contents``: a line ``MODE SHA256 PATH`` for each file, whose hash is in the manifest. Reading every byte takes a second,
so a good result is kept with the files' times of change (ctime), which no program can set.

Root builds in root's own cache. A user finds images in the user's own cache first, then in root's. No link in a cache is
followed: the target of ``current/<key>`` is read, and must be one of the cache's own folders.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import NotRequired, TypedDict, cast

from twinbed.hosts.cache import cache_root, keep, places, recall
from twinbed.hosts.cache import folder as cache_folder
from twinbed.hosts.owned import is_own, lock_file
from twinbed.hosts.process import run
from twinbed.image import room
from twinbed.image.failure import ImageFailed
from twinbed.model.image import Image
from twinbed.model.json import Document, loads

LISTING = "contents"
_UNREAD = "-"
_TOP = frozenset({LISTING, "manifest.json"})


def listing(folder: Path) -> str:
    """Return a line ``MODE SHA256 PATH`` for each file below ``folder`` except its own two, in the order of paths.

    MODE is octal (stat(2)). The hash of a symbolic link is of its target, that of a folder or a device of nothing; a file that
    this user may not read has none (``-``)."""
    files = _files(folder)
    with ThreadPoolExecutor() as pool:
        hashes = pool.map(lambda item: _file_hash(folder / item[0], item[1]), files)
        return "".join(f"{status.st_mode:06o} {sha256} {path}\n" for (path, status), sha256 in zip(files, hashes, strict=True))


def differing(folder: Path, expected: str) -> str | None:
    """Return the first path whose file differs from a listing: changed, missing or extra. None if all files match.

    Files that this user may not read are of no use to this user's labs, and are not checked."""
    was, now = (_by_path(text) for text in (expected, listing(folder)))
    unread = {path for path, file in now.items() if file.endswith(f" {_UNREAD}")}

    def is_read(path: str) -> bool:
        return path not in unread and unread.isdisjoint(str(parent) for parent in PurePosixPath(path).parents)

    return next((path for path in sorted(was | now) if was.get(path) != now.get(path) and is_read(path)), None)


def state(folder: Path) -> str:
    """Return a hash of the stat(2) of every file below ``folder``."""
    lines = [
        f"{status.st_mode} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {path}\n"
        for path, status in _files(folder)
    ]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _files(folder: Path) -> list[tuple[str, os.stat_result]]:
    """Return every file below a folder in the order of paths. Images have 7,000, and every run checks them all."""
    files: list[tuple[str, os.stat_result]] = []
    folders = [(str(folder), "")]
    while folders:
        place, prefix = folders.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                path = prefix + entry.name
                if path in _TOP:
                    continue
                files.append((path, entry.stat(follow_symlinks=False)))
                if entry.is_dir(follow_symlinks=False) and os.access(entry.path, os.R_OK | os.X_OK):
                    folders.append((entry.path, f"{path}/"))
    files.sort()
    return files


def _file_hash(path: Path, status: os.stat_result) -> str:
    if stat.S_ISREG(status.st_mode):
        try:
            with path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except PermissionError:
            return _UNREAD
    if stat.S_ISDIR(status.st_mode) and not os.access(path, os.R_OK | os.X_OK):
        return _UNREAD
    content = os.fsencode(path.readlink()) if stat.S_ISLNK(status.st_mode) else b""
    return hashlib.sha256(content).hexdigest()


def _by_path(text: str) -> dict[str, str]:
    lines = (line.split(" ", 2) for line in text.splitlines())
    return {path: f"{mode} {sha256}" for mode, sha256, path in lines}


FORMAT = 2
MANIFEST = "manifest.json"
MOUNTS = Path("/proc/self/mountinfo")
_TARGET = re.compile(r"\.\./(images|bases)/([0-9A-Za-z_-]+)")
"""The target of a link in ``current``."""


class Manifest(TypedDict):
    """The fields of manifest.json that are read here."""

    digest: str
    base: str
    """The base that an image was made of."""
    contents: str
    """The hash of the list of its files and their hashes."""
    specification: str
    packages: Mapping[str, str]
    kernel_package: str
    kernel_version: str
    disk_type: str
    """Only an image has it."""
    layer: NotRequired[str]
    added: NotRequired[str]
    environment: NotRequired[Mapping[str, str]]
    """The software of a workload (``image/layer.py``)."""


def current(key: str) -> Path | None:
    """Return the finished folder that this key was last built to, in the first cache that has one."""
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
    """Return a finished folder's manifest. Raises ImageFailed if it cannot be read, or if a file has changed."""
    data = _manifest(folder)
    note = cache_root() / "checked" / f"{folder.name}-{os.geteuid()}"
    advice = f"rm -r {folder}; twinbed image build"
    try:
        actual = state(folder)
        if recall(note) == {"right": actual}:
            return data
        listed = (folder / LISTING).read_text(errors="surrogateescape")
        if _hash(listed) != data["contents"]:
            raise ImageFailed(f"{folder / LISTING}: it changed after the build", advice=advice)
        if (path := differing(folder, listed)) is not None:
            raise ImageFailed(f"{folder / path}: it changed after the build", advice=advice)
    except (OSError, ValueError, KeyError) as error:
        raise ImageFailed(f"{folder}: it cannot be checked: {error}", advice=advice) from None
    with contextlib.suppress(OSError):  # a user who may not write here checks again each time
        keep(note, {"right": actual})
    return data


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        data = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ImageFailed(f"{path}: {error}", advice=f"rm -r {folder}; twinbed image build") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ImageFailed(f"{path}: it is not a manifest of format {FORMAT}", advice=f"rm -r {folder}; twinbed image build")
    return cast(Manifest, data)


def opened(folder: Path) -> Image:
    """Return the image in a finished folder after a check of its files. It is not removed as long as this process lives."""
    room.hold(folder)
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
            layer=data.get("layer", ""),
            added=data.get("added", ""),
            environment=data.get("environment", {}),
        )
    except KeyError as error:
        raise ImageFailed(f"{folder / MANIFEST}: it lacks {error}", advice=f"rm -r {folder}; twinbed image build") from None


def boot_modules(image: Image) -> Sequence[tuple[str, bytes, bool]]:
    """Return the kernel modules that a guest loads at its start, in order: file name, content, whether it is optional."""
    base = image.rootfs.parents[2] / "bases" / Path(_manifest(image.rootfs.parent)["base"]).name
    if not (is_own(base.parent, stat.S_IFDIR) and _is_finished(base)):
        raise ImageFailed(f"{base}: it is no finished base of root or this user", advice="twinbed image build --force")
    checked(base)
    folder = base / "modules"
    try:
        order = loads((folder / "modules.json").read_text())
        return [(item["name"], (folder / item["name"]).read_bytes(), item["optional"]) for item in order]
    except (OSError, ValueError) as error:
        raise ImageFailed(f"{folder}: {error}", advice="twinbed image build --force") from None


def images() -> Sequence[Image]:
    """Return every finished image, oldest first, without images of older versions of twinbed, which this one cannot use.

    Files are not checked: an image is opened by its key before use."""
    manifests = [path for top in places() if _has(top, "images") for path in (top / "images").glob(f"*/{MANIFEST}")]
    finished = sorted(filter(lambda path: _is_finished(path.parent), manifests), key=lambda path: path.stat().st_mtime)
    return [_image(path.parent, _manifest(path.parent)) for path in finished if not _is_older(path)]


@contextlib.contextmanager
def building(say: Callable[[str], None]) -> Iterator[Path]:
    """Yield an empty folder to build in, on the cache's file system, while nobody else builds. It is always removed."""
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
    """Write contents and manifest, sync the folder, give it its final name, and let the key lead to it."""
    listed = listing(folder)
    (folder / LISTING).write_text(listed, errors="surrogateescape")
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
    """Remove a folder, but never through a mount: a killed builder may have left the machine's /dev in it."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    if not folder.exists():
        return
    mounted = [line.split()[4] for line in MOUNTS.read_text(errors="surrogateescape").splitlines()]
    inside = [place for place in mounted if Path(place).is_relative_to(folder)]
    if inside:
        raise ImageFailed(f"{folder}: {inside[0]} is mounted in it", advice=f"umount {inside[0]}")
    shutil.rmtree(folder)
