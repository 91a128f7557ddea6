"""The simulation behind the driver ``model``, held against exact arithmetic and published laws. Expectations are written out by
hand from frames, rates and delays; none was printed by the simulation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from twinbed.model.topology import Link
from twinbed.testbeds.model.clock import Clock, Costs, Cpu
from twinbed.testbeds.model.iperf3 import Flow, Offered, Streamed, offer, stream
from twinbed.testbeds.model.link import Direction
from twinbed.testbeds.model.requests import Asked, Seen, ask
from twinbed.testbeds.model.tcp import Handling, Tcp

HANDSHAKE_FRAME = 14 + 40 + 20
"""Bytes of a SYN: Ethernet's header, IP and TCP, options."""
HEADERS = 14 + 40 + 12
"""Bytes around a segment's data: Ethernet's header, IP and TCP, timestamps."""
QUESTION, HEADER = 82, 250
MSS = 1448
NOTHING = Handling(0.0, 0.0)
FREE = Costs(0.0, 0.0, 0.0, 0.0, NOTHING, NOTHING, 0.0, 0.0)
"""CPUs that take no time, hosts at no distance."""


def tcp(*, window: int = 10**9, control: Any = "reno", offload: bool = False, overhead: int = 14) -> Tcp:
    return Tcp(MSS, 10, window, control, offload, overhead)


def asked(document: int, *, threads: int = 1, requests: int = 1, seconds: float = 1e6, keep_alive: bool = False) -> Asked:
    return Asked(threads, requests, seconds, keep_alive, QUESTION, HEADER, document)


def one(document: int, link: Link, how: Tcp | None = None, costs: Costs = FREE) -> Seen:
    seen = ask(asked(document), link, how or tcp(), costs, Random(0))
    assert len(seen.requests) == 1
    return seen


# One request


@pytest.mark.parametrize(
    ("segments", "rounds"),
    # Ten segments first: the header and 9 of the document. Each acknowledged byte lets two go, so that then 19 and 38 go.
    [(1, 1), (9, 1), (10, 2), (9 + 19, 2), (9 + 19 + 1, 3), (9 + 19 + 38, 3), (9 + 19 + 38 + 1, 4)],
)
def test_a_request_over_a_delay_takes_the_handshake_and_its_rounds_of_slow_start(segments: int, rounds: int) -> None:
    """One round trip for SYN and its answer, one for the question and the first window, one for each further window."""
    delay_s = 0.05
    seen = one(segments * MSS, Link(delay=delay_s))
    assert seen.requests[0].total_s == pytest.approx(2 * delay_s * (1 + rounds), rel=1e-9)
    assert seen.requests[0].connect_s == pytest.approx(2 * delay_s, rel=1e-9)
    assert seen.requests[0].waiting_s == pytest.approx(2 * delay_s, rel=1e-9)


def test_a_request_over_a_slow_link_takes_the_time_of_its_frames() -> None:
    """1 Mbit/s, so a byte takes 8 us: SYN, its answer; acknowledgment and question; header, document and FIN behind the
    acknowledgment of the question."""
    frames = 2 * HANDSHAKE_FRAME + HEADERS + (HEADERS + QUESTION) + HEADERS + (HEADERS + HEADER) + (HEADERS + MSS) + HEADERS
    assert frames == 2324
    seen = one(MSS, Link(rate=10**6, burst=0))
    assert seen.requests[0].total_s == pytest.approx(frames * 8e-6, rel=1e-9)
    assert seen.read_bytes == HEADER + MSS
    assert seen.document_bytes == MSS


def test_a_burst_passes_at_once() -> None:
    """All frames of a request fit into the bucket, each way: it takes no time at all."""
    assert one(MSS, Link(rate=10**6, burst=3000)).requests[0].total_s == pytest.approx(0.0, abs=1e-12)


def test_cpus_at_rest_wake_and_work_in_turn() -> None:
    """Every term of one request: a connection opened; the question written; accepted and answered in two segments; both read.
    ab has just started; each CPU that waits sleeps: the client's for the handshake, the server's, the client's again."""
    costs = Costs(100e-6, 10e-6, 50e-6, 20e-6, Handling(3e-6, 1e-9), Handling(4e-6, 2e-9), 5e-6, 30e-6)
    client_s = 100e-6
    handshake_s = 2 * 5e-6
    question_s = (30 + 10 + 5) * 1e-6
    server_s = (30 + 50 + 20) * 1e-6 + 2 * 3e-6 + (HEADER + 500) * 1e-9
    # The document arrives when the header is being read: no sleep between the two.
    reading_begins_s = client_s + handshake_s + question_s + server_s - 3e-6 - 500e-9 + 5e-6 + 30e-6
    total_s = reading_begins_s + 2 * 4e-6 + (HEADER + 500) * 2e-9
    seen = one(500, Link(), costs=costs)
    assert seen.requests[0].total_s == pytest.approx(total_s, rel=1e-9)


# Many requests

