"""Pauses inside runs: found where planted, and not where there are none."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.simulated.little import record

from twinbed.model.caution import Kind
from twinbed.results.extract.pace import pace
from twinbed.statistics.stalls import of_events, of_intervals


@pytest.mark.parametrize("pace", [0.001, 0.05, 1.0])
@pytest.mark.parametrize("at", [0, 250, 498])
def test_a_planted_pause_is_found_where_it_is(pace: float, at: int) -> None:
    pauses = np.random.default_rng(1).exponential(pace, 499)
    pauses[at] = max(13.0, 100 * pace)
    [stall] = of_events(np.concatenate([[0.0], np.cumsum(pauses)]))
    assert stall.seconds == pytest.approx(pauses[at])
    assert stall.start_s == pytest.approx(pauses[:at].sum())


def test_random_pauses_are_no_stalls() -> None:
    """Exponential ones never, of log-normal ones with a sigma of 1 five in a million: of 200 studies of 1,000 about 0.9 are
    flagged; 5 would be more than 4 standard deviations above."""
    noise = np.random.default_rng(2)
    assert not any(of_events(np.cumsum(noise.exponential(1.0, 10_000))) for _ in range(50))
    assert sum(bool(of_events(np.cumsum(noise.lognormal(0, 1, 1000)))) for _ in range(200)) <= 4


@pytest.mark.parametrize("stalled", [1, 6, 12])
def test_stalls_of_every_fifth_request_are_found_too(stalled: int) -> None:
    """60 requests of 0.2 s, one after the other, of which some take 13 s more: they are not the run's pace."""
    lasts = np.full(60, 0.2)
    lasts[np.linspace(2, 57, stalled).astype(int)] += 13.0
    ends = np.cumsum(lasts)
    assert len(of_events(np.concatenate([ends, ends - lasts + 1e-4]))) == stalled


def test_requests_that_all_take_long_are_no_stalls() -> None:
    ends = np.cumsum(np.full(60, 1.3))
    assert of_events(np.concatenate([ends, ends - 1.3 + 1e-4])) == []


def test_short_pauses_and_few_events_say_nothing() -> None:
    times = np.arange(100) * 0.001
    assert of_events(np.concatenate([times, times + 0.29])) == []
    assert len(of_events(np.concatenate([times, times + 0.31]))) == 1
    assert of_events(np.array([0.0, 1.0, 100.0])) is None


def test_intervals_without_work_are_one_stall() -> None:
    [stall] = of_intervals([1.0] * 10, [100, 99, 101, 0, 1, 2, 100, 98, 100, 100])
    assert (stall.start_s, stall.seconds) == (3.0, 3.0)
    assert of_intervals([1.0] * 10, [100, 60, 140, 30, 100, 100, 100, 10, 100, 100]) == []
    assert of_intervals([1.0] * 4, [100, 0, 100, 100]) is None, "too few to know a pace"


def exchanges(link: list[str], start_s: list[float], duration_s: list[float | None]) -> tuple[str, pa.Table]:
    begun = [1_700_000_000_000_000_000 + round(1e9 * each) for each in start_s]
    return "exchanges", pa.table({"link": link, "start_ns": begun, "duration_s": pa.array(duration_s, pa.float64())})


def test_a_run_that_pauses_is_cautioned() -> None:
    """100 requests, one every 10 ms; the 50th is sent 13 s late."""
    start = [0.01 * each + (13.0 if each >= 50 else 0.0) for each in range(100)]
    run = record("virtual", 0, 0, {})
    table = exchanges(["client"] * 100, start, [0.005] * 99 + [None])
    values, [caution] = pace(run.id, [table])
    assert (caution.kind, caution.subject) == (Kind.STALL, run.id)
    assert caution.detail == "client: the longest 13 s; 93 % of 14 s"
    # Seen on the server's link alone it is nobody's; and without the pause there is none.
    assert {value.metric: value.value for value, _ in values} == {
        "stalls": 1,
        "stalled_share": pytest.approx(13.005 / (13.98 + 0.005)),
        "rate_drift": None,
    }
    unseen, cautions = pace(run.id, [exchanges(["server"] * 100, start, [0.005] * 100)])
    assert not cautions and {value.value for value, _ in unseen} == {None}
    steady, cautions = pace(run.id, [exchanges(["client"] * 100, [0.01 * each for each in range(100)], [0.005] * 100)])
    assert not cautions and [value.value for value, _ in steady] == [0, 0, None]


def test_an_iperf3_run_that_pauses_is_cautioned() -> None:
    rows = {"host": ["client"] * 12, "end": ["server"] * 6 + ["client"] * 6, "start_s": [*range(6)] * 2}
    rows |= {"seconds": [1.0] * 12, "bytes": [100, 100, 0, 0, 100, 100, *[100] * 6]}
    values, [caution] = pace("1", [("intervals", pa.table(rows))])
    assert caution.detail == "client: the longest 2 s; 33 % of 6 s"
    assert [value.value for value, _ in values] == [1, pytest.approx(1 / 3), None]


def test_a_rate_that_falls_in_the_second_half_is_a_metric() -> None:
    """100 answers a second for 5 s, and ever fewer for 5 s more, down to 60: 40 of 80 in the middle, -50 %. After t s of those
    100 t - 4 t^2 = n have come, so that t = (100 - sqrt(10000 - 16 n)) / 8."""
    falling = 5 + (100 - np.sqrt(10_000 - 16 * np.arange(400))) / 8
    start = [*np.arange(0, 5, 0.01), *falling]
    values, _ = pace("1", [exchanges(["client"] * len(start), start, [0.001] * len(start))])
    [drift] = [value.value for value, _ in values if value.metric == "rate_drift"]
    assert drift == pytest.approx(-0.5, abs=0.06)


