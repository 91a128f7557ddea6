"""The link check's arithmetic on links whose truth is known: exact token buckets, and trains from known distributions."""

from __future__ import annotations

import json
import random
import struct

import numpy as np
import pytest

from twinbed import linkcheck
from twinbed.linkcheck import judge_rate, probe_flow
from twinbed.linkcheck.judge_rate import CapturePoint, QueueSample
from twinbed.linkcheck.probe_flow import Packets
from twinbed.linkcheck.train import Train, judge_delay, judge_jitter, judge_loss, pace, read_train
from twinbed.model.linkcheck import Figure, LinkCheck, Verdict
from twinbed.model.topology import Link, Topology

SHAPER = CapturePoint(at_the_shaper=True)
HOST = CapturePoint(at_the_shaper=False)


def bucket(rate: float, burst: float, size: int = 1514, seconds: float = 0.4, sent: float = 1e12) -> Packets:
    """A token bucket as HTB is one: a packet may leave while there are tokens, and its size is taken off them."""
    times, now, tokens = [], 0.0, burst
    while now < seconds:
        times.append(now)
        tokens -= size
        wait = max(size * 8 / sent, -tokens * 8 / rate if tokens < 0 else 0.0)
        now += wait
        tokens = min(burst, tokens + wait * rate / 8)
    return Packets(np.array(times), np.full(len(times), float(size)))


def verdicts(figures: list[Figure]) -> dict[str, str]:
    return {figure.quantity: figure.verdict.value for figure in figures}


def carried(link: Link, rate: float, size: int | None = None) -> Packets:
    """What arrives of the check's own flow over a token bucket with the link's burst and some rate."""
    flow = probe_flow.flow(link)
    assert link.burst_bytes is not None
    size = size or flow.frame_bytes or 1514
    return bucket(rate, link.burst_bytes, size, (flow.total_bytes - link.burst_bytes) * 8 / rate)


@pytest.mark.parametrize("rate", [64_000, 10**6, 10**7, 10**8, 10**9])
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("behind", [SHAPER, HOST])
def test_a_right_link_is_within_tolerance(rate: int, joined: bool, behind: CapturePoint) -> None:
    link = Link(rate=rate)
    size = 65226 if joined and not probe_flow.single_packets(link) else None
    figures = judge_rate.judge_flow("a to b", carried(link, rate, size), link, behind)
    assert verdicts(figures) == {"rate": "within tolerance", "burst": "within tolerance"}
    assert figures[0].measured == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize("rate", [64_000, 10**6, 10**7, 10**8, 10**9])
@pytest.mark.parametrize("burst", [None, 3000, 10**5])
def test_a_third_more_than_the_rate_is_found_at_any_rate(rate: int, burst: int | None) -> None:
    link = Link(rate=rate, burst=burst)
    figures = judge_rate.judge_flow("a to b", carried(link, 1.34 * rate), link, SHAPER)
    assert verdicts(figures)["rate"] == "out of tolerance"
    assert figures[0].measured == pytest.approx(1.34 * rate, rel=0.01)


def test_a_joined_packet_at_the_edge_of_the_stretch_makes_no_link_fast() -> None:
    """Joined packets and single ones in turn: HTB waits after each for what it took, TBF before each."""
    sizes = np.array([65226.0, 1514.0] * 12)
    after = np.concatenate([[0.0], np.cumsum(sizes)[:-1]]) * 8 / 1e7
    before = np.cumsum(sizes) * 8 / 1e7
    for times in (after, before):
        assert judge_rate.sustained(Packets(times, sizes)) == pytest.approx(1e7, rel=1e-9)


