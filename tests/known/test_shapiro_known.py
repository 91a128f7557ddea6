"""Shapiro and Wilk's test against R's ``shapiro.test``: tests/golden/statistics/shapiro.R is the session."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from twinbed.statistics.assumptions import MOST, shapiro_wilk

GOLDEN = Path(__file__).parents[1] / "golden" / "statistics" / "shapiro.csv"
ROWS = list(csv.DictReader(GOLDEN.read_text().splitlines()[1:]))
SHAPES: dict[str, Callable[[int, int], float]] = {
    "square": lambda i, n: i**2,
    "root": lambda i, n: math.sqrt(i),
    "log": lambda i, n: math.log(i),
    "sine": lambda i, n: math.sin(i),
    "modulo": lambda i, n: (7 * i) % 11 + i / n,
    "far": lambda i, n: 1e6 + math.cos(3 * i),
}


def test_every_shape_and_size_is_there() -> None:
    assert {row["shape"] for row in ROWS} == set(SHAPES) and len(ROWS) == 6 * 13


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['shape']}-{row['n']}")
def test_as_r(row: dict[str, str]) -> None:
    n = int(row["n"])
    statistic, p = shapiro_wilk([SHAPES[row["shape"]](i, n) for i in range(1, n + 1)])
    assert statistic == pytest.approx(float(row["w"]), rel=1e-9)
    assert p == pytest.approx(float(row["p"]), rel=1e-6)


def test_size_and_place_change_nothing() -> None:
    values = [SHAPES["modulo"](i, 20) for i in range(1, 21)]
    found = shapiro_wilk(values)
    assert shapiro_wilk([value * 1e-150 for value in values]) == pytest.approx(found, rel=1e-9)
    assert shapiro_wilk([-value * 1e150 for value in values]) == pytest.approx(found, rel=1e-9)
    assert shapiro_wilk([value + 1000 for value in values]) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("values", [[], [1.0, 2.0], [3.0] * 10, [float(at) for at in range(MOST + 1)]])
def test_what_it_cannot_test_it_refuses(values: list[float]) -> None:
    with pytest.raises(ValueError):
        shapiro_wilk(values)
