"""Conclude what a person can do with each testbed: one sentence, three lists, and the matrix of all headline verdicts.

A sentence that picks some of many verdicts is corrected for their number. A single verdict "equivalent" is wrong in 5 % of
studies, so of 40 metrics at the margin some are nearly always equivalent. The list "use it for" holds after Holm's
correction over the headline comparisons of all testbeds. A testbed that is equivalent in everything needs no correction: that
is one intersection-union test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby

from twinbed.analyses.compare.words import (
    CHANCE,
    WITHOUT,
    doubt,
    effect_text,
    explanation,
    plus_minus,
    replicates,
    short_reason,
)
from twinbed.metrics.metric import Layer
from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.result import Verdict
from twinbed.model.tables import TESTBED
from twinbed.show.quantities import SAME, changed, changed_range, share, unit_scale
from twinbed.show.section import Entry, Matrix, MatrixRow
from twinbed.show.words import LAYERS, cell_title, heading, listed, metric_title
from twinbed.statistics.counts import unseen_share
from twinbed.statistics.multiplicity import holm

MOST_ITEMS = 5
"""Items of a list; the matrix has the rest."""
MOST_ROWS = 40
"""Rows of a matrix with a row a cell; beyond, a row is a metric over all its cells."""
MOST_FACTORS = 2
"""An item names its cell by at most as many factors; of more it says in how many cells."""
GROUND = {
    Kind.SOFTWARE_CPU: "on an emulated CPU (TCG)",
    Kind.MODELLED: "by a model, with nothing measured",
}
"""The beginning of a conclusion on numbers that describe something else than the testbed's name says."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion from the headline verdicts of one testbed."""

    testbed: str
    reference: str
    by: str
    margin: float
    ground: str
    """``on an emulated CPU (TCG)``; empty where the numbers are of what the testbed's name says."""
    equivalent: tuple[Comparison, ...]
    different: tuple[Comparison, ...]
    inconclusive: tuple[Comparison, ...]
    spread: tuple[Comparison, ...]
    """Comparisons whose spread is shown to differ."""
    picked: tuple[Comparison, ...]
    """The equivalent ones that may be named: all where everything is equivalent, else those that hold after correction."""
    family: int
    """The number of headline comparisons of all testbeds."""

    @property
    def total(self) -> int:
        """Return the number of headline comparisons of the testbed."""
        return len(self.equivalent) + len(self.different) + len(self.inconclusive)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict over all: different if any is, else inconclusive if any is."""
        if self.different:
            return Verdict.DIFFERENT
        return Verdict.INCONCLUSIVE if self.inconclusive or not self.total else Verdict.EQUIVALENT

    @property
    def sentence(self) -> str:
        """Return ``virtio is not a stand-in for container here: requests per second 30 % lower at 1MiB (95 % CI 24-36 %).``"""
        if not self.total:
            return f"{self.testbed} shares no headline metric in any cell with {self.reference}."
        text = {
            Verdict.EQUIVALENT: self._equivalent,
            Verdict.DIFFERENT: self._different,
            Verdict.INCONCLUSIVE: self._inconclusive,
        }[self.verdict]()
        text = f"{self.ground}, {text}" if self.ground else text
        if not text.startswith(self.testbed):
            text = heading(text)
        return f"{text} {self._matches()}".rstrip() if self.verdict is not Verdict.EQUIVALENT else text

    def _equivalent(self) -> str:
        stands = f"is a stand-in for {self.reference} here" if self.by == TESTBED else f"matches {self.reference} here"
        if self.total == 1:
            return f"{self.testbed} {stands}: {_title(self.equivalent[0])} is within {share(self.margin)}."
        return f"{self.testbed} {stands}: all {self.total} headline comparisons are within {share(self.margin)}."

    def _different(self) -> str:
        stands = f"is not a stand-in for {self.reference} here" if self.by == TESTBED else f"differs from {self.reference} here"
        return f"{self.testbed} {stands}: {sentence_of(self.worst)}."

    @property
    def worst(self) -> Comparison:
        """Return the largest difference, among what users see where that differs."""
        seen_by_users = [comparison for comparison in self.different if comparison.layer == Layer.APPLICATION]
        return max(seen_by_users or self.different, key=distance)

    def _inconclusive(self) -> str:
        asks = f"can stand in for {self.reference}" if self.by == TESTBED else f"differs from {self.reference}"
        if self.barred:
            return f"there is no verdict on {self.testbed}: {self.barred}."
        fewest = min((comparison.runs for comparison in self.inconclusive if comparison.runs), default=0)
        counted = f" with {fewest} replicate{'s' if fewest > 1 else ''}" if fewest else ""
        count = len(self.inconclusive)
        whole = f"{count} of {self.total}" if count < self.total else f"all {count}" if count > 1 else "its one"
        are = "s are" if self.total > 1 else " is"
        return f"the data cannot tell whether {self.testbed} {asks}: {whole} headline comparison{are} inconclusive{counted}."

    @property
    def barred(self) -> str:
        """Return why nothing of the testbed has a verdict, whatever the numbers are; empty where something has."""
        kinds = {doubt(comparison) for comparison in self.inconclusive}
        kind = kinds.pop() if len(kinds) == 1 and self.verdict is Verdict.INCONCLUSIVE and not self.equivalent else None
        return WITHOUT[kind] if kind else ""

    def _matches(self) -> str:
        """Return ``Packets per request and bytes per request match at payload 500B.``"""
        names = list(dict.fromkeys(_title(comparison) for comparison in self.picked))
        if not names:
            return ""
        of_all = [
            comparison for comparison in (*self.equivalent, *self.different, *self.inconclusive) if _title(comparison) in names
        ]
        where = "" if len(self.picked) == len(of_all) else f" in {len(self.picked)} of {len(of_all)} cells"
        if (
            where
            and len({str(comparison.cell) for comparison in self.picked}) == 1
            and len(self.picked[0].cell) <= MOST_FACTORS
        ):
            where = _at(self.picked[0])
        shown = listed(names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"])
        return f"{shown[:1].upper()}{shown[1:]} match{'es' if len(names) == 1 else ''}{where}."

    @property
    def use_for(self) -> tuple[str, ...]:
        """Return what is equivalent, an item a metric, the largest difference first."""
        return _items(self.picked, self._cells_of_titles(), self._use)

    def _use(self, comparison: Comparison) -> str:
        mean = "mean " if any(other in self.spread for other in self.picked if _title(other) == _title(comparison)) else ""
        if comparison.ratio is None:
            return f"{mean}{_title(comparison)}"
        change = changed(comparison.ratio, sentence=True)
        return f"{mean}{_title(comparison)}: {change}" + ("" if change == SAME else f", within {share(comparison.margin)}")

    @property
    def avoid_for(self) -> tuple[str, ...]:
        """Return what differs, an item a metric, the largest difference first; then means whose spread differs."""
        items = _items(
            self.different,
            self._cells_of_titles(),
            lambda comparison: f"{_title(comparison)}: {_change(comparison)}{_predictable(comparison)}",
        )
        apart = [comparison for comparison in self.spread if comparison in self.picked]
        return (*items, *_items(apart, self._cells_of_titles(), _varying, key=_spread_distance))

    @property
    def cannot_tell(self) -> tuple[str, ...]:
        """Return what is inconclusive with what would decide it, an item a metric, the largest difference first."""
        alone = [comparison for comparison in self.equivalent if comparison not in self.picked]
        return (
            *_items(
                self.inconclusive,
                self._cells_of_titles(),
                lambda comparison: f"{_title(comparison)}: {short_reason(comparison)}",
            ),
            *_items(
                alone,
                self._cells_of_titles(),
                lambda comparison: (
                    f"{_title(comparison)}: {_change(comparison)}; within {share(comparison.margin)} only without correction"
                ),
            ),
        )

    def _cells_of_titles(self) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for comparison in (*self.equivalent, *self.different, *self.inconclusive):
            counts[_title(comparison)] = counts.get(_title(comparison), 0) + 1
        return counts

    @property
    def spread_sentence(self) -> str:
        """Return ``virtio varies more than container in 3 of 6 headline comparisons.``; empty if no spread differs."""
        counts = {way: sum(_way(comparison) == way for comparison in self.spread) for way in ("more", "less")}
        parts = [f"{way} than {self.reference} in {count}" for way, count in counts.items() if count]
        plural = "s" if self.total > 1 else ""
        return f"{self.testbed} varies {' and '.join(parts)} of {self.total} headline comparison{plural}." if parts else ""

    @property
    def advice(self) -> tuple[str, ...]:
        """Return what to do next, in sentences."""
        return tuple(self._next())

    def _next(self) -> Iterator[str]:
        if foreseen := [comparison for comparison in self.different if comparison.predictable is not None]:
            widths = sorted(comparison.predictable or 0.0 for comparison in foreseen)
            yield (
                f"Different, but predictable: after calibration {self.testbed} predicts {_names(foreseen)} of {self.reference} "
                f"within ±{plus_minus(widths[len(widths) // 2])} (median of {len(foreseen)} of {len(self.different)})."
            )
        if apart := [comparison for comparison in self.picked if comparison in self.spread]:
            yield (
                f"Mean {_names(apart)} match {self.reference}. Run-to-run spread does not: do not use {self.testbed} for "
                "single runs or percentiles."
            )
        for kind, text in WITHOUT.items():
            if barred := [comparison for comparison in self.inconclusive if doubt(comparison) is kind]:
                yield f"No verdict in {len(barred)} of {self.total} headline comparisons, because {text}: {kind.advice}."
        yield from self._to_decide([comparison for comparison in self.inconclusive if doubt(comparison) is None])

    def _to_decide(self, still_open: Sequence[Comparison]) -> Iterator[str]:
        needed = [comparison.replicates_needed for comparison in still_open if comparison.replicates_needed]
        if needed:
            count = len(self.inconclusive)
            which = "all inconclusive comparisons" if len(needed) == count else f"{len(needed)} of {count} inconclusive ones"
            yield f"About {max(needed)} new {replicates(still_open[0])} would decide {which}, each with a chance of {CHANCE}."
        others = [comparison for comparison in still_open if not comparison.replicates_needed]
        if beyond := [comparison for comparison in others if is_beyond(comparison)]:
            differ = f"{_names(beyond)} differ{'s' if _is_single(beyond) else ''}"
            yield (f"More replicates, or fewer comparisons, may show that {differ}: `twinbed plan --pilot` estimates how many.")
        if near := [comparison for comparison in others if not is_beyond(comparison)]:
            yield f"A wider margin or steadier runs may decide {_names(near)}: {explanation(near[0])}."


def sentence_of(comparison: Comparison) -> str:
    """Return ``requests per second 30 % lower at payload 1MiB (95 % CI 24-36 %)``."""
    where = _at(comparison) if len(comparison.cell) <= MOST_FACTORS else " in its worst cell"
    return f"{_title(comparison)} {_change(comparison)}{where}{_confidence(comparison)}"


def unseen(comparisons: Iterable[Comparison]) -> str:
    """Return what so few runs cannot show, of the comparison with the fewest; empty without runs."""
    fewest = min((comparison.runs for comparison in comparisons if comparison.runs), default=0)
    if not fewest:
        return ""
    return (
        f"{fewest} run{'s' if fewest > 1 else ''} cannot rule out something rare: a stall that hits up to "
        f"{share(round(unseen_share(fewest), 2))} of runs may have gone unseen."
    )


def conclusions(result: Comparisons) -> tuple[Conclusion, ...]:
    """Return one Conclusion for each testbed but the reference."""
    headlines = [comparison for comparison in result.comparisons if comparison.headline]
    adjusted = iter(holm([comparison.p_equivalent for comparison in headlines if comparison.p_equivalent is not None]))
    picked = {
        id(comparison) for comparison in headlines if comparison.p_equivalent is not None and next(adjusted) <= result.alpha
    }
    grounds: dict[str, str] = {}
    for caution in result.cautions:
        if caution.kind in GROUND:
            grounds.setdefault(caution.subject, GROUND[caution.kind])
    testbeds = dict.fromkeys(comparison.testbed for comparison in result.comparisons)
    return tuple(
        _conclusion(
            [comparison for comparison in result.comparisons if comparison.testbed == testbed], picked, grounds, len(headlines)
        )
        for testbed in testbeds
    )


def _conclusion(comparisons: Sequence[Comparison], picked: Set[int], grounds: Mapping[str, str], family: int) -> Conclusion:
    """Return that of one testbed. ``picked``: identities of headlines that are equivalent after correction."""
    first = comparisons[0]
    of = {
        verdict: tuple(comparison for comparison in comparisons if comparison.headline and comparison.verdict is verdict)
        for verdict in Verdict
    }
    equivalent = of[Verdict.EQUIVALENT]
    is_whole = not (of[Verdict.DIFFERENT] or of[Verdict.INCONCLUSIVE])
    return Conclusion(
        *(first.testbed, first.reference, first.by, first.margin),
        grounds.get(first.testbed) or grounds.get(first.reference) or grounds.get("", ""),
        *(equivalent, of[Verdict.DIFFERENT], of[Verdict.INCONCLUSIVE]),
        tuple(
            comparison for comparison in comparisons if comparison.headline and comparison.spread and comparison.spread.differs
        ),
        equivalent if is_whole else tuple(comparison for comparison in equivalent if id(comparison) in picked),
        family,
    )


def matrix(result: Comparisons, comparisons: Sequence[Comparison] | None = None) -> Matrix:
    """Return the headline verdicts, or those of ``comparisons``, a row a metric and cell, a column a testbed. With more than
    ``MOST_ROWS`` such rows, a row is a metric over all its cells."""
    shown = [comparison for comparison in result.comparisons if comparison.headline] if comparisons is None else comparisons
    heads = tuple(dict.fromkeys(comparison.testbed for comparison in shown))
    rows = tuple(_rows(shown, heads, _entry))
    if len(rows) > MOST_ROWS:
        rows = tuple(_rows(shown, heads, None))
    first = shown[0] if shown else None
    caption = f"Ratio to {first.reference}. Same: within {share(first.margin)}." if first else ""
    return Matrix(caption, heads, rows)


def _rows(
    shown: Sequence[Comparison], heads: Sequence[str], entry: Callable[[Comparison], Entry] | None
) -> Iterator[MatrixRow]:
    for (layer, title), of_metric in groupby(shown, key=lambda comparison: (comparison.layer, _title(comparison))):
        group = LAYERS.get(layer, layer).partition(":")[0]
        listed_ = list(of_metric)
        if entry is None:
            of_testbeds = [[comparison for comparison in listed_ if comparison.testbed == name] for name in heads]
            cells = max(map(len, of_testbeds))
            yield MatrixRow(
                group,
                title,
                f"{cells} cells",
                tuple(_over_cells(of_testbed) if of_testbed else None for of_testbed in of_testbeds),
            )
            continue
        for cell, of_cell in groupby(listed_, key=lambda comparison: cell_title(comparison.cell)):
            of = {comparison.testbed: comparison for comparison in of_cell}
            yield MatrixRow(group, title, cell, tuple(entry(of[name]) if name in of else None for name in heads))


def _entry(comparison: Comparison) -> Entry:
    return Entry(_word(comparison), comparison.verdict, tuple(why(comparison)))


def _over_cells(comparisons: Sequence[Comparison]) -> Entry:
    """Return all cells of a metric on a testbed as one entry: the range of the ratios, the worst verdict, how many of each."""
    verdicts = [comparison.verdict for comparison in comparisons]
    worst = next(v for v in (Verdict.DIFFERENT, Verdict.INCONCLUSIVE, Verdict.EQUIVALENT) if v in verdicts)
    ratios = sorted(comparison.ratio for comparison in comparisons if comparison.ratio is not None)
    if worst is Verdict.EQUIVALENT or not ratios:
        word = "same" if worst is Verdict.EQUIVALENT else str(worst)
    else:
        ends = list(dict.fromkeys((changed(ratios[0]), changed(ratios[-1]))))
        word = " to ".join(ends)
    counts = tuple((str(v), f"{verdicts.count(v)} of {len(verdicts)} cells") for v in Verdict if v in verdicts)
    count = verdicts.count(worst)
    return Entry(f"{word} ({count}/{len(verdicts)})" if len(set(verdicts)) > 1 else word, worst, counts)


def _word(comparison: Comparison) -> str:
    """Return a comparison in one or two words: ``-30 %``, ``1.9x``, ``same``."""
    if comparison.verdict is Verdict.EQUIVALENT:
        return "same"
    if comparison.effect is not None:
        return effect_text(comparison)
    if comparison.ratio is None:
        return "no values" if not (comparison.estimate.n and comparison.reference_estimate.n) else "no ratio"
    return changed(comparison.ratio)


def why(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what a verdict rests on: interval, values, replicates, method, correction; (what, its value)."""
    yield "verdict", f"{comparison.verdict}: {explanation(comparison)}"
    if comparison.ratio is not None or comparison.effect is not None:
        level = (
            comparison.ratio_interval.level
            if comparison.ratio_interval
            else comparison.effect and comparison.effect.interval and comparison.effect.interval.level
        )
        yield (f"ratio [{share(round(level, 4))} CI]" if level else "ratio"), effect_text(comparison)
    scale = unit_scale(comparison.unit, [comparison.estimate.mean, comparison.reference_estimate.mean])
    for name, estimate in ((comparison.testbed, comparison.estimate), (comparison.reference, comparison.reference_estimate)):
        values = ", ".join(f"{value / scale.factor:.4g}" for value in estimate.values[:6])
        more = f", ... ({estimate.n})" if estimate.n > 6 else ""
        yield name, f"{values}{more} {scale.unit}".rstrip() if values else "no values"
    if comparison.method:
        paired = ", paired" if comparison.paired else ""
        yield "method", f"{METHODS.get(comparison.method, comparison.method)}{paired}"
    if comparison.p_different is not None:
        yield "p of a difference", f"{comparison.p_different:.2g} after correction for {comparison.family} comparisons"
    if comparison.p_equivalent is not None:
        yield "p of equivalence", f"{comparison.p_equivalent:.2g}"


