"""The controller's end of an agent's control stream: frames in and out, many channels at once.

A frame is u32 payload length, u32 channel, u8 kind, payload; little endian. The other end is ``crates/probe``. One reader
thread hands frames to channels; when the stream ends, every open channel gets ``HostLost``. An agent is not trusted: a frame
that is too long, lacks valid JSON or exceeds its channel's limit ends the stream.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import json
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from twinbed.hosts.error import HostError, HostLost, LimitExceeded
from twinbed.model.json import Document, Json, document, loads

T = TypeVar("T")
_HEADER = struct.Struct("<IIB")
MAX_PAYLOAD_BYTES = 1 << 20
SEND_LIMIT_S = 60.0
"""The limit for an agent to take one frame; it takes none while it, or ssh on the way, is stopped."""
_LONGEST_MESSAGE = 4000

HELLO = 0x01
EXEC, STDIN, SIGNAL, READ, WRITE, LIST, LISTENING, PING, POWEROFF, USAGE, RELEASE, RESUMED, NIC, REACH = range(0x10, 0x1E)
STARTED, STDOUT, STDERR, EXIT, DATA, END = range(0x20, 0x26)
ERROR = 0x2F


def object_of(payload: bytes) -> Document:
    """Read the JSON object in a frame. Raises ValueError or TypeError."""
    try:
        value: Json = loads(payload)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    return document(value)


class Channel:
    """One exchange with an agent. Subclasses overwrite ``receive``; it runs in the reader thread, under ``changed``."""

    def __init__(self, connection: Connection, what: str) -> None:
        self._connection = connection
        self.what = what
        self.changed = threading.Condition()
        self.failure: HostError | None = None
        self.answer: Document | None = None
        self.number = connection.open(self)

    def deliver(self, kind: int, payload: bytes) -> None:
        with self.changed:
            if kind == ERROR:
                message = str(object_of(payload)["message"])[:_LONGEST_MESSAGE]
                self.failure = HostError(f"{self._connection.name}: {message}")
            elif kind == END:
                self.answer = object_of(payload)
            else:
                self.receive(kind, payload)
            self.changed.notify_all()

    def fail(self, failure: HostError) -> None:
        with self.changed:
            self.failure = self.failure or failure
            self.changed.notify_all()

    def receive(self, kind: int, payload: bytes) -> None:
        raise ValueError(f"frame kind {kind:#x} on the channel of {self.what}")

    def send(self, kind: int, payload: bytes | Document) -> None:
        self._connection.send(self.number, kind, payload)

    def until(self, done: Callable[[], bool], limit_s: float) -> None:
        """Wait until ``done()``. Raises the channel's failure, or LimitExceeded."""
        deadline = time.monotonic() + limit_s
        with self.changed:
            while not done():
                if self.failure:
                    raise self.failure
                left = deadline - time.monotonic()
                if left <= 0:
                    raise LimitExceeded(f"{self._connection.name}: {self.what}: not done after {limit_s:g} s")
                self.changed.wait(left)

    def result(self, limit_s: float) -> Document:
        """Wait for the agent's closing answer and return it."""
        try:
            self.until(lambda: self.answer is not None, limit_s)
        finally:
            self.close()
        assert self.answer is not None
        return self.answer

    def understood(self, read: Callable[[Document], T], limit_s: float) -> T:
        """Return the closing answer as ``read`` understands it. Raises HostError if it cannot."""
        answer = self.result(limit_s)
        try:
            return read(answer)
        except (KeyError, TypeError, ValueError) as error:
            name = self._connection.name
            raise HostError(f"{name}: {self.what}: its agent gave an unknown answer: {error!r:.200}") from None

    def close(self) -> None:
        self._connection.close_channel(self.number)


