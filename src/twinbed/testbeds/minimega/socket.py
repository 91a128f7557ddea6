"""minimega's command socket: a Unix socket that takes one JSON object per command and returns JSON objects.

Neither side sends a length or a separator. An answer ends with the first object whose ``More`` is not true. Each object has
``Resp``: one entry for each node of the cluster that answered. An entry with an ``Error`` makes the whole command an error
here. A connection serves one command, so that an abandoned command leaves nothing for the next.

Source: minimega's manual, "The command socket", and the recorded conversation in ``tests/minimega``.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from twinbed.hosts.error import HostError, HostLost, LimitExceeded
from twinbed.model.json import Document, Json, documents, loads

COMMAND_LIMIT_S = 60.0
_READ_BYTES = 1 << 16
MOST_ANSWER_BYTES = 16 << 20
MOST_ANSWER_VALUES = 200_000
"""Objects and lists of one answer. Each takes at least a hundred bytes of memory, however short its text is."""
_QUOTED = re.compile(r"""[\s"'\\#]|^$""")
"""Arguments that minimega's command line would split or misread without quotes."""


class _Resp(TypedDict, total=False):
    Host: str
    Response: str | None
    Error: str | None
    Header: Sequence[str] | None
    Tabular: Sequence[Sequence[str]] | None
    Data: Json


class Part(TypedDict, total=False):
    """One object of an answer."""

    Resp: Sequence[_Resp] | None
    More: bool
    Status: str


class MinimegaError(HostError):
    """minimega refused a command; the message has the command and each node's error."""


class Row(dict[str, str]):
    """A row of a table, by column. Raises HostError for a column that the table lacks."""

    def __missing__(self, column: str) -> str:
        raise HostError(f"minimega: a table has no column {column!r}; it has {', '.join(self) or 'none'}")


@dataclass(frozen=True, slots=True)
class Entry:
    """The answer of one node."""

    host: str
    text: str
    rows: tuple[Row, ...]
    data: Json


