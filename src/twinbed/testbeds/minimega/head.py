"""The node whose minimega is spoken to: this machine, or another through SSH."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twinbed.hosts import process, ssh_forward
from twinbed.hosts.error import HostError
from twinbed.hosts.owned import owned
from twinbed.testbeds.minimega.socket import CommandSocket

SOCKET = "minimega"
FILES = "files"


@dataclass(frozen=True, slots=True)
class Head:
    """``destination`` is for ssh; None is this machine."""

    base: str
    destination: str | None
    socket: CommandSocket

    @property
    def node(self) -> str:
        """minimega's name of this node. Raises HostError where it does not answer."""
        return self.socket.ask("version").first.host

    def file(self, name: str) -> str:
        """Path of a file in minimega's files folder."""
        return f"{self.base}/{FILES}/{name}"

    def put(self, name: str, content: bytes) -> None:
        """Put a file into minimega's files folder, as a program. A client gives what it is sent the same permissions."""
        if self.destination:
            ssh_forward.put(self.destination, self.file(name), content)
            return
        path = Path(self.file(name))
        try:
            path.write_bytes(content)
            path.chmod(0o755)
        except OSError as error:
            raise HostError(
                f"minimega: {path} cannot be written: {error.strerror}; run as the user that minimega runs as"
            ) from None

    def remove(self, name: str) -> None:
        """A file that was put."""
        if self.destination:
            ssh_forward.remove(self.destination, self.file(name))
        else:
            Path(self.file(name)).unlink(missing_ok=True)

    def get(self, path: str, to: Path) -> None:
        """Copy a file of this node. Raises HostError."""
        if self.destination:
            ssh_forward.get(self.destination, path, to)
            return
        try:
            shutil.copyfile(path, to)
        except OSError as error:
            raise HostError(f"minimega: {path} cannot be copied to {to}: {error.strerror or error}") from None

    def run(self, node: str, script: str) -> str:
        """What a shell script without dollar signs prints on a node: on this one, through SSH, or by minimega's own ``shell``,
        which expands variables itself. Raises HostError where it fails."""
        if node != self.node:
            return self.socket.ask("mesh", "send", node, "shell", "sh", "-c", script).first.text
        if self.destination:
            return ssh_forward.run(self.destination, script)
        try:
            return process.run(["sh", "-c", script]).text
        except process.ProcessFailed as error:
            raise HostError(f"{node}: {error}") from None

    def digest(self, path: str) -> str | None:
        """SHA-256 of a file; None where it cannot be read."""
        if self.destination:
            return ssh_forward.digest(self.destination, path)
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return None

    @contextlib.contextmanager
    def near(self, remote: str) -> Iterator[Path]:
        """A Unix socket of the head node as one of this machine."""
        if self.destination is None:
            yield Path(remote)
            return
        with ssh_forward.forwarded(self.destination, remote) as local:
            yield local


@contextlib.contextmanager
def open_head(base: str, destination: str | None) -> Iterator[Head]:
    """Raises HostError where there is no way to it, or others than root and this user can put their own socket there."""
    if destination is None:
        yield Head(base, None, CommandSocket(owned(Path(base), "set base to the folder of root's minimega") / SOCKET))
        return
    with ssh_forward.forwarded(destination, f"{base}/{SOCKET}") as local:
        yield Head(base, destination, CommandSocket(local))
