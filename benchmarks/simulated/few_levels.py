"""Worlds in which an expensive testbed is measured at few payloads, and no smooth curve leads from the cheap one to it.

24 payloads drawn log-uniformly from 500 B to 16 MiB, with 1 and 4 threads: 4 runs each on the cheap testbed; 8 of the payloads,
5 runs each, on the expensive one.  What is predicted elsewhere is compared with the world's own curve, and with a new run of a
new block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.simulated.calibrated import HIGH, LOW, LogRate, Runs, World, calibrated, law, measured

THREADS = (1.0, 4.0)
PAYLOADS, EXPENSIVE = 24, 8
CHEAP_RUNS, EXPENSIVE_RUNS = 4, 5
Pair = tuple[LogRate, LogRate]


def _of(noise: np.random.Generator) -> Pair:
    cheap = law(noise)
    expensive = law(noise, cheap)
    return lambda p, t: cheap.log_rate(np.exp(p), t), lambda p, t: expensive.log_rate(np.exp(p), t)


def _step(size: float) -> Callable[[np.random.Generator], Pair]:
    def made(noise: np.random.Generator) -> Pair:
        cheap, expensive = _of(noise)
        where = noise.uniform(LOW + 2, HIGH - 2)
        return cheap, lambda p, t: expensive(p, t) + np.log1p(-size) * (p > where)

    return made


def _sawtooth(noise: np.random.Generator) -> Pair:
    """The expensive testbed loses up to 25 %, more and more until a buffer's next multiple."""
    cheap, expensive = _of(noise)
    period, phase = noise.uniform(2.0, 5.0), noise.uniform(0.0, 1.0)
    return cheap, lambda p, t: expensive(p, t) + np.log(0.75) * ((p / period + phase) % 1.0)


def _saturation(noise: np.random.Generator) -> Pair:
    """The cheap testbed's CPU limits small payloads, where the expensive one goes on rising."""
    cheap, expensive = _of(noise)
    most = noise.uniform(0.2, 0.6)
    return lambda p, t: np.minimum(cheap(p, t), cheap(np.full_like(p, LOW), np.full_like(t, 4.0)) - most), expensive


def _interaction(noise: np.random.Generator) -> Pair:
    """The cheap testbed alone loses 40 % of large payloads with 4 threads."""
    cheap, expensive = _of(noise)
    where = noise.uniform(LOW + 2, HIGH - 2)
    return lambda p, t: cheap(p, t) + np.log(0.6) * ((p > where) & (t > 1)), expensive


def _no_help(noise: np.random.Generator) -> Pair:
    """The cheap testbed's rates go up and down by 30 %, and the expensive one's do not."""
    _, expensive = _of(noise)
    waves, phase = noise.uniform(1.0, 2.0), noise.uniform(0.0, 6.0)
    return lambda p, t: expensive(p, t) + 0.3 * np.sin(waves * p + phase), lambda p, t: expensive(p, t)


CURVES: Mapping[str, tuple[Callable[[np.random.Generator], Pair], float]] = {
    "smooth curves": (_of, 0.0),
    "smooth curves, blocks of 5 %": (_of, 0.05),
    "a step of 25 %": (_step(0.25), 0.0),
    "a step of 40 %": (_step(0.4), 0.0),
    "a sawtooth of 25 %": (_sawtooth, 0.0),
    "the cheap testbed saturates": (_saturation, 0.0),
    "an interaction on the cheap testbed alone": (_interaction, 0.0),
    "waves on the cheap testbed alone": (_no_help, 0.0),
}
"""Name -> how the rates are made, and the deviation of blocks."""


@dataclass(frozen=True)
class Held:
    """Of the places inside the range that were not measured."""

    mean: float
    """Share of intervals that hold the curve; nan where all are refused."""
    one_run: float
    half: float
    error: float
    """Root mean square, in logarithms."""
    interpolated: float
    """The same of straight lines between the expensive testbed's own logarithms."""
    refused: float
    has_cheap: bool


def held(name: str, noise: np.random.Generator, expensive: int = EXPENSIVE, runs: int = EXPENSIVE_RUNS) -> Held:
    make, blocks = CURVES[name]
    cheap, expensive = make(noise)
    drawn = LOW + (HIGH - LOW) * (np.arange(PAYLOADS) + noise.uniform(size=PAYLOADS)) / PAYLOADS
    noise.shuffle(drawn)
    of = World(cheap, expensive, noise.uniform(0.02, 0.06), noise.uniform(0.01, 0.03), blocks, None, drawn)
    one = measured(of, cheap, of.cheap_noise, _grid(drawn), CHEAP_RUNS, noise)
    two = measured(of, expensive, of.expensive_noise, _grid(drawn[:expensive]), runs, noise)
    found = calibrated(one, two)
    own = drawn[:expensive]
    places = _grid(np.array([each for each in drawn[expensive:] if own.min() < each < own.max()]))
    truth = expensive(places[:, 0], places[:, 1])
    new = truth + noise.normal(0.0, blocks or 1e-12) + noise.normal(0.0, of.expensive_noise, len(truth))
    said, single = (found.calibration.predict(found.scaled(places), one_run=each) for each in (False, True))
    kept = ~said.refused
    if not kept.any() or found.calibration.is_disbelieved:
        return Held(np.nan, np.nan, np.nan, np.nan, np.nan, 1.0, has_cheap=found.calibration.has_cheap)
    return Held(
        float(((said.low <= truth) & (truth <= said.high))[kept].mean()),
        float(((single.low <= new) & (new <= single.high))[kept].mean()),
        float(np.median((said.high - said.low)[kept]) / 2),
        float(np.sqrt(np.mean((said.mean - truth)[kept] ** 2))),
        float(np.sqrt(np.mean((_between(two, places) - truth)[kept] ** 2))),
        float(np.mean(~kept)),
        found.calibration.has_cheap,
    )


def _between(runs: Runs, places: np.ndarray) -> np.ndarray:
    """Straight lines between means of logarithms over ln payload, for each number of threads."""
    found = np.empty(len(places))
    for threads in THREADS:
        own, asked = runs.inputs[:, 1] == threads, places[:, 1] == threads
        at = np.unique(runs.inputs[own, 0])
        means = [runs.values[own & (runs.inputs[:, 0] == each)].mean() for each in at]
        found[asked] = np.interp(places[asked, 0], at, means)
    return found


def _grid(payloads: np.ndarray) -> np.ndarray:
    return np.array([(payload, threads) for payload in payloads for threads in THREADS])
