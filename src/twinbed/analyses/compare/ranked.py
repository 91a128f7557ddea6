"""Rank the cautions of a comparison: which invalidate it, which weaken it, and how many comparisons each really touches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twinbed.metrics.metric import Layer
from twinbed.model.caution import BY_CHANCE, Caution, Kind, Rank
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.show.section import Listing
from twinbed.show.words import cell_title, heading, listed, metric_title

MOST_KINDS = 5
"""Kinds that every output shows; the others are counted."""
MOST_DETAILS = 3
MOST_NAMED = 3
"""Metrics that a caution names; of more it says how many comparisons it touches."""
RANKS = {
    Rank.INVALIDATES: "Invalidates: do not use the comparison as it stands",
    Rank.WEAKENS: "Weakens",
    Rank.NOTE: "Note",
}
ONLY_IN = {
    Layer.NETWORK: (
        *(Kind.CAPTURE_DROPS, Kind.INCOMPLETE_CAPTURE, Kind.BAD_CHECKSUMS, Kind.CHECKSUM_OFFLOAD, Kind.HELLOS_CUT),
        Kind.CAPTURED_AT_HOSTS,
    ),
    Layer.OS: (Kind.CALLS_LOST, Kind.EVENTS_LOST, Kind.SLOW_TRACING),
}
"""Cautions about what one instrument saw touch the metrics of its layer alone."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One kind of caution with all its details."""

    kind: Kind
    touched: tuple[Comparison, ...]
    """The comparisons that it is about."""
    of: int
    """The number of comparisons shown."""
    details: tuple[str, ...]

    @property
    def rank(self) -> Rank:
        """Return the rank; a caution that touches no comparison shown is a note."""
        return self.kind.rank if self.touched or not self.of else Rank.NOTE

    @property
    def title(self) -> str:
        """Return ``The capture lost packets (8 of 24 comparisons: packets per request)``."""
        if not self.of:
            return heading(self.kind.meaning)
        metrics = list(
            dict.fromkeys(metric_title(comparison.metric, comparison.host, comparison.direction) for comparison in self.touched)
        )
        if len(self.touched) == self.of:
            return f"{heading(self.kind.meaning)} (all {self.of} comparisons)"
        names = f": {listed(metrics)}" if 0 < len(metrics) <= MOST_NAMED else ""
        return f"{heading(self.kind.meaning)} ({len(self.touched)} of {self.of} comparisons{names})"

    def listing(self, *, everything: bool = False) -> Listing:
        """Return it as a list of its details, the first few unless ``everything``."""
        shown = self.details if everything else self.details[:MOST_DETAILS]
        more = len(self.details) - len(shown)
        texts = (*shown, f"and {more} more (--all)") if more else shown
        return Listing(self.title, texts, heading(self.kind.advice), self.rank)


def ranked(result: Comparisons, shown: Sequence[Comparison]) -> list[Ranked]:
    """Return the cautions of a result by kind, those first that take most from it. Tests of order that warn no more often than
    chance gives are left out."""
    by_chance = {kind for kind, warned, _, most in _order_tests(result) if warned <= most}
    kinds = dict.fromkeys(caution.kind for caution in result.cautions if caution.kind not in by_chance)
    entries = [_ranked(kind, [caution for caution in result.cautions if caution.kind is kind], result, shown) for kind in kinds]
    order = list(Rank)
    return sorted(entries, key=lambda entry: (order.index(entry.rank), -len(entry.touched)))


def _ranked(kind: Kind, cautions: Sequence[Caution], result: Comparisons, shown: Sequence[Comparison]) -> Ranked:
    touched = touching(kind, result, shown)
    details = [": ".join(part for part in (caution.subject, caution.detail) if part) for caution in cautions]
    if chance := next((line for line in by_chance_lines(result) if line[0] is kind), None):
        details = [chance[1], *details]
    return Ranked(kind, touched, len(shown), tuple(dict.fromkeys(filter(None, details))))


def touching(kind: Kind, result: Comparisons, shown: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the comparisons that a kind of caution is about: those that carry it, in the layer that it is about. A caution
    about the whole study touches the testbed, metric or cell that it names, or all where it names nothing."""
    layer = next((layer for layer, kinds in ONLY_IN.items() if kind in kinds), None)
    of_layer = [comparison for comparison in shown if layer is None or comparison.layer == layer]
    if carrying := tuple(comparison for comparison in of_layer if any(caution.kind is kind for caution in comparison.cautions)):
        return carrying
    subjects = {caution.subject for caution in result.cautions if caution.kind is kind}
    return tuple(
        comparison
        for comparison in of_layer
        if not subjects.isdisjoint(
            {"", comparison.testbed, comparison.reference, comparison.metric, cell_title(comparison.cell)}
        )
    )


def by_chance_lines(result: Comparisons) -> Iterator[tuple[Kind, str]]:
    """Yield for tests of order that warn more often than chance gives, how often they do."""
    for kind, warned, tests, most in _order_tests(result):
        if warned > most:
            yield kind, f"{warned} of {tests} tests warn; chance alone gives up to {most}"


def _order_tests(result: Comparisons) -> Iterator[tuple[Kind, int, int, int]]:
    """Yield (kind, how many warn, how many tests there are, how many chance gives at most in 95 % of studies)."""
    warned = {kind: sum(caution.kind is kind for caution in result.cautions) for kind in BY_CHANCE}
    drifts = [drift for ordering in result.orderings for drift in ordering.drifts]
    tests = {
        Kind.DRIFT: len(drifts),
        Kind.SERIAL: sum(drift.p_serial is not None for drift in drifts),
        Kind.BLOCK_EFFECT: sum(ordering.p_blocks is not None for ordering in result.orderings),
    }
    for kind, count in tests.items():
        if warned[kind] and count:
            yield kind, warned[kind], count, _most_by_chance(count, result.alpha)


def _most_by_chance(tests: int, alpha: float) -> int:
    """Return the 95 % quantile of the binomial distribution of ``tests`` trials with probability ``alpha``."""
    below = 0.0
    for number in range(tests + 1):
        below += math.comb(tests, number) * alpha**number * (1 - alpha) ** (tests - number)
        if below >= 0.95:
            return number
    return tests


def summed(cautions: Sequence[Ranked]) -> str:
    """Return ``1 invalidates, 3 weaken, 2 notes``, for a first screen."""
    counts = {rank: sum(caution.rank is rank for caution in cautions) for rank in Rank}
    words = {Rank.INVALIDATES: ("invalidates", "invalidate"), Rank.WEAKENS: ("weakens", "weaken"), Rank.NOTE: ("note", "notes")}
    return ", ".join(f"{count} {words[rank][count > 1]}" for rank, count in counts.items() if count)
