"""Regression against R (tests/golden/regression says which packages and how): each number that R's own functions print."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinbed.statistics.regression.box_cox import box_cox, log_likelihood
from twinbed.statistics.regression.collinearity import first_order, inflation
from twinbed.statistics.regression.design import Design
from twinbed.statistics.regression.evaluation import Categorical, Column, Numeric
from twinbed.statistics.regression.formula import read
from twinbed.statistics.regression.inference import classical, clustered, coefficient, difference, hc3, influence
from twinbed.statistics.regression.least_squares import Fit, fit_formula
from twinbed.statistics.regression.mixed import mixed
from twinbed.statistics.regression.residuals import breusch_pagan, normality, white
from twinbed.statistics.regression.robust import Weighting, robust

FOLDER = Path(__file__).parents[1] / "golden/regression"
RIGHT = "centre(pairs, 1) + I(centre(pairs, 1)^2) + nic + cluster + gre + load + centre(pairs, 1):nic + centre(pairs, 1):gre"
BASES = {"nic": "e1000"}
ROWS = np.array([1, 33, 100, 170, 252]) - 1


def expected() -> Mapping[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    with (FOLDER / "expected.csv").open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["what"], {})[row["name"]] = float(row["value"])
    return found


def study() -> dict[str, Column]:
    with (FOLDER / "study.csv").open() as file:
        rows = list(csv.DictReader(file))
    found: dict[str, Column] = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if name in ("rate", "pairs", "load"):
            found[name] = Numeric(np.array([float(value) for value in values]))
        else:
            levels = tuple(sorted(set(values)))
            found[name] = Categorical(np.array([levels.index(value) for value in values]), levels)
    return found


R = expected()
DATA = study()


def fitted(text: str) -> tuple[Design, Fit]:
    return fit_formula(read(text), DATA, {name: base for name, base in BASES.items() if name in text})


DESIGN, FIT = fitted(f"log(rate) ~ {RIGHT}")


def parts(name: str) -> frozenset[str]:
    """A coefficient's name, ours or R's, as what it is made of."""
    for factor in ("nic", "cluster", "gre"):
        name = name.replace(f"{factor} ", factor)
    name = name.replace("centre(pairs, 1)", "pairs1").replace("rackone", "rack one").replace("racktwo", "rack two")
    name = name.removeprefix("I(").removesuffix(")") if name.startswith("I(") else name
    name = "Constant" if name == "(Intercept)" else name
    return frozenset(each.strip() for each in name.replace(" * ", ":").split(":"))


def ours(labels: tuple[str, ...], values: Any) -> dict[frozenset[str], float]:
    return {parts(label): float(value) for label, value in zip(labels, values, strict=True)}


def same(labels: tuple[str, ...], values: Any, what: str, relative: float) -> None:
    wanted = {parts(name): value for name, value in R[what].items()}
    assert ours(labels, values) == pytest.approx(wanted, rel=relative)


def test_coefficients_errors_and_intervals() -> None:
    covariance = classical(FIT)
    found = [
        coefficient(float(estimate), float(error), FIT.degrees_of_freedom, 0.95)
        for estimate, error in zip(FIT.coefficients, np.sqrt(np.diag(covariance)), strict=True)
    ]
    for what, name in (
        ("estimate", "estimate"),
        ("error", "standard_error"),
        ("t", "statistic"),
        ("low", "low"),
        ("high", "high"),
    ):
        same(DESIGN.labels, [getattr(each, name) for each in found], f"lm.{what}", 1e-10)
    same(DESIGN.labels, [each.p_value for each in found], "lm.p", 1e-8)


def test_the_whole_fit() -> None:
    whole = R["lm"]
    test = FIT.test_of_all
    assert test is not None
    assert [FIT.variance**0.5, FIT.r_squared, FIT.adjusted_r_squared, test.statistic, test.p_value] == pytest.approx(
        [whole["sigma"], whole["r2"], whole["adjusted"], whole["F"], whole["F_p"]], rel=1e-10
    )
    assert test.numerator == whole["F_df"]
    assert FIT.condition == pytest.approx(R["kappa"]["kappa"], rel=1e-9)


def test_collinearity_before_interactions() -> None:
    design, fit = fit_formula(first_order(DESIGN.formula), DATA, BASES)
    assert design.formula.text == "log(rate) ~ centre(pairs, 1) + nic + cluster + gre + load"
    found = inflation(design.terms, design.matrix)
    assert fit.constant
    assert {each.term.replace("centre(pairs, 1)", "pairs1"): each.gvif for each in found} == pytest.approx(R["gvif"], rel=1e-10)
    assert {each.term.replace("centre(pairs, 1)", "pairs1"): each.scaled for each in found} == pytest.approx(
        R["gvif.scaled"], rel=1e-10
    )


def test_box_cox_with_the_covariates() -> None:
    design, fit = fitted(f"rate ~ {RIGHT}")
    at_1 = log_likelihood(design.response, fit.q, 1.0)
    for power, value in R["boxcox.profile"].items():
        assert log_likelihood(design.response, fit.q, float(power)) - at_1 == pytest.approx(value, rel=1e-9, abs=1e-9)
    found = box_cox(design.response, fit.q)
    assert [found.best, found.low, found.high] == pytest.approx(
        [R["boxcox"][name] for name in ("best", "low", "high")], abs=1e-6
    )


def test_heteroscedasticity() -> None:
    for name, found in (("breusch-pagan", breusch_pagan(FIT)), ("white", white(FIT, DESIGN.matrix))):
        assert found is not None
        assert [found.statistic, found.degrees_of_freedom, found.p_value] == pytest.approx(
            [R[name]["statistic"], R[name]["df"], R[name]["p"]], rel=1e-8
        )


def test_errors_of_unequal_variance_and_of_clusters() -> None:
    same(DESIGN.labels, np.sqrt(np.diag(hc3(FIT))), "hc3", 1e-10)
    blocks = DATA["block"]
    assert isinstance(blocks, Categorical)
    same(DESIGN.labels, np.sqrt(np.diag(clustered(FIT, blocks.codes))), "clustered", 1e-9)


def test_influence() -> None:
    found = influence(FIT)
    for name, values in (
        ("leverage", found.leverage),
        ("standardised", found.standardised),
        ("studentised", found.studentised),
        ("cook", found.cooks_distance),
        ("dffits", found.dffits),
    ):
        assert values[ROWS] == pytest.approx(list(R[name].values()), rel=1e-9), name
    assert found.outlier is not None
    assert found.outlier + 1 == R["outlier"]["row"]
    assert found.outlier_p == pytest.approx(R["outlier"]["p"], rel=1e-8)
    assert int(found.influential.sum()) == R["influential"]["count"]


def test_normality() -> None:
    found = normality(FIT.residuals)
    assert found is not None
    assert [found.statistic, found.p_value] == pytest.approx([R["shapiro"]["W"], R["shapiro"]["p"]], rel=1e-6)


@pytest.mark.parametrize("weighting", list(Weighting))
def test_robust(weighting: Weighting) -> None:
    found = robust(FIT, DESIGN.response, weighting)
    same(DESIGN.labels, found.coefficients, f"{weighting}.estimate", 1e-6)
    same(DESIGN.labels, np.sqrt(np.diag(found.covariance)), f"{weighting}.error", 1e-6)
    assert found.scale == pytest.approx(R[str(weighting)]["scale"], rel=1e-6)


def test_mixed() -> None:
    blocks = DATA["block"]
    assert isinstance(blocks, Categorical)
    found = mixed(FIT, DESIGN.matrix, blocks.codes)
    for package in ("lme", "lmer"):
        same(DESIGN.labels, found.coefficients, f"{package}.estimate", 1e-6)
        same(DESIGN.labels, np.sqrt(np.diag(found.covariance)), f"{package}.error", 1e-6)
        assert [found.group_variance, found.residual_variance] == pytest.approx(
            [R[package]["group"], R[package]["residual"]], rel=1e-5
        )
    same(DESIGN.labels, found.degrees_of_freedom, "lme.df", 0)
    assert found.intraclass_correlation == pytest.approx(R["lme"]["icc"], rel=1e-5)
    assert found.log_likelihood == pytest.approx(R["lme"]["likelihood"], rel=1e-9)
    assert found.p_value == pytest.approx(R["lme.ratio"]["p"], rel=1e-5)


def test_degrees_of_freedom_between_blocks() -> None:
    blocks = DATA["block"]
    assert isinstance(blocks, Categorical)
    data = {
        **DATA,
        "rack": Categorical((blocks.codes > 2).astype(np.intp), ("one", "two")),
        "pairs1": Numeric(DATA["pairs"].values - 1),
    }  # type: ignore[union-attr]
    design, fit = fit_formula(read("log(rate) ~ pairs1 + rack"), data)
    found = mixed(fit, design.matrix, blocks.codes)
    same(design.labels, found.degrees_of_freedom, "between.df", 0)
    errors = np.sqrt(np.diag(found.covariance))
    p_values = [
        coefficient(float(found.coefficients[at]), float(errors[at]), float(found.degrees_of_freedom[at]), 0.95).p_value
        for at in range(3)
    ]
    same(design.labels, p_values, "between.p", 1e-4)


@pytest.mark.parametrize("level", ["virtio", "container"])
def test_percent_effects_at_40_pairs(level: str) -> None:
    wanted = R[f"percent.{level}"]
    contrast = difference(DESIGN, DATA, "nic", level, "e1000", {"pairs": 40.0})
    error = float(np.sqrt(contrast @ classical(FIT) @ contrast))
    found = coefficient(float(contrast @ FIT.coefficients), error, FIT.degrees_of_freedom, 0.95)
    assert np.expm1([found.estimate, found.low, found.high]) == pytest.approx(
        [wanted["estimate"], wanted["low"], wanted["high"]], rel=1e-9
    )


@pytest.mark.parametrize("what", [name for name in R if name.startswith("coding ")])
def test_coding_of_terms(what: str) -> None:
    design, fit = fitted(what.removeprefix("coding "))
    same(design.labels, fit.coefficients, what, 1e-8)