METHODS = {
    "log": "t test of logarithms",
    "fieller": "Fieller's interval of a ratio",
    "exact": "exact: values do not vary",
    "counts": "exact test of rare events",
    "unseen": "all values are 0",
    "welch": "Welch's t test",
    "student": "paired t test",
    "newcombe": "Newcombe's interval of shares",
}
"""``Tested.method`` in words."""


def _items(
    comparisons: Sequence[Comparison],
    of: Mapping[str, int],
    say: Callable[[Comparison], str],
    key: Callable[[Comparison], float] | None = None,
) -> tuple[str, ...]:
    """Return an item a metric, by its largest difference, which comes first."""
    by_metric: dict[str, list[Comparison]] = {}
    for comparison in sorted(comparisons, key=key or distance, reverse=True):
        by_metric.setdefault(_title(comparison), []).append(comparison)
    items = []
    for title, group in by_metric.items():
        text = say(group[0])
        if len(group) < of[title]:
            is_named = len(group) == 1 and len(group[0].cell) <= MOST_FACTORS
            text += _at(group[0]) if is_named else f" ({len(group)} of {of[title]} cells)"
        items.append(text)
    return tuple(items)


def _title(comparison: Comparison) -> str:
    return metric_title(comparison.metric, comparison.host, comparison.direction)


