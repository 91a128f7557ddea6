"""A run's own namespace: made, noted on this machine in case its controller dies, and cleared. Nothing else is touched.

minimega keeps a namespace after its maker has died. The note is a file that the controller locks: a note without a lock belongs
to a dead run, and ``twinbed sweep`` clears its namespace.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.hosts import scratch
from twinbed.hosts.error import HostError
from twinbed.model.json import loads
from twinbed.testbeds.minimega.head import Head, open_head
from twinbed.testbeds.minimega.socket import CommandSocket, MinimegaError

_SUFFIX = ".minimega"


@dataclass(frozen=True, slots=True)
class Space:
    id: str
    name: str
    head: Head
    socket: CommandSocket
    """Its commands go to this namespace."""

    def put(self, file: str, content: bytes) -> None:
        """Put a file into minimega's files folder. Raises HostError if minimega does not list it: it uses another folder."""
        self.head.put(file, content)
        if all(row["name"] != file for row in self.head.socket.ask("file", "list").rows):
            self.head.remove(file)
            raise HostError(
                f"minimega: `file list` lacks {self.head.file(file)}, which was just put there",
                advice="start minimega without -filepath: its files folder must be `files` in base",
            )

    @property
    def probe(self) -> str:
        """Return the name of twinbed's program in minimega's files folder and in the guests'."""
        return f"{self.name}-probe"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A namespace whose controller has died."""

    note: Path
    base: str
    destination: str | None
    name: str

    @property
    def what(self) -> str:
        return f"minimega namespace {self.name} of {self.destination or 'this machine'} ({self.base})"

    def remove(self) -> None:
        """Clear the namespace and remove the note. If this machine's minimega has ended, its namespaces ended too."""
        with open_head(self.base, self.destination) as head:
            if self.destination is not None or head.socket.listened_to():
                clear(head, self.name)
        self.note.unlink(missing_ok=True)


@contextlib.contextmanager
def own_space(head: Head, prefix: str) -> Iterator[Space]:
    identity = secrets.token_hex(5)
    name = f"{prefix}_{identity}"
    with _noted(head, identity, name) as note:
        try:
            make(head, name)
            yield Space(identity, name, head, head.socket.within(name))
        finally:
            clear(head, name)
            note.unlink(missing_ok=True)


def make(head: Head, name: str) -> None:
    """Make a namespace without making it everybody's active one; if minimega cannot, make the earlier one active again."""
    with contextlib.suppress(MinimegaError):  # some releases make none from a prefix
        head.socket.within(name).ask("vm", "info")
    if name in names(head):
        return
    active = next((row["namespace"] for row in head.socket.ask("namespace").rows if row["active"] == "true"), None)
    head.socket.ask("namespace", name)
    if active is not None:
        head.socket.ask("namespace", active)
    if name not in names(head):
        raise HostError(f"minimega: namespace {name} was not made", advice="minimega -e namespace")


def names(head: Head) -> frozenset[str]:
    return frozenset(row["namespace"] for row in head.socket.ask("namespace").rows)


def clear(head: Head, name: str) -> None:
    """End the namespace with everything in it, and remove its files. Raises HostError if it stays."""
    if name in names(head):
        socket = head.socket.within(name)
        for words in (("clear", "capture"), ("vm", "kill", "all"), ("vm", "flush")):
            with contextlib.suppress(MinimegaError):  # nothing to end; a leftover is reported below
                socket.ask(*words)
        head.socket.ask("clear", "namespace", name)
        if name in names(head):
            raise HostError(f"minimega: namespace {name} still exists after it was cleared", advice="twinbed sweep")
    several = nodes(head.socket) > 1
    for row in head.socket.ask("file", "list").rows:
        if row["name"] == name or row["name"].startswith(f"{name}-"):
            head.socket.ask("file", "delete", row["name"])
            if several:  # a node copies the files of its guests, and has its own folder of responses
                with contextlib.suppress(MinimegaError):  # from each node without the file
                    head.socket.ask("mesh", "send", "all", "file", "delete", row["name"])


def nodes(socket: CommandSocket) -> int:
    """Return the number of nodes in the mesh."""
    return max((int(row["size"]) for row in socket.ask("mesh", "status").rows), default=1)


@contextlib.contextmanager
def _noted(head: Head, identity: str, name: str) -> Iterator[Path]:
    note = scratch.root() / f"{identity}{_SUFFIX}"
    partial = note.with_suffix(".new")
    file = os.open(partial, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(file, json.dumps({"base": head.base, "destination": head.destination, "name": name}).encode())
        partial.rename(note)  # locked before anybody can see it
        yield note
    finally:
        os.close(file)


def leftovers() -> Sequence[Leftover]:
    """Return the namespaces that no living process holds."""
    leftovers = []
    for note in sorted(scratch.root().glob(f"*{_SUFFIX}")):
        with contextlib.suppress(FileNotFoundError), note.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            leftovers.append(Leftover(note, **loads(file.read())))
    return leftovers