@dataclass(frozen=True, slots=True)
class Answer:
    entries: tuple[Entry, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return the rows of all nodes, with the node's name in column ``host``."""
        return tuple(Row({"host": entry.host, **row}) for entry in self.entries for row in entry.rows)

    @property
    def first(self) -> Entry:
        """Return the first entry: that of the only node that was asked. Raises HostError if no node answered."""
        if not self.entries:
            raise HostError("minimega: no node answered")
        return self.entries[0]

    @property
    def data(self) -> list[Document]:
        """Return the data lists of all nodes as one."""
        return [item for entry in self.entries for item in documents(entry.data or ())]

    def of(self, host: str) -> Entry | None:
        """Return the entry of a node; if only one node answered, its entry."""
        if len(self.entries) == 1:
            return self.entries[0]
        return next((entry for entry in self.entries if entry.host == host), None)


class Decoder:
    """Reads JSON objects from bytes that come in any pieces."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._depth = 0
        self._in_text = self._escaped = False
        self._at = 0
        self.opened = 0
        """Objects and lists that have begun."""

    def feed(self, data: bytes) -> list[Part]:
        """Take bytes and return the objects that are complete now. Raises ValueError for anything else."""
        self._bytes += data
        values: list[Part] = []
        while self._at < len(self._bytes):
            byte = self._bytes[self._at]
            self._at += 1
            if self._in_text:
                if self._escaped:
                    self._escaped = False
                elif byte == 0x5C:
                    self._escaped = True
                elif byte == 0x22:
                    self._in_text = False
                else:
                    self._skip_text()
            elif self._depth == 0:
                self._begin(byte)
            elif byte == 0x22:
                self._in_text = True
            elif byte in b"{[":
                self._depth += 1
                self.opened += 1
            elif byte in b"}]":
                self._depth -= 1
                if self._depth == 0:
                    values.append(_value(bytes(self._bytes[: self._at])))
                    del self._bytes[: self._at]
                    self._at = 0
        return values

    def _begin(self, byte: int) -> None:
        if byte in b" \t\r\n":
            del self._bytes[: self._at]
            self._at = 0
        elif byte == 0x7B:
            self._depth = 1
            self.opened += 1
        else:
            raise ValueError(f"a JSON object cannot begin with {bytes(self._bytes[:80])!r}")

    def _skip_text(self) -> None:
        """Skip to the next byte that has a meaning inside a string."""
        ends = [at for mark in (b'"', b"\\") if (at := self._bytes.find(mark, self._at)) >= 0]
        self._at = min(ends, default=len(self._bytes))


def _value(text: bytes) -> Part:
    try:
        value: Part = loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    return value


def quote(argument: str) -> str:
    """Quote an argument for minimega's command line if needed. Raises HostError for a line break or a zero byte, which no
    command can hold."""
    if "\n" in argument or "\0" in argument:
        raise HostError(f"minimega: a command cannot hold an argument with a line break: {argument!r}")
    if not _QUOTED.search(argument):
        return argument
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literally(command: str) -> str:
    """Keep minimega from changing a command's arguments: it would fetch http://... and expand $NAME."""
    return f".preprocess false {command}"


class CommandSocket:
    """The commands of one namespace, or of the whole server."""

    def __init__(self, path: Path, namespace: str | None = None) -> None:
        self.path = path
        self.namespace = namespace

    def within(self, namespace: str) -> CommandSocket:
        return CommandSocket(self.path, namespace)

    def listened_to(self) -> bool:
        """Return whether a process listens at the socket. None does if minimega has ended or was never started."""
        with socket.socket(socket.AF_UNIX) as stream:
            try:
                stream.connect(str(self.path))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            except OSError as error:
                raise HostLost(f"minimega: {self.path}: {error.strerror or error}") from None
        return True

    def command(self, *words: str, literal: bool = False) -> str:
        """Return the line to send."""
        line = " ".join(quote(word) for word in words)
        if self.namespace:
            line = f"namespace {self.namespace} {line}"
        return literally(line) if literal else line

    def ask(self, *words: str, literal: bool = False, node: str | None = None, limit_s: float = COMMAND_LIMIT_S) -> Answer:
        """Send a command and return its answer. ``node``: the only node whose answer counts; None: all.

        Raises MinimegaError if minimega refuses, HostLost if it goes away, LimitExceeded after ``limit_s``.
        """
        line = self.command(*words, literal=literal)
        try:
            return _understood(line, self._exchange(line, limit_s), node)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise HostError(f"minimega: `{_short(line)}`: the answer has an unknown form: {error!r}") from None

    def _exchange(self, line: str, limit_s: float) -> list[Part]:
        deadline = time.monotonic() + limit_s
        answer: list[Part] = []
        decoder, size = Decoder(), 0
        try:
            with socket.socket(socket.AF_UNIX) as stream:
                stream.settimeout(limit_s)
                stream.connect(str(self.path))
                stream.sendall(json.dumps({"Command": line}).encode())
                while not answer or answer[-1].get("More") or answer[-1].get("Status"):
                    if (left_s := deadline - time.monotonic()) <= 0:
                        raise TimeoutError
                    stream.settimeout(left_s)
                    data = stream.recv(_READ_BYTES)
                    if not data:
                        raise HostLost(
                            f"minimega: `{_short(line)}`: {self.path} was closed before the answer was complete",
                            advice="" if size else f"check that minimega runs with its socket at {self.path}",
                        )
                    size += len(data)
                    answer += decoder.feed(data)
                    if size > MOST_ANSWER_BYTES or decoder.opened > MOST_ANSWER_VALUES:
                        raise HostError(
                            f"minimega: `{_short(line)}`: its answer does not end after {size:,} bytes and {decoder.opened:,}"
                            f" values; an answer has at most {MOST_ANSWER_BYTES:,} and {MOST_ANSWER_VALUES:,}",
                            advice=f"check that minimega listens at {self.path}: minimega -e version",
                        )
        except TimeoutError:
            raise LimitExceeded(f"minimega: `{_short(line)}`: no complete answer after {limit_s:g} s") from None
        except OSError as error:
            raise HostLost(f"minimega: {self.path}: {error.strerror or error}") from None
        return answer


def _understood(line: str, parts: Sequence[Part], node: str | None = None) -> Answer:
    entries, refusals = [], []
    for part in parts:
        if part.get("Status"):
            continue  # the progress of a long command
        for response in part.get("Resp") or ():
            if node is not None and response.get("Host") != node:
                continue
            if response.get("Error"):
                refusals.append(f"{response.get('Host', '?')}: {str(response['Error']).strip()}")
            header = response.get("Header") or ()
            rows = tuple(Row(zip(header, row, strict=True)) for row in response.get("Tabular") or ())
            entries.append(Entry(response.get("Host", ""), response.get("Response") or "", rows, response.get("Data")))
    if refusals:
        raise MinimegaError(f"minimega: `{_short(line)}`: {'; '.join(refusals)}")
    if node is not None and not entries:
        raise MinimegaError(f"minimega: `{_short(line)}`: node {node} did not answer")
    return Answer(tuple(entries))


def _short(line: str) -> str:
    return line if len(line) <= 200 else f"{line[:200]}..."
