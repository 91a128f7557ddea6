"""The link check's arithmetic on links whose truth is known: exact token buckets, and trains from known distributions."""

from __future__ import annotations

import json
import random
import struct

import numpy as np
import pytest

from twinbed.lab import linkcheck
from twinbed.lab.linkcheck.train import read_train
from twinbed.links import arrivals, measured
from twinbed.links.arrivals import Arrivals
from twinbed.links.measured import Behind, Look, Train
from twinbed.model.linkcheck import Figure, LinkCheck, Verdict
from twinbed.model.topology import Link

SHAPER = Behind(at_the_shaper=True)
HOST = Behind(at_the_shaper=False)


def bucket(rate: float, burst: float, size: int = 1514, seconds: float = 0.4, offered: float = 1e12) -> Arrivals:
    """A token bucket as HTB is one: a packet may leave while there are tokens, and its size is taken off them."""
    times, now, tokens = [], 0.0, burst
    while now < seconds:
        times.append(now)
        tokens -= size
        wait = max(size * 8 / offered, -tokens * 8 / rate if tokens < 0 else 0.0)
        now += wait
        tokens = min(burst, tokens + wait * rate / 8)
    return Arrivals(np.array(times), np.full(len(times), float(size)))


def verdicts(figures: list[Figure]) -> dict[str, str]:
    return {figure.quantity: figure.verdict.value for figure in figures}


@pytest.mark.parametrize("rate", [10**7, 10**8, 10**9])
@pytest.mark.parametrize("size", [1514, 65226])
@pytest.mark.parametrize("behind", [SHAPER, HOST])
def test_a_right_link_is_within_tolerance(rate: int, size: int, behind: Behind) -> None:
    link = Link(rate=rate)
    assert link.burst_bytes is not None
    figures = measured.judge_flow("a to b", bucket(rate, link.burst_bytes, size, measured.flow_seconds(link)), link, behind)
    assert verdicts(figures) == {"rate": "within tolerance", "burst": "within tolerance"}
    assert figures[0].measured == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("rate", [10**7, 10**8, 10**9])
@pytest.mark.parametrize("behind", [SHAPER, HOST])
def test_twice_the_rate_is_found(rate: int, behind: Behind) -> None:
    link = Link(rate=rate)
    assert link.burst_bytes is not None
    figures = measured.judge_flow("a to b", bucket(2 * rate, link.burst_bytes), link, behind)
    assert verdicts(figures)["rate"] == "out of tolerance"


def test_a_link_of_a_wire_that_beats_its_rate_by_a_tenth_is_found() -> None:
    """As the virtual machines of the published tables did."""
    figures = measured.judge_flow("a to b", bucket(1.1e9, 125_000), Link(rate=10**9), SHAPER)
    assert verdicts(figures)["rate"] == "out of tolerance"


def test_a_superpacket_that_exceeds_a_small_burst_is_found() -> None:
    link = Link(rate=10**9, burst=10_000)
    figures = measured.judge_flow("a to b", bucket(1e9, 10_000, 65226), link, SHAPER)
    assert verdicts(figures)["burst"] == "out of tolerance"
    assert "segmentation offload" in figures[1].note
    assert verdicts(measured.judge_flow("a to b", bucket(1e9, 10_000), link, SHAPER))["burst"] == "within tolerance"


def test_ten_times_the_burst_is_found_at_the_shaper_and_only_doubted_at_a_host() -> None:
    arrived = bucket(1e9, 1_250_000)
    assert verdicts(measured.judge_flow("a to b", arrived, Link(rate=10**9), SHAPER))["burst"] == "out of tolerance"
    link = Link(rate=10**8)
    assert verdicts(measured.judge_flow("a to b", bucket(1e8, 660_000), link, HOST))["burst"] == "cannot be told"


def test_slow_hosts_are_not_a_slow_link() -> None:
    figures = measured.judge_flow("a to b", bucket(1e9, 125_000, offered=3e8), Link(rate=10**9), SHAPER)
    assert verdicts(figures)["rate"] == "cannot be told"
    assert figures[0].measured == pytest.approx(3e8, rel=0.01)


def looks(rate: float, waiting: float) -> tuple[Look, ...]:
    return tuple(Look(at_s / 10, waiting, rate / 8 * at_s / 10) for at_s in range(5))


