"""Worlds with a cheap and an expensive testbed, of known rates over payload and threads, and how calibrations predict them.

50 payloads drawn log-uniformly from 500 B to 16 MiB, each with 1 to 4 threads: 10 runs each on the cheap testbed, and of
some of the payloads 5 runs each on the expensive one, as in the LDRD report (section 3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from twinbed.statistics.calibration.calibration import Calibration, Predicted, calibrate
from twinbed.statistics.calibration.cells import Cells, cells
from twinbed.statistics.calibration.equating import logistic_curve
from twinbed.statistics.calibration.planning import MOST, course
from twinbed.statistics.calibration.trend import JointLaw, OfLaw, Place, joint_law
from twinbed.statistics.nonlinear import NoFitError

LOW, HIGH = np.log(500.0), np.log(16.0 * 2**20)
THREADS = (1.0, 2.0, 3.0, 4.0)
LogRate = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""ln payload and threads -> the logarithm of the rate."""


@dataclass(frozen=True)
class World:
    cheap: LogRate
    expensive: LogRate
    cheap_noise: float
    expensive_noise: float
    blocks: float = 0.0
    """Standard deviation of a block's effect on all its runs."""
    tails: float | None = None
    """Degrees of freedom of the noise's t distribution; None is normal."""
    payloads: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Logarithms, in the order in which they are given to the expensive testbed."""


def law(noise: np.random.Generator, beside: JointLaw | None = None) -> JointLaw:
    rate = noise.uniform(1500, 4000) if beside is None else beside.rate * np.exp(noise.normal(0.5, 0.3))
    line = noise.uniform(3e8, 1e9) if beside is None else noise.uniform(6e8, 1e9)
    return JointLaw(float(rate), noise.uniform(0.05, 0.4), noise.uniform(0, 0.02), float(line), noise.uniform(1, 4))


def _of(law: JointLaw) -> LogRate:
    return lambda p, t: law.log_rate(np.exp(p), t)


def _both_laws(noise: np.random.Generator) -> tuple[LogRate, LogRate]:
    cheap = law(noise)
    return _of(cheap), _of(law(noise, cheap))


def _same(noise: np.random.Generator) -> tuple[LogRate, LogRate]:
    same = _of(law(noise))
    return same, same


def _wrong_law(noise: np.random.Generator) -> tuple[LogRate, LogRate]:
    """Rates with waves of 20 % over payload, other ones on each testbed, which no law has."""
    cheap, expensive = _both_laws(noise)
    (a, b), (c, d) = noise.uniform(1.0, 2.0, 2), noise.uniform(0.0, 6.0, 2)
    return (
        lambda p, t: cheap(p, t) + 0.2 * np.sin(a * p + c),
        lambda p, t: expensive(p, t) + 0.2 * np.sin(b * p + d) * t / 4,
    )


def _step(noise: np.random.Generator) -> tuple[LogRate, LogRate]:
    """The expensive testbed is 30 % slower from some payload on, at once: another path in its NIC."""
    cheap, expensive = _both_laws(noise)
    where = noise.uniform(LOW + 2, HIGH - 2)
    return cheap, lambda p, t: expensive(p, t) - 0.3 * (p > where)


WORLDS: Mapping[str, tuple[Callable[[np.random.Generator], tuple[LogRate, LogRate]], float, float | None]] = {
    "joint laws": (_both_laws, 0.0, None),
    "joint laws, blocks of 3 %": (_both_laws, 0.03, None),
    "waves beside the law": (_wrong_law, 0.0, None),
    "a step of 30 %": (_step, 0.0, None),
    "heavy tails (t, 3 df)": (_both_laws, 0.0, 3.0),
    "A/A": (_same, 0.0, None),
}
"""Name -> how the rates are made, deviation of blocks, degrees of freedom of noise."""


def world(name: str, noise: np.random.Generator, payloads: int = 50) -> World:
    make, blocks, tails = WORLDS[name]
    cheap, expensive = make(noise)
    drawn = LOW + (HIGH - LOW) * (np.arange(payloads) + noise.uniform(size=payloads)) / payloads
    noise.shuffle(drawn)
    return World(cheap, expensive, noise.uniform(0.02, 0.08), noise.uniform(0.01, 0.04), blocks, tails, drawn)


@dataclass(frozen=True)
class Runs:
    inputs: np.ndarray
    """(runs, 2): ln payload and threads."""
    values: np.ndarray
    blocks: Sequence[int]


def measured(of: World, rate: LogRate, deviation: float, places: np.ndarray, runs: int, noise: np.random.Generator) -> Runs:
    """So many runs at each place, one a block."""
    means = rate(places[:, 0], places[:, 1])
    effects = noise.normal(0.0, of.blocks, runs) if of.blocks else np.zeros(runs)
    shape = (runs, len(places))
    drawn = (
        noise.normal(size=shape) if of.tails is None else noise.standard_t(of.tails, shape) / np.sqrt(of.tails / (of.tails - 2))
    )
    values = means + effects[:, None] + deviation * drawn
    return Runs(np.tile(places, (runs, 1)), values.ravel(), np.repeat(np.arange(runs), len(places)).tolist())


def grid(payloads: np.ndarray) -> np.ndarray:
    return np.array([(payload, threads) for payload in payloads for threads in THREADS])


@dataclass(frozen=True)
class Calibrated:
    calibration: Calibration
    low: np.ndarray
    span: np.ndarray

    def scaled(self, places: np.ndarray) -> np.ndarray:
        return (places - self.low) / self.span

    def predict(self, places: np.ndarray) -> Predicted:
        return self.calibration.predict(self.scaled(places))


def calibrated(cheap: Runs, expensive: Runs) -> Calibrated:
    """As `twinbed calibrate` does."""
    every = np.vstack([cheap.inputs, expensive.inputs])
    low, span = every.min(axis=0), np.ptp(every, axis=0)
    one, two = (cells((runs.inputs - low) / span, runs.values, runs.blocks) for runs in (cheap, expensive))
    return Calibrated(of_cells(one, two, low, span), low, span)


def of_cells(cheap: Cells, expensive: Cells, low: np.ndarray, span: np.ndarray) -> Calibration:
    there = cheap.inputs * span + low
    found = joint_law(np.exp(there[:, 0]), there[:, 1], cheap.means)
    about = OfLaw(found, Place(0, low[0], span[0], True), Place(1, low[1], span[1]), cheap.inputs) if found else None
    groups = np.unique(np.round(expensive.inputs[:, 0], 12), return_inverse=True)[1]
    return calibrate(cheap, expensive, groups, trend=about, random=np.ones(len(expensive), dtype=bool))


@dataclass(frozen=True)
class Held:
    """Of the places that were held out and not refused: whether intervals hold the truth, and their half-widths."""

    places: np.ndarray
    model: np.ndarray
    conformal: np.ndarray
    delta: np.ndarray
    half: np.ndarray
    conformal_half: np.ndarray
    logistic_half: np.ndarray
    logistic: np.ndarray
    refused: float
    """Share of the places held out."""
    beyond: bool
    """Whether all that was asked at twice the range was refused."""


def held_out(name: str, noise: np.random.Generator, expensive_payloads: int = 20) -> Held:
    """One study."""
    of = world(name, noise)
    cheap = measured(of, of.cheap, of.cheap_noise, grid(of.payloads), 10, noise)
    expensive = measured(of, of.expensive, of.expensive_noise, grid(of.payloads[:expensive_payloads]), 5, noise)
    found = calibrated(cheap, expensive)
    places = grid(of.payloads[expensive_payloads:])
    truth = of.expensive(places[:, 0], places[:, 1])
    said = found.predict(places)
    kept = ~said.refused
    apart = truth - of.cheap(places[:, 0], places[:, 1])
    beyond = grid(np.array([LOW - (HIGH - LOW) / 2, HIGH + (HIGH - LOW) / 2]))
    ratio, covers = _logistic(expensive, places, truth)
    return Held(
        places[kept],
        ((said.model_low <= truth) & (truth <= said.model_high))[kept],
        ((said.low <= truth) & (truth <= said.high))[kept],
        ((said.difference_low <= apart) & (apart <= said.difference_high))[kept],
        ((said.model_high - said.model_low) / 2)[kept],
        ((said.high - said.low) / 2)[kept],
        ratio[kept],
        covers[kept],
        float(np.mean(~kept)),
        bool(np.all(found.predict(beyond).refused)),
    )


def _logistic(expensive: Runs, places: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The LDRD report's intervals of one run, by thread count: half-widths as shares of the rate, and whether they hold the
    truth."""
    half, covers = np.full(len(places), np.nan), np.zeros(len(places), dtype=bool)
    for threads in THREADS:
        own, asked = expensive.inputs[:, 1] == threads, places[:, 1] == threads
        try:
            curve = logistic_curve(expensive.inputs[own, 0], np.exp(expensive.values[own]))
        except NoFitError:
            continue
        rate, low, high = curve.at(places[asked, 0], 0.95)
        half[asked] = (high - low) / 2 / np.abs(rate)
        covers[asked] = (low <= np.exp(truth[asked])) & (np.exp(truth[asked]) <= high)
    return half, covers


