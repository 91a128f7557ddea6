"""What an expensive testbed would give, from what a cheap one gives and a few runs of the expensive one.

    ln expensive(x) = rho ln cheap(x) + delta(x)

(Kennedy and O'Hagan 2001, J. R. Stat. Soc. B 63:425): the cheap testbed's mean is a Gaussian process about a trend, delta a
second one about an unknown constant, rho a slope that the prior holds near 1.  What is not known of the cheap mean is carried
into delta and out of it again.  ``x`` are numbers, scaled to the range that was measured.  Beside it stands a process of the
expensive runs alone; the one whose errors are less where groups are left out is used.

Intervals are those of the process, and conformal ones by group (Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a
Random World; for groups Dunn, Wasserman and Ramdas 2023, J. Am. Stat. Assoc. 118:2491): what each group that was drawn at
random misses when it is left out says how far the next one may be off, whatever the process believes.  Their level needs
``least_groups`` of them.  With n groups, fewer, the interval is the process' own, and no narrower than the farthest of them:
that has n / (n + 1) whatever the process believes, where groups were drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.calibration.cells import Cells
from twinbed.statistics.calibration.intervals import CLOSE, Flags, conformal_factor, in_hull, least_groups, quantiles
from twinbed.statistics.calibration.process import Normal, Points, Process, observed, prior
from twinbed.statistics.calibration.trend import Constant, Trend

Doubles = NDArray[np.float64]

WIDER = 2.0
"""Times the largest variance of a measured place that was left out: where more is unknown, nothing is said."""
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
    """The process' own interval; ``low`` is no higher where too few groups were drawn at random for a conformal one."""
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
    has_cheap: bool = True
    """Whether the cheap testbed is used; else ``delta`` is the expensive testbed itself."""
    other_error: float | None = None
    """The ``error`` of what was not chosen: the expensive runs alone, or with the cheap testbed."""

    def predict(self, inputs: Doubles, *, one_run: bool = False) -> Predicted:
        """At ``inputs`` (places, inputs), of the mean, or of one new run in a new block."""
        mean, covariance = self.dear_at(inputs)
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        extra = self.dear.noise.of_one_run if one_run else 0.0
        df = self._df(variance + extra, one_run=one_run)
        low, high = quantiles(mean, variance + extra, self.delta.shapes.weights, df, self.level)
        middle, whole = Normal(mean, covariance).mixed(self.delta.shapes.weights)
        known = np.diagonal(whole)
        half = self._held(inputs, np.sqrt(known + extra), (high - low) / 2, one_run=one_run)
        outside = ~in_hull(self.dear.inputs, inputs)
        return Predicted(
            middle,
            np.minimum(low, middle - half) if not self.is_conformal else middle - half,
            np.maximum(high, middle + half) if not self.is_conformal else middle + half,
            low,
            high,
            np.sqrt(known + extra),
            *self._difference(inputs, mean, variance),
            outside,
            ~outside & (known - self._of_blocks > WIDER * self.most_unknown),
        )

    @cached_property
    def left_out(self) -> Sequence[LeftOut]:
        """Every cell of the dear testbed, predicted without its group: exact, by the process' shapes without it too."""
        found = []
        predicted, _ = self._base(self.dear.inputs)
        for group in np.unique(self.groups):
            members = self.groups == group
            if np.all(members):
                return ()
            normal, weights = self.delta.without(members)
            mean, covariance = normal.mixed(weights)
            variance = np.diagonal(normal.covariances, axis1=1, axis2=2)
            # What blocks move all cells by moves those that are left out as well.
            low, high = quantiles(normal.means, variance, weights, np.full_like(variance, self._runs_df), self.level)
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
        own = np.diagonal(self.dear.covariance) - self._of_blocks
        inside = [each.deviation**2 - own[each.cell] for each in self.left_out if not each.outside]
        return max(inside, default=math.inf)

    @cached_property
    def error(self) -> float | None:
        """The root mean square of what cells that were left out inside the range of the others are missed by; None without."""
        off = [each.measured - each.mean for each in self.left_out if not each.outside]
        return math.sqrt(float(np.mean(np.square(off)))) if off else None

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
    def slope(self) -> float | None:
        """rho, as expected by the runs; None where the cheap testbed is not used."""
        return 1.0 + self.delta.slope if self.has_cheap else None

    @property
    def shown_coverage(self) -> float | None:
        """What groups that were left out show of the coverage: the lower end of Clopper and Pearson's interval (1934,
        Biometrika 26:404), one-sided at 95 %; None where none lies inside the range of the others."""
        from scipy.special import betaincinv

        missed, groups, _ = self.missed
        if not groups:
            return None
        return float(betaincinv(groups - missed, missed + 1, _SHOWN)) if missed < groups else 0.0

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

    def _held(self, inputs: Doubles, deviation: Doubles, own: Doubles, *, one_run: bool) -> Doubles:
        """Half-widths at each place by what was left out; ``own`` are the process'.

        The factor of deviations is that of the cells of each group that are like the place in all that the group does not
        decide, where every group has one; else of the farthest of each group.  Where the process is doubted it is the latter,
        and of a mean with its noise, since that is what was compared with predictions.  Where blocks move all cells, groups of
        the same blocks cannot tell by how much: the process' own interval is the least then.
        """
        scores, kinds = self._scores
        if not len(scores):
            return own
        farthest = self._factor(scores.max(axis=1))
        if self.is_conformal and self.is_doubted:
            half = farthest * np.sqrt(deviation**2 + float(np.median(np.diagonal(self.dear.covariance))))
        elif kinds is None:
            half = farthest * deviation
        else:
            factors = np.array([self._factor(scores[:, kind]) for kind in range(len(kinds))])
            there = inputs[:, self._beside]
            near = np.argmin(((there[:, None, :] - kinds[None, :, :]) ** 2).sum(axis=2), axis=1)
            alike = np.abs(there - kinds[near]).max(axis=1, initial=0.0) < CLOSE
            half = np.where(alike, factors[near], farthest) * deviation
        blocks = self._of_blocks + (self.dear.noise.of_blocks if one_run else 0.0)
        found: Doubles = np.where(blocks > MUCH * deviation**2, np.maximum(half, own), half)
        return found

    def _factor(self, scores: Doubles) -> float:
        """Of few groups the farthest one's, or what Student's t makes of their root mean square where that is more."""
        factor = conformal_factor(scores.tolist(), self.level)
        if factor is not None:
            return factor
        from scipy.special import stdtrit

        wide = float(stdtrit(len(scores), (1 + self.level) / 2))
        return max(float(scores.max()), wide * math.sqrt(float(np.mean(scores**2))))

    @cached_property
    def _beside(self) -> Flags:
        """The inputs that differ within a group."""
        found = np.zeros(self.dear.inputs.shape[1], dtype=bool)
        for group in np.unique(self.groups):
            found |= np.ptp(self.dear.inputs[self.groups == group], axis=0) > CLOSE
        return found

    @cached_property
    def _scores(self) -> tuple[Doubles, Doubles | None]:
        """(groups, kinds), and the kinds: the places within a group that all of them have; (groups, 1) of the farthest, and
        None, where they do not all have the same.  Groups are those drawn, where they are enough for a conformal interval;
        else all inside the range of the others."""
        if self.is_conformal:
            groups = np.unique(self.groups[self.random])
        else:
            groups = np.unique(np.array([each.group for each in self.left_out if not each.outside], dtype=np.intp))
        own = np.round(self.dear.inputs[:, self._beside], 9)
        kinds = np.unique(own[np.isin(self.groups, groups)], axis=0)
        places = [np.unique(own[self.groups == group], axis=0) for group in groups]
        of_group = {group: [each for each in self.left_out if each.group == group] for group in groups}
        if not all(np.array_equal(each, kinds) for each in places):
            return np.array([[max(each.score for each in cells)] for cells in of_group.values()]), None
        found = np.zeros((len(groups), len(kinds)))
        for row, cells in enumerate(of_group.values()):
            for each in cells:
                found[row, int(np.argmin(np.abs(kinds - own[each.cell]).sum(axis=1)))] = each.score
        return found, kinds

    def dear_at(self, inputs: Doubles) -> tuple[Doubles, Doubles]:
        """Means (shapes, places) and covariances (shapes, places, places) of the dear testbed."""
        own = len(self.dear)
        mean, covariance = self._base(np.vstack([self.dear.inputs, inputs]))
        asked = _beside(inputs, mean[own:], self._centre)
        found = self.delta.at(asked, covariance[:own, own:], covariance[own:, own:])
        return found.means + mean[own:], found.covariances

    def _difference(self, inputs: Doubles, mean: Doubles, variance: Doubles) -> tuple[Doubles, Doubles, Doubles]:
        """The expensive testbed less the cheap one, with its interval; ``mean`` and ``variance`` are the expensive one's."""
        cheap, covariance = _at(self.of_cheap, self.trend, inputs)
        weights = self.delta.shapes.weights
        if self.has_cheap:
            of_delta = self.delta.at(_beside(inputs, cheap, self._centre))
            means, apart = of_delta.means, np.diagonal(of_delta.covariances, axis1=1, axis2=2)
        else:
            means, apart = mean - cheap, variance + np.diagonal(covariance)
        low, high = quantiles(means, apart, weights, self._df(apart, self.cheap, self.dear), self.level)
        return weights @ means, low, high

    def _base(self, inputs: Doubles) -> tuple[Doubles, Doubles]:
        """What delta is about: the cheap testbed's mean, and its covariance."""
        if not self.has_cheap:
            return np.zeros(len(inputs)), np.zeros((len(inputs), len(inputs)))
        return _at(self.of_cheap, self.trend, inputs)

    @cached_property
    def _centre(self) -> float:
        return float(self._base(self.dear.inputs)[0].mean())

    @cached_property
    def _of_blocks(self) -> float:
        return _shared(self.dear)

    @property
    def _runs_df(self) -> int:
        return min(each.noise.runs_df for each in (self.dear, self.cheap)[: 1 + self.has_cheap])

    def _df(self, variance: Doubles, *sides: Cells, one_run: bool = False) -> Doubles:
        """Satterthwaite's degrees of freedom: what blocks leave open is known as badly as blocks are few. ``sides`` are those
        whose blocks are in the variance: by default the expensive testbed's, as the cheap one's cancel.  A new block's effect
        is known by the same mean square as that of the others (Satterthwaite 1946, Biometrics Bull. 2:110)."""
        new = self.dear.noise.of_blocks + self.dear.noise.of_runs_in_blocks if one_run else 0.0
        parts = [(each.noise, _shared(each) + new) for each in sides or (self.dear,)]
        square = sum(part**2 / noise.blocks_df for noise, part in parts if noise.blocks_df)
        rest = np.maximum(variance - sum(part for _, part in parts), 0.0)
        found: Doubles = variance**2 / (square + rest**2 / self._runs_df)
        return np.maximum(found, 1.0)


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
    says which of them were drawn at random from what will be asked for: without it none.  With the cheap testbed, or from the
    expensive runs alone where these miss less of what is left out.  Raises UncalibratedError."""
    if len(cheap) < 2 or len(dear) < 2:
        raise UncalibratedError("each testbed needs two cells or more")
    about = Constant() if trend is None else trend
    base, basis = about.at(cheap.inputs)
    there = Points(cheap.inputs, basis, np.zeros(len(cheap)))
    of_cheap = observed(there, cheap.means - base, cheap.covariance, prior(cheap.inputs.shape[1], _ALONE))
    mean, covariance = _at(of_cheap, about, dear.inputs)
    shapes = prior(dear.inputs.shape[1], has_slope=True)
    delta = observed(_beside(dear.inputs, mean, float(mean.mean())), dear.means - mean, dear.covariance + covariance, shapes)
    alone = observed(
        _beside(dear.inputs, np.zeros(len(dear)), 0.0), dear.means, dear.covariance, prior(dear.inputs.shape[1], _ALONE)
    )
    drawn = np.zeros(len(dear), dtype=bool) if random is None else random
    mixed, single = (
        Calibration(cheap, dear, about, of_cheap, process, groups, drawn, level, has_cheap)
        for process, has_cheap in ((delta, True), (alone, False))
    )
    if mixed.error is None or single.error is None or mixed.error <= single.error:
        return replace(mixed, other_error=single.error)
    return replace(single, other_error=mixed.error)


def _beside(inputs: Doubles, cheap: Doubles, centre: float) -> Points:
    """Where delta is about a constant, and rises with what the cheap testbed has beyond ``centre``."""
    return Points(inputs, np.ones((len(inputs), 1)), cheap - centre)


def _at(process: Process, trend: Trend, inputs: Doubles) -> tuple[Doubles, Doubles]:
    """The mean and covariance over all shapes, with the trend."""
    base, basis = trend.at(inputs)
    mean, covariance = process.at(Points(inputs, basis, np.zeros(len(inputs)))).mixed(process.shapes.weights)
    return mean + base, covariance


_SHOWN = 0.05
_ALONE = 0.5
"""The half-Cauchy prior's scale of a testbed about its own trend."""


def _shared(cells: Cells) -> float:
    """The variance that blocks give all cells' means together."""
    count = len(cells)
    return float((cells.covariance.sum() - np.trace(cells.covariance)) / max(count * (count - 1), 1))
