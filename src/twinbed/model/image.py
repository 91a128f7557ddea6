"""The image that every testbed runs, as data; ``image`` builds and finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


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


NO_IMAGE = Image("", Path("/nowhere"), Path("/nowhere"), "", Path("/nowhere"), Path("/nowhere"), "", {})
"""For studies whose hosts are all functions of this process."""
