"""Pairs, blocks, rare events, quantiles and series, held to R: see tests/golden/inference."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from twinbed.statistics.counts import Tally, count_test, unseen_share
from twinbed.statistics.histogram import HALF, Histogram
from twinbed.statistics.quantile import harrell_davis
from twinbed.statistics.ratio import Cell, pooled_ratio, ratio_test
from twinbed.statistics.regression.least_squares import fit
from twinbed.statistics.regression.mixed import mixed
from twinbed.statistics.steady import mean_error

GOLDEN = Path(__file__).parents[1] / "golden" / "inference"
CELLS = ("500B", "1MiB", "16MiB")


def _rows(name: str) -> list[dict[str, str]]:
    with (GOLDEN / name).open() as file:
        return list(csv.DictReader(file))


def _expected() -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for row in _rows("expected.csv"):
        found[row["what"]][row["name"]] = float(row["value"])
    return found


EXPECTED = _expected()
COUNTS = [name for name in EXPECTED if name.startswith("poisson-")]


def _rates(cell: str) -> tuple[list[float], list[float]]:
    """Of the testbed and the reference, in the order of blocks."""
    of = [row for row in _rows("blocks.csv") if row["cell"] == cell]
    virtual, real = ([float(row["rate"]) for row in of if row["testbed"] == name] for name in ("virtual", "real"))
    return virtual, real


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("kind", "paired"), [("paired", True), ("welch", False)])
def test_intervals_of_ratios_are_ts_of_logarithms(cell: str, kind: str, paired: bool) -> None:
    found = ratio_test(*_rates(cell), 0.1, 0.05, paired=paired)
    assert found is not None and found.interval is not None and found.wide is not None
    expected = EXPECTED[f"{kind}-{cell}"]
    assert (found.interval.low, found.interval.high) == pytest.approx((expected["low90"], expected["high90"]))
    assert (found.wide.low, found.wide.high) == pytest.approx((expected["low95"], expected["high95"]))


@pytest.mark.parametrize("cell", CELLS)
def test_a_random_intercept_for_each_block_is_nlmes(cell: str) -> None:
    """And of complete blocks, the paired test."""
    virtual, real = _rates(cell)
    response = np.log([*virtual, *real])
    matrix = np.column_stack([np.ones(12), np.repeat([1.0, 0.0], 6)])
    found = mixed(fit(matrix, response, ("Constant", "virtual"), True), matrix, np.tile(np.arange(6), 2))
    expected = EXPECTED[f"lme-{cell}"]
    assert found.coefficients[1] == pytest.approx(expected["effect"], rel=1e-7)
    assert math.sqrt(found.covariance[1, 1]) == pytest.approx(expected["error"], rel=1e-5)
    assert found.degrees_of_freedom[1] == expected["df"]


def test_the_ratio_over_cells_is_that_of_blocks_and_lme4s_effect() -> None:
    cells = [Cell(*(np.log(rates).tolist() for rates in _rates(cell))) for cell in CELLS]
    found = pooled_ratio(cells, 0.90, paired=True)
    expected = EXPECTED["pooled-blocks"]
    assert found is not None and found.ratio == pytest.approx(expected["ratio"])
    assert (found.interval.low, found.interval.high) == pytest.approx((expected["low90"], expected["high90"]))
    assert math.log(found.ratio) == pytest.approx(EXPECTED["lmer-pooled"]["effect"], rel=1e-6)


@pytest.mark.parametrize("case", COUNTS)
def test_ratios_of_counts_are_exact(case: str) -> None:
    x, n, y, m = map(int, case.removeprefix("poisson-").split())
    found = count_test(Tally([x], n), Tally([y], m), 0.1, 0.05)
    expected = EXPECTED[case]
    assert tuple(found.interval)[:2] == pytest.approx((expected["low90"], expected["high90"]))
    assert tuple(found.wide)[:2] == pytest.approx((expected["low95"], expected["high95"]))


@pytest.mark.parametrize("runs", [3, 5, 10, 20])
def test_what_runs_leave_unseen_is_clopper_and_pearsons(runs: int) -> None:
    assert unseen_share(runs) == pytest.approx(EXPECTED[f"none of {runs}"]["high"])


def test_quantiles_are_hmiscs() -> None:
    times = np.array([float(row["seconds"]) for row in _rows("times.csv")])
    expected = {float(share): value for share, value in EXPECTED["hdquantile"].items()}
    assert harrell_davis(np.sort(times), [*expected]) == pytest.approx([*expected.values()])
    assert Histogram.of(times).quantiles([*expected]) == pytest.approx([*expected.values()], rel=1 / HALF)


@pytest.mark.parametrize("series", ["none", "some", "much"])
def test_errors_of_means_are_codas(series: str) -> None:
    values = [float(row[series]) for row in _rows("series.csv")]
    assert mean_error(values) == pytest.approx(EXPECTED[f"spectrum0.ar-{series}"]["error"])
