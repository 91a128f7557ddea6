"""A dask client that takes only data: a pickle sent to it runs no code here.

dask unpickles in many places what a scheduler or a worker sends: whole messages, results, exceptions, types of results, events.
Three things prevent that. Messages are read by ``_Data``, which knows JSON's types and bytes, and has a limit. The client
discards pickles inside such a message. And while a client is open no unpickler in this process finds a name (``refusing``), so
that an overlooked place runs nothing either.
"""

from __future__ import annotations

import contextlib
import pickletools
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import distributed
import msgpack
from distributed.comm.core import CommClosedError
from distributed.comm.registry import backends
from distributed.comm.tcp import TCP, TLS, TCPBackend, TCPConnector, TLSBackend, TLSConnector, read_bytes_rw
from distributed.protocol.utils import unpack_frames
from tornado.iostream import StreamClosedError

MESSAGE_BYTES = 2**30
"""The most bytes of a message with the answer to a task."""
CONTROL_BYTES = 32 * 2**20
"""The most bytes of a message without answers, which takes many times as much memory."""
_FRAMES = 100_000
_START_BYTES = 2**16
_PREFIX = "data-"


class Refused(TypeError):
    """A pickle that wants a class or a function of this process. dask drops an exception or traceback that raises it."""


class Strange(CommClosedError):
    """A message that is no data, or too long. The connection is closed."""


class _Guard:
    """An audit hook that refuses while asked to. Python never removes a hook, so there is only one."""

    def __init__(self) -> None:
        self.asked = 0
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "pickle.find_class" and self.asked:
            raise Refused(f"a pickle names {arguments!r:.200}: no pickle is read while a cluster is used")


