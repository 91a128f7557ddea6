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

from twinbed.analyses.compare.words import CHANCE, WITHOUT, doubt, explanation, held, plus_minus, replicates, short_reason
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
        """``virtio is not a stand-in for container here: requests per second 30 % lower at 1MiB (95 % CI 24-36 %).``"""
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
        return f"{self.testbed} {stands}: {said_of(self.worst)}."

    @property
    def worst(self) -> Comparison:
        """Return the largest difference, among what users see where that differs."""
        seen_by_users = [each for each in self.different if each.layer == Layer.APPLICATION]
        return max(seen_by_users or self.different, key=distance)

    def _inconclusive(self) -> str:
        asks = f"can stand in for {self.reference}" if self.by == TESTBED else f"differs from {self.reference}"
        if self.barred:
            return f"there is no verdict on {self.testbed}: {self.barred}."
        fewest = min((each.runs for each in self.inconclusive if each.runs), default=0)
        counted = f" with {fewest} replicate{'s' if fewest > 1 else ''}" if fewest else ""
        count = len(self.inconclusive)
        whole = f"{count} of {self.total}" if count < self.total else f"all {count}" if count > 1 else "its one"
        are = "s are" if self.total > 1 else " is"
        return f"the data cannot tell whether {self.testbed} {asks}: {whole} headline comparison{are} inconclusive{counted}."

    @property
    def barred(self) -> str:
        """Return why nothing of the testbed has a verdict, whatever the numbers are; empty where something has."""
        kinds = {doubt(each) for each in self.inconclusive}
        kind = kinds.pop() if len(kinds) == 1 and self.verdict is Verdict.INCONCLUSIVE and not self.equivalent else None
        return WITHOUT[kind] if kind else ""

    def _matches(self) -> str:
        """``Packets per request and bytes per request match at payload 500B.``"""
        names = list(dict.fromkeys(_title(each) for each in self.picked))
        if not names:
            return ""
        of_all = [each for each in (*self.equivalent, *self.different, *self.inconclusive) if _title(each) in names]
        where = "" if len(self.picked) == len(of_all) else f" in {len(self.picked)} of {len(of_all)} cells"
        if where and len({str(each.cell) for each in self.picked}) == 1 and len(self.picked[0].cell) <= MOST_FACTORS:
            where = _at(self.picked[0])
        shown = listed(names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"])
        return f"{shown[:1].upper()}{shown[1:]} match{'es' if len(names) == 1 else ''}{where}."

    @property
    def use_for(self) -> tuple[str, ...]:
        """Return what is equivalent, an item a metric, the largest difference first."""
        return _items(self.picked, self._of(), self._use)

    def _use(self, each: Comparison) -> str:
        mean = "mean " if any(other in self.spread for other in self.picked if _title(other) == _title(each)) else ""
        if each.ratio is None:
            return f"{mean}{_title(each)}"
        change = changed(each.ratio, sentence=True)
        return f"{mean}{_title(each)}: {change}" + ("" if change == SAME else f", within {share(each.margin)}")

    @property
    def avoid_for(self) -> tuple[str, ...]:
        """Return what differs, an item a metric, the largest difference first; then means whose spread differs."""
        items = _items(self.different, self._of(), lambda each: f"{_title(each)}: {_change(each)}{_predictable(each)}")
        apart = [each for each in self.spread if each in self.picked]
        return (*items, *_items(apart, self._of(), _varying, key=_spread_distance))

    @property
    def cannot_tell(self) -> tuple[str, ...]:
        """Return what is inconclusive with what would decide it, an item a metric, the largest difference first."""
        alone = [each for each in self.equivalent if each not in self.picked]
        return (
            *_items(self.inconclusive, self._of(), lambda each: f"{_title(each)}: {short_reason(each)}"),
            *_items(
                alone,
                self._of(),
                lambda each: f"{_title(each)}: {_change(each)}; within {share(each.margin)} only without correction",
            ),
        )

    def _of(self) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for each in (*self.equivalent, *self.different, *self.inconclusive):
            counts[_title(each)] = counts.get(_title(each), 0) + 1
        return counts

    @property
    def spread_sentence(self) -> str:
        """``virtio varies more than container in 3 of 6 headline comparisons.``; empty where no spread is shown to differ."""
        counts = {way: sum(_way(each) == way for each in self.spread) for way in ("more", "less")}
        parts = [f"{way} than {self.reference} in {count}" for way, count in counts.items() if count]
        plural = "s" if self.total > 1 else ""
        return f"{self.testbed} varies {' and '.join(parts)} of {self.total} headline comparison{plural}." if parts else ""

    @property
    def advice(self) -> tuple[str, ...]:
        """Return what to do next, in sentences."""
        return tuple(self._next())

    def _next(self) -> Iterator[str]:
        if foreseen := [each for each in self.different if each.predictable is not None]:
            widths = sorted(each.predictable or 0.0 for each in foreseen)
            yield (
                f"Different, but predictable: after calibration {self.testbed} predicts {_names(foreseen)} of {self.reference} "
                f"within ±{plus_minus(widths[len(widths) // 2])} (median of {len(foreseen)} of {len(self.different)})."
            )
        if apart := [each for each in self.picked if each in self.spread]:
            yield (
                f"Mean {_names(apart)} match {self.reference}. Run-to-run spread does not: do not use {self.testbed} for "
                "single runs or percentiles."
            )
        for kind, text in WITHOUT.items():
            if barred := [each for each in self.inconclusive if doubt(each) is kind]:
                yield f"No verdict in {len(barred)} of {self.total} headline comparisons, because {text}: {kind.advice}."
        yield from self._to_decide([each for each in self.inconclusive if doubt(each) is None])

    def _to_decide(self, still_open: Sequence[Comparison]) -> Iterator[str]:
        needed = [each.replicates_needed for each in still_open if each.replicates_needed]
        if needed:
            count = len(self.inconclusive)
            which = "all inconclusive comparisons" if len(needed) == count else f"{len(needed)} of {count} inconclusive ones"
            yield f"About {max(needed)} new {replicates(still_open[0])} would decide {which}, each with a chance of {CHANCE}."
        others = [each for each in still_open if not each.replicates_needed]
        if beyond := [each for each in others if is_beyond(each)]:
            yield (
                f"More replicates, or fewer comparisons, may show that {_names(beyond)} differ{'s' if _one(beyond) else ''}: "
                "`twinbed plan --pilot` estimates how many."
            )
        if near := [each for each in others if not is_beyond(each)]:
            yield f"A wider margin or steadier runs may decide {_names(near)}: {explanation(near[0])}."


def said_of(each: Comparison) -> str:
    """Return ``requests per second 30 % lower at payload 1MiB (95 % CI 24-36 %)``."""
    where = _at(each) if len(each.cell) <= MOST_FACTORS else " in its worst cell"
    return f"{_title(each)} {_change(each)}{where}{_confidence(each)}"


def unseen(comparisons: Iterable[Comparison]) -> str:
    """Return what so few runs cannot show, of the comparison with the fewest; empty without runs."""
    fewest = min((each.runs for each in comparisons if each.runs), default=0)
    if not fewest:
        return ""
    return (
        f"{fewest} run{'s' if fewest > 1 else ''} cannot rule out something rare: a stall that hits up to "
        f"{share(round(unseen_share(fewest), 2))} of runs may have gone unseen."
    )


def conclusions(result: Comparisons) -> tuple[Conclusion, ...]:
    """Return one Conclusion for each testbed but the reference."""
    headlines = [each for each in result.comparisons if each.headline]
    adjusted = iter(holm([each.p_equivalent for each in headlines if each.p_equivalent is not None]))
    picked = {id(each) for each in headlines if each.p_equivalent is not None and next(adjusted) <= result.alpha}
    grounds: dict[str, str] = {}
    for caution in result.cautions:
        if caution.kind in GROUND:
            grounds.setdefault(caution.subject, GROUND[caution.kind])
    testbeds = dict.fromkeys(each.testbed for each in result.comparisons)
    return tuple(
        _conclusion([each for each in result.comparisons if each.testbed == testbed], picked, grounds, len(headlines))
        for testbed in testbeds
    )


def _conclusion(comparisons: Sequence[Comparison], picked: Set[int], grounds: Mapping[str, str], family: int) -> Conclusion:
    """Return that of one testbed. ``picked``: identities of headlines that are equivalent after correction."""
    first = comparisons[0]
    of = {verdict: tuple(each for each in comparisons if each.headline and each.verdict is verdict) for verdict in Verdict}
    equivalent = of[Verdict.EQUIVALENT]
    is_whole = not (of[Verdict.DIFFERENT] or of[Verdict.INCONCLUSIVE])
    return Conclusion(
        *(first.testbed, first.reference, first.by, first.margin),
        grounds.get(first.testbed) or grounds.get(first.reference) or grounds.get("", ""),
        *(equivalent, of[Verdict.DIFFERENT], of[Verdict.INCONCLUSIVE]),
        tuple(each for each in comparisons if each.headline and each.spread and each.spread.differs),
        equivalent if is_whole else tuple(each for each in equivalent if id(each) in picked),
        family,
    )


def matrix(result: Comparisons, comparisons: Sequence[Comparison] | None = None) -> Matrix:
    """Return the headline verdicts, or those of ``comparisons``, a row a metric and cell, a column a testbed. With more than
    ``MOST_ROWS`` such rows, a row is a metric over all its cells."""
    shown = [each for each in result.comparisons if each.headline] if comparisons is None else comparisons
    heads = tuple(dict.fromkeys(each.testbed for each in shown))
    rows = tuple(_rows(shown, heads, _entry))
    if len(rows) > MOST_ROWS:
        rows = tuple(_rows(shown, heads, None))
    first = shown[0] if shown else None
    caption = f"Ratio to {first.reference}. Same: within {share(first.margin)}." if first else ""
    return Matrix(caption, heads, rows)


def _rows(
    shown: Sequence[Comparison], heads: Sequence[str], entry: Callable[[Comparison], Entry] | None
) -> Iterator[MatrixRow]:
    for (layer, title), of_metric in groupby(shown, key=lambda each: (each.layer, _title(each))):
        group = LAYERS.get(layer, layer).partition(":")[0]
        listed_ = list(of_metric)
        if entry is None:
            of_testbeds = [[each for each in listed_ if each.testbed == name] for name in heads]
            cells = max(map(len, of_testbeds))
            yield MatrixRow(group, title, f"{cells} cells", tuple(_over_cells(each) if each else None for each in of_testbeds))
            continue
        for cell, of_cell in groupby(listed_, key=lambda each: cell_title(each.cell)):
            of = {each.testbed: each for each in of_cell}
            yield MatrixRow(group, title, cell, tuple(entry(of[name]) if name in of else None for name in heads))


def _entry(each: Comparison) -> Entry:
    return Entry(_word(each), each.verdict, tuple(why(each)))


def _over_cells(comparisons: Sequence[Comparison]) -> Entry:
    """Return all cells of a metric on a testbed as one entry: the range of the ratios, the worst verdict, how many of each."""
    verdicts = [each.verdict for each in comparisons]
    worst = next(v for v in (Verdict.DIFFERENT, Verdict.INCONCLUSIVE, Verdict.EQUIVALENT) if v in verdicts)
    ratios = sorted(each.ratio for each in comparisons if each.ratio is not None)
    if worst is Verdict.EQUIVALENT or not ratios:
        word = "same" if worst is Verdict.EQUIVALENT else str(worst)
    else:
        ends = list(dict.fromkeys((changed(ratios[0]), changed(ratios[-1]))))
        word = " to ".join(ends)
    counts = tuple((str(v), f"{verdicts.count(v)} of {len(verdicts)} cells") for v in Verdict if v in verdicts)
    count = verdicts.count(worst)
    return Entry(f"{word} ({count}/{len(verdicts)})" if len(set(verdicts)) > 1 else word, worst, counts)


def _word(each: Comparison) -> str:
    """Return a comparison in one or two words: ``-30 %``, ``1.9x``, ``same``."""
    if each.verdict is Verdict.EQUIVALENT:
        return "same"
    if each.effect is not None:
        return held(each)
    if each.ratio is None:
        return "no values" if not (each.estimate.n and each.reference_estimate.n) else "no ratio"
    return changed(each.ratio)


def why(each: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what a verdict rests on: interval, values, replicates, method, correction; (what, its value)."""
    yield "verdict", f"{each.verdict}: {explanation(each)}"
    if each.ratio is not None or each.effect is not None:
        level = (
            each.ratio_interval.level
            if each.ratio_interval
            else each.effect and each.effect.interval and each.effect.interval.level
        )
        yield (f"ratio [{share(round(level, 4))} CI]" if level else "ratio"), held(each)
    scale = unit_scale(each.unit, [each.estimate.mean, each.reference_estimate.mean])
    for name, estimate in ((each.testbed, each.estimate), (each.reference, each.reference_estimate)):
        values = ", ".join(f"{value / scale.factor:.4g}" for value in estimate.values[:6])
        more = f", ... ({estimate.n})" if estimate.n > 6 else ""
        yield name, f"{values}{more} {scale.unit}".rstrip() if values else "no values"
    if each.method:
        paired = ", paired" if each.paired else ""
        yield "method", f"{METHODS.get(each.method, each.method)}{paired}"
    if each.p_different is not None:
        yield "p of a difference", f"{each.p_different:.2g} after correction for {each.family} comparisons"
    if each.p_equivalent is not None:
        yield "p of equivalence", f"{each.p_equivalent:.2g}"


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
    for each in sorted(comparisons, key=key or distance, reverse=True):
        by_metric.setdefault(_title(each), []).append(each)
    items = []
    for title, found in by_metric.items():
        text = say(found[0])
        if len(found) < of[title]:
            is_named = len(found) == 1 and len(found[0].cell) <= MOST_FACTORS
            text += _at(found[0]) if is_named else f" ({len(found)} of {of[title]} cells)"
        items.append(text)
    return tuple(items)


def _title(each: Comparison) -> str:
    return metric_title(each.metric, each.host, each.direction)


def _at(each: Comparison) -> str:
    return f" at {cell_title(each.cell)}" if each.cell else ""


def _change(each: Comparison) -> str:
    """Return how far a metric is from the reference: ``30 % lower``, ``12.5 times as high``."""
    if each.effect is not None:
        return held(each)
    return explanation(each) if each.ratio is None else changed(each.ratio, sentence=True)


def _confidence(each: Comparison) -> str:
    interval = each.wide_interval
    if interval is None or each.ratio is None or each.effect is not None:
        return ""
    return f" ({share(round(interval.level, 4))} CI {changed_range(each.ratio, interval.low, interval.high)})"


def _predictable(each: Comparison) -> str:
    return "" if each.predictable is None else f", predictable to ±{plus_minus(each.predictable)}"


def _varying(each: Comparison) -> str:
    ratio = each.spread.ratio if each.spread else None
    by = f": varies {ratio:.2g} times as much" if ratio else ""
    return f"single runs or percentiles of {_title(each)}{by}"


def _spread_distance(each: Comparison) -> float:
    ratio = each.spread.ratio if each.spread else None
    return max(ratio, 1 / ratio) if ratio else float("inf")


def _way(each: Comparison) -> str:
    """Return whether a spread that differs is ``more`` or ``less``."""
    return "less" if each.spread and each.spread.ratio is not None and each.spread.ratio < 1 else "more"


def distance(each: Comparison) -> float:
    """Return how far a metric is from the reference: the ratio or its inverse, whichever is above 1."""
    if each.effect is not None:
        return abs(each.effect.value)
    if each.ratio:
        return max(each.ratio, 1 / each.ratio)
    return float("inf") if each.verdict is Verdict.DIFFERENT else 0.0


def _names(comparisons: Iterable[Comparison]) -> str:
    names = list(dict.fromkeys(_title(each) for each in comparisons))
    return listed(names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"])


def _one(comparisons: Iterable[Comparison]) -> bool:
    return len({_title(each) for each in comparisons}) == 1


def is_beyond(each: Comparison) -> bool:
    """Return whether the ratio itself lies outside the margin: then no number of runs shows it to be within."""
    return each.ratio is not None and not 1 / (1 + each.margin) <= each.ratio <= 1 + each.margin
