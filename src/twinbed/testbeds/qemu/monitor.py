"""Questions to QEMU's monitor (QMP): what runs, with which accelerator, machine and CPU, on which threads.

QMP is a line of JSON a message: a greeting, then an answer a command, with events between.  Who breaks out of a guest is QEMU:
the conversation has limits in bytes and in time, which hold while it talks.  Source: QEMU's manual, "QEMU Machine Protocol
Specification".
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.model.json import Document, Json, document, documents, integer, loads, text

MOST_BYTES = 4 * 2**20
"""What QEMU may say in one conversation; it says some kilobytes."""
_READ_BYTES = 1 << 16
_IN_A_FILE: Document = {"capability": "x-ignore-shared", "state": True}
"""Memory in a file is neither written to the stream nor expected in it."""


@dataclass(frozen=True, slots=True)
class Monitored:
    """What QEMU says of a guest."""

    version: str
    resumed: bool
    """Whether it went on from a saved guest."""
    kvm: bool
    memory_bytes: int
    threads: tuple[int, ...]
    """Of the virtual CPUs, in their order, as the machine's kernel numbers them."""
    machine: str
    """Its type in QEMU's object model, as that of ``cpu`` is."""
    cpu: str
    cpu_flags: Mapping[str, object]
    devices: Mapping[tuple[str, str], object]
    """Id and property -> its value."""


def ask(
    path: Path, name: str, cpu_flags: Sequence[str] = (), devices: Sequence[tuple[str, str]] = (), *, limit_s: float = 10.0
) -> Monitored:
    """Raises HostError when QEMU does not answer as QMP, LimitExceeded when it takes longer or says more than it may."""
    with _understood(path, name, limit_s) as qemu:
        return _monitored(qemu, cpu_flags, devices)


def save(path: Path, name: str, state: Path, *, limit_s: float) -> str:
    """Wait until the guest's agent waits for its host, write all of the guest but its memory to a file, and end QEMU.

    Returns QEMU's version. Raises HostError, as ``ask``."""
    with _understood(path, name, limit_s) as qemu, state.open("xb") as file:
        version = _version(qemu)
        qemu.until("VSERPORT_CHANGE", lambda data: data["open"] is True)
        qemu.execute("migrate-set-capabilities", capabilities=[_IN_A_FILE, {"capability": "events", "state": True}])
        qemu.execute("getfd", fd=file.fileno(), fdname="state")
        qemu.execute("migrate", uri="fd:state")
        end = qemu.until("MIGRATION", lambda data: data["status"] in ("completed", "failed", "cancelled"))
        if end["status"] != "completed":
            raise OSError(f"saving the guest: {end['status']}")
        qemu.execute("quit")
        return version


def resume(path: Path, name: str, state: Path, version: str, *, limit_s: float = 10.0) -> None:
    """Have QEMU go on with what ``save`` wrote. Raises HostError, as ``ask``, and where this is another QEMU than it was."""
    with _understood(path, name, limit_s) as qemu, state.open("rb") as file:
        if (own := _version(qemu)) != version:
            raise HostError(f"{name}: a guest that QEMU {version} saved is not resumed by QEMU {own}")
        qemu.execute("migrate-set-capabilities", capabilities=[_IN_A_FILE])
        qemu.execute("getfd", fd=file.fileno(), fdname="state")
        qemu.execute("migrate-incoming", uri="fd:state")


@contextlib.contextmanager
def _understood(path: Path, name: str, limit_s: float) -> Iterator[_Conversation]:
    try:
        with _connected(path, time.monotonic() + limit_s) as qemu:
            yield qemu
    except TimeoutError:
        raise LimitExceeded(f"{name}: QEMU's monitor did not answer in {limit_s:g} s") from None
    except _TooMuch:
        raise LimitExceeded(f"{name}: QEMU's monitor said more than {MOST_BYTES:,} bytes: do not trust that guest") from None
    except OSError as error:
        raise HostError(f"{name}: QEMU's monitor: {error}") from None
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise HostError(f"{name}: QEMU's monitor: its answer cannot be understood: {error!r:.200}") from None


