"""Separation of two kinds of runs: the area under the ROC curve, and whether it is more than chance.

The area is that of its folds: its rules are fitted again in each fold, so that it varies far more than that of one score.
DeLong's variance, even with runs as its clusters (Obuchowski 1997, Biometrics 53:567), is half of what it should be.  The test
deals the labels of runs again and gives the chance of an area as large among equals, exactly.  The interval takes its width
from the same dealings, the larger of both sides, on a scale where a share's variance is the same everywhere (arcsine of its
root, Anscombe 1948, Biometrika 35:246). It holds 0.5 if the observed area is among the middle ``level`` of dealt ones, and so
at least as often as it states among equals.  docs/detectability.md has how often it holds other areas.

A linear rule that distinguishes two kinds of runs, scored on unseen runs: one of each kind left out at a time.

The rule is Fisher's discriminant with a ridge, which is least squares on the labels (Hastie, Tibshirani and Friedman 2009,
section 4.3, exercise 4.2).  Its scores are linear in the labels of the runs that it is fitted to. A fold's scores for any
dealing of the labels are therefore one product of matrices: permutations cost next to nothing and need no approximation.

Each pair of runs is left out together, the rule is fitted to all others, and the two are compared by it (leave-pair-out, Airola
et al. 2011, Comput. Stat. Data Anal. 55:1828).  Scores of different rules are never compared: with one run left out at a time a
run's absence moves the rule away from it, and the area of equal kinds is below 0.5.  Columns are centred and scaled by the
fold's own runs; one that does not vary among them (a category that they do not have) has no effect, and a missing value is
their mean.  Every run weighs the same, whatever its number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import midranks
from twinbed.statistics.permutations import dealings, least_p_within

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Labels = NDArray[np.bool_]

MOST_DEALINGS = 1_000
SLACK = 1e-9
"""Areas closer than this are equal: they are sums of the same terms in another order."""


@dataclass(frozen=True, slots=True)
class Separation:
    area: float
    """From 0 to 1; 0.5 is chance, below it the rule was wrong more often than right."""
    interval: Bounds
    p_value: float
    """The chance of an area as large or larger among equals."""
    exact: bool
    """True if all dealings were counted."""


def separation(
    folds: PairsOut,
    labels: Labels,
    blocks: Sequence[Hashable] | None = None,
    level: float = 0.95,
    most: int = MOST_DEALINGS,
) -> Separation:
    """Measure the separation of at least two runs of each kind. ``labels`` and ``blocks`` are of runs; None is one block."""
    dealt, exact = dealings(labels, blocks if blocks is not None else [0] * len(labels), most)
    areas = folds.areas(dealt)
    area = float(areas[0])
    p_value = float(np.mean(areas >= area - SLACK))
    return Separation(area, _interval(area, areas, level), p_value, exact)


def _interval(area: float, dealt: Floats, level: float) -> Bounds:
    ordered = np.sort(dealt)
    beyond = math.floor((1 - level) / 2 * len(ordered) + SLACK)
    low, high = (math.asin(math.sqrt(bound)) for bound in (ordered[beyond], ordered[-1 - beyond]))
    at, chance = math.asin(math.sqrt(area)), math.pi / 4
    half = max(high - chance, chance - low, 0.0)
    below, above = at - half, at + half
    start, end = (math.sin(min(max(angle, 0.0), math.pi / 2)) ** 2 for angle in (below, above))
    return Bounds(start, end, level)


def alone(values: Sequence[float | str | None], dealt: Labels) -> Floats:
    """Return the area that one feature alone gives, for each dealing; ``values`` has one for each run. Numbers are taken in the
    better order, up or down, texts in the best order of all. Both orders are chosen for each dealing, which makes the area
    optimistic but leaves p-values true. Missing numbers are in the middle."""
    if any(isinstance(value, str) for value in values):
        codes = np.unique([str(value) for value in values], return_inverse=True)[1]
        of = (codes[:, None] == np.arange(codes.max() + 1)).astype(np.float64)
        ones, others = dealt @ of, ~dealt @ of
        order = np.argsort(ones / (ones + others), axis=1, kind="stable")
        ones, others = (np.take_along_axis(group, order, axis=1) for group in (ones, others))
        below = np.cumsum(others, axis=1) - others
        areas = (ones * (below + others / 2)).sum(axis=1) / (ones.sum(axis=1) * others.sum(axis=1))
    else:
        known = np.array([math.nan if value is None else float(value) for value in values])
        present = known[~np.isnan(known)]
        ranks = midranks(np.where(np.isnan(known), np.median(present) if len(present) else 0.0, known))
        count = dealt.sum(axis=1)
        areas = (dealt @ ranks - count * (count + 1) / 2) / (count * (len(known) - count))
        areas = np.maximum(areas, 1 - areas)
    return np.asarray(areas, dtype=np.float64)


def any_as_large(areas: Floats) -> Floats:
    """Return each feature's p-value corrected for all features, whatever their dependence. A feature is a line of ``areas``,
    whose first column is of the labels as they are. The p-value is the chance that any feature has an area as large among
    equals (Westfall and Young 1993, Resampling-Based Multiple Testing, single-step maximum)."""
    largest = areas.max(axis=0)
    p_values: Floats = (largest[None] >= areas[:, :1] - SLACK).mean(axis=1)
    return p_values


def apart(values: Sequence[float | str | None], labels: Labels) -> float:
    """Return how many standard deviations within the kinds the means of numbers are apart; infinite if they do not vary, 0 for
    texts."""
    if any(value is None or isinstance(value, str) for value in values):
        return 0.0
    numbers = np.array([float(value) for value in values if value is not None])
    first, second = numbers[labels], numbers[~labels]
    distance, spread = abs(float(first.mean() - second.mean())), math.sqrt((float(first.var()) + float(second.var())) / 2)
    return distance / spread if spread > SLACK * distance else math.inf if distance else 0.0


def least_p(labels: Labels, blocks: Sequence[Hashable] | None = None) -> float:
    """Return the smallest p-value that the test can give: areas are the same if the two kinds change places."""
    return max(least_p_within(labels, blocks if blocks is not None else [0] * len(labels)), 1 / MOST_DEALINGS)


def runs_needed(alpha: float, within_blocks: bool) -> int:
    """Return how many runs of each kind a test at ``alpha`` needs to be able to show anything."""
    runs = 2
    while (2 / (2**runs if within_blocks else math.comb(2 * runs, runs))) > alpha and runs < 100:
        runs += 1
    return runs


Lines = tuple[tuple[int, NDArray[np.intp]], ...]
"""Runs with their lines among those left out."""

RIDGE = 1.0
"""Added to the sum of squares of a scaled column, which is the number of runs."""
VARIES = 1e-12
"""A variance above this share of that of all runs is more than rounding."""
MOST_NUMBERS = 4_000_000
"""The most numbers in folds that are fitted at once."""
MOST_GROUPS = 40
"""The most groups left out. Up to so many runs each run is its own group; more runs share groups, two left out at a time."""


@dataclass(frozen=True, slots=True)
class _Fold:
    """``held`` has a line for each row left out, ``means`` one for each run's mean; a column for each run: what its label adds
    to the score."""

    first: Lines
    """The runs of the first group; ``second`` likewise."""
    second: Lines
    held: Floats
    means: Floats
    fitted: Labels
    """For all runs, whether the rule has seen them."""


@dataclass(frozen=True, slots=True)
class PairsOut:
    """All folds of rows. Labels are one bool for each run."""

    folds: tuple[_Fold, ...]

    @classmethod
    def of(cls, rows: Floats, runs: Integers) -> PairsOut:
        """Fit all folds of ``rows``: a line for each observation, NaN if a value is missing. ``runs`` numbers the rows' runs
        from 0, each of which has a row."""
        count = int(runs.max()) + 1
        groups = np.arange(count) % min(count, MOST_GROUPS)
        return cls(tuple(_folds(rows, runs, groups)))

    def areas(self, labels: Labels) -> Floats:
        """Return the area under the ROC curve for each line of ``labels`` (dealings, runs). It is the chance that a row of a
        run of the first kind scores above one of the second, ties half, as the mean over all pairs of runs left out
        together."""
        targets = _targets(labels).T
        total, pairs = np.zeros(len(labels)), np.zeros(len(labels))
        for fold in self.folds:
            scores = fold.held @ targets
            for i, of_i in fold.first:
                for j, of_j in fold.second:
                    opposite = labels[:, i] != labels[:, j]
                    above = _above(scores[of_i], scores[of_j])
                    total += np.where(opposite, np.where(labels[:, i], above, 1 - above), 0.0)
                    pairs += opposite
        return total / pairs

    def correct(self, labels: Labels) -> Floats:
        """Return for each run the share of its rows that are classified correctly. Such a row is on its own kind's side of the
        middle between the kinds' mean scores. The share is the mean over the folds that leave out the run and one of the other
        kind."""
        target = _targets(labels[None])[0]
        total, folds = np.zeros(len(labels)), np.zeros(len(labels))
        for fold in self.folds:
            means, scores = fold.means @ target, fold.held @ target
            middle = (means[fold.fitted & labels].mean() + means[fold.fitted & ~labels].mean()) / 2
            for own, others in ((fold.first, fold.second), (fold.second, fold.first)):
                for i, of_i in own:
                    if any(labels[i] != labels[j] for j, _ in others):
                        above = (np.sign(scores[of_i] - middle).mean() + 1) / 2
                        total[i] += above if labels[i] else 1 - above
                        folds[i] += 1
        return total / folds


def _targets(labels: Labels) -> Floats:
    """Return targets with which both kinds weigh the same."""
    ones = labels.sum(axis=1, keepdims=True)
    targets: Floats = np.where(labels, 1 / ones, -1 / (labels.shape[1] - ones))
    return targets


def _above(own: Floats, other: Floats) -> Floats:
    """Return (rows, dealings) of two runs: the share of pairs of rows in which the first scores higher, ties half."""
    total = np.zeros(own.shape[1])
    for row in own:
        total += (row > other).sum(axis=0) + (row >= other).sum(axis=0)
    shares: Floats = total / (2 * len(own) * len(other))
    return shares


def _folds(rows: Floats, runs: Integers, groups: Integers) -> Iterator[_Fold]:
    count = len(groups)
    own = runs[:, None] == np.arange(count)
    weights = 1 / own.sum(axis=0)[runs]
    known = ~np.isnan(rows)
    filled = _scaled(rows, known)
    members = [np.flatnonzero(groups == group).tolist() for group in range(int(groups.max()) + 1)]
    pairs = list(combinations(range(len(members)), 2))
    at_once = max(1, MOST_NUMBERS // (len(rows) * (rows.shape[1] + count)))
    for start in range(0, len(pairs), at_once):
        chunk = np.array(pairs[start : start + at_once])
        fitted = (groups[None] != chunk[:, :1]) & (groups[None] != chunk[:, 1:])
        scores = _scores(filled, known, weights * fitted[:, runs], own.astype(np.float64))
        means = (own * weights[:, None]).T @ scores
        for (first, second), seen, of_rows, of_runs in zip(chunk.tolist(), fitted, scores, means, strict=True):
            sides = members[first], members[second]
            held = np.flatnonzero(~seen[runs])
            lines = tuple(tuple((run, np.flatnonzero(runs[held] == run)) for run in side) for side in sides)
            yield _Fold(lines[0], lines[1], of_rows[held], of_runs, seen)


def _scaled(rows: Floats, known: Labels) -> Floats:
    """Scale columns near 0 and 1, so that no digits are lost in the variances of folds; 0 for a missing value."""
    if not rows.size:
        return rows
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, rows, 0.0).sum(axis=0) / count
    centred = np.where(known, rows - centre, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / count)
    scaled: Floats = centred / np.where(spread > 1e-12 * np.abs(centre), spread, np.inf)
    return scaled


def _scores(filled: Floats, known: Labels, weights: Floats, own: Floats) -> Floats:
    """Return (folds, rows, runs): what the label of a run adds to the score of a row. ``weights`` (folds, rows) are 0 for rows
    left out."""
    seen = np.maximum(weights @ known, 1e-300)
    centre = weights @ filled / seen
    variance = weights @ filled**2 / seen - centre**2
    scale = np.sqrt(np.where(variance > VARIES, variance, np.inf))
    scaled = np.where(known, (filled - centre[:, None]) / scale[:, None], 0.0)
    inner = (scaled * weights[:, :, None]).transpose(0, 2, 1)
    solved = np.linalg.solve(inner @ scaled + RIDGE * np.eye(filled.shape[1]), inner @ own)
    scores: Floats = scaled @ solved
    return scores
