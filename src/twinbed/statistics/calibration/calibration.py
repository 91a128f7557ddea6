"""Prediction of an expensive testbed from a cheap one and a few runs of the expensive one.

    ln expensive(x) = rho ln cheap(x) + delta(x)

(Kennedy and O'Hagan 2001, J. R. Stat. Soc. B 63:425): the cheap testbed's mean is a Gaussian process about a trend, delta a
second one about an unknown constant, rho a slope that the prior holds near 1.  The uncertainty of the cheap mean is carried
into delta and out of it again.  ``x`` are numbers, scaled to the range that was measured.  A second process has the expensive
runs alone. Both are mixed by their errors when groups are left out (``candidates``).

Intervals are those of the process, and conformal ones by group (Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a
Random World; for groups Dunn, Wasserman and Ramdas 2023, J. Am. Stat. Assoc. 118:2491): the error of each randomly drawn group
when it is left out bounds the error of the next one, whatever the process believes.  Their level needs ``least_groups`` such
groups.  With n groups, fewer, the interval is the process' own, and no narrower than the farthest group's error. The coverage
is then n / (n + 1) whatever the process believes, if groups were drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.calibration.candidates import (
    Candidate,
    Cheap,
    Mixture,
    beside,
    between,
    each_group,
    inside,
    share_of_cheap,
)
from twinbed.statistics.calibration.cells import Cells
from twinbed.statistics.calibration.intervals import CLOSE, Flags, conformal_factor, in_hull, least_groups, quantiles
from twinbed.statistics.calibration.process import Normal, Points, observed, prior
from twinbed.statistics.calibration.trend import Constant, Trend

Doubles = NDArray[np.float64]

WIDER = 2.0
"""Times the largest variance of a measured place that was left out: nothing is predicted where more is unknown."""
DOUBT = 0.3
"""The process is doubted if as many groups left out miss their intervals with a chance below this."""
DISBELIEF = 0.01
"""Below this chance its intervals are not given."""
MUCH = 0.1
"""Blocks count from this share of a variance on."""


class UncalibratedError(ValueError):
    """Nothing can be predicted; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predictions at each of the requested places, in logarithms of the response."""

    mean: Doubles
    low: Doubles
    high: Doubles
    model_low: Doubles
    """The process' own interval; ``low`` is no higher where too few groups were drawn at random for a conformal one."""
    model_high: Doubles
    deviation: Doubles
    difference: Doubles
    """delta: expensive less cheap."""
    difference_low: Doubles
    difference_high: Doubles
    outside: Flags
    """Beyond the measured range of the expensive testbed."""
    unknown: Flags
    """Inside that range, but too far from any measured place."""

    @property
    def refused(self) -> Flags:
        return self.outside | self.unknown


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One cell of the expensive testbed, as predicted without its group."""

    cell: int
    group: int
    measured: float
    mean: float
    deviation: float
    """The deviation of a mean of as many runs as the cell has."""
    low: float
    high: float
    """The process' own interval."""
    outside: bool
    """True if the other groups' range does not hold it."""

    @property
    def score(self) -> float:
        return abs(self.measured - self.mean) / self.deviation

    @property
    def inside(self) -> bool:
        return self.low <= self.measured <= self.high


