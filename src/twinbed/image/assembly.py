"""Finds or builds the image: the base (Debian packages, kernel), what a workload adds, and this installation's probe.

A new probe makes a new image of the same base in seconds, since unchanged files are hard links.
"""

from __future__ import annotations

import hashlib
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from twinbed.hosts.cache import cache_root
from twinbed.hosts.process import run
from twinbed.image import base, cache, initramfs, layer, room
from twinbed.image.failure import ImageFailed
from twinbed.image.probe import MOUNTED_AT, probe_path
from twinbed.image.specification import TWINBED, Specification
from twinbed.model.image import CONTAINER_IMAGE, NOTHING, Added, Image
from twinbed.model.json import loads

DISK_TYPE = "erofs"


def find(spec: Specification = TWINBED, added: Added = NOTHING) -> Image | None:
    """Return the image of this specification with this installation's probe; None if it has not been built."""
    key = _key(spec, _hash(probe_path()), added)
    folder = cache.current(key) if key else None
    return cache.opened(folder) if folder else None


def build(
    *, force: bool = False, say: Callable[[str], None] = lambda _: None, spec: Specification = TWINBED, added: Added = NOTHING
) -> Image:
    """Return the image, built if there is none; ``force`` fetches its packages again. ``say`` gets a line at each step.

    Raises ImageFailed, and then leaves nothing but ``build.log``."""
    if not force and (image := find(spec, added)):
        return image
    started = time.monotonic()

    def say_when(what: str) -> None:
        say(f"[{time.monotonic() - started:5.1f} s] {what}")

    try:
        with cache.building(say_when) as work:
            if not force and (image := find(spec, added)):
                return image
            base.require_tools(added)
            finished = base.build(work / "base", spec, say_when, force=force and not added)
            if added:
                finished = layer.build(work / "layer", finished, added, spec, say_when, force=force)
            image = _with_probe(work / "image", finished, spec, added, say_when)
            room.make(say_when)
    except OSError as error:
        raise ImageFailed(
            f"{error.filename or cache_root()}: {error.strerror}",
            advice="make that place writable, or set TWINBED_CACHE to a folder on another disk",
        ) from error
    say_when(f"image {image.digest} is ready")
    return image


def _with_probe(folder: Path, base_folder: Path, spec: Specification, added: Added, say: Callable[[str], None]) -> Image:
    probe = probe_path()
    probe_sha256 = _hash(probe)
    built = cache.checked(base_folder)
    digest = hashlib.sha256(f"{built['digest']} {probe_sha256}".encode()).hexdigest()[:16]
    say("putting the probe in, writing the disk")
    folder.mkdir()
    rootfs = folder / "rootfs"
    run(["cp", "--archive", "--link", str(base_folder / "rootfs"), str(rootfs)], limit_s=120)
    target = rootfs / MOUNTED_AT.lstrip("/")
    shutil.copyfile(probe, target)
    target.chmod(0o755)
    disk = folder / f"disk.{DISK_TYPE}"
    marker = str(uuid.uuid5(uuid.NAMESPACE_OID, digest))
    # Python and make compare times of a container image's files.
    times = ("--preserve-mtime",) if (rootfs / CONTAINER_IMAGE.lstrip("/")).is_dir() else ("-T", "0")
    run(["mkfs.erofs", *times, "-U", marker, str(disk), str(rootfs)], limit_s=300)
    (folder / "vmlinux").hardlink_to(base_folder / "vmlinux")
    order = loads((base_folder / "modules/modules.json").read_text())
    loaded = [(item["name"], (base_folder / "modules" / item["name"]).read_bytes(), item["optional"]) for item in order]
    (folder / "initramfs.cpio").write_bytes(initramfs.guest(probe.read_bytes(), loaded, DISK_TYPE))
    final = cache.publish(
        folder,
        "images",
        _key(spec, probe_sha256, added) or "",
        {
            **{name: built[name] for name in ("layer", "added", "environment") if name in built},
            "digest": digest,
            "base": built["digest"],
            "specification": built["specification"],
            "packages": built["packages"],
            "kernel_package": built["kernel_package"],
            "kernel_version": built["kernel_version"],
            "disk_type": DISK_TYPE,
            "probe": probe_sha256,
        },
    )
    return cache.opened(final)


def _key(spec: Specification, probe_sha256: str, added: Added) -> str | None:
    """Return the image's key; None if something is added to a base that has not been built."""
    if not added:
        return f"image-{spec.key}-{probe_sha256[:16]}"
    below = cache.current(f"base-{spec.key}")
    return f"{layer.key(below.name, added)}-{probe_sha256[:16]}" if below else None


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
