"""LOESS of 100,000 points, curve and standard errors at each, in at most 1 s; statsmodels' lowess and R's loess beside.

The points are drawn, with x at random and, once, rounded to whole numbers so that there are ties. lowess gives a curve
without standard errors, by lines between points 1 % of the range apart. R is asked for the curve alone, with approximate
statistics and trace: exact ones it cannot do for so many. Neither counts where it is not installed.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable

import numpy as np

from benchmarks import Figure
from twinbed import _core

POINTS, TRIES = 100_000, 5
R = """
set.seed(1); n <- {points}; x <- runif(n, 0, 80); y <- sin(x / 9) + rnorm(n)
control <- loess.control(trace.hat = "approximate")
cat(system.time(loess(y ~ x, family = "symmetric", control = control))[["elapsed"]])
"""


def run() -> list[Figure]:
    chance = np.random.default_rng(1)
    x = chance.uniform(0, 80, POINTS)
    y = np.sin(x / 9) + chance.normal(0, 1, POINTS)
    # Once before the clock runs: the first table of a process loads pyarrow.
    _core.loess(x[:100], y[:100])
    figures = []
    for name, at, degree in (("degree 1", x, 1), ("degree 2", x, 2), ("degree 2, ties", np.round(x), 2)):
        took = [
            _timed(lambda at=at, degree=degree: _core.loess(at, y, degree=degree, family="symmetric")) for _ in range(TRIES)
        ]
        figures.append(
            Figure(f"loess, {POINTS:,} points, symmetric, {name}", statistics.median(took), (min(took), max(took)), "s", 1.0)
        )
    for name, peer in (("statsmodels' lowess", lambda: _lowess(x, y)), ("R's loess", _r)):
        ratios = []
        for _ in range(TRIES):
            # In turns, so that what else the machine does hits both.
            took = peer()
            if took is not None:
                ratios.append(_timed(lambda: _core.loess(x, y, family="symmetric")) / took)
        if ratios:
            figures.append(Figure(f"  over {name}", statistics.median(ratios), (min(ratios), max(ratios)), "", 1.0))
    return figures


def _lowess(x: np.ndarray, y: np.ndarray) -> float | None:
    if importlib.util.find_spec("statsmodels") is None:
        return None
    from statsmodels.nonparametric.smoothers_lowess import lowess

    return _timed(lambda: lowess(y, x, frac=0.75, it=3, delta=0.8))


def _r() -> float | None:
    if shutil.which("Rscript") is None:
        return None
    done = subprocess.run(["Rscript", "-e", R.format(points=POINTS)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