def test_runs_without_requests_or_intervals_have_none() -> None:
    assert pace("1", [("packets", pa.table({"link": ["client"]}))]) == ([], [])


def ab_requests(total_s: list[float]) -> tuple[str, pa.Table]:
    """Requests one after the other, as ab -g writes them: starts in whole seconds, times in milliseconds, by time."""
    ends = np.cumsum(total_s)
    starts = np.floor(1_700_000_000.4 + ends - total_s)
    order = np.argsort(total_s, kind="stable")
    rows = {"host": ["client"] * len(ends), "start_s": starts[order].astype(np.int64), "total_s": np.round(total_s, 3)[order]}
    return "requests", pa.table(rows)


def test_the_seeds_pause_is_found_from_what_ab_wrote_alone() -> None:
    """13 s with e1000, among requests of 1 ms: to within the second to which ab cuts starts."""
    values, [caution] = pace("1", [ab_requests([0.001] * 3000 + [13.0] + [0.001] * 4000)])
    assert [value.value for value, _ in values][:2] == [1, pytest.approx(13 / 20, abs=0.1)]
    assert caution.kind is Kind.STALL and caution.detail.startswith("client: the longest 13 s")
    for undisturbed in ([0.001] * 9000, [1.3] * 60, [0.001] * 3000 + [1.1] + [0.001] * 4000, [0.3, 0.9] * 40):
        values, cautions = pace("1", [ab_requests(undisturbed)])
        assert not cautions and values[0][0].value == 0


def test_the_seeds_pause_is_found_from_iperf3_alone() -> None:
    done = [100] * 20 + [30] + [0] * 12 + [60] + [100] * 20
    rows = {"host": ["client"] * 54, "end": ["client"] * 54, "start_s": list(range(54)), "seconds": [1.0] * 54, "bytes": done}
    values, [caution] = pace("1", [("intervals", pa.table(rows))])
    assert caution.detail == "client: the longest 12 s; 22 % of 54 s"
    assert values[0][0].value == 1


def connections(start_ns: int, duration_s: float, link: str = "client") -> tuple[str, pa.Table]:
    rows = {"link": [link], "protocol": ["tcp"], "start_ns": [start_ns], "duration_s": [duration_s]}
    return "connections", pa.table(rows)


def stalled(start_ns: list[int], duration_s: list[float], link: str = "client") -> tuple[str, pa.Table]:
    starts, lasts = pa.array(start_ns, pa.int64()), pa.array(duration_s, pa.float64())
    return "stalls", pa.table({"link": pa.array([link] * len(start_ns), pa.string()), "start_ns": starts, "duration_s": lasts})


BEGUN = 1_700_000_000_000_000_000


def test_the_seeds_pause_is_found_from_a_capture_alone() -> None:
    """13 s and 2 s of 40; two connections that stand still at once are one stall. What stands still on the server's link alone,
    and nothing, are none."""
    found = [BEGUN + 7_000_000_000, BEGUN + 8_000_000_000, BEGUN + 30_000_000_000]
    values, [caution] = pace("1", [connections(BEGUN, 40.0), stalled(found, [13.0, 3.0, 2.0])])
    assert [value.value for value, _ in values] == [2, pytest.approx(15 / 40), None]
    assert caution.detail == "client: 2 pauses, the longest 13 s; 38 % of 40 s"
    for nothing in (stalled([], []), stalled(found, [13.0, 3.0, 2.0], "server")):
        values, cautions = pace("1", [connections(BEGUN, 40.0), nothing])
        assert not cautions and [value.value for value, _ in values] == [0, 0, None]


def test_connections_and_requests_that_stand_still_are_one_stall() -> None:
    """A request every 10 ms for 1 s, then none for 13 s, of which a connection waits for 12.5 s, and 1 s more at the end."""
    start = [0.01 * each + (13.0 if each >= 100 else 0.0) for each in range(200)]
    first = BEGUN
    tables = [
        exchanges(["client"] * 200, start, [0.005] * 200),
        connections(first, 15.0),
        stalled([first + 1_200_000_000, first + 14_500_000_000], [12.5, 1.5]),
    ]
    values, [caution] = pace("1", tables)
    assert next(value.value for value, _ in values) == 2
    assert values[1][0].value == pytest.approx((13.005 + 1.5) / 16.0)
    assert "the longest 13 s" in caution.detail


def test_silence_in_a_capture_that_lost_packets_is_no_stall_but_unknown() -> None:
    """Where something was sent again meanwhile, the capture was there, and the stall is one."""
    name, rows = stalled([BEGUN + 7_000_000_000, BEGUN + 30_000_000_000], [3.0, 2.0])
    start = [0.01 * each + (13.0 if each >= 100 else 0.0) for each in range(200)]
    for sent_again, longest in (([0, 0], None), ([0, 3], "2 s"), ([2, 3], "3 s")):
        table = rows.append_column("retransmissions", [sent_again]).append_column("probes", [[0, 0]])
        tables = [connections(BEGUN, 40.0), (name, table)]
        values, cautions = pace("1", tables, lossy=True)
        assert [longest in each.detail for each in cautions if longest] == [True] * (longest is not None)
        assert len(cautions) == (longest is not None)
        assert [value.value for value, _ in values][:2] == ([2, 5 / 40] if longest == "3 s" else [None, None])
        # The pause of the requests shows nothing but silence.
        values, cautions = pace("1", [exchanges(["client"] * 200, start, [0.005] * 200), *tables], lossy=True)
        assert len(cautions) == (longest is not None) and values[0][0].value is None
    values, cautions = pace("1", [ab_requests([0.001] * 3000 + [13.0] + [0.001] * 4000)], lossy=True)
    assert values[0][0].value == 1 and len(cautions) == 1, "ab has no part in what a capture loses"
