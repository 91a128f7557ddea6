"""What a dear testbed would give, from what a cheap one gives and a few runs of the dear one.

    ln dear(x) = ln cheap(x) + delta(x)

(Kennedy and O'Hagan 2001, J. R. Stat. Soc. B 63:425, with a scale of one): the cheap testbed's mean is a Gaussian process
about a trend, delta a second one about an unknown constant.  What is not known of the cheap mean is carried into delta and out
of it again.  ``x`` are numbers, scaled to the range that was measured.

Intervals are those of the process, and conformal ones by group (Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a
Random World; for groups Dunn, Wasserman and Ramdas 2023, J. Am. Stat. Assoc. 118:2491): what each group that was drawn at
random misses when it is left out says how far the next one may be off, whatever the process believes.  Their level needs
``least_groups`` of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.calibration.cells import Cells
from twinbed.statistics.calibration.process import Normal, Process, observed, prior
from twinbed.statistics.calibration.trend import Constant, Trend

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]

WIDER = 2.0
"""Times the largest variance of a measured place that was left out: where more is unknown, nothing is said."""
CLOSE = 1e-9
ROUNDS = 100
PRECISION = 1e-12
"""Of a quantile, as a share of the half-width of an interval."""
DOUBT = 0.3
"""The chance of as many groups left out that miss their intervals, below which the process is doubted."""
DISBELIEF = 0.01
"""The same, below which its intervals are not given."""
MUCH = 0.1
"""The share of a variance that blocks have, from which on they count."""


class UncalibratedError(ValueError):
    """Nothing can be said; the text says why."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """At each of the places asked for, in logarithms of the response."""

    mean: Doubles
    low: Doubles
    high: Doubles
    model_low: Doubles
    """The process' own interval; the same as ``low`` where too few groups were drawn at random for a conformal one."""
    model_high: Doubles
    deviation: Doubles
    difference: Doubles
    """delta: dear less cheap."""
    difference_low: Doubles
    difference_high: Doubles
    outside: Flags
    """Beyond what was measured of the dear testbed."""
    unknown: Flags
    """Inside of it, but too far from what was measured."""

    @property
    def refused(self) -> Flags:
        return self.outside | self.unknown


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One cell of the dear testbed, as predicted without its group."""

    cell: int
    group: int
    measured: float
    mean: float
    deviation: float
    """Of a mean of as many runs as the cell has."""
    low: float
    high: float
    """The process' own interval."""
    outside: bool
    """Whether the other groups' range does not hold it."""

    @property
    def score(self) -> float:
        return abs(self.measured - self.mean) / self.deviation

    @property
    def inside(self) -> bool:
        return self.low <= self.measured <= self.high


