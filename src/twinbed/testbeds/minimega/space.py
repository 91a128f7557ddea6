"""A namespace of a run's own: made, noted on this machine for when its controller dies, and cleared; nothing else is touched.

minimega keeps a namespace whatever becomes of who made it.  The note is a file that the controller holds a lock on: one
without a holder belongs to a dead run, and ``twinbed sweep`` clears the namespace that it names.
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
        """Put a file into minimega's files folder, where minimega sees it. Raises HostError where it does not: its folder is
        another."""
        self.head.put(file, content)
        if all(row["name"] != file for row in self.head.socket.ask("file", "list").rows):
            self.head.remove(file)
            raise HostError(
                f"minimega: `file list` does not have {self.head.file(file)}, which was just put there: is its files folder"
                " another? It must be `files` in base, which it is unless minimega was started with -filepath"
            )

    @property
    def probe(self) -> str:
        """The name that twinbed's program has in minimega's files folder, and in the guests'."""
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
        """Where this machine's minimega does not run any more, its namespaces went with it, and only the note is left."""
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
    """Made without becoming the active namespace, which is everybody's, where minimega allows; else the one that was active is
    made active again."""
    with contextlib.suppress(MinimegaError):  # where a prefix makes none
        head.socket.within(name).ask("vm", "info")
    if name in names(head):
        return
    active = next((row["namespace"] for row in head.socket.ask("namespace").rows if row["active"] == "true"), None)
    head.socket.ask("namespace", name)
    if active is not None:
        head.socket.ask("namespace", active)
    if name not in names(head):
        raise HostError(f"minimega: namespace {name} was not made")


def names(head: Head) -> frozenset[str]:
    return frozenset(row["namespace"] for row in head.socket.ask("namespace").rows)


def clear(head: Head, name: str) -> None:
    """End the namespace and everything in it, and the files that were put there for it. Raises HostError if it stays."""
    if name in names(head):
        socket = head.socket.within(name)
        for words in (("clear", "capture"), ("vm", "kill", "all"), ("vm", "flush")):
            with contextlib.suppress(MinimegaError):  # nothing to end; what remains is said below
                socket.ask(*words)
        head.socket.ask("clear", "namespace", name)
        if name in names(head):
            raise HostError(f"minimega: namespace {name} is still there after it was cleared")
    several = nodes(head.socket) > 1
    for row in head.socket.ask("file", "list").rows:
        if row["name"] == name or row["name"].startswith(f"{name}-"):
            head.socket.ask("file", "delete", row["name"])
            if several:  # a node has copied what was sent to its guests, and has its own folder of responses
                with contextlib.suppress(MinimegaError):  # from each that has not
                    head.socket.ask("mesh", "send", "all", "file", "delete", row["name"])


def nodes(socket: CommandSocket) -> int:
    """How many nodes there are in the mesh."""
    return max((int(row["size"]) for row in socket.ask("mesh", "status").rows), default=1)


@contextlib.contextmanager
def _noted(head: Head, identity: str, name: str) -> Iterator[Path]:
    note = scratch.root() / f"{identity}{_SUFFIX}"
    partial = note.with_suffix(".new")
    file = os.open(partial, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(file, json.dumps({"base": head.base, "destination": head.destination, "name": name}).encode())
        partial.rename(note)  # held before it can be seen
        yield note
    finally:
        os.close(file)


def leftovers() -> Sequence[Leftover]:
    """Namespaces that no living process holds."""
    leftovers = []
    for note in sorted(scratch.root().glob(f"*{_SUFFIX}")):
        with contextlib.suppress(FileNotFoundError), note.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            leftovers.append(Leftover(note, **loads(file.read())))
    return leftovers