_guard: list[_Guard] = []


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Refuse classes and functions to every pickle that this process reads in the context, so that none runs anything."""
    if not _guard:
        _guard.append(_Guard())
    _guard[0].asked += 1
    try:
        yield
    finally:
        _guard[0].asked -= 1


class _Data:
    """A reader of messages of dask's protocol that are data (``distributed.protocol``). It closes the connection at any
    other."""

    stream: Any
    _closed: bool

    async def read(self, deserializers: object = None) -> Any:
        if (stream := self.stream) is None:
            raise CommClosedError
        try:
            return decoded(await _frames(stream))
        except StreamClosedError as error:
            self.stream, self._closed = None, True
            raise CommClosedError(str(error)) from None
        except (ValueError, LookupError, TypeError, AttributeError, struct.error, msgpack.UnpackException) as error:
            self.abort()
            raise Strange(f"a message is not data, or is too long: {error}"[:300]) from None
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        super().abort()  # type: ignore[misc]


async def _frames(stream: Any) -> list[memoryview]:
    """Return the frames of one message. Raises ValueError before more than MESSAGE_BYTES are read."""
    (first,) = struct.unpack("Q", await stream.read_bytes(8))
    _limit(first, MESSAGE_BYTES, "a message")
    frames, sizes = unpack_frames(await read_bytes_rw(stream, first), partial=True)
    _limit(first + sum(sizes), MESSAGE_BYTES, "a message")
    _limit(len(frames) + len(sizes), _FRAMES, "the frames of a message")
    return [*frames, *[await read_bytes_rw(stream, size) for size in sizes]]


def _limit(size: int, most: int, what: str) -> None:
    if size > most:
        raise ValueError(f"{what}: {size:,}, at most {most:,} are accepted")


def decoded(frames: Sequence[memoryview]) -> Any:
    """Return the message in frames: bytes, texts, numbers, None or Unread. Raises ValueError for a message that is pickled in
    part, and what msgpack raises."""

    def restored(mapping: dict[object, object]) -> object:
        if "__Set__" in mapping:
            return set(_listed(mapping["as-list"]))
        if "__Pickled__" in mapping or "__Enum__" in mapping:
            raise ValueError("a pickle, or a name of dask's")
        if "__Serialized__" in mapping:
            at = mapping["__Serialized__"]
            if not isinstance(at, int) or at <= 0:
                raise ValueError("an old kind of message")
            header = _unpacked(frames[at])
            return _value(header, frames[at + 1 : at + 1 + header["num-sub-frames"]])
        return mapping

    return _unpacked(frames[0], restored)


def _unpacked(frame: memoryview, hook: Any = None) -> Any:
    _limit(len(frame), CONTROL_BYTES, "bytes without answers")
    return msgpack.unpackb(frame, object_hook=hook, use_list=False, strict_map_key=False)


def _listed(value: object) -> tuple[object, ...]:
    if not isinstance(value, tuple):
        raise ValueError("a set that is not a list")
    return value


@dataclass(frozen=True, slots=True)
class Unread:
    """A value sent apart from its message that is no data. Only its sender fails, not the connection, which others use too."""

    family: str
    start: bytes
    """The beginning of its content."""

    def __repr__(self) -> str:
        return f"a value of dask's family {self.family}"


def _value(header: Mapping[str, Any], parts: Sequence[memoryview]) -> object:
    content, family = b"".join(parts), header.get("serializer")
    if any(header.get("compression") or ()):
        return Unread("of compressed values", b"")
    if family == "msgpack":
        return msgpack.unpackb(content, max_array_len=0, max_map_len=0, max_ext_len=0)
    if family == "dask" and header.get("type") == "builtins.bytes":
        return content
    return Unread(repr(family)[:50], content[:_START_BYTES])


class _DataTCP(_Data, TCP):
    pass


class _DataTLS(_Data, TLS):
    pass


class _TCPConnector(TCPConnector):
    comm_class = _DataTCP


class _TLSConnector(TLSConnector):
    comm_class = _DataTLS


class _TCPBackend(TCPBackend):
    _connector_class = _TCPConnector


class _TLSBackend(TLSBackend):
    _connector_class = _TLSConnector


class DataClient(distributed.Client):
    """A client of a scheduler at ``tcp://`` or ``tls://``. Answers are ``bytes``."""

    deaf = False
    """True once the scheduler's reports have ended: nothing more is heard of tasks."""

    def __init__(self, address: str, **options: Any) -> None:
        backends[f"{_PREFIX}tcp"], backends[f"{_PREFIX}tls"] = _TCPBackend(), _TLSBackend()
        super().__init__(
            _PREFIX + address, deserializers=["msgpack", "error"], set_as_default=False, direct_to_workers=False, **options
        )

    async def _handle_report(self) -> None:
        try:
            await super()._handle_report()
        except Exception:  # noqa: BLE001 - whatever a report leads to: nothing is heard any more, and that is said
            pass
        finally:
            self.deaf = True
            for state in list(self.futures.values()):
                state.cancel(reason="scheduler-connection-lost")

    def _handle_key_in_memory(self, key: Any = None, type: object = None, workers: object = None) -> None:
        """Drop the type, which is a pickle."""
        super()._handle_key_in_memory(key=key)

    def _handle_task_erred(self, key: Any = None, exception: object = None, traceback: object = None) -> None:
        """Keep only the texts of the exception: it and the traceback are pickles."""
        super()._handle_task_erred(key=key, exception=Exception(words(exception)))

    async def _handle_event(self, topic: object = None, event: object = None) -> None:
        """Ignore events: a worker has nothing to print here."""

    def _handle_error(self, exception: object = None) -> None:
        pass


def words(pickle: object) -> str:
    """Return the texts in a pickle, which is not run: for an exception its class and message."""
    return " ".join(_texts(pickle.start if isinstance(pickle, Unread) else pickle))[:500] or "no reason is given"


def _texts(pickle: object) -> Iterator[str]:
    if isinstance(pickle, bytes):
        with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
            for code, value, _ in pickletools.genops(pickle):
                if isinstance(value, str) and "UNICODE" in code.name:
                    yield value
                elif value != pickle:
                    yield from _texts(value)  # dask pickles the bytes of a pickle
