"""The archive that a guest's kernel unpacks into memory before it has a disk: newc cpio, uncompressed.

Source of the format: the kernel's Documentation/driver-api/early-userspace/buffer-format.rst, and cpio(5).
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from twinbed.image.modules import module_name, needed_by


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the archive. ``mode`` includes the type; ``device`` is (major, minor) of a device node."""

    path: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(path: str) -> Entry:
    return Entry(path, stat.S_IFDIR | 0o755)


def file(path: str, content: bytes, permissions: int = 0o644) -> Entry:
    return Entry(path, stat.S_IFREG | permissions, content)


def archive(entries: Iterable[Entry]) -> bytes:
    """Return the entries as a newc archive, in the given order; owners are root, times are 0. Parents must come first."""
    out = bytearray()
    for number, entry in enumerate(entries, 1):
        _append(out, entry, number)
    _append(out, Entry("TRAILER!!!", 0), 0)
    return bytes(out)


def _append(out: bytearray, entry: Entry, inode: int) -> None:
    name = entry.path.lstrip("/").encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, *entry.device, len(name), 0)
    out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
    out += bytes(-len(out) % 4)
    out += entry.content
    out += bytes(-len(out) % 4)


def guest(probe: bytes, modules: Sequence[tuple[str, bytes, bool]], disk_type: str) -> bytes:
    """Return a guest's archive: the probe as /init, and the modules (file name, content, optional) in loading order.

    Optional modules are listed with those that need them, so that a guest loads only the modules of its NIC."""
    users = needed_by({name: content for name, content, optional in modules if optional})
    lines = [
        " ".join([f"/modules/{name}", *(["optional", ",".join(users[module_name(name)])] if optional else [])]) + "\n"
        for name, _, optional in modules
    ]
    names = [PurePosixPath(name).name for name, _, _ in modules]
    if len(set(names)) != len(names):
        raise ValueError(f"module names must be unique: {sorted(names)}")
    return archive(
        [
            directory("dev"),
            Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
            directory("proc"),
            directory("sys"),
            directory("modules"),
            file("init", probe, 0o755),
            file("modules.list", "".join(lines).encode()),
            file("rootfs.type", f"{disk_type}\n".encode()),
            *(file(f"modules/{name}", content) for name, content, _ in modules),
        ]
    )