def _at(comparison: Comparison) -> str:
    return f" at {cell_title(comparison.cell)}" if comparison.cell else ""


def _change(comparison: Comparison) -> str:
    """Return how far a metric is from the reference: ``30 % lower``, ``12.5 times as high``."""
    if comparison.effect is not None:
        return effect_text(comparison)
    return explanation(comparison) if comparison.ratio is None else changed(comparison.ratio, sentence=True)


def _confidence(comparison: Comparison) -> str:
    interval = comparison.wide_interval
    if interval is None or comparison.ratio is None or comparison.effect is not None:
        return ""
    return f" ({share(round(interval.level, 4))} CI {changed_range(comparison.ratio, interval.low, interval.high)})"


def _predictable(comparison: Comparison) -> str:
    return "" if comparison.predictable is None else f", predictable to ±{plus_minus(comparison.predictable)}"


def _varying(comparison: Comparison) -> str:
    ratio = comparison.spread.ratio if comparison.spread else None
    by = f": varies {ratio:.2g} times as much" if ratio else ""
    return f"single runs or percentiles of {_title(comparison)}{by}"


def _spread_distance(comparison: Comparison) -> float:
    ratio = comparison.spread.ratio if comparison.spread else None
    return max(ratio, 1 / ratio) if ratio else float("inf")


def _way(comparison: Comparison) -> str:
    """Return whether a spread that differs is ``more`` or ``less``."""
    return "less" if comparison.spread and comparison.spread.ratio is not None and comparison.spread.ratio < 1 else "more"


def distance(comparison: Comparison) -> float:
    """Return how far a metric is from the reference: the ratio or its inverse, whichever is above 1."""
    if comparison.effect is not None:
        return abs(comparison.effect.value)
    if comparison.ratio:
        return max(comparison.ratio, 1 / comparison.ratio)
    return float("inf") if comparison.verdict is Verdict.DIFFERENT else 0.0


def _names(comparisons: Iterable[Comparison]) -> str:
    names = list(dict.fromkeys(_title(comparison) for comparison in comparisons))
    return listed(names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"])


def _is_single(comparisons: Iterable[Comparison]) -> bool:
    return len({_title(comparison) for comparison in comparisons}) == 1


def is_beyond(comparison: Comparison) -> bool:
    """Return whether the ratio itself lies outside the margin: then no number of runs shows it to be within."""
    return comparison.ratio is not None and not 1 / (1 + comparison.margin) <= comparison.ratio <= 1 + comparison.margin
