"""minimega's command socket: a Unix socket that takes one JSON object a command and gives JSON objects back.

Neither side sends a length or a separator.  An answer is every object up to and with the first whose ``More`` is not true.
Each has ``Resp``: one entry for each node of the cluster that answered.  An entry with an ``Error`` makes the whole command an
error here.  A connection serves one command, so that one that was given up leaves nothing behind for the next.

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
"""Objects and lists of one answer. Each takes a hundred bytes and more here, however short it is written."""
_QUOTED = re.compile(r"""[\s"'\\#]|^$""")
"""What minimega's command line splits at, or takes for something else, unless it is quoted."""


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
    """minimega refused a command: has the command and what each node said."""


class Row(dict[str, str]):
    """A row of a table, by column. Raises HostError for a column that the table has not."""

    def __missing__(self, column: str) -> str:
        raise HostError(f"minimega: a table has no column {column!r}, but {', '.join(self) or 'none at all'}")


@dataclass(frozen=True, slots=True)
class Entry:
    """What one node answered."""

    host: str
    text: str
    rows: tuple[Row, ...]
    """Its table, by column."""
    data: Json


@dataclass(frozen=True, slots=True)
class Answer:
    entries: tuple[Entry, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all nodes; in each the node's name is under ``host``."""
        return tuple(Row({"host": entry.host, **row}) for entry in self.entries for row in entry.rows)

    @property
    def first(self) -> Entry:
        """The entry of the node that was asked, where that is the only one. Raises HostError where no node answered."""
        if not self.entries:
            raise HostError("minimega: no node has answered")
        return self.entries[0]

    @property
    def data(self) -> list[Document]:
        """The list that each node gave as data, all in one."""
        return [item for entry in self.entries for item in documents(entry.data or ())]

    def of(self, host: str) -> Entry | None:
        """The entry of a node; where only one node answered, its entry."""
        if len(self.entries) == 1:
            return self.entries[0]
        return next((entry for entry in self.entries if entry.host == host), None)


class Decoder:
    """JSON objects from bytes that come in any pieces."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._depth = 0
        self._in_text = self._escaped = False
        self._at = 0
        self.opened = 0
        """How many objects and lists have begun."""

    def feed(self, data: bytes) -> list[Part]:
        """The objects that are complete now. Raises ValueError for what is no object."""
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
            raise ValueError(f"no JSON object begins with {bytes(self._bytes[:80])!r}")

    def _skip_text(self) -> None:
        """On to the next byte that means something inside a string."""
        ends = [at for mark in (b'"', b"\\") if (at := self._bytes.find(mark, self._at)) >= 0]
        self._at = min(ends, default=len(self._bytes))


def _value(text: bytes) -> Part:
    try:
        value: Part = loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    return value


def quote(argument: str) -> str:
    """An argument as minimega's command line takes it: in double quotes where it needs them, with backslashes before what
    would end them. Raises HostError for what no command can hold."""
    if "\n" in argument or "\0" in argument:
        raise HostError(f"minimega: an argument with a line break cannot be in a command: {argument!r}")
    if not _QUOTED.search(argument):
        return argument
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literally(command: str) -> str:
    """A command whose arguments minimega shall not look into: it would fetch what begins with http://, and expand $NAME."""
    return f".preprocess false {command}"


class CommandSocket:
    """The commands of one namespace, or of the whole server."""

    def __init__(self, path: Path, namespace: str | None = None) -> None:
        self.path = path
        self.namespace = namespace

    def within(self, namespace: str) -> CommandSocket:
        return CommandSocket(self.path, namespace)

    def listened_to(self) -> bool:
        """Whether there is a process behind the socket. It is not where minimega has ended, or was never started."""
        with socket.socket(socket.AF_UNIX) as stream:
            try:
                stream.connect(str(self.path))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            except OSError as error:
                raise HostLost(f"minimega: {self.path}: {error.strerror or error}") from None
        return True

    def command(self, *words: str, literal: bool = False) -> str:
        """The line that is sent."""
        line = " ".join(quote(word) for word in words)
        if self.namespace:
            line = f"namespace {self.namespace} {line}"
        return literally(line) if literal else line

    def ask(self, *words: str, literal: bool = False, node: str | None = None, limit_s: float = COMMAND_LIMIT_S) -> Answer:
        """``node``: the one whose answer counts, where all are asked but the command is about what one of them has.

        Raises MinimegaError where minimega refuses, HostLost where it goes away, LimitExceeded after ``limit_s``.
        """
        line = self.command(*words, literal=literal)
        try:
            return _understood(line, self._exchange(line, limit_s), node)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise HostError(f"minimega: `{_short(line)}`: its answer cannot be understood: {error!r}") from None

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
                        nothing = "" if size else ": nothing was answered; does minimega run, with its socket there?"
                        raise HostLost(
                            f"minimega: `{_short(line)}`: {self.path} was closed before the answer was complete{nothing}"
                        )
                    size += len(data)
                    answer += decoder.feed(data)
                    if size > MOST_ANSWER_BYTES or decoder.opened > MOST_ANSWER_VALUES:
                        raise HostError(
                            f"minimega: `{_short(line)}`: its answer does not end after {size:,} bytes and {decoder.opened:,}"
                            f" values; an answer has at most {MOST_ANSWER_BYTES:,} and {MOST_ANSWER_VALUES:,}",
                            advice=f"is it minimega that listens at {self.path}? ask it by hand: minimega -e version",
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
            continue  # how far a long command has come
        for one in part.get("Resp") or ():
            if node is not None and one.get("Host") != node:
                continue
            if one.get("Error"):
                refusals.append(f"{one.get('Host', '?')}: {str(one['Error']).strip()}")
            header = one.get("Header") or ()
            rows = tuple(Row(zip(header, row, strict=True)) for row in one.get("Tabular") or ())
            entries.append(Entry(one.get("Host", ""), one.get("Response") or "", rows, one.get("Data")))
    if refusals:
        raise MinimegaError(f"minimega: `{_short(line)}`: {'; '.join(refusals)}")
    if node is not None and not entries:
        raise MinimegaError(f"minimega: `{_short(line)}`: node {node} has not answered")
    return Answer(tuple(entries))


def _short(line: str) -> str:
    return line if len(line) <= 200 else f"{line[:200]}..."
