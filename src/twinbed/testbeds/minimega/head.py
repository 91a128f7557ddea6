"""The head node, whose minimega twinbed talks to: this machine, or another over SSH."""

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
    """``destination``: where ssh connects; None: this machine."""

    base: str
    destination: str | None
    socket: CommandSocket

    @property
    def node(self) -> str:
        """Return minimega's name for this node. Raises HostError if minimega does not answer."""
        return self.socket.ask("version").first.host

    def file(self, name: str) -> str:
        """Return the path of a file in minimega's files folder."""
        return f"{self.base}/{FILES}/{name}"

    def put(self, name: str, content: bytes) -> None:
        """Put a program into minimega's files folder. A client keeps the permissions of files that it gets."""
        if self.destination:
            ssh_forward.put(self.destination, self.file(name), content)
            return
        path = Path(self.file(name))
        try:
            path.write_bytes(content)
            path.chmod(0o755)
        except OSError as error:
            advice = "run twinbed as the user that minimega runs as"
            raise HostError(f"minimega: {path} cannot be written: {error.strerror}", advice=advice) from None

    def remove(self, name: str) -> None:
        """Remove a file that was put there."""
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
        """Run a shell script on a node and return its output: here, over SSH, or by minimega's ``shell``, which expands
        variables itself: the script must have no dollar signs. Raises HostError if it fails."""
        if node != self.node:
            return self.socket.ask("mesh", "send", node, "shell", "sh", "-c", script).first.text
        if self.destination:
            return ssh_forward.run(self.destination, script)
        try:
            return process.run(["sh", "-c", script]).text
        except process.ProcessFailed as error:
            raise HostError(f"{node}: {error}") from None

    def digest(self, path: str) -> str | None:
        """Return the SHA-256 of a file; None if it cannot be read."""
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
        """Yield a Unix socket of the head node as a path on this machine."""
        if self.destination is None:
            yield Path(remote)
            return
        with ssh_forward.forwarded(self.destination, remote) as local:
            yield local


@contextlib.contextmanager
def open_head(base: str, destination: str | None) -> Iterator[Head]:
    """Connect to a head node. Raises HostError if it cannot be reached, or if another user could replace the socket."""
    if destination is None:
        yield Head(base, None, CommandSocket(owned(Path(base), "set base to the folder of root's minimega") / SOCKET))
        return
    with ssh_forward.forwarded(destination, f"{base}/{SOCKET}") as local:
        yield Head(base, destination, CommandSocket(local))
