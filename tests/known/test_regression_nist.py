"""Least squares against NIST's Statistical Reference Datasets: so many certified digits at least, from a formula on."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from twinbed.statistics.regression.evaluation import Column, Numeric
from twinbed.statistics.regression.formula import read
from twinbed.statistics.regression.least_squares import fit_formula

FOLDER = Path(__file__).parents[1] / "golden/regression/strd"
DIGITS = {
    "norris": 12,
    "pontius": 12,
    "noint1": 14,
    "noint2": 14,
    "longley": 13,
    "filip": 10,
    "wampler1": 11,
    "wampler2": 12,
    "wampler3": 11,
    "wampler4": 11,
    "wampler5": 11,
}


def certified(name: str) -> list[tuple[float, float]]:
    with (FOLDER / "certified.csv").open() as file:
        return [(float(row["estimate"]), float(row["standard_error"])) for row in csv.DictReader(file) if row["set"] == name]


def data(name: str) -> dict[str, Column]:
    with (FOLDER / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {column: Numeric(np.array([float(row[column]) for row in rows])) for column in rows[0]}


def formula(name: str, count: int) -> str:
    if name == "longley":
        return "y ~ x1 + x2 + x3 + x4 + x5 + x6"
    if name.startswith("noint"):
        return "y ~ 0 + x"
    return " + ".join(["y ~ x", *(f"I(x^{power})" for power in range(2, count))])


def digits(found: float, wanted: float) -> float:
    """Correct significant digits (McCullough 1998); of a certified 0, decimal places."""
    error = abs(found - wanted) / (abs(wanted) or 1.0)
    return 15.0 if error == 0 else -float(np.log10(error))


@pytest.mark.parametrize("name", list(DIGITS))
def test_certified_digits(name: str) -> None:
    wanted = certified(name)
    _, found = fit_formula(read(formula(name, len(wanted))), data(name))
    errors = np.sqrt(np.diag(found.variance * (found.root @ found.root.T)))
    for at, (estimate, error) in enumerate(wanted):
        assert digits(float(found.coefficients[at]), estimate) >= DIGITS[name]
        assert digits(float(errors[at]), error) >= min(DIGITS[name], 10 if error else 9)


def test_every_certified_set_is_held() -> None:
    with (FOLDER / "certified.csv").open() as file:
        assert {row["set"] for row in csv.DictReader(file)} == set(DIGITS)