WORK = Costs(30e-6, 20e-6, 25e-6, 10e-6, Handling(5e-6, 3e-10), Handling(4e-6, 4e-10), 2e-6, 30e-6)
CLIENT_S = 30e-6 + 20e-6 + 2 * 4e-6 + (HEADER + 500) * 4e-10
"""What a request asks of the client's CPU, written out."""
SERVER_S = 25e-6 + 10e-6 + 2 * 5e-6 + (HEADER + 500) * 3e-10


@pytest.mark.parametrize("threads", [1, 2, 7, 40])
@pytest.mark.parametrize("keep_alive", [False, True])
@pytest.mark.parametrize("link", [Link(), Link(rate=10**7), Link(rate=10**8, delay=0.002, jitter=0.001)], ids=str)
def test_littles_law(threads: int, keep_alive: bool, link: Link) -> None:
    """Requests in flight = rate x time of a request, for what was begun and ended (Little 1961); those that are under way at
    the end are the difference, at most one of each thread: less of a run, the shorter they are."""
    long = asked(500, threads=threads, requests=10**9, seconds=2.0 if link.rate else 0.5, keep_alive=keep_alive)
    seen = ask(long, link, tcp(), WORK, Random(5))
    spent_s = math.fsum(each.total_s for each in seen.requests)
    last_s = max(each.started_s + each.total_s for each in seen.requests)
    longest_s = max(each.total_s for each in seen.requests)
    assert len(seen.requests) > 10 * threads
    assert threads * (last_s - longest_s) <= spent_s <= threads * seen.taken_s
    assert all(each.total_s >= each.connect_s + each.waiting_s for each in seen.requests)


@pytest.mark.parametrize("threads", [1, 2, 4, 30])
def test_no_rate_is_above_the_bounds_of_operational_analysis(threads: int) -> None:
    """X <= min(1 / the busiest CPU's work, threads / all work) (Denning and Buzen 1978), and the busiest is never idle once
    there are enough threads."""
    seen = ask(asked(500, threads=threads, requests=10**9, seconds=1), Link(), tcp(offload=True), WORK, Random(0))
    rate = len(seen.requests) / seen.taken_s
    assert rate <= min(1 / CLIENT_S, threads / (CLIENT_S + SERVER_S)) * (1 + 1e-9)
    if threads == 30:
        assert rate == pytest.approx(1 / CLIENT_S, rel=0.003)


def test_threads_flatten_as_the_universal_law_says() -> None:
    """X(t) / t never grows, and X(t) never falls where nothing is incoherent (Gunther's sigma alone), if CPUs never sleep: that
    they stay awake under load is gained on top."""
    awake = replace(WORK, wake_s=0.0)
    rates = [
        len(ask(asked(500, threads=t, requests=10**9, seconds=0.5), Link(), tcp(), awake, Random(0)).requests) / 0.5
        for t in (1, 2, 3, 4, 6, 8, 16)
    ]
    assert all(after >= 0.999 * before for before, after in pairwise(rates))
    per_thread = [rate / t for rate, t in zip(rates, (1, 2, 3, 4, 6, 8, 16), strict=True)]
    assert all(after <= 1.001 * before for before, after in pairwise(per_thread))


def test_the_cap_of_requests_ends_a_run() -> None:
    seen = ask(asked(500, threads=4, requests=100, seconds=10), Link(), tcp(), WORK, Random(0))
    assert len(seen.requests) == 100
    assert seen.taken_s == pytest.approx(max(each.started_s + each.total_s for each in seen.requests))


# Streams


def flow(link: Link, how: Tcp, *, seconds: int = 3, streams: int = 1, rate: int | None = None) -> Streamed:
    return stream(Flow(seconds, streams, rate), link, how, FREE, Random(0))


def goodput(streamed: Streamed, skip: int = 1) -> float:
    """bit/s after the first seconds."""
    counted = streamed.intervals[skip:]
    return sum(8 * each.received_bytes for second in counted for each in second) / len(counted)


@pytest.mark.parametrize(
    ("overhead", "share"),
    # Ethernet carries 1448 bytes of data in 1538 (941.5 Mbit/s of 1 Gbit/s); shapers count 1514.
    [(38, 1448 / 1538), (14, 1448 / 1514)],
)
@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("offload", [True, False])
def test_the_line_limits_what_arrives(overhead: int, share: float, streams: int, offload: bool) -> None:
    how = tcp(offload=offload, overhead=overhead, window=2**20)
    arrived = goodput(flow(Link(rate=10**8), how, streams=streams))
    # To a segment more or less in each of the two seconds.
    assert arrived == pytest.approx(share * 10**8, abs=2 * 8 * 65_536)
    if overhead == 38:
        assert round(share * 1000, 1) == 941.5


