"""The image that every testbed runs, as data; ``image`` builds and finds it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONTAINER_IMAGE = "/image"
"""The folder of a container image in the root file system (crates/probe/src/system_folders.rs repeats it)."""


@dataclass(frozen=True, slots=True)
class Added:
    """The software that a workload adds to the image of all testbeds."""

    packages: tuple[str, ...] = ()
    """Names of Debian packages."""
    image: str | None = None
    """The source of a container image, whose root the workload's programs run in: see ``readers.container_image``."""
    image_digest: str | None = None
    """The digest of its content."""

    @property
    def key(self) -> str:
        """Return a hash of what is asked for, whatever the packages' order and the image's path; empty if that is nothing."""
        text = json.dumps([sorted(set(self.packages)), self.image_digest])
        return hashlib.sha256(text.encode()).hexdigest()[:16] if self else ""

    def __bool__(self) -> bool:
        return bool(self.packages or self.image)

    def __str__(self) -> str:
        parts = [f"packages: {', '.join(self.packages)}"] if self.packages else []
        return "; ".join([*parts, *([f"image: {self.image}"] if self.image else [])])


NOTHING = Added()


@dataclass(frozen=True, slots=True)
class Image:
    """A finished image: one root file system, as a folder and as a disk, and what a guest boots."""

    digest: str
    rootfs: Path
    disk: Path
    disk_type: str
    kernel: Path
    initramfs: Path
    kernel_version: str
    packages: Mapping[str, str]
    """Debian package -> version."""
    layer: str = ""
    """The digest of its base with what a workload added; empty for the image that all studies share."""
    added: str = ""
    """The software that was added, for readers."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that its container image gives to programs."""


NO_IMAGE = Image("", Path("/nowhere"), Path("/nowhere"), "", Path("/nowhere"), Path("/nowhere"), "", {})
"""For studies whose hosts are all functions of this process."""