@dataclass(frozen=True)
class Calibration:
    """Made by ``calibrate``. Inputs are scaled; values are logarithms."""

    cheap: Cells
    dear: Cells
    trend: Trend
    """Of the cheap testbed."""
    of_cheap: Process
    delta: Process
    groups: NDArray[np.intp]
    """Of each cell of the dear testbed."""
    random: Flags
    """Of each cell of the dear testbed, whether its group was drawn at random."""
    level: float

    def predict(self, inputs: Doubles, *, one_run: bool = False) -> Predicted:
        """At ``inputs`` (places, inputs), of the mean, or of one new run in a new block."""
        mean, covariance = self.dear_at(inputs)
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        extra = self.dear.noise.of_one_run if one_run else 0.0
        low, high = _quantiles(mean, variance + extra, self.delta.shapes.weights, self._df(variance + extra), self.level)
        middle, whole = Normal(mean, covariance).mixed(self.delta.shapes.weights)
        deviation = np.sqrt(np.diagonal(whole) + extra)
        half = self._conformal(inputs, deviation)
        of_delta = self._delta(inputs)
        below, above = _quantiles(
            of_delta.means,
            apart := np.diagonal(of_delta.covariances, axis1=1, axis2=2),
            self.delta.shapes.weights,
            self._df(apart),
            self.level,
        )
        outside = ~in_hull(self.dear.inputs, inputs)
        return Predicted(
            middle,
            low if half is None else middle - half,
            high if half is None else middle + half,
            low,
            high,
            deviation,
            self.delta.shapes.weights @ of_delta.means,
            below,
            above,
            outside,
            ~outside & (np.diagonal(whole) > WIDER * self.most_unknown),
        )

    @cached_property
    def left_out(self) -> Sequence[LeftOut]:
        """Every cell of the dear testbed, predicted without its group: exact, by the process' shapes without it too."""
        found = []
        predicted, _ = _at(self.of_cheap, self.trend, self.dear.inputs)
        for group in np.unique(self.groups):
            members = self.groups == group
            if np.all(members):
                return ()
            normal, weights = self.delta.without(members)
            mean, covariance = normal.mixed(weights)
            variance = np.diagonal(normal.covariances, axis1=1, axis2=2)
            low, high = _quantiles(normal.means, variance, weights, self._df(variance), self.level)
            outside = ~in_hull(self.dear.inputs[~members], self.dear.inputs[members])
            for place, cell in enumerate(np.flatnonzero(members)):
                base = predicted[cell]
                found.append(
                    LeftOut(
                        int(cell),
                        int(group),
                        float(self.dear.means[cell]),
                        float(base + mean[place]),
                        math.sqrt(covariance[place, place]),
                        float(base + low[place]),
                        float(base + high[place]),
                        bool(outside[place]),
                    )
                )
        return found

    @cached_property
    def most_unknown(self) -> float:
        """The largest variance of a cell's true mean that was left out, among those inside the range of the others."""
        own = np.diagonal(self.dear.covariance)
        inside = [each.deviation**2 - own[each.cell] for each in self.left_out if not each.outside]
        return max(inside, default=math.inf)

    @cached_property
    def missed(self) -> tuple[int, int, float]:
        """Groups that were left out, inside the range of the others, and miss an interval that is wide enough for all cells of
        a group at once; of how many; and the chance of so many."""
        from scipy.stats import binom, norm

        cells: dict[int, list[float]] = {}
        for each in self.left_out:
            if not each.outside:
                cells.setdefault(each.group, []).append(each.score)
        wide = {group: norm.ppf((1 + self.level ** (1 / len(scores))) / 2) for group, scores in cells.items()}
        missed = sum(bool(max(scores) > wide[group]) for group, scores in cells.items())
        return missed, len(cells), float(binom.sf(missed - 1, len(cells), 1 - self.level))

    @property
    def is_doubted(self) -> bool:
        """Whether more groups miss their intervals than chance would have it: what the process says of itself is too little."""
        return self.missed[2] < DOUBT

    @property
    def is_disbelieved(self) -> bool:
        """Whether the process is doubted beyond what a few more groups could mend, and nothing else stands for it."""
        return self.missed[2] < DISBELIEF and not self.is_conformal

    @property
    def is_conformal(self) -> bool:
        """Whether enough groups were drawn at random for an interval that hangs on no belief."""
        return self.drawn_groups >= least_groups(self.level)

    @property
    def drawn_groups(self) -> int:
        return len(np.unique(self.groups[self.random]))

    def _conformal(self, inputs: Doubles, deviation: Doubles) -> Doubles | None:
        """Half-widths at each place; None where too few groups were drawn at random.

        The factor of deviations is that of the cells of each group that are like the place in all that the group does not
        decide, where every group has one; else of the farthest of each group.  Where the process is doubted it is the latter,
        and of a mean with its noise, since that is what was held against predictions.  Where blocks move all cells, groups of
        the same blocks cannot tell by how much: the process' own interval is the least then.
        """
        if not self.is_conformal:
            return None
        scores, kinds = self._scores()
        farthest = conformal_factor(scores.max(axis=1).tolist(), self.level)
        if farthest is None:
            return None
        if self.is_doubted:
            half = farthest * np.sqrt(deviation**2 + float(np.median(np.diagonal(self.dear.covariance))))
        elif kinds is None:
            half = farthest * deviation
        else:
            factors = [conformal_factor(scores[:, kind].tolist(), self.level) or farthest for kind in range(len(kinds))]
            own = inputs[:, self._beside]
            near = np.argmin(((own[:, None, :] - kinds[None, :, :]) ** 2).sum(axis=2), axis=1)
            alike = np.abs(own - kinds[near]).max(axis=1, initial=0.0) < CLOSE
            half = np.where(alike, np.array(factors)[near], farthest) * deviation
        blocks = sum(_shared(each) for each in self._sides)
        least = math.sqrt(2) * _erfinv(self.level) * deviation
        found: Doubles = np.where(blocks > MUCH * deviation**2, np.maximum(half, least), half)
        return found

    @cached_property
    def _beside(self) -> Flags:
        """The inputs that differ within a group."""
        found = np.zeros(self.dear.inputs.shape[1], dtype=bool)
        for group in np.unique(self.groups):
            found |= np.ptp(self.dear.inputs[self.groups == group], axis=0) > CLOSE
        return found

    def _scores(self) -> tuple[Doubles, Doubles | None]:
        """(groups drawn, kinds), and the kinds: the places within a group that all of them have; (groups drawn, 1) of the
        farthest, and None, where they do not all have the same."""
        own = np.round(self.dear.inputs[:, self._beside], 9)
        drawn = np.unique(self.groups[self.random])
        kinds = np.unique(own[self.random], axis=0)
        places = [np.unique(own[self.groups == group], axis=0) for group in drawn]
        of_group = {group: [each for each in self.left_out if each.group == group] for group in drawn}
        if not all(np.array_equal(each, kinds) for each in places):
            return np.array([[max(each.score for each in cells)] for cells in of_group.values()]), None
        found = np.zeros((len(drawn), len(kinds)))
        for row, cells in enumerate(of_group.values()):
            for each in cells:
                found[row, int(np.argmin(np.abs(kinds - own[each.cell]).sum(axis=1)))] = each.score
        return found, kinds

    def dear_at(self, inputs: Doubles) -> tuple[Doubles, Doubles]:
        """Means (shapes, places) and covariances (shapes, places, places) of the dear testbed."""
        own = len(self.dear)
        mean, covariance = _at(self.of_cheap, self.trend, np.vstack([self.dear.inputs, inputs]))
        found = self.delta.at(inputs, np.ones((len(inputs), 1)), covariance[:own, own:], covariance[own:, own:])
        return found.means + mean[own:], found.covariances

    def _delta(self, inputs: Doubles) -> Normal:
        return self.delta.at(inputs, np.ones((len(inputs), 1)))

    def _df(self, variance: Doubles) -> Doubles:
        """Satterthwaite's degrees of freedom: what blocks leave open is known as badly as blocks are few."""
        parts = [(each.noise, _shared(each)) for each in self._sides]
        square = sum(part**2 / noise.blocks_df for noise, part in parts if noise.blocks_df)
        least = min(noise.runs_df for noise, _ in parts)
        rest = np.maximum(variance - sum(part for _, part in parts), 0.0)
        found: Doubles = variance**2 / (square + rest**2 / least)
        return np.maximum(found, 1.0)

    @property
    def _sides(self) -> tuple[Cells, Cells]:
        return self.cheap, self.dear


