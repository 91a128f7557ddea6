"""ab against nginx: a closed loop of clients, request by request.

Each of ``threads`` slots of ab's one process opens a connection (or keeps one), asks, reads until the server closes (or until
the document is there), and begins anew. nginx is one process too. What both do takes time on a CPU of each host, first come,
first served: that alone makes the rate flatten as threads are added.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from twinbed.model.topology import Link
from twinbed.testbeds.model.clock import Clock, Cpu
from twinbed.testbeds.model.costs import Costs
from twinbed.testbeds.model.link import Direction
from twinbed.testbeds.model.tcp import DELAYED_ACK_S, FIRST_TIMEOUT_S, Sender, Tcp

SILENCE_S = 30.0
"""How long ab goes on when nothing of what it looks at the clock for happens any more (its -s)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What ab is told, and what the server holds. Bytes."""

    threads: int
    most_requests: int
    duration_s: float
    keep_alive: bool
    question_bytes: int
    header_bytes: int
    document_bytes: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as ab times it: seconds."""

    started_s: float
    connect_s: float
    waiting_s: float
    """From the question written to the first byte read."""
    total_s: float


@dataclass
class Seen:
    """What ab saw."""

    taken_s: float = 0.0
    requests: list[Request] = field(default_factory=list)
    read_bytes: int = 0
    document_bytes: int = 0
    """Without headers, with those of answers that were not complete at the end."""
    silent: bool = False
    """Whether nothing happened for so long that ab gave up, without a result."""


def ask(asked: Asked, link: Link, tcp: Tcp, costs: Costs, chance: Random) -> Seen:
    """A whole run of ab."""
    loop = _Loop(asked, link, tcp, costs, chance)
    for _ in range(asked.threads):
        _Slot(loop).begin()
    loop.clock.run(asked.duration_s + SILENCE_S, loop.over)
    loop.seen.silent = not loop.over()
    loop.seen.taken_s = loop.last_s
    return loop.seen


class _Loop:
    """What the slots share."""

    def __init__(self, asked: Asked, link: Link, tcp: Tcp, costs: Costs, chance: Random) -> None:
        self.asked, self.tcp, self.costs = asked, tcp, costs
        self.clock = Clock()
        self.client, self.server = (Cpu(self.clock, costs.wake_s) for _ in range(2))
        self.up = Direction(link, costs.latency_s, chance)
        self.down = Direction(link, costs.latency_s, chance)
        self.seen = Seen()
        self.begun = 0
        self.last_s = 0.0
        """When a request was last begun, written or ended: ab looks at the clock then, and only then."""

    def over(self) -> bool:
        return self.last_s >= self.asked.duration_s or len(self.seen.requests) >= self.asked.most_requests


class _Slot:
    """One of the requests in flight. Methods are in the order in which things happen."""

    def __init__(self, loop: _Loop) -> None:
        self._loop, self._clock = loop, loop.clock
        self._sender: Sender | None = None
        self._started_s = self._connected_s = self._asked_s = self._first_s = 0.0
        self._got_bytes = 0
        self._fresh = True
        """Whether the server has yet to accept the connection."""
        self._closed = self._fin_sent = False

    def begin(self) -> None:
        loop = self._loop
        if loop.begun >= loop.asked.most_requests:
            return
        loop.begun += 1
        self._started_s = self._connected_s = loop.last_s = self._clock.now_s
        self._got_bytes = 0
        if self._sender is not None:
            loop.client.work(loop.costs.client_request_s, self._write)
            return
        self._fresh, self._closed, self._fin_sent = True, False, False
        loop.client.work(loop.costs.client_connection_s, self._syn)

    def _syn(self) -> None:
        arrival_s = self._loop.up.passes(self._clock.now_s, self._loop.tcp.syn_bytes)
        if arrival_s is None:
            self._clock.at(self._clock.now_s + FIRST_TIMEOUT_S, self._syn)
        else:
            self._clock.at(arrival_s, self._syn_answered, self._clock.now_s)

    def _syn_answered(self, sent_s: float) -> None:
        arrival_s = self._loop.down.passes(self._clock.now_s, self._loop.tcp.syn_bytes)
        if arrival_s is None:
            self._clock.at(self._clock.now_s + FIRST_TIMEOUT_S, self._syn_answered, sent_s)
        else:
            self._clock.at(arrival_s, self._connected, sent_s)

    def _connected(self, sent_s: float) -> None:
        loop = self._loop
        self._connected_s = self._clock.now_s
        self._sender = Sender(
            self._clock,
            loop.tcp,
            (loop.down, loop.up),
            (loop.server, loop.client),
            (loop.costs.sending, loop.costs.receiving),
            self._read,
            self._finish,
            self._connected_s - sent_s,
        )
        loop.up.sure(self._clock.now_s, loop.tcp.header_bytes)
        loop.client.work(loop.costs.client_request_s, self._write)

    def _write(self) -> None:
        self._asked_s = self._first_s = self._loop.last_s = self._clock.now_s
        self._ask()

    def _ask(self) -> None:
        assert self._sender is not None
        arrival_s = self._loop.up.passes(self._clock.now_s, self._loop.tcp.frames_bytes(self._loop.asked.question_bytes))
        if arrival_s is None:
            self._clock.at(self._clock.now_s + 2 * self._sender.rtt_s + DELAYED_ACK_S, self._ask)
        else:
            self._clock.at(arrival_s, self._asked)

    def _asked(self) -> None:
        loop = self._loop
        loop.down.sure(self._clock.now_s, loop.tcp.header_bytes)
        accept_s = loop.costs.server_connection_s if self._fresh else 0.0
        self._fresh = False
        loop.server.work(accept_s + loop.costs.server_request_s, self._answer)

    def _answer(self) -> None:
        assert self._sender is not None
        self._sender.write(self._loop.asked.header_bytes)
        self._sender.write(self._loop.asked.document_bytes)

    def _read(self, size: int) -> None:
        loop = self._loop
        if not self._got_bytes:
            self._first_s = self._clock.now_s
        before = max(self._got_bytes - loop.asked.header_bytes, 0)
        self._got_bytes += size
        loop.seen.read_bytes += size
        loop.seen.document_bytes += max(self._got_bytes - loop.asked.header_bytes, 0) - before
        self._perhaps_done()

    def _finish(self) -> None:
        """The server closes once all has been handed over."""
        if not self._loop.asked.keep_alive and not self._fin_sent:
            self._fin_sent = True
            self._clock.at(self._loop.down.sure(self._clock.now_s, self._loop.tcp.header_bytes), self._close)

    def _close(self) -> None:
        self._closed = True
        self._perhaps_done()

    def _perhaps_done(self) -> None:
        loop, now_s = self._loop, self._clock.now_s
        if self._got_bytes < loop.asked.header_bytes + loop.asked.document_bytes or not (self._closed or loop.asked.keep_alive):
            return
        loop.last_s = now_s
        connect_s = self._connected_s - self._started_s
        waiting_s = self._first_s - self._asked_s
        loop.seen.requests.append(Request(self._started_s, connect_s, waiting_s, now_s - self._started_s))
        if not loop.asked.keep_alive:
            # Its own end of the connection: the acknowledgment of the server's, and its own FIN.
            loop.up.sure(now_s, loop.tcp.header_bytes)
            loop.up.sure(now_s, loop.tcp.header_bytes)
            self._sender = None
        self.begin()