@pytest.mark.parametrize(
    ("rate", "burst", "seconds"),
    [
        # What comes back of 34,250 and 66,560 bytes alone takes this long.
        (1000, None, 274.0),
        (10_000, None, 53.2),
        (10**6, 10**7, 80.0),
    ],
)
def test_a_link_that_takes_too_long_is_not_measured(rate: int, burst: int | None, seconds: float) -> None:
    link = Link(rate=rate, burst=burst)
    assert probe_flow.refill_s(link) == pytest.approx(seconds, rel=1e-3)
    why_not = probe_flow.why_not(link, None)
    assert why_not is not None
    assert "20 s at most" in why_not
    figures = judge_rate.no_figures("a to b", link, why_not)
    assert [(each.quantity, each.measured, each.verdict) for each in figures] == [
        ("rate", None, Verdict.INCONCLUSIVE),
        ("burst", None, Verdict.INCONCLUSIVE),
    ]


def test_what_a_star_s_uplink_slows_down_is_not_measured() -> None:
    assert probe_flow.why_not(Link(rate=10**8), 10**8) is None
    assert "uplink carries 10000000 bit/s" in str(probe_flow.why_not(Link(rate=10**8), 10**7))


@pytest.mark.parametrize(
    ("link", "uplink", "expected"),
    [
        (Link(delay=0.01), None, (150, 0.002)),
        (Link(delay=0.01, jitter=0.01, loss=0.02), None, (1000, 0.001)),
        # A tenth of 10^5 bit/s is 10^4; a frame has 848 bits.
        (Link(delay=0.01, rate=10**5), None, (150, 0.0848)),
        (Link(delay=0.01), 10**5, (150, 0.0848)),
        (Link(delay=0.01, rate=10**9), 10**5, (150, 0.0848)),
    ],
)
def test_a_train_takes_a_tenth_of_the_slowest_on_its_way(link: Link, uplink: int | None, expected: tuple[int, float]) -> None:
    assert pace(Topology(kind="star", uplink=uplink, link=link)) == pytest.approx(expected)


