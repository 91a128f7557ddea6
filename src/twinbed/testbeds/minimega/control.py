"""Command and control (``cc``): programs and files of a guest through the client (miniccc) in it.

Commands are asynchronous: minimega queues one and answers with its number; ``cc commands`` counts the responses and ``cc
responses`` holds them. A filter of the whole namespace selects the guest, so filter and command are sent under one lock. A
command stays queued for clients that connect again, so each is deleted once it has been answered.

Source: minimega's manual, "Command and Control API", and the recorded conversation in ``tests/minimega``.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.testbeds.minimega.socket import Answer, CommandSocket, MinimegaError

_FIRST_STEP_S = 0.005
_LAST_STEP_S = 0.2
_PART = re.compile(r"^(?:(\d+)/)?([0-9A-Fa-f-]{36})/(.+):$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Guest:
    """A virtual machine, and the node of the cluster that runs it."""

    name: str
    uuid: str
    node: str


def parts(text: str, only: int = 0) -> dict[tuple[int, str, str], str]:
    """Read ``cc responses``: (command, uuid, file) to content. A file is ``stdout``, ``stderr`` or a file of the guest.

    A line of a file that looks like a heading splits the file, so output that matters is asked for by its command's number. A
    heading without a number belongs to command ``only``."""
    texts: dict[tuple[int, str, str], str] = {}
    heads = list(_PART.finditer(text))
    for head, after in itertools.zip_longest(heads, heads[1:]):
        content = text[head.end() + 1 : after.start() if after else len(text)]
        texts[int(head[1] or only), head[2].lower(), head[3]] = content.removesuffix("\n")
    return texts


class Control:
    """``cc`` of one namespace."""

    def __init__(self, socket: CommandSocket) -> None:
        self._socket = socket
        self._filter = threading.Lock()

    def clients(self) -> frozenset[str]:
        """Return the UUIDs of the guests whose client is connected."""
        return frozenset(row["uuid"].lower() for row in self._socket.ask("cc", "clients").rows)

    def run(self, guest: Guest, *argv: str, limit_s: float) -> Mapping[str, str]:
        """Run a program to its end and return its output by ``stdout`` and ``stderr``. minimega runs the commands of a guest in
        order. A client sends its responses together, every 5 s."""
        words = ("exec", *argv)
        with self._kept(guest, words) as number:
            self._until_responded(guest, number, _what(words), limit_s)
            return self._parts(guest, number)

    @contextlib.contextmanager
    def sent_and_run(self, guest: Guest, file: str, *argv: str) -> Iterator[Callable[[], Mapping[str, str] | None]]:
        """Send a file of minimega's files folder to the guest's, under the same name, and run a program there: a client takes
        commands in order. Yield a function that returns the program's output, None until its response."""
        with self._kept(guest, ("send", file)), self._kept(guest, ("exec", *argv)) as number:

            def output() -> Mapping[str, str] | None:
                return self._parts(guest, number) if self._responded(guest, number) else None

            yield output

    @contextlib.contextmanager
    def _kept(self, guest: Guest, words: tuple[str, ...]) -> Iterator[int]:
        number = self._queued(guest, words)
        try:
            yield number
        finally:
            self._forget(number)

    def _queued(self, guest: Guest, words: tuple[str, ...]) -> int:
        with self._filter:
            self._socket.ask("cc", "filter", f"name={guest.name}")
            try:
                return _number(self._socket.ask("cc", *words, literal=True), guest, _what(words))
            finally:
                self._socket.ask("clear", "cc", "filter")

    def _forget(self, number: int) -> None:
        for kept in ("command", "response"):
            with contextlib.suppress(MinimegaError):  # there may be none
                self._socket.ask("cc", "delete", kept, str(number))

    def _parts(self, guest: Guest, number: int) -> dict[str, str]:
        entry = self._socket.ask("cc", "responses", str(number)).of(guest.node)
        texts = parts(entry.text if entry else "", number)
        return {file: text for (command, uuid, file), text in texts.items() if (command, uuid) == (number, guest.uuid.lower())}

    def _responded(self, guest: Guest, number: int) -> bool:
        answer = self._socket.ask("cc", "commands").of(guest.node)
        row = next((row for row in (answer.rows if answer else ()) if row["id"] == str(number)), None)
        return row is not None and row["responses"] not in ("", "0")

    def _until_responded(self, guest: Guest, number: int, what: str, limit_s: float) -> None:
        deadline, step = time.monotonic() + limit_s, _FIRST_STEP_S
        while not self._responded(guest, number):
            if time.monotonic() > deadline:
                here = "still" if guest.uuid.lower() in self.clients() else "no longer"
                raise LimitExceeded(
                    f"{guest.name}: {what}: no response from its client after {limit_s:g} s; it is {here} connected"
                )
            time.sleep(step)
            step = min(step * 2, _LAST_STEP_S)


def _what(words: tuple[str, ...]) -> str:
    return f"cc {' '.join(words)}"[:200]


def _number(answer: Answer, guest: Guest, what: str) -> int:
    """Return the number that the guest's node gave a command: each node has its own numbers."""
    entry = answer.of(guest.node)
    if entry is None or not isinstance(entry.data, int):
        raise HostError(f"{guest.name}: {what}: minimega gave the command no number but {entry and entry.data!r}")
    return entry.data
