"""Questions to QEMU's monitor (QMP): what runs, with which accelerator, machine and CPU, on which threads.

A QMP message is a line of JSON: a greeting, then an answer per command, with events between. Whoever breaks out of a guest
speaks as QEMU, so the conversation has limits in bytes and in time, checked while it runs. Source: QEMU's manual, "QEMU
Machine Protocol Specification".
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
"""The most that QEMU may send in one conversation; it sends some kilobytes."""
_READ_BYTES = 1 << 16
_IN_A_FILE: Document = {"capability": "x-ignore-shared", "state": True}
"""Memory in a file is neither written to the stream nor expected there."""


@dataclass(frozen=True, slots=True)
class Monitored:
    """A guest as QEMU reports it."""

    version: str
    resumed: bool
    """The guest continued a saved guest."""
    kvm: bool
    memory_bytes: int
    threads: tuple[int, ...]
    """Thread ids of the virtual CPUs, in order, as the machine's kernel numbers them."""
    machine: str
    """Type in QEMU's object model, as for ``cpu``."""
    cpu: str
    cpu_flags: Mapping[str, object]
    devices: Mapping[tuple[str, str], object]
    """Id and property to value."""


def ask(
    path: Path, name: str, cpu_flags: Sequence[str] = (), devices: Sequence[tuple[str, str]] = (), *, limit_s: float = 10.0
) -> Monitored:
    """Ask QEMU about its guest. Raises HostError for an answer that is no QMP, LimitExceeded beyond the time or the bytes."""
    with _understood(path, name, limit_s) as qemu:
        return _monitored(qemu, cpu_flags, devices)


def save(path: Path, name: str, state: Path, *, limit_s: float) -> str:
    """Wait for the guest's agent, write the guest except its memory to a file, end QEMU, and return QEMU's version.

    Raises HostError, as ``ask``."""
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
    """Continue the guest that ``save`` wrote. Raises HostError, as ``ask``, and if this is another version of QEMU."""
    with _understood(path, name, limit_s) as qemu, state.open("rb") as file:
        if (own := _version(qemu)) != version:
            raise HostError(f"{name}: QEMU {own} cannot resume a guest that QEMU {version} saved")
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
        raise LimitExceeded(f"{name}: QEMU's monitor sent more than {MOST_BYTES:,} bytes: do not trust this guest") from None
    except OSError as error:
        raise HostError(f"{name}: QEMU's monitor: {error}") from None
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise HostError(f"{name}: QEMU's monitor sent an answer that is no QMP: {error!r:.200}") from None


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
    """QEMU has sent more than it may."""


@contextlib.contextmanager
def _connected(path: Path, deadline: float) -> Iterator[_Conversation]:
    """Connect and greet. Raises TimeoutError, _TooMuch, OSError; ValueError, TypeError and KeyError for text that is no QMP."""
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
        self._received = bytearray()
        self._size = 0
        self._events: list[Document] = []

    def greeted(self) -> None:
        document(self._message()["QMP"])
        self.execute("qmp_capabilities")

    def value(self, path: str, what: str) -> Json:
        return self.execute("qom-get", path=path, property=what)

    def execute(self, command: str, *, fd: int | None = None, **arguments: Json) -> Json:
        """Run a command, with a descriptor if given, and return its result. Raises OSError with QEMU's reason if it
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
        """Wait for an event and return its data. Earlier events, which may have come during a command, are dropped."""
        while True:
            while self._events:
                first = self._events.pop(0)
                if first["event"] == event and wanted(data := document(first["data"])):
                    return data
            self._keep(self._message())

    def _keep(self, message: Document) -> None:
        """Keep an event, which may come at any time."""
        text(message["event"])
        self._events.append(message)

    def _message(self) -> Document:
        while (end := self._received.find(b"\n")) < 0:
            self._wait()
            if not (data := self._stream.recv(_READ_BYTES)):
                raise OSError("it closed the connection")
            self._received += data
            self._size += len(data)
            if self._size > MOST_BYTES:
                raise _TooMuch
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            value: Json = loads(line)
        except RecursionError:
            raise ValueError("JSON that is nested too deeply") from None
        return document(value)

    def _wait(self) -> None:
        if (left_s := self._deadline - time.monotonic()) <= 0:
            raise TimeoutError
        self._stream.settimeout(left_s)
