"""What a person can conclude of each testbed, and do: its verdicts counted, and advice, in sentences.

What a sentence picks out of many verdicts is corrected for their number. A verdict "equivalent" by itself errs in 5 %, so that
of 40 metrics at the margin some are nearly always equivalent. Those that a sentence names are shown after Holm's correction
over the headlines of all testbeds. That everything of a testbed is equivalent needs no correction: it is one
intersection-union test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from twinbed.analyses.compare.words import CHANCE, WITHOUT, doubt, explanation, finding, plus_minus, replicates
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.result import Verdict
from twinbed.show.quantities import share
from twinbed.show.words import metric_name
from twinbed.statistics.counts import unseen_share
from twinbed.statistics.multiplicity import holm


@dataclass(frozen=True, slots=True)
class Summary:
    """One testbed's headline verdicts."""

    testbed: str
    reference: str
    margin: float
    equivalent: tuple[Comparison, ...]
    different: tuple[Comparison, ...]
    inconclusive: tuple[Comparison, ...]
    spread: tuple[Comparison, ...]
    """Those whose spread is shown to differ."""
    picked: tuple[Comparison, ...]
    """The equivalent ones that may be named: all of them where everything is equivalent, which one test shows, else those that
    are shown after correction for the number of headline comparisons."""
    family: int
    """The number of headline comparisons of all testbeds."""

    @property
    def total(self) -> int:
        return len(self.equivalent) + len(self.different) + len(self.inconclusive)

    @property
    def verdict(self) -> Verdict:
        if self.different:
            return Verdict.DIFFERENT
        return Verdict.INCONCLUSIVE if self.inconclusive or not self.total else Verdict.EQUIVALENT

    @property
    def sentence(self) -> str:
        """``virtio differs from container in 5 of 6 headline comparisons; equivalent within 10 % in 1.``"""
        if not self.total:
            return f"{self.testbed} has no headline metric in a cell that {self.reference} has too."
        within = f"within {share(self.margin)}"
        if self.verdict is Verdict.EQUIVALENT:
            return f"{self.testbed} is equivalent to {self.reference} {within} in {_all_of(self.total)}."
        counted = [
            (f"differs from {self.reference}", self.different),
            (f"is equivalent {within}", self.equivalent),
            ("is undecided", self.inconclusive),
        ]
        parts = [f"{what} in {len(comparisons)}" for what, comparisons in counted if comparisons]
        plural = "s" if self.total > 1 else ""
        rest = f"; it {' and '.join(parts[1:])}" if len(parts) > 1 else ""
        return f"{self.testbed} {parts[0]} of {self.total} headline comparison{plural}{rest}."

    @property
    def spread_sentence(self) -> str:
        """``virtio varies more than container in 3 of 6 headline comparisons.``; empty where no spread is shown to differ."""
        counts = {way: sum(_way(each) == way for each in self.spread) for way in ("more", "less")}
        parts = [f"{way} than {self.reference} in {count}" for way, count in counts.items() if count]
        if not parts:
            return ""
        return (
            f"{self.testbed} varies {' and '.join(parts)} of {self.total} headline comparison{'s' if self.total > 1 else ''}."
        )

    @property
    def advice(self) -> tuple[str, ...]:
        """What a person can do with this."""
        sentences = []
        if self.different:
            worst = max(self.different, key=_distance)
            sentences.append(
                f"Do not read {_names(self.different)} of {self.testbed} as {self.reference}'s: "
                f"the largest difference is {finding(worst)}."
            )
            if found := [each for each in self.different if each.predictable is not None]:
                widths = sorted(each.predictable or 0.0 for each in found)
                sentences.append(
                    f"Different, but predictable: {_names(found)} of {self.reference} follow from {self.testbed}'s within "
                    f"±{plus_minus(widths[len(widths) // 2])} after calibration "
                    f"(median of {len(found)} of {len(self.different)})."
                )
        sentences += self._equivalent_advice()
        sentences += self._open_advice()
        return tuple(sentences)

    def _equivalent_advice(self) -> Iterator[str]:
        where = "" if not (self.different or self.inconclusive) else " where it is listed as equivalent"
        apart = [each for each in self.picked if each in self.spread]
        if like := [each for each in self.picked if each not in apart]:
            yield f"{self.testbed} can stand in for {self.reference} for the mean of {_names(like)}{where}. {unseen(like)}"
        if apart:
            yield (
                f"Means of {_names(apart)} are those of {self.reference}{where}, but their spread is not: do not take a "
                "single run, or a tail, for its."
            )
        if alone := [each for each in self.equivalent if each not in self.picked]:
            yield (
                f"{_names(alone)}: equivalent in {len(alone)} of {self.family} headline comparisons, not after correction for "
                "their number. Of so many, some look equivalent by chance: do not pick them out."
            )

    def _open_advice(self) -> Iterator[str]:
        for kind, text in WITHOUT.items():
            if found := [each for each in self.inconclusive if doubt(each) is kind]:
                where = f"{len(found)} of {self.total} headline comparisons"
                yield f"{_names(found)}: no verdict in {where}, as {text}; {kind.advice}."
        rest = [each for each in self.inconclusive if doubt(each) is None]
        needed = [each.replicates_needed for each in rest if each.replicates_needed]
        if needed:
            count = len(self.inconclusive)
            what = "what is open" if len(needed) == count else f"{len(needed)} of {count} open ones"
            yield f"About {max(needed)} new {replicates(rest[0])} would decide {what}, each with a chance of {CHANCE}."
        others = [each for each in rest if not each.replicates_needed]
        if beyond := [each for each in others if _is_beyond(each)]:
            yield (
                f"{_names(beyond)}: {explanation(beyond[0])}; more replicates or fewer comparisons may show the "
                "difference, and `twinbed plan --pilot` says how many."
            )
        if near := [each for each in others if each not in beyond]:
            yield f"{_names(near)}: {explanation(near[0])}; a wider margin or steadier runs may decide."


