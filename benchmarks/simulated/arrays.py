"""The program's intervals and tests on arrays of studies x n.

tests/known/test_coverage.py tests that each equals the program's own function.  Where there is no interval both limits are nan,
as is a p-value where there is no test.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, fdtrc, ndtr, ndtri, stdtr, stdtrit

from twinbed.statistics import fairness, ordinal, quantile, spread
from twinbed.statistics.bounds import Bounds

Limits = tuple[np.ndarray, np.ndarray]
LEVEL = 0.95


def _welch(a: np.ndarray, n: int, b: np.ndarray, m: int) -> np.ndarray:
    share = a / (a + b)
    return 1 / (share**2 / (n - 1) + (1 - share) ** 2 / (m - 1))


def _squared_errors(x: np.ndarray, y: np.ndarray) -> Limits:
    return x.var(1, ddof=1) / x.shape[1], y.var(1, ddof=1) / y.shape[1]


def mean_interval(x: np.ndarray, y: np.ndarray) -> Limits:
    n = x.shape[1]
    half = stdtrit(n - 1, (1 + LEVEL) / 2) * x.std(1, ddof=1) / math.sqrt(n)
    return x.mean(1) - half, x.mean(1) + half


def ratio_interval(x: np.ndarray, y: np.ndarray) -> Limits:
    """By logarithms where all values are positive, else Fieller's."""
    low, high = _log_interval(x, y)
    zeros = (x.min(1) == 0) | (y.min(1) == 0)
    by_means = _fieller_interval(x, y)
    return np.where(zeros, by_means[0], low), np.where(zeros, by_means[1], high)


def _log_interval(x: np.ndarray, y: np.ndarray) -> Limits:
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = np.log(x), np.log(y)
        a, b = _squared_errors(x, y)
        half = stdtrit(_welch(a, x.shape[1], b, y.shape[1]), (1 + LEVEL) / 2) * np.sqrt(a + b)
        found = x.mean(1) - y.mean(1)
    return np.exp(found - half), np.exp(found + half)


