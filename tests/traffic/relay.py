"""An Ethernet relay in this process joins two namespaces: what the tap device of one sends, it writes to the other's.

A rule decides for each TCP packet what is delivered and when: () loses it, (Delivery(),) passes it on, two of them repeat
it, one that is behind is overtaken by as many. Rules choose by packet number or parsed header, so they do the same in every
run.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import itertools
import os
import select
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.traffic.namespace import Namespace
from tests.traffic.packet import Frame, parsed

_SET_INTERFACE, _SET_OFFLOAD = 0x400454CA, 0x400454D0  # TUNSETIFF, TUNSETOFFLOAD
_TAP, _NO_PACKET_INFORMATION, _VNET_HEADER = 0x0002, 0x1000, 0x4000  # IFF_TAP, IFF_NO_PI, IFF_VNET_HDR
_CHECKSUM, _SEGMENTATION = 0x01, 0x02 | 0x04  # TUN_F_CSUM, TUN_F_TSO4 | TUN_F_TSO6
_VNET_HEADER_BYTES = 10  # struct virtio_net_hdr
_LARGEST = 1 << 17
_FRAME_LIMIT, _TIME_LIMIT_S = 20_000, 200.0
DEVICE = "tap0"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of a packet after ``delay_s``, as it came or as ``frames``, and after the next ``behind`` packets the same
    way: however slowly they come."""

    delay_s: float = 0.0
    frames: tuple[bytes, ...] | None = None
    behind: int = 0


PASS: tuple[Delivery, ...] = (Delivery(),)
DROP: tuple[Delivery, ...] = ()
TWICE: tuple[Delivery, ...] = (Delivery(), Delivery())
Rule = Callable[[Frame], tuple[Delivery, ...]]


def data(*numbers: int, sender: str = "b") -> Callable[[Frame], bool]:
    """Chooses data segments by their number."""
    return lambda frame: frame.sender == sender and frame.data_number in numbers


def tap(namespace: Namespace, offload: bool) -> int:
    """A tap device in a namespace, its hardware being whoever holds the descriptor. With ``offload`` that hardware
    takes super-packets and partial checksums, as a virtual machine's does."""
    with namespace:
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        request = struct.pack("16sH22x", DEVICE.encode(), _TAP | _NO_PACKET_INFORMATION | _VNET_HEADER)
        fcntl.ioctl(descriptor, _SET_INTERFACE, request)
    fcntl.ioctl(descriptor, _SET_OFFLOAD, _CHECKSUM | _SEGMENTATION if offload else 0)
    return descriptor