def unseen(comparisons: Iterable[Comparison]) -> str:
    """Return what so few runs cannot show, of those with the fewest; empty without runs."""
    fewest = min((each.runs for each in comparisons if each.runs), default=0)
    if not fewest:
        return ""
    runs = "1 run" if fewest == 1 else f"{fewest} runs"
    return (
        f"{runs} cannot rule out something rare: a stall that hits up to {share(round(unseen_share(fewest), 2))} of runs may "
        "have gone unseen."
    )


def _way(each: Comparison) -> str:
    """Whether a spread that differs is ``more`` or ``less``."""
    return "less" if each.spread and each.spread.ratio is not None and each.spread.ratio < 1 else "more"


def summaries(result: Comparisons) -> tuple[Summary, ...]:
    """One Summary for each testbed but the reference, of headline metrics."""
    testbeds = dict.fromkeys(each.testbed for each in result.comparisons)
    headlines = [each for each in result.comparisons if each.headline]
    alone = [each.p_equivalent for each in headlines if each.p_equivalent is not None]
    adjusted = iter(holm(alone))
    picked = {id(each) for each in headlines if each.p_equivalent is not None and next(adjusted) <= result.alpha}
    return tuple(
        _summary([each for each in result.comparisons if each.testbed == testbed], picked, len(headlines))
        for testbed in testbeds
    )


def _summary(comparisons: Sequence[Comparison], picked: Set[int], family: int) -> Summary:
    """``picked``: the identities of all headlines that are shown to be equivalent after correction for their number."""
    first = comparisons[0]
    by = {verdict: tuple(each for each in comparisons if each.headline and each.verdict is verdict) for verdict in Verdict}
    equivalent = by[Verdict.EQUIVALENT]
    is_all = not (by[Verdict.DIFFERENT] or by[Verdict.INCONCLUSIVE])
    return Summary(
        *(first.testbed, first.reference, first.margin),
        *(equivalent, by[Verdict.DIFFERENT], by[Verdict.INCONCLUSIVE]),
        tuple(each for each in comparisons if each.headline and each.spread and each.spread.differs),
        equivalent if is_all else tuple(each for each in equivalent if id(each) in picked),
        family,
    )


def _distance(each: Comparison) -> float:
    if not each.ratio:
        return float("inf")
    return max(each.ratio, 1 / each.ratio)


def _names(comparisons: Iterable[Comparison]) -> str:
    names = list(dict.fromkeys(metric_name(each.metric) for each in comparisons))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _all_of(total: int) -> str:
    return "its one headline comparison" if total == 1 else f"all {total} headline comparisons"


def _is_beyond(each: Comparison) -> bool:
    """Whether the ratio itself lies outside the margin: then no number of runs shows it to be within."""
    return each.ratio is not None and not 1 / (1 + each.margin) <= each.ratio <= 1 + each.margin