def _monitored(qemu: _Conversation, cpu_flags: Sequence[str], devices: Sequence[tuple[str, str]]) -> Monitored:
    cpus = documents(qemu.execute("query-cpus-fast"))
    first_cpu = text(cpus[0]["qom-path"])
    return Monitored(
        version=_version(qemu),
        resumed=document(qemu.execute("query-migrate")).get("status") == "completed",
        kvm=document(qemu.execute("query-kvm"))["enabled"] is True,
        memory_bytes=integer(document(qemu.execute("query-memory-size-summary"))["base-memory"]),
        threads=tuple(integer(cpu["thread-id"]) for cpu in cpus),
        machine=str(qemu.value("/machine", "type")),
        cpu=str(qemu.value(first_cpu, "type")),
        cpu_flags={flag: qemu.value(first_cpu, flag) for flag in cpu_flags},
        devices={(device, what): qemu.value(f"/machine/peripheral/{device}", what) for device, what in devices},
    )


def _version(qemu: _Conversation) -> str:
    version = document(document(qemu.execute("query-version"))["qemu"])
    return ".".join(str(integer(version[part])) for part in ("major", "minor", "micro"))


class _TooMuch(Exception):
    """More was said than may be."""


@contextlib.contextmanager
def _connected(path: Path, deadline: float) -> Iterator[_Conversation]:
    """Raises TimeoutError, _TooMuch, OSError; ValueError, TypeError and KeyError for what is no QMP."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(max(0.001, deadline - time.monotonic()))
        stream.connect(str(path))
        qemu = _Conversation(stream, deadline)
        qemu.greeted()
        yield qemu


class _Conversation:
    """One connection to a monitor, until a moment of the monotonic clock."""

    def __init__(self, stream: socket.socket, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline
        self._said = bytearray()
        self._size = 0
        self._events: list[Document] = []

    def greeted(self) -> None:
        document(self._message()["QMP"])
        self.execute("qmp_capabilities")

    def value(self, path: str, what: str) -> Json:
        return self.execute("qom-get", path=path, property=what)

    def execute(self, command: str, *, fd: int | None = None, **arguments: Json) -> Json:
        """What a command returns. QEMU gets a descriptor with it where one is given. Raises OSError with QEMU's words where it
        refuses."""
        self._wait()
        line = json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n"
        socket.send_fds(self._stream, [line], [] if fd is None else [fd])
        while True:
            message = self._message()
            if "error" in message:
                raise OSError(f"{command}: {str(document(message['error'])['desc'])[:1000]}")
            if "return" in message:
                return message["return"]
            self._keep(message)

    def until(self, event: str, wanted: Callable[[Document], bool]) -> Document:
        """What QEMU says with an event. Of the events before it, which may have come while a command was executed, there are
        no more then."""
        while True:
            while self._events:
                first = self._events.pop(0)
                if first["event"] == event and wanted(data := document(first["data"])):
                    return data
            self._keep(self._message())

    def _keep(self, message: Document) -> None:
        """An event, which comes at any time."""
        text(message["event"])
        self._events.append(message)

    def _message(self) -> Document:
        while (end := self._said.find(b"\n")) < 0:
            self._wait()
            if not (data := self._stream.recv(_READ_BYTES)):
                raise OSError("it closed the connection")
            self._said += data
            self._size += len(data)
            if self._size > MOST_BYTES:
                raise _TooMuch
        line = bytes(self._said[:end])
        del self._said[: end + 1]
        try:
            value: Json = loads(line)
        except RecursionError:
            raise ValueError("JSON that is nested too deeply") from None
        return document(value)

    def _wait(self) -> None:
        if (left_s := self._deadline - time.monotonic()) <= 0:
            raise TimeoutError
        self._stream.settimeout(left_s)