class Relay:
    """Runs in a thread of its own while ``running()``. ``rule`` and ``delay_s`` (each way) may be changed at any time."""

    def __init__(self, taps: dict[str, int], trunk: int | None, tags: Callable[[bytes], bytes] | None) -> None:
        self.rule: Rule = lambda frame: PASS
        self.delay_s = 0.0
        self.changed = threading.Condition()
        self.seen: list[Frame] = []
        self.passed = dict.fromkeys(taps, 0)
        self._taps, self._trunk, self._tags = taps, trunk, tags
        self._due: list[tuple[float, int, str, bytes, int]] = []
        self._overtaken: dict[str, list[tuple[int, int, bytes]]] = {name: [] for name in taps}
        self._order = itertools.count()
        self._data = dict.fromkeys(taps, 0)
        self._numbers = dict.fromkeys(taps, 0)
        self._delivered = dict.fromkeys(taps, 0)
        self._idle = self._holding = False
        self._error: BaseException | None = None
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def drain(self) -> None:
        """Forget what the devices said before: the captures may have begun after it."""
        for descriptor in self._taps.values():
            with contextlib.suppress(BlockingIOError):
                while os.read(descriptor, _LARGEST):
                    pass

    @contextlib.contextmanager
    def running(self) -> Iterator[Relay]:
        thread = threading.Thread(target=self._guarded, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            os.close(self._waker)
            thread.join()
        if self._error:
            raise self._error

    def until(self, holds: Callable[[], bool], what: str, limit_s: float = 60.0) -> None:
        """Wait until a condition holds, looked at after each frame."""
        deadline = time.monotonic() + limit_s
        with self.changed:
            while not holds():
                if self._error or time.monotonic() > deadline:
                    raise TimeoutError(f"waited in vain for {what}") from self._error
                self.changed.wait(0.01)

    @contextlib.contextmanager
    def holding(self, holds: Callable[[], bool], what: str) -> Iterator[None]:
        """Deliver nothing until the block is done and the condition holds: both ends act before either hears of it."""
        self._holding = True
        try:
            yield
            self.until(holds, what)
        finally:
            self._holding = False

    def count(self, chosen: Callable[[Frame], bool]) -> int:
        return sum(map(chosen, self.seen))

    def is_idle(self) -> bool:
        """Nothing is held back and the devices have nothing to say. They are asked first: what the thread has taken from
        them by then is held back as soon as it is idle again."""
        poll = select.poll()
        for descriptor in self._taps.values():
            poll.register(descriptor, select.POLLIN)
        return not poll.poll(0) and self._idle and not self._due and not any(self._overtaken.values())

    def _guarded(self) -> None:
        try:
            self._loop()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error

    def _loop(self) -> None:
        poll = select.poll()
        senders = {descriptor: side for side, descriptor in self._taps.items()}
        for descriptor in (*senders, self._wake):
            poll.register(descriptor, select.POLLIN)
        deadline = time.monotonic() + _TIME_LIMIT_S
        while True:
            now = time.monotonic()
            if len(self.seen) > _FRAME_LIMIT or now > deadline:
                raise RuntimeError(f"more than {_FRAME_LIMIT} packets or {_TIME_LIMIT_S} s")
            while self._due and self._due[0][0] <= now and not self._holding:
                _, order, side, packet, behind = heapq.heappop(self._due)
                if behind:
                    heapq.heappush(self._overtaken[side], (self._delivered[side] + behind, order, packet))
                else:
                    self._deliver(side, packet)
            ready = poll.poll(0)
            if not ready:
                self._idle = True
                with self.changed:
                    self.changed.notify_all()
                wait = self._due[0][0] - time.monotonic() if self._due else deadline - now
                ready = poll.poll(max(1.0 if self._holding else 0.0, wait * 1000))
                self._idle = False
            for descriptor, _ in ready:
                if descriptor == self._wake:
                    return
                self._take(senders[descriptor], os.read(descriptor, _LARGEST))

    def _deliver(self, side: str, packet: bytes) -> None:
        """With those that have been overtaken by enough now."""
        os.write(self._taps[side], packet)
        self.passed[side] += 1
        self._delivered[side] += 1
        overtaken = self._overtaken[side]
        if overtaken and overtaken[0][0] <= self._delivered[side]:
            self._deliver(side, heapq.heappop(overtaken)[2])

    def _take(self, side: str, packet: bytes) -> None:
        header, frame = packet[:_VNET_HEADER_BYTES], packet[_VNET_HEADER_BYTES:]
        self.passed[side] += 1
        found = parsed(side, self._numbers[side] + 1, self._data[side] + 1, frame)
        deliveries = PASS
        if found:
            self._numbers[side] += 1
            self._data[side] += found.is_data
            self.seen.append(found)
            deliveries = self.rule(found)
        other = next(name for name in self._taps if name != side)
        now = time.monotonic()
        for delivery in deliveries:
            for copy in (frame,) if delivery.frames is None else delivery.frames:
                due = now + self.delay_s + delivery.delay_s
                heapq.heappush(self._due, (due, next(self._order), other, header + copy, delivery.behind))
        if self._trunk is not None and self._tags is not None:
            os.write(self._trunk, bytes(_VNET_HEADER_BYTES) + self._tags(frame))
            self.passed["trunk"] = self.passed.get("trunk", 0) + 1