def test_a_shaper_at_half_the_rate_is_found_by_what_waits_in_it() -> None:
    link = Link(rate=10**9)
    slow = bucket(5e8, 125_000)
    always = Behind(at_the_shaper=True, looks=looks(5e8, 30_000))
    assert verdicts(measured.judge_flow("a to b", slow, link, always))["rate"] == "out of tolerance"
    now_and_then = Behind(at_the_shaper=True, looks=(*looks(5e8, 30_000), Look(0.6, 0, 1e7)))
    assert verdicts(measured.judge_flow("a to b", slow, link, now_and_then))["rate"] == "cannot be told"


def test_a_shaper_that_is_called_late_but_goes_at_its_rate_is_not_slow() -> None:
    """Every 20 ms the machine pauses for 10: packets always wait, and leave at half the rate on the whole."""
    arrived = bucket(1e9, 125_000, seconds=0.2)
    late = Arrivals(arrived.times_s + np.floor(arrived.times_s / 0.01) * 0.01, arrived.sizes)
    always = Behind(at_the_shaper=True, looks=looks(5e8, 30_000))
    assert verdicts(measured.judge_flow("a to b", late, Link(rate=10**9), always))["rate"] == "cannot be told"


def test_what_a_delay_keeps_waiting_is_not_the_shapers() -> None:
    link = Link(rate=10**9, delay=0.01)
    waiting = 5e8 / 8 * 0.01
    behind = Behind(at_the_shaper=True, looks=looks(5e8, waiting))
    assert verdicts(measured.judge_flow("a to b", bucket(5e8, 125_000), link, behind))["rate"] == "cannot be told"


def test_nothing_arrived_is_null() -> None:
    nothing = Arrivals(np.array([]), np.array([]))
    (figure,) = measured.judge_flow("a to b", nothing, Link(rate=10**9), SHAPER)
    assert (figure.measured, figure.verdict) == (None, Verdict.UNTOLD)


def train(delay_s: float, jitter_s: float = 0.0, host_s: float = 0.0005, packets: int = 400) -> Train:
    noise = random.Random(20190221)
    there = [delay_s + noise.uniform(-jitter_s, jitter_s) + noise.expovariate(1 / host_s) / 2 for _ in range(packets)]
    back = [delay_s + noise.uniform(-jitter_s, jitter_s) + noise.expovariate(1 / host_s) / 2 for _ in range(packets)]
    both = [a + b for a, b in zip(there, back, strict=True)]
    return Train(both, there, back, (packets, packets), (packets, packets))


@pytest.mark.parametrize(
    ("asked_s", "is_s", "verdict"),
    [
        (0.010, 0.010, "within tolerance"),
        (0.010, 0.020, "out of tolerance"),
        (0.010, 0.0, "out of tolerance"),
        (0.010, 0.009, "out of tolerance"),
        (0.010, 0.012, "cannot be told"),
        (0.001, 0.001, "within tolerance"),
        (0.001, 0.0002, "out of tolerance"),
    ],
)
def test_delays(asked_s: float, is_s: float, verdict: str) -> None:
    assert measured.judge_delay("a and b", train(is_s), Link(delay=asked_s)).verdict == verdict


@pytest.mark.parametrize(
    ("is_s", "jitter_s", "verdict"),
    [(0.01, 0.003, "within tolerance"), (0.02, 0.003, "out of tolerance"), (0.008, 0.003, "out of tolerance")],
)
def test_delays_that_vary(is_s: float, jitter_s: float, verdict: str) -> None:
    assert measured.judge_delay("a and b", train(is_s, jitter_s), Link(delay=0.01, jitter=0.003)).verdict == verdict


@pytest.mark.parametrize(
    ("jitter_s", "verdict"),
    [(0.003, "within tolerance"), (0.0, "out of tolerance"), (0.001, "out of tolerance")],
)
def test_jitter(jitter_s: float, verdict: str) -> None:
    found = measured.judge_jitter("a to b", train(0.01, jitter_s).there_s, Link(delay=0.01, jitter=0.003))
    assert found.verdict == verdict


def test_twice_the_jitter() -> None:
    found = measured.judge_jitter("a to b", train(0.1, 0.04).there_s, Link(delay=0.1, jitter=0.02))
    assert found.verdict is Verdict.OUT


