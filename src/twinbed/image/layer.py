"""A base with the software that a workload adds: Debian packages in its root, and a container image in a folder of it.

It is a base of its own, so that containers, guests and hosts over SSH get it as they get the image. Unchanged files are hard
links. A guest finds the software on its disk, not in its memory. The packages of the day are chosen once for each request; they
stay until the base is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from twinbed.contracts.command import Command
from twinbed.hosts.process import run
from twinbed.image import base, cache, debian
from twinbed.image.failure import ImageFailed
from twinbed.image.specification import Specification
from twinbed.image.unpacking import place, unpack
from twinbed.model.image import CONTAINER_IMAGE, Added, Image
from twinbed.model.json import Document
from twinbed.readers import container_image
from twinbed.readers.container_image import Unreadable

LAYER_FILE = "/etc/twinbed-layer"
"""The file in the root file system with the layer's digest, so that each host can be asked for it."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The programs' default (crates/probe/src/command.rs)."""
_FILES = ("rootfs", "modules", "vmlinux")


BUILDER = 2
"""Raise it when the builder makes another layer of the same software."""


def key(base_digest: str, added: Added) -> str:
    return f"layer{BUILDER}-{base_digest}-{added.key}"


def build(folder: Path, below: Path, added: Added, spec: Specification, say: Callable[[str], None], *, force: bool) -> Path:
    """Return the finished base with what is added, built in ``folder`` if there is none, or with ``force``."""
    known_as = key(below.name, added)
    if not force and (finished := cache.current(known_as)):
        return finished
    manifest = cache.checked(below)
    folder.mkdir()
    run(["cp", "--archive", "--link", *(str(below / name) for name in _FILES), str(folder)], limit_s=120)
    rootfs = folder / "rootfs"
    packages = dict(manifest["packages"])
    hashes: Document = {}
    if added.packages:
        apt = debian.Apt.of(folder / "apt", rootfs, spec, packages)
        files = apt.fetch(added.packages, say)
        say(f"unpacking {len(files)} packages")
        unpacked = debian.unpack(files, rootfs, spec)
        packages |= {name: version for name, (version, _) in unpacked.items()}
        hashes = {name: [version, sha256] for name, (version, sha256) in unpacked.items()}
        run(["rm", "-r", str(folder / "apt")])
    environment: Document = {}
    if added.image:
        say(f"unpacking {added.image}")
        try:
            with container_image.opened(added.image) as image:
                if image.digest != added.image_digest:
                    raise Unreadable(f"it has changed: its digest is {image.digest}, not {added.image_digest}")
                unpack(image, rootfs / CONTAINER_IMAGE.lstrip("/"))
                environment = dict(image.environment)
        except Unreadable as error:
            raise ImageFailed(f"image: {added.image}: {error}") from None
    base.take_privileges(rootfs)
    base.only_root_writes(rootfs)
    identity = json.dumps([BUILDER, manifest["digest"], hashes, added.image_digest], sort_keys=True)
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    (rootfs / LAYER_FILE.lstrip("/")).write_text(f"{digest}\n")
    return cache.publish(
        folder,
        "bases",
        known_as,
        {
            **{name: manifest[name] for name in ("specification", "kernel_package", "kernel_version")},
            "digest": digest,
            "packages": packages,
            "layer": digest,
            "added": str(added),
            "environment": environment,
        },
    )


def has_program(image: Image, program: str, command: Command) -> bool:
    """Return whether an image has a program of a workload, by path or by name in the PATH that it gets."""
    top = image.rootfs / (command.root or "").lstrip("/")
    variables = {"PATH": _PATH, **(image.environment if command.root else {}), **command.env}
    folders = [""] if program.startswith("/") else variables["PATH"].split(":")
    return any(_is_there(top, f"{folder}/{program}") for folder in folders)


def _is_there(top: Path, name: str) -> bool:
    try:
        return os.path.lexists(place(top, name))
    except (OSError, Unreadable):
        return False