class Connection:
    """A control stream over a connected socket. `explain` returns the reason when the stream has ended.

    The greeting, the first frame, must have ``key``: without it the stream is lost, as it may lead to another host's agent."""

    def __init__(self, name: str, stream: socket.socket, explain: Callable[[], str] = str, key: str = "") -> None:
        self.name = name
        self._key = key
        self._explain = explain
        self._stream = stream
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._channels: dict[int, Channel] = {}
        self._lost: HostLost | None = None
        self._hello: Document | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._read, name=f"agent {name}", daemon=True).start()

    def hello(self, limit_s: float) -> Document:
        """Wait for the agent's greeting and return it."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._hello is not None or self._lost is not None, limit_s):
                raise LimitExceeded(f"{self.name}: no greeting from the agent after {limit_s:g} s")
            if self._hello is None:
                assert self._lost is not None
                raise self._lost
            return self._hello

    @property
    def lost(self) -> bool:
        with self._changed:
            return self._lost is not None

    def open(self, channel: Channel) -> int:
        with self._changed:
            if self._lost:
                raise self._lost
            number = next(self._numbers)
            self._channels[number] = channel
            return number

    def close_channel(self, number: int) -> None:
        with self._changed:
            self._channels.pop(number, None)

    def send(self, channel: int, kind: int, payload: bytes | Document) -> None:
        """Send a frame. An agent that does not take it within SEND_LIMIT_S is lost, since part of it may have been sent."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        deadline = time.monotonic() + SEND_LIMIT_S
        try:
            with self._sending:
                self._send_all(_HEADER.pack(len(body), channel, kind) + body, deadline)
        except TimeoutError:
            self.close()
            raise HostLost(f"{self.name}: its agent took no frame for {SEND_LIMIT_S:g} s: it or ssh may be stopped") from None
        except OSError as error:
            raise self._lost or HostLost(f"{self.name}: the connection to its agent broke: {error.strerror}") from None

    def _send_all(self, frame: bytes, deadline: float) -> None:
        """Send all bytes. Raises TimeoutError past the deadline, even if the other end takes a byte now and then."""
        left = memoryview(frame)
        while left:
            with contextlib.suppress(BlockingIOError):
                left = left[self._stream.send(left, socket.MSG_DONTWAIT) :]
                continue
            milliseconds = 1000 * (deadline - time.monotonic())
            room = select.poll()
            with contextlib.suppress(ValueError):  # closed meanwhile, which the next send reports
                room.register(self._stream, select.POLLOUT)
            if milliseconds <= 0 or not room.poll(milliseconds):
                raise TimeoutError

    def close(self) -> None:
        """End the stream: the agent, and with it every program on the host, dies."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        self._stream.close()

    def _read(self) -> None:
        why = "its agent ended the connection"
        try:
            with self._stream.makefile("rb", buffering=MAX_PAYLOAD_BYTES) as stream:
                while header := stream.read(_HEADER.size):
                    if len(header) < _HEADER.size:
                        break
                    length, number, kind = _HEADER.unpack(header)
                    if length > MAX_PAYLOAD_BYTES:
                        why = f"its agent sent a frame of {length} bytes"
                        break
                    payload = stream.read(length)
                    if len(payload) < length:
                        break
                    self._dispatch(number, kind, payload)
        except HostError as error:
            why = error.message
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = f"the connection to its agent broke: {error!r}"
        lost = HostLost(f"{self.name}: {self._explain() or why}")
        with self._changed:
            self._lost = lost
            channels = list(self._channels.values())
            self._changed.notify_all()
        for channel in channels:
            channel.fail(lost)

    def _greeted(self, hello: Document) -> None:
        if self._hello is not None:
            raise HostError("its agent greeted twice")
        if not hmac.compare_digest(str(hello.get("key", "")).encode(), self._key.encode()):
            raise HostError("another program answered: it does not know the key of this host's agent")
        self._hello = hello

    def _dispatch(self, number: int, kind: int, payload: bytes) -> None:
        if number == 0:
            with self._changed:
                if kind == HELLO:
                    self._greeted(object_of(payload))
                self._changed.notify_all()
            return
        with self._changed:
            if self._key and self._hello is None:
                raise HostError("another program answered: it did not greet first, as this host's agent does")
            channel = self._channels.get(number)
        if channel is not None:
            channel.deliver(kind, payload)