@dataclass(frozen=True)
class Calibration:
    """A fitted calibration, made by ``calibrate``. Inputs are scaled; values are logarithms."""

    cheap: Cells
    expensive: Cells
    of_cheap: Cheap
    with_cheap: Candidate
    alone: Candidate
    groups: NDArray[np.intp]
    """The group of each cell of the expensive testbed."""
    random: Flags
    """For each cell of the expensive testbed, whether its group was drawn at random."""
    level: float

    def predict(self, inputs: Doubles, *, one_run: bool = False) -> Predicted:
        """Predict the mean at ``inputs`` (places, inputs), or one new run in a new block."""
        mixed = self._mixed(lambda of: of.at(inputs))
        extra = self.expensive.noise.of_one_run if one_run else 0.0
        df = self._df(mixed.variances + extra, one_run=one_run)
        low, high = quantiles(mixed.normal.means, mixed.variances + extra, mixed.weights, df, self.level)
        middle, whole = mixed.mixed()
        known = np.diagonal(whole)
        half = self._held(inputs, np.sqrt(known + extra), (high - low) / 2, one_run=one_run)
        outside = ~in_hull(self.expensive.inputs, inputs)
        return Predicted(
            middle,
            np.minimum(low, middle - half) if not self.is_conformal else middle - half,
            np.maximum(high, middle + half) if not self.is_conformal else middle + half,
            low,
            high,
            np.sqrt(known + extra),
            *self._difference(inputs),
            outside,
            ~outside & (known - self._of_blocks > WIDER * self.most_unknown),
        )

    @cached_property
    def share(self) -> float:
        """Return how much the cheap testbed counts; what the expensive runs alone say has the rest."""
        return share_of_cheap(self.with_cheap.squares, self.alone.squares)

    @property
    def has_cheap(self) -> bool:
        """Return whether the cheap testbed is used."""
        return self.share > 0.0

    @property
    def used(self) -> Candidate:
        """Return the candidate that predictions and their intervals begin with."""
        return self.with_cheap if self.has_cheap else self.alone

    @cached_property
    def left_out(self) -> Sequence[LeftOut]:
        """Predict every cell of the expensive testbed without its group: exactly, by shapes and shares without it too."""
        left = []
        both = zip(each_group(self.groups), self.with_cheap.without, self.alone.without, strict=False)
        within = inside(self.expensive, self.groups)
        for group, (members, with_cheap, alone) in enumerate(both):
            mixed = between(with_cheap, alone, self._share_without(group)) if self.has_cheap else alone
            mean, covariance = mixed.mixed()
            # What blocks move all cells by moves those that are left out as well.
            df = np.full_like(mixed.variances, self._runs_df)
            low, high = quantiles(mixed.normal.means, mixed.variances, mixed.weights, df, self.level)
            for place, cell in enumerate(np.flatnonzero(members)):
                left.append(
                    LeftOut(
                        int(cell),
                        int(self.groups[cell]),
                        float(self.expensive.means[cell]),
                        float(mean[place]),
                        math.sqrt(covariance[place, place]),
                        float(low[place]),
                        float(high[place]),
                        not within[group][place],
                    )
                )
        return left

    def _share_without(self, group: int) -> float:
        """Return the cheap testbed's share by all other groups; by all groups if no other one lies inside the range."""
        mixed_squares, alone_squares = ([*of.squares[:group], *of.squares[group + 1 :]] for of in (self.with_cheap, self.alone))
        return share_of_cheap(mixed_squares, alone_squares) if any(len(squares) for squares in mixed_squares) else self.share

    @cached_property
    def most_unknown(self) -> float:
        """Return the largest variance of the true mean of a cell left out, among those inside the range of the others."""
        own = np.diagonal(self.expensive.covariance) - self._of_blocks
        inside = [left.deviation**2 - own[left.cell] for left in self.left_out if not left.outside]
        return max(inside, default=math.inf)

    @cached_property
    def error(self) -> float | None:
        """Return the root mean square error at cells left out, inside the range of the others; None without such cells."""
        off = [left.measured - left.mean for left in self.left_out if not left.outside]
        return math.sqrt(float(np.mean(np.square(off)))) if off else None

    @cached_property
    def missed(self) -> tuple[int, int, float]:
        """Count the groups left out that miss their interval: (groups that miss, groups, chance of as many). Only groups inside
        the range of the others count. The interval is wide enough for all cells of a group at once."""
        from scipy.stats import binom, norm

        cells: dict[int, list[float]] = {}
        for left in self.left_out:
            if not left.outside:
                cells.setdefault(left.group, []).append(left.score)
        wide = {group: norm.ppf((1 + self.level ** (1 / len(scores))) / 2) for group, scores in cells.items()}
        missed = sum(bool(max(scores) > wide[group]) for group, scores in cells.items())
        return missed, len(cells), float(binom.sf(missed - 1, len(cells), 1 - self.level))

    @property
    def slope(self) -> float | None:
        """Return rho, as expected by the runs; None if the cheap testbed is not used."""
        return 1.0 + self.with_cheap.process.slope if self.has_cheap else None

    @property
    def shown_coverage(self) -> float | None:
        """Return the coverage that groups left out show; None if none lies inside the range of the others. It is the lower end
        of Clopper and Pearson's interval (1934, Biometrika 26:404), one-sided at 95 %."""
        from scipy.special import betaincinv

        missed, groups, _ = self.missed
        if not groups:
            return None
        return float(betaincinv(groups - missed, missed + 1, _SHOWN)) if missed < groups else 0.0

    @property
    def is_doubted(self) -> bool:
        """Return whether more groups miss their intervals than chance allows: the process' own uncertainty is then too
        small."""
        return self.missed[2] < DOUBT

    @property
    def is_disbelieved(self) -> bool:
        """Return whether the process is doubted beyond what a few more groups could fix, without a conformal interval
        instead."""
        return self.missed[2] < DISBELIEF and not self.is_conformal

    @property
    def is_conformal(self) -> bool:
        """Return whether enough groups were drawn at random for an interval that depends on no belief."""
        return self.drawn_groups >= least_groups(self.level)

    @property
    def drawn_groups(self) -> int:
        return len(np.unique(self.groups[self.random]))

    def _held(self, inputs: Doubles, deviation: Doubles, own: Doubles, *, one_run: bool) -> Doubles:
        """Return half-widths at each place by the errors of groups left out; ``own`` are the process'.

        If every group has a cell like the place in all inputs that the group does not decide, the factor of deviations comes
        from these cells; else from the farthest cell of each group.  If the process is doubted it is the latter, and applies to
        a mean with its noise, since that was compared with predictions.  If blocks move all cells, groups of the same blocks
        cannot show by how much: the process' own interval is then the least.
        """
        scores, kinds = self._scores
        if not len(scores):
            return own
        farthest = self._factor(scores.max(axis=1))
        if self.is_conformal and self.is_doubted:
            half = farthest * np.sqrt(deviation**2 + float(np.median(np.diagonal(self.expensive.covariance))))
        elif kinds is None:
            half = farthest * deviation
        else:
            factors = np.array([self._factor(scores[:, kind]) for kind in range(len(kinds))])
            asked = inputs[:, self._beside]
            near = np.argmin(((asked[:, None, :] - kinds[None, :, :]) ** 2).sum(axis=2), axis=1)
            alike = np.abs(asked - kinds[near]).max(axis=1, initial=0.0) < CLOSE
            half = np.where(alike, factors[near], farthest) * deviation
        blocks = self._of_blocks + (self.expensive.noise.of_blocks if one_run else 0.0)
        half_widths: Doubles = np.where(blocks > MUCH * deviation**2, np.maximum(half, own), half)
        return half_widths

    def _factor(self, scores: Doubles) -> float:
        """Return the conformal factor; for few groups the farthest one's, or Student's t times their root mean square if that
        is more."""
        factor = conformal_factor(scores.tolist(), self.level)
        if factor is not None:
            return factor
        from scipy.special import stdtrit

        wide = float(stdtrit(len(scores), (1 + self.level) / 2))
        return max(float(scores.max()), wide * math.sqrt(float(np.mean(scores**2))))

    @cached_property
    def _beside(self) -> Flags:
        """Return the inputs that differ within a group."""
        varied = np.zeros(self.expensive.inputs.shape[1], dtype=bool)
        for group in np.unique(self.groups):
            varied |= np.ptp(self.expensive.inputs[self.groups == group], axis=0) > CLOSE
        return varied

    @cached_property
    def _scores(self) -> tuple[Doubles, Doubles | None]:
        """Return scores (groups, kinds), and the kinds: the places within a group that all groups have. If groups do not all
        have the same places, scores are (groups, 1) of the farthest, and None. Groups are those drawn at random, if they are
        enough for a conformal interval; else all inside the range of the others."""
        if self.is_conformal:
            groups = np.unique(self.groups[self.random])
        else:
            groups = np.unique(np.array([left.group for left in self.left_out if not left.outside], dtype=np.intp))
        own = np.round(self.expensive.inputs[:, self._beside], 9)
        kinds = np.unique(own[np.isin(self.groups, groups)], axis=0)
        places = [np.unique(own[self.groups == group], axis=0) for group in groups]
        of_group = {group: [left for left in self.left_out if left.group == group] for group in groups}
        if not all(np.array_equal(place, kinds) for place in places):
            return np.array([[max(left.score for left in cells)] for cells in of_group.values()]), None
        scores = np.zeros((len(groups), len(kinds)))
        for row, cells in enumerate(of_group.values()):
            for left in cells:
                scores[row, int(np.argmin(np.abs(kinds - own[left.cell]).sum(axis=1)))] = left.score
        return scores, kinds

    def expensive_at(self, inputs: Doubles) -> Mixture:
        """Return the expensive testbed's mean at places (places, inputs), by the candidate that intervals begin with."""
        return self.used.at(inputs)

    def _difference(self, inputs: Doubles) -> tuple[Doubles, Doubles, Doubles]:
        """Return the expensive testbed less the cheap one, with its interval."""
        cheap, covariance = self.of_cheap.at(inputs)

        def apart(of: Candidate) -> Mixture:
            weights = of.process.shapes.weights
            if of.cheap is not None:
                centre = float(of.base(self.expensive.inputs)[0].mean())
                return Mixture(of.process.at(beside(inputs, cheap, centre)), weights)
            normal = of.at(inputs).normal
            return Mixture(Normal(normal.means - cheap, normal.covariances + covariance), weights)

        mixed = self._mixed(apart)
        df = self._df(mixed.variances, self.cheap, self.expensive)
        low, high = quantiles(mixed.normal.means, mixed.variances, mixed.weights, df, self.level)
        return mixed.mixed()[0], low, high

    def _mixed(self, prediction: Callable[[Candidate], Mixture]) -> Mixture:
        alone = prediction(self.alone)
        return between(prediction(self.with_cheap), alone, self.share) if self.has_cheap else alone

    @cached_property
    def _of_blocks(self) -> float:
        return _shared(self.expensive)

    @property
    def _runs_df(self) -> int:
        return min(side.noise.runs_df for side in (self.expensive, self.cheap)[: 1 + self.has_cheap])

    def _df(self, variance: Doubles, *sides: Cells, one_run: bool = False) -> Doubles:
        """Return Satterthwaite's degrees of freedom: few blocks determine their own variance badly. ``sides`` are those whose
        blocks are in the variance: by default the expensive testbed's, as the cheap one's cancel. A new block's effect is known
        by the same mean square as that of the others (Satterthwaite 1946, Biometrics Bull. 2:110)."""
        new = self.expensive.noise.of_blocks + self.expensive.noise.of_runs_in_blocks if one_run else 0.0
        parts = [(side.noise, _shared(side) + new) for side in sides or (self.expensive,)]
        square = sum(part**2 / noise.blocks_df for noise, part in parts if noise.blocks_df)
        rest = np.maximum(variance - sum(part for _, part in parts), 0.0)
        freedom: Doubles = variance**2 / (square + rest**2 / self._runs_df)
        return np.maximum(freedom, 1.0)


