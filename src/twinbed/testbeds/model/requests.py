"""ab against nginx: a closed loop of clients, request by request, and ab's report.

ab is one process with ``threads`` slots. Each slot opens a connection (or keeps one), sends a request and reads until the
server closes (or the document is complete). Then it starts the next request. nginx is one process too. Both need time on the
CPU of their host, first come, first served. This alone flattens the rate as threads are added.

The report, ``-e`` and ``-g`` have the formats and the rounding of ab.c (Apache httpd 2.4). Percentiles past the last request,
for which ab writes 0.000, are the longest time here. Times of day start at 0 (UTC), since a model has none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean

from twinbed.model.topology import Link
from twinbed.testbeds.model.clock import Clock, Costs, Cpu
from twinbed.testbeds.model.link import Direction
from twinbed.testbeds.model.tcp import DELAYED_ACK_S, FIRST_TIMEOUT_S, Sender, Tcp

SILENCE_S = 30.0
"""ab gives up after this long without an event at which it reads the clock (its -s)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of ab, and sizes of what it and the server send, in bytes."""

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
    """From the request written to the first byte read."""
    total_s: float


@dataclass
class Seen:
    """What ab counted."""

    taken_s: float = 0.0
    requests: list[Request] = field(default_factory=list)
    read_bytes: int = 0
    document_bytes: int = 0
    """Without headers; includes answers that were incomplete at the end."""
    silent: bool = False
    """ab gave up without a result, since nothing happened for ``SILENCE_S``."""


def ask(asked: Asked, link: Link, tcp: Tcp, costs: Costs, chance: Random) -> Seen:
    """Simulate a whole run of ab."""
    loop = _Loop(asked, link, tcp, costs, chance)
    for _ in range(asked.threads):
        _Slot(loop).begin()
    loop.clock.run(asked.duration_s + SILENCE_S, loop.over)
    loop.seen.silent = not loop.over()
    loop.seen.taken_s = loop.last_s
    return loop.seen


class _Loop:
    """State that the slots share."""

    def __init__(self, asked: Asked, link: Link, tcp: Tcp, costs: Costs, chance: Random) -> None:
        self.asked, self.tcp, self.costs = asked, tcp, costs
        self.clock = Clock()
        self.client, self.server = (Cpu(self.clock, costs.wake_s) for _ in range(2))
        self.up = Direction(link, costs.latency_s, chance)
        self.down = Direction(link, costs.latency_s, chance)
        self.seen = Seen()
        self.begun = 0
        self.last_s = 0.0
        """When a request was last begun, written or ended: ab reads the clock only then."""

    def over(self) -> bool:
        return self.last_s >= self.asked.duration_s or len(self.seen.requests) >= self.asked.most_requests


class _Slot:
    """One of the requests in flight. Methods stand in the order of events."""

    def __init__(self, loop: _Loop) -> None:
        self._loop, self._clock = loop, loop.clock
        self._sender: Sender | None = None
        self._started_s = self._connected_s = self._asked_s = self._first_s = 0.0
        self._got_bytes = 0
        self._fresh = True
        """The server has yet to accept the connection."""
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
        """Close the connection once the server has handed over all bytes."""
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
            # The client acknowledges the server's FIN and sends its own.
            loop.up.sure(now_s, loop.tcp.header_bytes)
            loop.up.sure(now_s, loop.tcp.header_bytes)
            self._sender = None
        self.begin()


_SERVED = (50, 66, 75, 80, 90, 95, 98, 99)


def report(seen: Seen, *, url: tuple[str, int, str], server: str, threads: int, document_bytes: int) -> str:
    """Return ab's standard output. ``url`` is host, port and path."""
    host, port, path = url
    done, taken_s = len(seen.requests), seen.taken_s
    lines = [
        "This is ApacheBench, Version 2.3 <$Revision$>",
        "",
        f"Benchmarking {host} (be patient).....done",
        "",
        "",
        f"Server Software:        {server}",
        f"Server Hostname:        {host}",
        f"Server Port:            {port}",
        "",
        f"Document Path:          {path}",
        f"Document Length:        {document_bytes} bytes",
        "",
        f"Concurrency Level:      {threads}",
        f"Time taken for tests:   {taken_s:.3f} seconds",
        f"Complete requests:      {done}",
        "Failed requests:        0",
        f"Total transferred:      {seen.read_bytes} bytes",
        f"HTML transferred:       {seen.document_bytes} bytes",
    ]
    if done and taken_s > 0:
        lines += [
            f"Requests per second:    {done / taken_s:.2f} [#/sec] (mean)",
            f"Time per request:       {threads * taken_s * 1000 / done:.3f} [ms] (mean)",
            f"Time per request:       {taken_s * 1000 / done:.3f} [ms] (mean, across all concurrent requests)",
            f"Transfer rate:          {seen.read_bytes / 1024 / taken_s:.2f} [Kbytes/sec] received",
            *_times(seen.requests),
        ]
    return "\n".join(lines) + "\n"


def _times(requests: Sequence[Request]) -> list[str]:
    stages = {
        "Connect:": [request.connect_s for request in requests],
        "Processing:": [request.total_s - request.connect_s for request in requests],
        "Waiting:": [request.waiting_s for request in requests],
        "Total:": [request.total_s for request in requests],
    }
    lines = ["", "Connection Times (ms)", "              min  mean[+/-sd] median   max"]
    for name, times in stages.items():
        mean = fmean(times)
        sd = math.sqrt(math.fsum((time_s - mean) ** 2 for time_s in times) / (len(times) - 1)) if len(times) > 1 else 0.0
        ordered = sorted(times)
        half = len(ordered) // 2
        median = ordered[half] if len(ordered) % 2 else (ordered[half] + ordered[half - 1]) / 2
        least, middle, most = (_ms(time_s) for time_s in (ordered[0], median, ordered[-1]))
        lines.append(f"{name:<11} {least:5d} {_ms(mean):4d} {sd * 1000:5.1f} {middle:6d} {most:7d}")
    totals = sorted(stages["Total:"])
    lines += ["", "Percentage of the requests served within a certain time (ms)"]
    lines += [f" {percent:3d}%  {_ms(_percentile(totals, percent)):5d}" for percent in _SERVED]
    return [*lines, f" 100%  {_ms(totals[-1]):5d} (longest request)"]


def percentiles(requests: Sequence[Request]) -> str:
    """Return the file of ``-e``."""
    totals = sorted(request.total_s for request in requests)
    rows = [f"{percent},{_percentile(totals, percent) * 1000:.3f}" for percent in range(101)] if totals else []
    return "\n".join(["Percentage served,Time in ms", *rows]) + "\n"


def rows(requests: Sequence[Request]) -> str:
    """Return the file of ``-g``, sorted by total time."""
    lines = ["starttime\tseconds\tctime\tdtime\tttime\twait"]
    for request in sorted(requests, key=lambda request: request.total_s):
        begun = time.asctime(time.gmtime(request.started_s))
        connect, total = _ms(request.connect_s), _ms(request.total_s)
        processing, waiting = _ms(request.total_s - request.connect_s), _ms(request.waiting_s)
        lines.append(f"{begun}\t{int(request.started_s)}\t{connect}\t{processing}\t{total}\t{waiting}")
    return "\n".join(lines) + "\n"


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(int(0.5 + len(ordered) * percent / 100), len(ordered) - 1) if percent else 0]


def _ms(seconds: float) -> int:
    return int((seconds * 1e6 + 500) // 1000)
