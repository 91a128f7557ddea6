"""LOESS against R's `loess` (tests/golden/loess: data, every case's settings, and what R 4.2.2 answers)."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from twinbed import _core

GOLDEN = Path(__file__).parent.parent / "golden" / "loess"
Row = dict[str, str]


def rows(name: str) -> list[Row]:
    with (GOLDEN / name).open() as file:
        return list(csv.DictReader(file))


CASES, DATA, EXPECTED = rows("cases.csv"), rows("data.csv"), rows("expected.csv")
TOLERANCE = 1e-9


def case_name(case: Row) -> str:
    return "-".join(case[key] for key in ("set", "span", "degree", "family", "surface"))


def column(found: list[Row], name: str) -> np.ndarray:
    return np.array([float(row[name]) if row[name] else math.nan for row in found])


def smooth(case: Row, at: np.ndarray | None) -> tuple[dict[str, np.ndarray], _core.LoessSummary]:
    data = [row for row in DATA if row["set"] == case["set"]]
    table, summary = _core.loess(
        column(data, "x"),
        column(data, "y"),
        span=float(case["span"]),
        degree=int(case["degree"]),
        family=case["family"],
        surface=case["surface"],
        weights=column(data, "w") if case["weighted"] == "1" else None,
        at=at,
    )
    return {name: np.array(table[name].to_pylist(), dtype=float) for name in table.column_names}, summary


def expected_of(case: Row, *, fitted: bool) -> list[Row]:
    """Of a fit R says the fitted values only."""
    found = [row for row in EXPECTED if row["case"] == case["case"]]
    return found[13:] if fitted else found[:13]


def close(found: np.ndarray, expected: np.ndarray) -> Iterator[float]:
    assert (np.isnan(found) == np.isnan(expected)).all(), (found, expected)
    there = ~np.isnan(expected)
    scale = np.abs(expected[there]).max()
    yield from np.abs(found[there] - expected[there]) / np.maximum(np.abs(expected[there]), 1e-3 * scale)


EXACT = [case for case in CASES if (case["surface"], case["family"], case["weighted"]) == ("direct", "gaussian", "0")]


@pytest.mark.parametrize("case", EXACT, ids=case_name)
def test_a_curve_without_errors_is_that_of_r(case: Row) -> None:
    expected = expected_of(case, fitted=False)
    data = [row for row in DATA if row["set"] == case["set"]]
    x, y, at = column(data, "x"), column(data, "y"), column(expected, "at")
    found = _core.loess_curve(x, y, at, span=float(case["span"]), degree=int(case["degree"]))  # type: ignore[arg-type]
    assert max(close(np.array(found), column(expected, "fit"))) < TOLERANCE
    turned = _core.loess_curve(x[::-1], y[::-1], at[::-1], float(case["span"]), int(case["degree"]))  # type: ignore[arg-type]
    assert turned[::-1] == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_curve_and_errors_are_those_of_r(case: Row) -> None:
    expected = expected_of(case, fitted=False)
    found, summary = smooth(case, column(expected, "at"))
    for name in ("fit", "standard_error", "low", "high"):
        assert max(close(found[name], column(expected, name))) < TOLERANCE, name
    for mine, theirs in {
        "equivalent_parameters": "parameters",
        "trace": "trace",
        "delta_one": "delta_one",
        "delta_two": "delta_two",
        "residual_scale": "scale",
        "degrees_of_freedom": "df",
    }.items():
        assert summary[mine] == pytest.approx(float(case[theirs]), rel=TOLERANCE), mine  # type: ignore[literal-required]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_fitted_values_are_those_of_r_in_the_order_given(case: Row) -> None:
    found, _summary = smooth(case, None)
    expected = expected_of(case, fitted=True)
    assert found["at"][::5] == pytest.approx(column(expected, "at"), rel=1e-14)
    assert max(close(found["fit"][::5], column(expected, "fit"))) < TOLERANCE
