"""A regression of LDRD Table 3.4's size, 80,286 rows and 19 terms: fit and all diagnostics in at most 2 s; statsmodels beside.

The data are drawn, of the seeds' factors.  Diagnostics are HC3 errors, GVIF, Breusch-Pagan, White, influence of every row,
normality, Box-Cox with the covariates, a robust fit and an effect with its interval.  The peer is statsmodels on the same rows
doing what it has of these in reasonable time: fit, HC3, VIF, Breusch-Pagan, White, Cook's distances, normality and Huber's fit.
It has no Box-Cox with covariates and no GVIF, and externally studentised residuals by as many fits as there are rows.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks import Figure
from twinbed.analyses.regression.fits import data_of
from twinbed.analyses.regression.method import RegressionParams
from twinbed.analyses.regression.method import analysis as regression
from twinbed.observations.frame import Column, Frame
from twinbed.statistics.regression.design import bind
from twinbed.statistics.regression.formula import read

ROWS, TRIES = 80_286, 5
FORMULA = (
    "log(rps) ~ I(centre(pairs, 1)^2) + centre(pairs, 1) * (cluster + nic + instrumentation + gre + colocation + threading)"
)
LEVELS = {"cluster": 3, "nic": 3, "instrumentation": 2, "gre": 2, "colocation": 2, "threading": 2}


def run() -> list[Figure]:
    frame = _frame()
    params = RegressionParams(formulas=(FORMULA,), effects=(("nic", "nic2", None),), at={"pairs": "40"})
    # Once before the clock runs, as every other benchmark's modules are loaded.
    found = regression.run(frame, params)
    assert len(found.models[0].columns[0].coefficients) == 19
    design = bind(read(FORMULA), data_of(frame, read(FORMULA), "rps"))

    def peer() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _statsmodels(design.matrix, design.response)

    own = [_timed(lambda: regression.run(frame, params)) for _ in range(TRIES)]
    middle = statistics.median(own)
    figures = [Figure(f"regression, {ROWS:,} rows, 19 terms, all diagnostics", middle, (min(own), max(own)), "s", 2.0)]
    if importlib.util.find_spec("statsmodels") is None:
        return figures
    theirs = _timed(peer)
    return [
        *figures,
        Figure("  over statsmodels doing a part of them", middle / theirs, (min(own) / theirs, max(own) / theirs), "", 0.5),
    ]


def _frame() -> Frame:
    chance = np.random.default_rng(2017)
    pairs = chance.integers(1, 41, ROWS)
    codes = {name: chance.integers(0, count, ROWS) for name, count in LEVELS.items()}
    eta = 2.1 - 0.034 * (pairs - 1) + 0.012 * codes["nic"] * (pairs - 1) - 0.06 * codes["gre"]
    columns = {"pairs": Column("pairs", tuple(range(1, 41)), pairs - 1)}
    columns |= {
        name: Column(name, tuple(f"{name}{level}" for level in range(count)), codes[name]) for name, count in LEVELS.items()
    }
    rps = np.exp(eta + chance.normal(0, 0.3, ROWS))
    return Frame("drawn", "rps", "1/s", None, rps, columns, tuple(columns))


def _statsmodels(matrix: np.ndarray, response: np.ndarray) -> None:
    import statsmodels.api as sm
    from statsmodels.stats import diagnostic, outliers_influence, stattools

    fitted = sm.OLS(response, matrix).fit()
    fitted.get_robustcov_results("HC3").summary()
    for column in range(1, 10):
        outliers_influence.variance_inflation_factor(matrix[:, :10], column)
    diagnostic.het_breuschpagan(fitted.resid, matrix)
    diagnostic.het_white(fitted.resid, matrix)
    _ = fitted.get_influence().cooks_distance
    stattools.jarque_bera(fitted.resid)
    sm.RLM(response, matrix).fit()


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