def calibrate(
    cheap: Cells,
    dear: Cells,
    groups: NDArray[np.intp],
    *,
    trend: Trend | None = None,
    random: Flags | None = None,
    level: float = 0.95,
) -> Calibration:
    """``groups`` (cells of the dear testbed,) are what is predicted anew each time, such as the payload; ``random`` (cells,)
    says which of them were drawn at random from what will be asked for: without it none.  Raises UncalibratedError."""
    if len(cheap) < 2 or len(dear) < 2:
        raise UncalibratedError("each testbed needs two cells or more")
    about = Constant() if trend is None else trend
    base, basis = about.at(cheap.inputs)
    of_cheap = observed(cheap.inputs, cheap.means - base, basis, cheap.covariance, prior(cheap.inputs.shape[1], _OF_CHEAP))
    mean, covariance = _at(of_cheap, about, dear.inputs)
    delta = observed(
        dear.inputs, dear.means - mean, np.ones((len(dear), 1)), dear.covariance + covariance, prior(dear.inputs.shape[1])
    )
    drawn = np.zeros(len(dear), dtype=bool) if random is None else random
    return Calibration(cheap, dear, about, of_cheap, delta, groups, drawn, level)


def _at(process: Process, trend: Trend, inputs: Doubles) -> tuple[Doubles, Doubles]:
    """The mean and covariance over all shapes, with the trend."""
    base, basis = trend.at(inputs)
    mean, covariance = process.at(inputs, basis).mixed(process.shapes.weights)
    return mean + base, covariance