def steps_needed(noise: np.random.Generator, begun: int = 6, orders: int = 20) -> tuple[int, float] | None:
    """Payloads that `--next` measures until nine of ten half-widths are half of what they were, and how many payloads in a
    random order take, on average; None where all payloads together do not bring it there. Every payload costs the same."""
    of = world("joint laws", noise, 40)
    cheap = measured(of, of.cheap, of.cheap_noise, grid(of.payloads), 10, noise)
    expensive = measured(of, of.expensive, of.expensive_noise, grid(of.payloads[:begun]), 5, noise)
    found = calibrated(cheap, expensive)
    candidates = [found.scaled(grid(np.array([payload]))) for payload in of.payloads[begun:]]
    of_interest = found.calibration.cheap.inputs
    one = len(candidates)

    def widths(order: Sequence[np.ndarray]) -> list[float]:
        """Of the candidates in this order: each step has one to choose from."""
        covariance = _expensive_covariance(found.calibration, np.vstack([*order, of_interest]))
        error = found.calibration.expensive.noise.of_one_run / 5
        halves, size = [], len(THREADS)
        for step in range(len(order)):
            places = np.arange(step * size, (step + 1) * size)
            inside = covariance[np.ix_(places, places)] + error * np.eye(size)
            covariance = covariance - covariance[:, places] @ np.linalg.solve(inside, covariance[places])
            rest = np.diagonal(covariance)[len(order) * size :]
            halves.append(float(np.quantile(np.sqrt(np.maximum(rest, 0.0)), MOST)))
        return halves

    greedy = course(found.calibration, candidates, of_interest, seconds=[1.0] * one, runs=5, steps=one)
    target = greedy.now / 2
    needed = next((number for number, step in enumerate(greedy.steps, 1) if step.half_width <= target), None)
    if needed is None:
        return None
    at_random = []
    for _ in range(orders):
        drawn = widths([candidates[at] for at in noise.permutation(one)])
        at_random.append(next((number for number, half in enumerate(drawn, 1) if WIDE * half <= target), one))
    return needed, float(np.mean(at_random))


WIDE = 1.959963984540054


def _expensive_covariance(calibration: Calibration, places: np.ndarray) -> np.ndarray:
    mixed = calibration.expensive_at(places)
    return np.asarray(np.tensordot(mixed.weights, mixed.normal.covariances, 1))
