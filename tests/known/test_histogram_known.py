"""Histograms: HdrHistogram's buckets, and quantiles of as many requests as one likes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from twinbed.statistics.histogram import HALF, Histogram, bucket, lowest
from twinbed.statistics.quantile import harrell_davis

EXPECTED = json.loads((Path(__file__).parents[1] / "golden" / "histogram" / "hdrhistogram.json").read_text())
SHARES = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)


@pytest.mark.parametrize(("value", "least", "greatest"), EXPECTED["buckets"])
def test_buckets_are_hdrhistograms(value: int, least: int, greatest: int) -> None:
    place = bucket(np.array([value]))
    assert (lowest(place)[0], lowest(place + 1)[0] - 1) == (least, greatest)


def _times() -> np.ndarray:
    """As golden/histogram/oracle.py makes them."""
    state, times = 12345, []
    for _ in range(20_000):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        times.append(int(200_000 / (1.000001 - (state >> 11) / 2**53) ** 0.7))
    return np.array(times)


def test_counts_are_hdrhistograms() -> None:
    times = _times()
    made = Histogram.of(times / 1e9)
    assert len(made) == 20_000 and len(made.buckets) == EXPECTED["buckets_filled"]
    # It gives the last value of the bucket in which so many values are reached.
    for percent, expected in EXPECTED["percentiles"].items():
        at = int(np.searchsorted(np.cumsum(made.counts), np.ceil(20_000 * float(percent) / 100)))
        assert lowest(made.buckets[at : at + 1] + 1)[0] - 1 == expected


@pytest.mark.parametrize("seed", range(3))
def test_quantiles_are_those_of_the_values_within_a_thousandth(seed: int) -> None:
    noise = np.random.default_rng(seed)
    times = np.sort(np.concatenate([noise.lognormal(-7, 1.2, 30_000), noise.normal(2.0, 0.01, 300)]))
    made = Histogram.together([Histogram.of(times[::2]), Histogram.of(times[1::2])])
    assert made.quantiles(SHARES) == pytest.approx(harrell_davis(times, SHARES), rel=1 / HALF)
    assert np.array_equal(made.counts, Histogram.of(times).counts)
    assert Histogram.of(np.zeros(5)).quantiles([0.5]) == [0.0]


def test_a_thousand_million_requests_take_no_more_room() -> None:
    """Counts of 10^9 requests by the distribution itself: its quantiles come back."""
    true = stats.lognorm(0.8, scale=2e-3)
    places = np.arange(bucket(np.array([1000]))[0], bucket(np.array([10**12]))[0])
    share = np.diff(true.cdf(np.append(lowest(places), lowest(places[-1:] + 1)) / 1e9))
    counts = np.rint(1e9 * share).astype(np.int64)
    kept = counts > 0
    made = Histogram(places[kept], counts[kept])
    assert len(made) == pytest.approx(1e9, rel=1e-5) and len(made.buckets) < 20_000
    assert made.quantiles(SHARES) == pytest.approx(true.ppf(SHARES).tolist(), rel=1 / HALF)


@pytest.mark.parametrize("nanoseconds", [0, 1, 2047, 2048, 2**40 - 1, 2**40, 2**52 + 1])
def test_every_time_is_in_its_bucket(nanoseconds: int) -> None:
    place = bucket(np.array([nanoseconds]))
    low, high = lowest(place)[0], lowest(place + 1)[0]
    assert low <= nanoseconds < high and high - low <= max(1, low / HALF)
