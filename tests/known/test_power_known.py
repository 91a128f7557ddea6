"""Power and planned replicates against R, PowerTOST, printed tables, and simulation of the program's own test."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from twinbed.statistics.power import power_different, power_equivalent, replicates, upper_deviation
from twinbed.statistics.ratio import ratio_test

GOLDEN = Path(__file__).parents[1] / "golden/power"
EDGE = math.log(1.1)


def rows(name: str) -> list[dict[str, float]]:
    lines = [line for line in (GOLDEN / name).read_text().splitlines() if not line.startswith("#")]
    return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(lines, delimiter="\t")]


@pytest.mark.parametrize("row", rows("welch.tsv"), ids=lambda row: f"{row['ratio']:g}-{row['n']:g}")
def test_power_of_welchs_test_is_rs_integral(row: dict[str, float]) -> None:
    """To 10^-4, which is what the docstring promises."""
    planned = (math.log(row["ratio"]), (row["sd"], row["reference_sd"]), (int(row["n"]), int(row["reference_n"])), EDGE, 0.05)
    assert power_equivalent(*planned) == pytest.approx(row["equivalent"], abs=1e-4)
    assert power_different(*planned) == pytest.approx(row["different"], abs=1e-4)


@pytest.mark.parametrize("row", rows("published.tsv"), ids=lambda row: f"{row['cv']:g}")
def test_one_variance_alone_is_owens_q(row: dict[str, float]) -> None:
    """With a reference that does not vary Welch's t has n - 1 degrees of freedom: PowerTOST's numbers for such a t come out."""
    n = int(row["df"]) + 1
    deviation = math.sqrt(math.log1p(row["cv"] ** 2)) * row["factor"] * math.sqrt(n)
    found = power_equivalent(math.log(row["ratio"]), (deviation, 0.0), (n, 5), -math.log(row["low"]), 0.05)
    assert found == pytest.approx(row["power"], abs=2e-5)


def test_power_is_how_often_the_programs_own_test_rejects() -> None:
    noise = np.random.default_rng(3)
    draws, n, ratio = 3000, 6, 1.04
    hits = different = 0
    for one, two in zip(
        (ratio * noise.lognormal(0, 0.04, (draws, n))).tolist(), noise.lognormal(0, 0.06, (draws, n)).tolist(), strict=True
    ):
        test = ratio_test(one, two, 0.1, 0.05)
        assert test is not None
        hits += test.p_equivalent <= 0.05
        different += test.p_different <= 0.05
    planned = (math.log(ratio), (0.04, 0.06), (n, n), EDGE, 0.05)
    for found, power in ((hits, power_equivalent(*planned)), (different, power_different(*planned))):
        assert found / draws == pytest.approx(power, abs=4 * math.sqrt(max(power, 0.001) / draws))


@pytest.mark.parametrize(
    ("cv", "power", "expected"),
    [(0.15, 0.8, 12), (0.20, 0.8, 20), (0.25, 0.8, 28), (0.30, 0.8, 40), (0.15, 0.9, 16), (0.20, 0.9, 26), (0.30, 0.9, 52)],
)
def test_numbers_of_subjects_are_those_of_printed_tables(cv: float, power: float, expected: int) -> None:
    """Diletti, Hauschke and Steinijans (1991, Int. J. Clin. Pharmacol. 29:1), Table 1: a cross-over's total number of
    subjects, even, at a ratio of 0.95 and limits of 0.80 to 1.25; its t has N - 2 degrees of freedom and a standard error of
    s sqrt(2 / N)."""
    deviation = math.sqrt(math.log1p(cv**2))

    def of(half: int) -> float:
        n = 2 * half - 1
        return power_equivalent(math.log(0.95), (deviation * math.sqrt(2 * n / (n + 1)), 0.0), (n, 5), math.log(1.25), 0.05)

    assert 2 * (replicates(of, power, 100) or 0) == expected


def test_the_smallest_number_is_found() -> None:
    assert replicates(lambda n: n / 100, 0.80, 1000) == 80
    assert replicates(lambda n: n / 100, 0.01, 1000) == 3
    assert replicates(lambda n: n / 100, 0.80, 80) == 80
    assert replicates(lambda n: n / 100, 0.80, 79) is None


@pytest.mark.parametrize(("n", "chi_square"), [(3, 0.446), (5, 1.649), (10, 5.380), (21, 14.578)])
def test_the_upper_limit_of_a_deviation_is_from_the_printed_quantile(n: int, chi_square: float) -> None:
    """Lower 20 % points of chi-square with n - 1 degrees of freedom, as tables print them to three places."""
    assert upper_deviation(2.0, n) == pytest.approx(2 * math.sqrt((n - 1) / chi_square), rel=1e-3)


def test_what_does_not_vary_is_certain() -> None:
    assert power_equivalent(math.log(1.05), (0.0, 0.0), (3, 3), EDGE, 0.05) == 1
    assert power_different(math.log(1.05), (0.0, 0.0), (3, 3), EDGE, 0.05) == 0
    assert power_different(math.log(1.5), (0.0, 0.0), (3, 3), EDGE, 0.05) == 1
