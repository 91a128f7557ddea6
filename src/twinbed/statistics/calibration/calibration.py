"""What an expensive testbed would give, from what a cheap one gives and a few runs of the expensive one.

    ln expensive(x) = rho ln cheap(x) + delta(x)

(Kennedy and O'Hagan 2001, J. R. Stat. Soc. B 63:425): the cheap testbed's mean is a Gaussian process about a trend, delta a
second one about an unknown constant, rho a slope that the prior holds near 1.  What is not known of the cheap mean is carried
into delta and out of it again.  ``x`` are numbers, scaled to the range that was measured.  Beside it stands a process of the
expensive runs alone, and both are mixed by their errors where groups are left out (``candidates``).

Intervals are those of the process, and conformal ones by group (Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a
Random World; for groups Dunn, Wasserman and Ramdas 2023, J. Am. Stat. Assoc. 118:2491): what each group that was drawn at
random misses when it is left out says how far the next one may be off, whatever the process believes.  Their level needs
``least_groups`` of them.  With n groups, fewer, the interval is the process' own, and no narrower than the farthest of them:
that has n / (n + 1) whatever the process believes, where groups were drawn at random.
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
    of_cheap: Cheap
    with_cheap: Candidate
    alone: Candidate
    groups: NDArray[np.intp]
    """Of each cell of the dear testbed."""
    random: Flags
    """Of each cell of the dear testbed, whether its group was drawn at random."""
    level: float

    def predict(self, inputs: Doubles, *, one_run: bool = False) -> Predicted:
        """At ``inputs`` (places, inputs), of the mean, or of one new run in a new block."""
        found = self._mixed(lambda of: of.at(inputs))
        extra = self.dear.noise.of_one_run if one_run else 0.0
        df = self._df(found.variances + extra, one_run=one_run)
        low, high = quantiles(found.normal.means, found.variances + extra, found.weights, df, self.level)
        middle, whole = found.mixed()
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
        """Every cell of the dear testbed, predicted without its group: exact, by shapes and shares without it too."""
        found = []
        both = zip(each_group(self.groups), self.with_cheap.without, self.alone.without, strict=False)
        within = inside(self.dear, self.groups)
        for group, (members, with_cheap, alone) in enumerate(both):
            mixed = between(with_cheap, alone, self._share_without(group)) if self.has_cheap else alone
            mean, covariance = mixed.mixed()
            # What blocks move all cells by moves those that are left out as well.
            df = np.full_like(mixed.variances, self._runs_df)
            low, high = quantiles(mixed.normal.means, mixed.variances, mixed.weights, df, self.level)
            for place, cell in enumerate(np.flatnonzero(members)):
                found.append(
                    LeftOut(
                        int(cell),
                        int(self.groups[cell]),
                        float(self.dear.means[cell]),
                        float(mean[place]),
                        math.sqrt(covariance[place, place]),
                        float(low[place]),
                        float(high[place]),
                        not within[group][place],
                    )
                )
        return found

    def _share_without(self, group: int) -> float:
        """The cheap testbed's share by all other groups; by all where no other one lies inside the range."""
        one, other = ([*of.squares[:group], *of.squares[group + 1 :]] for of in (self.with_cheap, self.alone))
        return share_of_cheap(one, other) if any(len(each) for each in one) else self.share

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
        return 1.0 + self.with_cheap.process.slope if self.has_cheap else None

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

    def dear_at(self, inputs: Doubles) -> Mixture:
        """Return the dear testbed's mean at places (places, inputs), by the candidate that intervals are of."""
        return self.used.at(inputs)

    def _difference(self, inputs: Doubles) -> tuple[Doubles, Doubles, Doubles]:
        """The expensive testbed less the cheap one, with its interval."""
        cheap, covariance = self.of_cheap.at(inputs)

        def apart(of: Candidate) -> Mixture:
            weights = of.process.shapes.weights
            if of.cheap is not None:
                centre = float(of.base(self.dear.inputs)[0].mean())
                return Mixture(of.process.at(beside(inputs, cheap, centre)), weights)
            found = of.at(inputs).normal
            return Mixture(Normal(found.means - cheap, found.covariances + covariance), weights)

        found = self._mixed(apart)
        df = self._df(found.variances, self.cheap, self.dear)
        low, high = quantiles(found.normal.means, found.variances, found.weights, df, self.level)
        return found.mixed()[0], low, high

    def _mixed(self, each: Callable[[Candidate], Mixture]) -> Mixture:
        alone = each(self.alone)
        return between(each(self.with_cheap), alone, self.share) if self.has_cheap else alone

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
    says which of them were drawn at random from what will be asked for: without it none.  Raises UncalibratedError."""
    if len(cheap) < 2 or len(dear) < 2:
        raise UncalibratedError("each testbed needs two cells or more")
    about = Constant() if trend is None else trend
    base, basis = about.at(cheap.inputs)
    there = Points(cheap.inputs, basis, np.zeros(len(cheap)))
    of_cheap = Cheap(about, observed(there, cheap.means - base, cheap.covariance, prior(cheap.inputs.shape[1], _ALONE)))
    mean, covariance = of_cheap.at(dear.inputs)
    inputs = dear.inputs.shape[1]
    delta = observed(
        beside(dear.inputs, mean, float(mean.mean())),
        dear.means - mean,
        dear.covariance + covariance,
        prior(inputs, has_slope=True),
    )
    own = observed(beside(dear.inputs, np.zeros(len(dear)), 0.0), dear.means, dear.covariance, prior(inputs, _ALONE))
    drawn = np.zeros(len(dear), dtype=bool) if random is None else random
    mixed, alone = (Candidate(dear, groups, process, of) for process, of in ((delta, of_cheap), (own, None)))
    return Calibration(cheap, dear, of_cheap, mixed, alone, groups, drawn, level)


_SHOWN = 0.05
_ALONE = 0.5
"""The half-Cauchy prior's scale of a testbed about its own trend."""


def _shared(cells: Cells) -> float:
    """The variance that blocks give all cells' means together."""
    count = len(cells)
    return float((cells.covariance.sum() - np.trace(cells.covariance)) / max(count * (count - 1), 1))