def calibrate(
    cheap: Cells,
    expensive: Cells,
    groups: NDArray[np.intp],
    *,
    trend: Trend | None = None,
    random: Flags | None = None,
    level: float = 0.95,
) -> Calibration:
    """Calibrate from cells of both testbeds. Raises UncalibratedError. ``groups`` (cells of the expensive testbed,) number what
    is predicted each time, such as the payload. ``random`` (cells,) marks the groups drawn at random from what will be asked;
    by default none."""
    if len(cheap) < 2 or len(expensive) < 2:
        raise UncalibratedError("each testbed needs two cells or more")
    law = Constant() if trend is None else trend
    base, basis = law.at(cheap.inputs)
    points = Points(cheap.inputs, basis, np.zeros(len(cheap)))
    of_cheap = Cheap(law, observed(points, cheap.means - base, cheap.covariance, prior(cheap.inputs.shape[1], _ALONE)))
    mean, covariance = of_cheap.at(expensive.inputs)
    inputs = expensive.inputs.shape[1]
    delta = observed(
        beside(expensive.inputs, mean, float(mean.mean())),
        expensive.means - mean,
        expensive.covariance + covariance,
        prior(inputs, has_slope=True),
    )
    own = observed(
        beside(expensive.inputs, np.zeros(len(expensive)), 0.0), expensive.means, expensive.covariance, prior(inputs, _ALONE)
    )
    drawn = np.zeros(len(expensive), dtype=bool) if random is None else random
    mixed, alone = (Candidate(expensive, groups, process, of) for process, of in ((delta, of_cheap), (own, None)))
    return Calibration(cheap, expensive, of_cheap, mixed, alone, groups, drawn, level)


_SHOWN = 0.05
_ALONE = 0.5
"""The scale of the half-Cauchy prior of a testbed about its own trend."""


def _shared(cells: Cells) -> float:
    """Return the variance that blocks give all cells' means together."""
    count = len(cells)
    return float((cells.covariance.sum() - np.trace(cells.covariance)) / max(count * (count - 1), 1))