@pytest.mark.parametrize("rate", [20_000, 35_000, 64_000, 10**6, 10**7, 10**8, 10**9, 10**10, 10**11])
@pytest.mark.parametrize("burst", [None, 1600, 10_000, 10**5])
def test_no_more_is_sent_than_fits_into_the_time(rate: int, burst: int | None) -> None:
    link = Link(rate=rate, burst=burst)
    flow = probe_flow.flow(link)
    in_time = 2 * flow.seconds + probe_flow.refill_s(link) <= 20
    assert (probe_flow.why_not(link, None) is None) == in_time
    assert link.burst_bytes is not None
    arguments = flow.arguments()
    bytes_of = {name: int(arguments[arguments.index(name) + 1]) for name in ("-n", "-l")}
    blocks = -(-bytes_of["-n"] // bytes_of["-l"])
    headers = 0 if flow.frame_bytes is None else blocks * 42
    # UDP is sent at 1.3 times the rate, so that a third of what fits may wait; of TCP nothing.
    fits = link.burst_bytes + (1.0 if flow.frame_bytes is None else 1.3) * rate * flow.seconds / 8
    assert blocks * bytes_of["-l"] + headers == pytest.approx(fits, rel=1e-3, abs=1600)


def test_where_only_single_packets_are_sent_a_small_burst_cannot_be_told() -> None:
    for link in (Link(rate=20_000, burst=3000), Link(rate=10**8, burst=3000, delay=0.01)):
        assert probe_flow.single_packets(link)
        assert link.rate is not None
        figures = judge_rate.judge_flow("a to b", carried(link, link.rate), link, SHAPER)
        assert verdicts(figures) == {"rate": "within tolerance", "burst": "cannot be told"}


def test_a_late_time_stamp_is_no_burst() -> None:
    """The machine stands still for 2 ms behind the first packet's leave: what it sends after seems to come at once."""
    arrived = bucket(1e9, 125_000)
    late = arrived.times_s.copy()
    late[0] += 0.002
    stamped = Packets(np.maximum.accumulate(late), arrived.sizes)
    figures = judge_rate.judge_flow("a to b", stamped, Link(rate=10**9), SHAPER)
    assert figures[1].measured is not None
    assert figures[1].measured > 350_000
    assert verdicts(figures) == {"rate": "within tolerance", "burst": "cannot be told"}


def test_what_is_too_fast_after_a_pause_is_doubted() -> None:
    """A bucket that lets its burst pass late, in the half that the rate is taken from."""
    first, then = bucket(1e6, 66_560, seconds=0.7), bucket(1e6, 40_000, seconds=2.0)
    arrived = Packets(np.concatenate([first.times_s, then.times_s + 1.02]), np.concatenate([first.sizes, then.sizes]))
    figures = judge_rate.judge_flow("a to b", arrived, Link(rate=10**6), SHAPER)
    assert verdicts(figures)["rate"] == "cannot be told"


@pytest.mark.parametrize("rate", [10**7, 10**8, 10**9])
@pytest.mark.parametrize("behind", [SHAPER, HOST])
def test_twice_the_rate_is_found(rate: int, behind: CapturePoint) -> None:
    link = Link(rate=rate)
    assert link.burst_bytes is not None
    figures = judge_rate.judge_flow("a to b", bucket(2 * rate, link.burst_bytes), link, behind)
    assert verdicts(figures)["rate"] == "out of tolerance"


def test_twice_the_rate_is_found_though_the_hosts_pause() -> None:
    """For most of its second half nothing is sent."""
    arrived = bucket(2e8, 66_560, seconds=0.3)
    paused = Packets(arrived.times_s + 0.15 * (arrived.times_s > 0.25), arrived.sizes)
    figures = judge_rate.judge_flow("a to b", paused, Link(rate=10**8), SHAPER)
    assert verdicts(figures) == {"rate": "out of tolerance", "burst": "within tolerance"}


def test_a_link_of_a_wire_that_beats_its_rate_by_a_tenth_is_found() -> None:
    """As the virtual machines of the published tables did."""
    figures = judge_rate.judge_flow("a to b", bucket(1.1e9, 125_000), Link(rate=10**9), SHAPER)
    assert verdicts(figures)["rate"] == "out of tolerance"


def test_a_superpacket_that_exceeds_a_small_burst_is_found() -> None:
    link = Link(rate=10**9, burst=10_000)
    figures = judge_rate.judge_flow("a to b", bucket(1e9, 10_000, 65226), link, SHAPER)
    assert verdicts(figures)["burst"] == "out of tolerance"
    assert "segmentation offload" in figures[1].note
    assert verdicts(judge_rate.judge_flow("a to b", bucket(1e9, 10_000), link, SHAPER))["burst"] == "within tolerance"


def test_ten_times_the_burst_is_found_at_the_shaper_and_only_doubted_at_a_host() -> None:
    arrived = bucket(1e9, 1_250_000)
    assert verdicts(judge_rate.judge_flow("a to b", arrived, Link(rate=10**9), SHAPER))["burst"] == "out of tolerance"
    link = Link(rate=10**8)
    assert verdicts(judge_rate.judge_flow("a to b", bucket(1e8, 660_000), link, HOST))["burst"] == "cannot be told"


def test_slow_hosts_are_not_a_slow_link() -> None:
    figures = judge_rate.judge_flow("a to b", bucket(1e9, 125_000, sent=3e8), Link(rate=10**9), SHAPER)
    assert verdicts(figures)["rate"] == "cannot be told"
    assert figures[0].measured == pytest.approx(3e8, rel=0.01)


def samples(rate: float, waiting: float) -> tuple[QueueSample, ...]:
    return tuple(QueueSample(at_s / 10, waiting, rate / 8 * at_s / 10) for at_s in range(5))


def test_a_shaper_at_half_the_rate_is_found_by_what_waits_in_it() -> None:
    link = Link(rate=10**9)
    slow = bucket(5e8, 125_000)
    always = CapturePoint(at_the_shaper=True, samples=samples(5e8, 30_000))
    assert verdicts(judge_rate.judge_flow("a to b", slow, link, always))["rate"] == "out of tolerance"
    now_and_then = CapturePoint(at_the_shaper=True, samples=(*samples(5e8, 30_000), QueueSample(0.6, 0, 1e7)))
    assert verdicts(judge_rate.judge_flow("a to b", slow, link, now_and_then))["rate"] == "cannot be told"


def test_a_shaper_that_is_called_late_but_goes_at_its_rate_is_not_slow() -> None:
    """Every 20 ms the machine pauses for 10: packets always wait, and leave at half the rate on the whole."""
    arrived = bucket(1e9, 125_000, seconds=0.2)
    late = Packets(arrived.times_s + np.floor(arrived.times_s / 0.01) * 0.01, arrived.sizes)
    always = CapturePoint(at_the_shaper=True, samples=samples(5e8, 30_000))
    assert verdicts(judge_rate.judge_flow("a to b", late, Link(rate=10**9), always))["rate"] == "cannot be told"


def test_what_a_delay_keeps_waiting_is_not_the_shapers() -> None:
    link = Link(rate=10**9, delay=0.01)
    waiting = 5e8 / 8 * 0.01
    behind = CapturePoint(at_the_shaper=True, samples=samples(5e8, waiting))
    assert verdicts(judge_rate.judge_flow("a to b", bucket(5e8, 125_000), link, behind))["rate"] == "cannot be told"


def test_nothing_arrived_is_null() -> None:
    nothing = Packets(np.array([]), np.array([]))
    (figure,) = judge_rate.judge_flow("a to b", nothing, Link(rate=10**9), SHAPER)
    assert (figure.measured, figure.verdict) == (None, Verdict.INCONCLUSIVE)


def train(delay_s: float, jitter_s: float = 0.0, host_s: float = 0.0005, packets: int = 400) -> Train:
    noise = random.Random(20190221)
    there = [delay_s + noise.uniform(-jitter_s, jitter_s) + noise.expovariate(1 / host_s) / 2 for _ in range(packets)]
    back = [delay_s + noise.uniform(-jitter_s, jitter_s) + noise.expovariate(1 / host_s) / 2 for _ in range(packets)]
    both = [a + b for a, b in zip(there, back, strict=True)]
    return Train(both, there, back, (packets, packets), (packets, packets), 0.002)


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
    assert judge_delay("a and b", train(is_s), Link(delay=asked_s)).verdict == verdict


@pytest.mark.parametrize(
    ("is_s", "jitter_s", "verdict"),
    [(0.01, 0.003, "within tolerance"), (0.02, 0.003, "out of tolerance"), (0.008, 0.003, "out of tolerance")],
)
def test_delays_that_vary(is_s: float, jitter_s: float, verdict: str) -> None:
    assert judge_delay("a and b", train(is_s, jitter_s), Link(delay=0.01, jitter=0.003)).verdict == verdict


@pytest.mark.parametrize("link", [Link(delay=0.03), Link(delay=0.03, jitter=0.01)])
@pytest.mark.parametrize("in_time", [[], [0.065] * 5])
def test_a_host_that_stands_still_is_no_longer_delay(link: Link, in_time: list[float]) -> None:
    """All packets of 76 ms come at once, a quarter of a second late."""
    trips = in_time + [0.25 - 0.002 * number for number in range(38)]
    still = Train(trips, trips, trips, (len(trips), len(trips)), (len(trips), len(trips)), 0.002)
    assert judge_delay("p", still, link).verdict is not Verdict.OUT


@pytest.mark.parametrize(
    ("jitter_s", "verdict"),
    [(0.003, "within tolerance"), (0.0, "out of tolerance"), (0.001, "out of tolerance")],
)
def test_jitter(jitter_s: float, verdict: str) -> None:
    found = judge_jitter("a to b", train(0.01, jitter_s).there_s, Link(delay=0.01, jitter=0.003), 0.015)
    assert found.verdict == verdict


def test_twice_the_jitter_is_found_by_round_trips_that_are_too_short() -> None:
    link, wide = Link(delay=0.1, jitter=0.02), train(0.1, 0.04)
    assert judge_jitter("a to b", wide.there_s, link, min(wide.round_trips_s)).verdict is Verdict.OUT
    busy = train(0.1, 0.02, host_s=0.2)
    assert judge_jitter("a to b", busy.there_s, link, min(busy.round_trips_s)).verdict is Verdict.INCONCLUSIVE


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
    assert judge_loss("a to b", (sent - lost, sent), emulator, Link(loss=asked)).verdict == verdict


@pytest.mark.parametrize("share", [0.001, 0.01, 0.2])
def test_right_losses_are_almost_never_out_of_tolerance(share: float) -> None:
    """50,000 links that lose as asked: at two times 1e-5 one may be found."""
    lost = np.random.default_rng(7).binomial(2000, share, 50_000)
    found = {int(each): judge_loss("a", (2000 - int(each), 2000), None, Link(loss=share)) for each in np.unique(lost)}
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
    packets = probe_flow.read(capture((10**9, frame(joined), joined), (10**9 + 250, frame(1514), 1514)), 1500)
    assert packets.sizes.tolist() == [45 * 1514, 1514]
    assert packets.times_s.tolist() == [0.0, 250e-9]


def test_a_capture_that_was_cut_short_is_read_so_far_and_another_file_is_refused() -> None:
    whole = capture((0, frame(1514), 1514), (1000, frame(1514), 1514))
    assert len(probe_flow.read(whole[:-3], 1500).sizes) == 1
    with pytest.raises(ValueError, match="magic number"):
        probe_flow.read(b"nothing of the kind", 1500)


def test_irtt_is_read() -> None:
    def trip(number: int, lost: str) -> dict[str, object]:
        return {"seqno": number, "lost": lost, "delay": {"rtt": 300, "send": 100, "receive": 200}}

    trips = [trip(0, "false"), trip(1, "true_up"), trip(2, "true_down"), trip(3, "false"), trip(4, "true_up")]
    found = read_train(json.dumps({"round_trips": trips, "stats": {"server_packets_received": 3}}).encode(), 0.002)
    assert (found.there, found.back) == ((3, 4), (2, 3))
    assert found.round_trips_s == [300e-9, 300e-9]
    silent = read_train(b'{"round_trips": [{"seqno": 0, "lost": "true"}], "stats": {"server_packets_received": 0}}', 0.002)
    link = Link(delay=0.03, jitter=0.01, loss=0.05, emulated_at="routers")
    figures = [
        judge_delay("p", silent, link),
        judge_jitter("p", silent.there_s, link, None),
        judge_loss("p", silent.there, None, link),
    ]
    assert {figure.verdict for figure in figures} == {Verdict.INCONCLUSIVE}, (
        "hosts that stood still and a link that is cut look alike"
    )


def test_only_what_is_asked_is_checked() -> None:
    assert not linkcheck.asks(Link())
    assert not linkcheck.asks(Link(mtu=1400, queue=100))
    assert linkcheck.asks(Link(rate=10**6))
    assert linkcheck.asks(Link(loss=0.1, emulated_at="hosts"))


def test_a_check_survives_json() -> None:
    figure = Figure("a to b", "rate", "bit/s", 1e9, None, None, 1.1e9, Verdict.INCONCLUSIVE, "because")
    check = LinkCheck("cell", "run", {"topology": {}}, (figure,), (), "reason", ("client1 and server1",), 40)
    written = json.loads(json.dumps(check.to_json()))
    assert LinkCheck.from_json(written) == check
    assert written["measured_pairs"] == ["client1 and server1"]
    del written["measured_pairs"], written["pairs"]
    older = LinkCheck.from_json(written)
    assert (older.measured_pairs, older.pairs) == (None, None)