_OF_CHEAP = 0.5
"""The half-Cauchy prior's scale of the cheap testbed about its trend."""


def least_groups(level: float) -> int:
    """Groups drawn at random that a conformal interval needs: 19 for 95 %, 9 for 90 %."""
    return math.ceil(round(level / (1 - level), 9))


def conformal_factor(scores: Sequence[float], level: float) -> float | None:
    """The ceil((n + 1) level)-th smallest score of n; None where there are fewer."""
    rank = math.ceil(round((len(scores) + 1) * level, 9))
    return sorted(scores)[rank - 1] if rank <= len(scores) else None


def in_hull(points: Doubles, asked: Doubles) -> Flags:
    """Whether each of ``asked`` is in the convex hull of ``points``, its border with it."""
    from scipy.optimize import linprog

    found = np.zeros(len(asked), dtype=bool)
    low, high = points.min(axis=0), points.max(axis=0)
    box: Flags = np.all((asked >= low - CLOSE) & (asked <= high + CLOSE), axis=1)
    varied = high - low > CLOSE
    if varied.sum() <= 1:
        return box
    corners = np.unique(points[:, varied], axis=0)
    if len(corners) == np.prod([len(np.unique(corners[:, each])) for each in range(corners.shape[1])]):
        return box  # A full grid fills its box.
    equal = np.vstack([corners.T, np.ones(len(corners))])
    for each in np.flatnonzero(box):
        side = np.append(asked[each, varied], 1.0)
        found[each] = linprog(np.zeros(len(corners)), A_eq=equal, b_eq=side, bounds=(0, None), method="highs").status == 0
    return found


def _quantiles(mean: Doubles, variance: Doubles, weights: Doubles, df: Doubles, level: float) -> tuple[Doubles, Doubles]:
    """The interval of a mixture of Student's t: (shapes, places) each."""
    from scipy.special import gammaln, stdtr, stdtrit

    deviation = np.sqrt(np.maximum(variance, 1e-300))
    spread = stdtrit(df, (1 + level) / 2) * deviation
    height = np.exp(gammaln((df + 1) / 2) - gammaln(df / 2)) / (np.sqrt(np.pi * df) * deviation)
    close = PRECISION * spread.max(axis=0)
    found = []
    for chance, of_shapes in (((1 - level) / 2, mean - spread), ((1 + level) / 2, mean + spread)):
        below, above, at = of_shapes.min(axis=0), of_shapes.max(axis=0), weights @ of_shapes
        for _ in range(ROUNDS):
            off = (at - mean) / deviation
            beyond = weights @ stdtr(df, off) - chance
            below, above = np.where(beyond < 0, at, below), np.where(beyond < 0, above, at)
            # Newton's step, or half of what is left where that leads out of it, or a narrow peak makes it short.
            with np.errstate(all="ignore"):
                step = at - beyond / (weights @ (height * (1 + off**2 / df) ** (-(df + 1) / 2)))
            is_good = (below < step) & (step < above) & ((np.abs(step - at) > close) | (np.abs(beyond) < CLOSE))
            before, at = at, np.where(is_good, step, (below + above) / 2)
            if np.all(np.abs(at - before) <= close):
                break
        found.append(at)
    return found[0], found[1]


def _shared(cells: Cells) -> float:
    """The variance that blocks give all cells' means together."""
    count = len(cells)
    return float((cells.covariance.sum() - np.trace(cells.covariance)) / max(count * (count - 1), 1))


def _erfinv(level: float) -> float:
    from scipy.special import erfinv

    return float(erfinv(level))
