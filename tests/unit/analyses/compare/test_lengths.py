"""Quantiles of runs of unlike lengths."""

from __future__ import annotations

import math

import pytest

from twinbed.analyses.compare.lengths import cautions, expected, share_of
from twinbed.observations.samples import CellRuns
from twinbed.statistics.sample import Sample


def runs(**counts: float) -> CellRuns:
    return CellRuns(values={(name, "", ""): Sample([count] * 3) for name, count in counts.items()})


def test_the_quantiles_of_metrics() -> None:
    names = ("total_time_p99", "probe_rtt_p95", "delay_p999", "one_way_delay_max", "total_time_median", "time_per_request")
    assert [share_of(name) for name in names] == [0.99, 0.95, 0.999, 1.0, None, None]


@pytest.mark.parametrize(("share", "count"), [(0.5, 10), (0.9, 10), (0.95, 40), (0.99, 1000), (1.0, 7)])
def test_the_expectation_is_the_sum_of_reciprocals(share: float, count: int) -> None:
    below = math.ceil(share * count - 1e-9)
    assert expected(share, count) == pytest.approx(sum(1 / i for i in range(count - below + 1, count + 1)))


def test_a_percentile_of_few_beside_one_of_many_has_a_caution_with_both_counts() -> None:
    """Harmonic numbers: 4.187 of 100, 4.600 of 10,000."""
    key = ("total_time_p99", "", "")
    [caution] = cautions(key, (runs(requests=100), runs(requests=10_000)), 0.1)
    assert caution.detail == "from 100 and 10,000 values a run; for exponential times this alone changes the quantile by -9 %"
    assert [*cautions(key, (runs(requests=9_000), runs(requests=10_000)), 0.1)] == []
    assert [*cautions(("total_time_median", "", ""), (runs(requests=100), runs(requests=10_000)), 0.1)] == []
    assert [*cautions(key, (runs(), runs(requests=10_000)), 0.1)] == []
    assert [*cautions(("probe_rtt_max", "client", ""), (runs(probes_received=20), runs(probes_received=60)), 0.1)] != []