@pytest.mark.parametrize(
    ("asked", "lost", "sent", "emulator", "verdict"),
    [
        (0.01, 20, 2000, None, "within tolerance"),
        (0.01, 0, 2000, None, "out of tolerance"),
        (0.001, 100, 2000, None, "out of tolerance"),
        (0.001, 100, 2000, (1900, 2000), "out of tolerance"),
        (0.001, 100, 2000, (1998, 2000), "cannot be told"),
        (0.001, 0, 2000, None, "within tolerance"),
        (0.05, 0, 400, None, "out of tolerance"),
        (0.05, 400, 400, None, "out of tolerance"),
        (0.05, 0, 0, None, "cannot be told"),
    ],
)
def test_loss(asked: float, lost: int, sent: int, emulator: tuple[int, int] | None, verdict: str) -> None:
    assert measured.judge_loss("a to b", (sent - lost, sent), emulator, Link(loss=asked)).verdict == verdict


@pytest.mark.parametrize("share", [0.001, 0.01, 0.2])
def test_right_losses_are_almost_never_out_of_tolerance(share: float) -> None:
    """50,000 links that lose as asked: at two times 1e-5 one may be found."""
    lost = np.random.default_rng(7).binomial(2000, share, 50_000)
    found = {int(each): measured.judge_loss("a", (2000 - int(each), 2000), None, Link(loss=share)) for each in np.unique(lost)}
    wrong = sum(found[int(each)].verdict is Verdict.OUT for each in lost)
    assert wrong <= 4


def frame(length: int, protocol: int = 6) -> bytes:
    ethernet = bytes(12) + b"\x08\x00"
    ip = bytes([0x45]) + bytes(8) + bytes([protocol]) + bytes(10)
    tcp = bytes(12) + bytes([0x80]) + bytes(19)
    return (ethernet + ip + tcp)[: min(length, 66)]


def capture(*packets: tuple[int, bytes, int]) -> bytes:
    """(time in ns, bytes kept, length)"""
    text = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)
    for time_ns, head, length in packets:
        text += struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(head), length) + head
    return text


def test_a_superpacket_counts_with_the_headers_of_each_of_its_segments() -> None:
    """45 segments of 1448 bytes leave the shaper as 45 frames of 1514."""
    joined = 45 * 1448 + 66
    found = arrivals.read(capture((10**9, frame(joined), joined), (10**9 + 250, frame(1514), 1514)), 1500)
    assert found.sizes.tolist() == [45 * 1514, 1514]
    assert found.times_s.tolist() == [0.0, 250e-9]


def test_a_capture_that_was_cut_short_is_read_so_far_and_another_file_is_refused() -> None:
    whole = capture((0, frame(1514), 1514), (1000, frame(1514), 1514))
    assert len(arrivals.read(whole[:-3], 1500).sizes) == 1
    with pytest.raises(ValueError, match="not a capture"):
        arrivals.read(b"nothing of the kind", 1500)


def test_irtt_is_read() -> None:
    def trip(number: int, lost: str) -> dict[str, object]:
        return {"seqno": number, "lost": lost, "delay": {"rtt": 300, "send": 100, "receive": 200}}

    trips = [trip(0, "false"), trip(1, "true_up"), trip(2, "true_down"), trip(3, "false"), trip(4, "true_up")]
    found = read_train(json.dumps({"round_trips": trips, "stats": {"server_packets_received": 3}}).encode())
    assert (found.there, found.back) == ((3, 4), (2, 3))
    assert found.round_trips_s == [300e-9, 300e-9]
    silent = read_train(b'{"round_trips": [{"seqno": 0, "lost": "true"}], "stats": {"server_packets_received": 0}}')
    link = Link(delay=0.03, jitter=0.01, loss=0.05, emulated_at="routers")
    figures = [
        measured.judge_delay("p", silent, link),
        measured.judge_jitter("p", silent.there_s, link),
        measured.judge_loss("p", silent.there, None, link),
    ]
    assert {figure.verdict for figure in figures} == {Verdict.UNTOLD}, (
        "hosts that stood still and a link that is cut look alike"
    )


def test_only_what_is_asked_is_checked() -> None:
    assert not linkcheck.asks(Link())
    assert not linkcheck.asks(Link(mtu=1400, queue=100))
    assert linkcheck.asks(Link(rate=10**6))
    assert linkcheck.asks(Link(loss=0.1, emulated_at="hosts"))


def test_a_check_survives_json() -> None:
    figure = Figure("a to b", "rate", "bit/s", 1e9, None, None, 1.1e9, Verdict.UNTOLD, "because")
    check = LinkCheck("cell", "run", {"topology": {}}, (figure,), (), "reason")
    assert LinkCheck.from_json(json.loads(json.dumps(check.to_json()))) == check