def _fieller_interval(x: np.ndarray, y: np.ndarray) -> Limits:
    a, b, df = _fieller(x, y)
    one, two = x.mean(1), y.mean(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t2 = stdtrit(df, (1 + LEVEL) / 2) ** 2
        square = two**2 - t2 * b
        root = np.sqrt(np.maximum(0, (one * two) ** 2 - square * (one**2 - t2 * a)))
        low, high = (one * two - root) / square, (one * two + root) / square
    return np.where(square > 0, low, np.nan), np.where(square > 0, high, np.nan)


def _fieller(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared errors, and degrees of freedom at the ratio found."""
    a, b = _squared_errors(x, y)
    one, two = x.mean(1), y.mean(1)
    theta = np.divide(one, two, out=np.ones_like(one), where=two != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = _welch(a, x.shape[1], theta**2 * b, y.shape[1])
    return a, b, np.where((a > 0) | (theta * b > 0), df, min(x.shape[1], y.shape[1]) - 1.0)


def quantile_interval(x: np.ndarray, share: float) -> Limits:
    found = quantile.ranks(x.shape[1], share, LEVEL)
    if found is None:
        return _none(x)
    ordered = np.sort(x, axis=1)
    return ordered[:, found.low - 1], ordered[:, found.high - 1]


def _none(x: np.ndarray) -> Limits:
    return np.full(len(x), np.nan), np.full(len(x), np.nan)


def median_ratio_interval(x: np.ndarray, y: np.ndarray) -> Limits:
    if x.shape[1] < quantile.LEAST:
        return _none(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(np.median(x, axis=1) / np.median(y, axis=1))
        half = ndtri((1 + LEVEL) / 2) * np.hypot(_log_median_error(x), _log_median_error(y))
        low, high = np.exp(found - half), np.exp(found + half)
    zeros = (x.min(1) == 0) | (y.min(1) == 0)
    return np.where(zeros, np.nan, low), np.where(zeros, np.nan, high)


def _log_median_error(x: np.ndarray) -> np.ndarray:
    n, ordered = x.shape[1], np.sort(x, axis=1)
    rank = max(1, round(n / 2 - math.sqrt(n)))
    return np.asarray(np.log(ordered[:, n - rank] / ordered[:, rank - 1]) / (2 * ndtri(1 - bdtr(rank - 1, n, 0.5))))


def _fourth_moment(x: np.ndarray) -> np.ndarray:
    n, ordered = x.shape[1], np.sort(x, axis=1)
    cut = min(int(n / (2 * math.sqrt(n - 4))), (n - 1) // 2)
    centre = ordered[:, cut : n - cut].mean(1, keepdims=True)
    return np.asarray(((ordered - centre) ** 4).sum(1))


def equal_deviations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """P-values of equal standard deviations, by Bonett; nan for too few values."""
    n, m = x.shape[1], y.shape[1]
    if min(n, m) < spread.LEAST:
        return _none(x)[0]
    z = float(ndtri(0.975))
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.log(x.var(1, ddof=1) / y.var(1, ddof=1) * (n / (n - z)) * ((m - z) / m))
        return np.asarray(2 * ndtr(-np.abs(centre) / _deviation_error(x, y, np.ones(len(x)))))


def _deviation_error(x: np.ndarray, y: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    n, m = x.shape[1], y.shape[1]
    fourth = _fourth_moment(x) + ratio**4 * _fourth_moment(y)
    kurtosis = (n + m) * fourth / ((n - 1) * x.var(1, ddof=1) + ratio**2 * (m - 1) * y.var(1, ddof=1)) ** 2
    return np.sqrt(np.maximum(0, (kurtosis - (n - 3) / n) / (n - 1) + (kurtosis - (m - 3) / m) / (m - 1)))


def deviation_ratio_interval(x: np.ndarray, y: np.ndarray) -> Limits:
    n, m = x.shape[1], y.shape[1]
    if min(n, m) < spread.LEAST:
        return _none(x)
    z = float(ndtri((1 + LEVEL) / 2))
    one, two = x.var(1, ddof=1), y.var(1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.log(one / two * (n / (n - z)) * ((m - z) / m))
        limits = []
        for sign in (-1, 1):
            found = np.sqrt(one / two)
            for _ in range(spread.STEPS):
                found = np.exp((centre + sign * z * _deviation_error(x, y, found)) / 2)
            limits.append(np.where((one > 0) & (two > 0), found, np.nan))
    return limits[0], limits[1]


def deltas(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Cliff's delta of each study."""
    above = sum(np.sign(x[:, [column]] - y).sum(1) for column in range(x.shape[1]))
    return np.asarray(above / (x.shape[1] * y.shape[1]))


def delta_interval(x: np.ndarray, y: np.ndarray) -> Limits:
    """The program's, asked once for each delta that occurs: nothing else of the values counts."""
    found, first, back = np.unique(deltas(x, y), return_index=True, return_inverse=True)
    bounds = [program_delta_interval(x[at].tolist(), y[at].tolist()) for at in first]
    assert len(found) == len(bounds)
    return np.array([each.low for each in bounds])[back], np.array([each.high for each in bounds])[back]


def program_delta_interval(x: list[float], y: list[float]) -> Bounds:
    return ordinal.ordinal_test(x, y, 0.1, 1 - LEVEL).wide


def fairness_interval(x: np.ndarray, y: np.ndarray) -> Limits:
    n = x.shape[1]
    if n < fairness.LEAST:
        return _none(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = x / x.mean(1, keepdims=True)
        square = scaled.var(1, ddof=1)
        z = float(ndtri((1 + LEVEL) / 2))
        wider = n / (n - z)
        kurtosis = n * _fourth_moment(scaled) / ((n - 1) * square) ** 2
        skewness = ((scaled - 1) ** 3).sum(1) / n / square**1.5
        of_mean = 4 * square / n - 4 * skewness * np.sqrt(square) / n
        error = wider * np.sqrt(np.maximum(0, (kurtosis - (n - 3) / n) / (n - 1) + of_mean))
        return 1 / (1 + wider * square * np.exp(z * error)), 1 / (1 + wider * square * np.exp(-z * error))


def ratio_p_values(x: np.ndarray, y: np.ndarray, margin: float) -> Limits:
    """P-values of equivalence and of difference, as the program takes them: by logarithms, or with zeros by means."""
    edge = math.log1p(margin)
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v = np.log(x), np.log(y)
        a, b = _squared_errors(u, v)
        error, df = np.sqrt(a + b), _welch(a, x.shape[1], b, y.shape[1])
        found = u.mean(1) - v.mean(1)
        by_logarithms = _p_values((found + edge) / error, (found - edge) / error, df)
        a, b, df = _fieller(x, y)
        one, two = x.mean(1), y.mean(1)
        low, high = ((one - theta * two) / np.sqrt(a + theta**2 * b) for theta in (1 / (1 + margin), 1 + margin))
        by_means = _p_values(low, high, df)
    zeros = (x.min(1) == 0) | (y.min(1) == 0)
    # Of two samples without any event the program says nothing.
    nothing = (x.max(1) == 0) & (y.max(1) == 0)
    inside, outside = (np.where(zeros, mean, log) for mean, log in zip(by_means, by_logarithms, strict=True))
    return np.where(nothing, 1.0, inside), np.where(nothing, 1.0, outside)


def paired_p_values(x: np.ndarray, y: np.ndarray, margin: float) -> Limits:
    """P-values of equivalence and of difference within pairs of positive values, as the program takes them."""
    edge, differences = math.log1p(margin), np.log(x) - np.log(y)
    n = x.shape[1]
    found, error = differences.mean(1), differences.std(1, ddof=1) / math.sqrt(n)
    return _p_values((found + edge) / error, (found - edge) / error, np.full(len(x), n - 1.0))


def _p_values(above_low: np.ndarray, above_high: np.ndarray, df: np.ndarray) -> Limits:
    inside = np.maximum(stdtr(df, -above_low), stdtr(df, above_high))
    outside = np.minimum(1.0, 2 * np.minimum(stdtr(df, -above_high), stdtr(df, above_low)))
    return inside, outside


def brown_forsythe(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """P-values of equal spreads, of the values as given."""
    one, two = (np.abs(z - np.median(z, axis=1, keepdims=True)) for z in (x, y))
    n, m = x.shape[1], y.shape[1]
    grand = np.concatenate([one, two], axis=1).mean(1)
    between = n * (one.mean(1) - grand) ** 2 + m * (two.mean(1) - grand) ** 2
    within = (n - 1) * one.var(1, ddof=1) + (m - 1) * two.var(1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = fdtrc(1, n + m - 2, between / (within / (n + m - 2)))
    return np.where(within > 0, found, np.where(between > 0, 0.0, 1.0))


def mann_whitney(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The program's p-values; where no values are tied asked once for each delta that occurs, else for each study."""
    if (np.diff(np.sort(np.concatenate([x, y], axis=1), axis=1)) == 0).any():
        return np.array([ordinal.mann_whitney(one, two) for one, two in zip(x.tolist(), y.tolist(), strict=True)])
    _, first, back = np.unique(deltas(x, y), return_index=True, return_inverse=True)
    return np.array([ordinal.mann_whitney(x[at].tolist(), y[at].tolist()) for at in first])[back]