def test_a_window_is_a_round_trip_at_most() -> None:
    """W / RTT: 64 KiB in 20 ms are 26.2 Mbit/s; whole segments of 1448 bytes."""
    arrived = goodput(flow(Link(delay=0.01), tcp(window=65_536)))
    assert arrived == pytest.approx(8 * (65_536 // MSS * MSS) / 0.02, rel=0.002)


def test_a_paced_stream_has_the_rate_that_is_asked() -> None:
    arrived = goodput(flow(Link(rate=10**9), tcp(offload=True), rate=50 * 10**6))
    assert arrived == pytest.approx(50e6, abs=8 * 131_072)


class Periodic(Random):
    """Loses every n-th packet, as the laws of congestion control assume."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every, self.count = every, 0

    def random(self) -> float:
        self.count += 1
        return 1.0 if self.count % self.every else 0.0


@pytest.mark.parametrize("every", [500, 2000])
def test_reno_meets_losses_as_mathis_found(every: int) -> None:
    """Mathis et al. 1997, equation 3: MSS / RTT x sqrt(3/2) / sqrt(p) where each segment is acknowledged."""
    way = Link(delay=0.01, loss=0.5, queue=10**6)
    streamed = stream(Flow(50, 1, None), way, tcp(), FREE, Periodic(every))
    assert goodput(streamed, 10) == pytest.approx(8 * MSS / 0.02 * math.sqrt(1.5 * every), rel=0.05)
    lost = sum(each.retransmissions for second in streamed.intervals for each in second)
    sent = sum(each.sent_bytes for second in streamed.intervals for each in second) / MSS
    assert lost / sent == pytest.approx(1 / every, rel=0.02)


def test_cubic_meets_losses_as_its_rfc_says() -> None:
    """RFC 9438, section 5.1: (C (3 + beta) / (4 (1 - beta)))^(1/4) x (RTT / p)^(3/4) segments of window, with C 0.4 and beta
    0.7, where that is well above Reno's: RTT 0.4 s, p 1 in 2000. The law knows no fast convergence, which costs some of it."""
    window = (0.4 * 3.7 / 1.2) ** 0.25 * (0.4 * 2000) ** 0.75
    assert window == pytest.approx(158.5, abs=0.1)
    way = Link(delay=0.2, loss=0.5, queue=10**6)
    streamed = stream(Flow(250, 1, None), way, tcp(control="cubic"), FREE, Periodic(2000))
    assert 0.85 < goodput(streamed, 100) / (8 * MSS * window / 0.4) < 1.02


# Datagrams


def test_datagrams_beyond_the_line_are_lost() -> None:
    """1470 bytes offered at 20 Mbit/s to a link of 10: 1512 bytes each on it, so that 10 / (20 x 1512/1470) arrive. The bucket
    (none) and the queue (1000) are full after a second."""
    offered = Offered(6, 1, 20 * 10**6, 1470, 1500, 14)
    came = offer(offered, Link(rate=10**7, burst=0), FREE, Random(0))
    late = [each for second in came.intervals[2:] for each in second]
    share = sum(each.received for each in late) / sum(each.sent for each in late)
    assert share == pytest.approx(10 / (20 * 1512 / 1470), rel=0.003)
    assert sum(each.lost for each in late) / sum(each.sent for each in late) == pytest.approx(1 - share, abs=0.003)


@pytest.mark.parametrize(
    ("payload", "packets", "frames"), [(1472, 1, 1514), (1473, 2, 1473 + 8 + 2 * 34), (8192, 6, 8192 + 8 + 6 * 34)]
)
def test_large_datagrams_are_fragmented(payload: int, packets: int, frames: int) -> None:
    """IPv4: 1480 bytes a fragment of 1500, the UDP header once."""
    offered = Offered(1, 1, None, payload, 1500, 14)
    assert (offered.packets, offered.frames_bytes) == (packets, frames)


# Parts


def test_a_bucket_lets_its_burst_through_and_then_its_rate() -> None:
    """10 frames of 1000 bytes at once, 8 Mbit/s (1 ms a frame), a bucket of 4000 bytes: the fourth still passes at once."""
    link = Direction(Link(rate=8_000_000, burst=4000), 0.0, Random(0))
    assert [link.passes(0.0, 1000) for _ in range(6)] == pytest.approx([0, 0, 0, 0, 0.001, 0.002])
    # After 10 ms it is full again, and no fuller.
    assert [link.passes(0.012, 1000) for _ in range(5)] == pytest.approx([0.012, 0.012, 0.012, 0.012, 0.013])


def test_a_queue_drops_what_it_cannot_hold() -> None:
    link = Direction(Link(rate=8_000_000, burst=0, queue=3), 0.0, Random(0))
    assert [link.passes(0.0, 1000) for _ in range(5)] == [0.001, 0.002, 0.003, None, None]
    assert link.passes(0.0015, 1000) == pytest.approx(0.004)


def test_a_cpu_serves_in_turn_and_sleeps_in_between() -> None:
    clock = Clock()
    cpu = Cpu(clock, 0.5)
    done: list[float] = []

    def note() -> None:
        done.append(clock.now_s)

    for time_s in (0.0, 1.0, 1.0, 10.0):
        clock.at(time_s, cpu.work, 2.0, note)
    clock.run(100.0, lambda: False)
    assert done == [2.0, 4.0, 6.0, 12.5]
    assert cpu.busy_s == 8.0
