"""What was compared, on a terminal: the verdicts, the picture and the cautions, in 80 columns; tables, readable at 100."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from twinbed.analyses.compare import exclusion
from twinbed.analyses.compare.estimate_tables import measured
from twinbed.analyses.compare.forest import STYLES, forest
from twinbed.analyses.compare.grid import mean
from twinbed.analyses.compare.summary import summaries, unseen
from twinbed.analyses.compare.words import (
    RULE,
    SYMBOLS,
    deviation,
    disagreement,
    emulated,
    explanation,
    factors_measured,
    hardly_varies,
    held,
    nothing_compared,
    of_few_runs,
    pooled_text,
)
from twinbed.model.caution import Kind
from twinbed.model.comparison import OTHER_SETTINGS, Comparison, Comparisons, Estimate, Pooled
from twinbed.model.result import Verdict
from twinbed.render.terminal import Terminal
from twinbed.show.quantities import UnitScale, share, unit_scale
from twinbed.show.words import LAYERS, cell_title, interim_sentence, metric_title, other_settings, p_text, times
from twinbed.terminal import one_line

WITHIN_RULE = {True: "yes", False: "no", None: "–"}


CELL, TESTBED, MEAN, COUNT, RATIO, WITHIN = 14, 12, 24, 3, 22, 4
"""Widths of the columns; the verdict comes last. Those of testbeds and ratios are wider where a text is; that of means is then
as narrow as its texts let it. The column of cells takes what a wider terminal leaves, to a limit."""
WIDEST_CELL = 44
LINE = 85
"""Characters of a line without its cell, of columns as wide as they usually are."""


@dataclass(frozen=True, slots=True)
class _Widths:
    cell: int
    testbed: int
    mean: int
    of: int

    @property
    def before_verdict(self) -> int:
        return self.cell + self.testbed + self.mean + COUNT + self.of + WITHIN + 6


def verdict_table(
    result: Comparisons, console: Terminal, comparisons: Sequence[Comparison] | None = None, beside: Iterable[str] = ()
) -> None:
    """Prints a sentence for each testbed, what is to be read ``beside`` them, the picture of the headline comparisons, and the
    cautions; of the comparisons that are given, their tables too."""
    shown = [each for each in result.comparisons if each.headline] if comparisons is None else list(comparisons)
    if count := result.left_out.get(OTHER_SETTINGS):
        console.words(f"{other_settings(count)} (--all-settings takes them in).", "yellow")
        console.say("")
    if result.about:
        console.words(result.about)
        console.say("")
    if banner := emulated(result):
        console.words(banner, "bold yellow")
        console.say("")
    verdict_lines(result, console)
    if text := unseen(each for each in result.comparisons if each.headline and each.verdict is Verdict.EQUIVALENT):
        console.words(text)
    for row in beside:
        console.say(row)
    for text in exclusion.lines(result):
        console.words(text)
    if result.interim and shown:
        console.words(interim_sentence(result.interim))
    if not shown:
        console.words(f"Nothing to compare: {nothing_compared(result)}.")
        if (names := factors_measured(result)) and not result.about:
            console.words(f"--by FACTOR compares levels; there are: {', '.join(names)}.")
        _measured(console, result)
    else:
        console.say("")
    for line in forest(shown, console.width):
        console.print(line, soft_wrap=True)
    _cautions(console, result, shown, whole=comparisons is not None)
    if comparisons is None:
        hidden = sum(not each.headline for each in result.comparisons)
        others = f" and of {hidden} comparisons of other metrics" if hidden else ""
        if shown or hidden:
            console.say("")
            console.words(f"Tables of these{others}: `twinbed compare --all`; of some: --metric NAME.", "dim")
    else:
        _tables(console, result, shown)


def _tables(console: Terminal, result: Comparisons, shown: Sequence[Comparison]) -> None:
    console.say("")
    for layer, of_layer in groupby(shown, key=lambda each: each.layer):
        _layer(console, layer, list(of_layer), result.pooled)
    if shown:
        console.words(_legend(shown), "dim")
    if spread := [each for each in shown if each.spread]:
        console.say("")
        _spreads(console, spread)


def verdict_lines(result: Comparisons, console: Terminal) -> None:
    """A sentence for each testbed."""
    for summary in summaries(result):
        console.words(f"{SYMBOLS[summary.verdict]} {summary.sentence}", STYLES[summary.verdict])
        if summary.spread_sentence:
            console.words(f"  {summary.spread_sentence}")


def _measured(console: Terminal, result: Comparisons) -> None:
    for metric in measured(result):
        console.words(metric.metric, "underline")
        width = max(CELL, *(len(cell) for cell, *_ in metric.rows))
        wide = max(TESTBED, *(len(testbed) for _, testbed, *_ in metric.rows))
        for cell, testbed, text, count in metric.rows:
            console.words(f"{cell:<{width}} {testbed:<{wide}} {text:>{MEAN}} {count:>{COUNT}}")


def _legend(shown: Sequence[Comparison]) -> str:
    first = shown[0]
    level = next((each.estimate.interval.level for each in shown if each.estimate.interval), 0.95)
    effects = "diff: of means; delta: Cliff's; TV: total variation. " if any(each.effect for each in shown) else ""
    return (
        f"{effects}Ratios are to {first.reference}. Means are geometric where all values are positive, with their "
        f"{share(round(level, 4))} interval. "
        f"Each = by itself is wrong in at most {share(round(1 - level, 4))} of studies: of many, some are. Any ≠ among the "
        f"headlines is wrong in at most {share(round(1 - level, 4))}, and as many among all other metrics. "
        f"in {share(first.margin)} is the rule of {RULE}: means differ by no more than that; "
        f"* their stronger one: the {share(round(level, 4))} intervals of the means overlap. No verdict: it ignores noise."
    )


def _widths(console: Terminal, comparisons: Sequence[Comparison], pooled: Sequence[Pooled]) -> _Widths:
    """Widths in which every text of a layer's table fits."""
    shown = {(each.metric, each.host, each.direction) for each in comparisons}
    of_pooled = [pooled_text(each) for each in pooled if (each.metric, each.host, each.direction) in shown]
    testbed = max(TESTBED, *(len(name) for each in comparisons for name in (each.by, each.testbed, each.reference)))
    of = max(RATIO, *map(len, [*(held(each) for each in comparisons), *of_pooled]))
    means = MEAN
    if testbed > TESTBED or of > RATIO:
        rows = (list(of_cell) for _cell, of_cell in groupby(comparisons, key=lambda each: (each.metric, cell_title(each.cell))))
        texts = [mean(estimate, _scale(row)) for row in rows for estimate in _estimates(row)]
        means = max(len("geometric mean"), *map(len, texts))
    rest = LINE + testbed - TESTBED + of - RATIO + means - MEAN
    return _Widths(max(CELL, min(WIDEST_CELL, console.width - rest)), testbed, means, of)


def _estimates(rows: Sequence[Comparison]) -> list[Estimate]:
    return [rows[0].reference_estimate, *(each.estimate for each in rows)]


def _scale(rows: Sequence[Comparison]) -> UnitScale:
    """The unit of a cell's means."""
    return unit_scale(rows[0].unit, [value for each in rows for value in (each.estimate.mean, each.reference_estimate.mean)])


def _layer(console: Terminal, layer: str, comparisons: Sequence[Comparison], pooled: Sequence[Pooled]) -> None:
    width = _widths(console, comparisons, pooled)
    level = next((each.ratio_interval.level for each in comparisons if each.ratio_interval), 0.9)
    within = f"in {share(comparisons[0].margin)}".replace(" %", "%")
    console.words(LAYERS.get(layer, layer), "bold")
    ratio = f"ratio [{share(round(level, 4))} interval]"
    heads = ("cell", comparisons[0].by, "mean", "n", ratio, within[-WITHIN - 2 :], "verdict")
    console.say(_row(width, *heads), "dim")
    for (metric, host, direction), of_metric in groupby(comparisons, key=lambda each: (each.metric, each.host, each.direction)):
        console.words(metric_title(metric, host, direction), "underline")
        reasons_shown: set[str] = set()
        for _cell, of_cell in groupby(of_metric, key=lambda each: cell_title(each.cell)):
            _cell_rows(console, width, list(of_cell), reasons_shown)
        for each in pooled:
            if (each.metric, each.host, each.direction) == (metric, host, direction):
                name = f"all {each.cells} cells"
                console.say(_row(width, name, each.testbed, "geometric mean", "", pooled_text(each), ""))
                if not each.agree:
                    console.words(f"{'':<{width.cell}}   {disagreement(each)}", "dim")
    console.say("")


def _spreads(console: Terminal, comparisons: Sequence[Comparison]) -> None:
    """Standard deviations as shares of the mean, how many times the reference's, and whether that is shown."""
    testbed = max(TESTBED, *(len(name) for each in comparisons for name in (each.by, each.testbed)))
    width = max(CELL, min(WIDEST_CELL, console.width - 82 - testbed + TESTBED))
    level = next((each.spread.interval.level for each in comparisons if each.spread and each.spread.interval), 0.95)
    console.words(f"Spread: how many times as much as {comparisons[0].reference} it varies", "bold")
    heads = ("cell", comparisons[0].by, "sd", "ref sd", f"times [{share(round(level, 4))} interval]", "p (Holm)")
    console.say(_spread_row(width, testbed, *heads, "shown"), "dim")
    reasons_shown: set[str] = set()
    for key, of_metric in groupby(comparisons, key=lambda each: (each.metric, each.host, each.direction)):
        console.words(metric_title(*key), "underline")
        for _cell, of_cell in groupby(of_metric, key=lambda each: cell_title(each.cell)):
            _spread_lines(console, width, testbed, list(of_cell), reasons_shown)
    console.say("")


def _spread_row(
    width: int, testbed_width: int, cell: str, testbed: str, own: str, reference: str, of: str, p_value: str, words: str
) -> str:
    return f"{cell:<{width}} {testbed:<{testbed_width}} {own:>8} {reference:>8} {of:<23} {p_value:<8} {words}".rstrip()


def _spread_lines(console: Terminal, width: int, testbed: int, rows: Sequence[Comparison], reasons_shown: set[str]) -> None:
    """One cell; ``reasons_shown`` holds the reasons that were given already."""
    names = textwrap.wrap(cell_title(rows[0].cell), width, subsequent_indent=" ")
    for each in rows:
        spread = each.spread
        if spread is None:
            continue
        bounds = f" [{times(spread.interval.low)}, {times(spread.interval.high)}]" if spread.interval else ""
        reason = spread.reason or hardly_varies(each) or of_few_runs(spread)
        of = f"{times(spread.ratio)}{bounds}" if spread.ratio and not hardly_varies(each) else "–"
        shown = ("less" if spread.ratio is not None and spread.ratio < 1 else "more") if spread.differs else ""
        own, reference = deviation(each, each.estimate), deviation(each, each.reference_estimate)
        line = _spread_row(width, testbed, _take(names), each.testbed, own, reference, of, p_text(spread.p_value), shown)
        console.say(line, "bold" if spread.differs else "")
        if reason and reason not in reasons_shown:
            reasons_shown.add(reason)
            console.words(f"{_take(names):<{width}}   {reason}", "dim")
    for name in names:
        console.words(name)


def _row(width: _Widths, cell: str, testbed: str, mean: str, n: str, of: str, within: str, verdict: str = "") -> str:
    columns = (
        f"{cell:<{width.cell}}",
        f"{testbed:<{width.testbed}}",
        f"{mean:>{width.mean}}",
        f"{n:>{COUNT}}",
        f"{of:<{width.of}}",
        f"{within:<{WITHIN}}",
    )
    return " ".join((*columns, verdict)).rstrip()


def _cell_rows(console: Terminal, width: _Widths, rows: Sequence[Comparison], reasons_shown: set[str]) -> None:
    """``reasons_shown`` holds the reasons that were given for this metric already."""
    first = rows[0]
    scale = _scale(rows)
    # A cell's name may be longer than its column; its lines then run down beside the testbeds.
    names = textwrap.wrap(cell_title(first.cell), width.cell, subsequent_indent=" ")
    reference, itself = first.reference_estimate, "1" if first.effect is None else ""
    console.say(_row(width, _take(names), first.reference, mean(reference, scale), str(reference.n), itself, ""))
    for each in rows:
        line = _row(
            width,
            _take(names),
            each.testbed,
            mean(each.estimate, scale),
            str(each.estimate.n),
            held(each),
            WITHIN_RULE[each.within_rule] + ("*" if each.intervals_overlap else ""),
        )
        verdict = Text(f"{SYMBOLS[each.verdict]} {each.verdict}", STYLES[each.verdict])
        gap = " " * max(1, width.before_verdict - len(line))
        console.print(Text.assemble(one_line(line), gap, verdict), soft_wrap=True)
        reason = explanation(each)
        is_told = each.verdict is Verdict.INCONCLUSIVE or each.predictable is not None
        if is_told and reason not in reasons_shown:
            console.words(f"{_take(names):<{width.cell}}   {reason}", "dim")
            reasons_shown.add(reason)
    for name in names:
        console.words(name)


def _take(names: list[str]) -> str:
    return names.pop(0) if names else ""


CAUTION_LINES = 3
"""Of one kind, where tables are not asked for."""


def _cautions(console: Terminal, result: Comparisons, shown: Sequence[Comparison], *, whole: bool) -> None:
    """Those first that most of the comparisons are subject to."""
    if not result.cautions:
        return
    console.say("")
    console.words("Cautions, those of most comparisons first", "bold")
    subject = {kind: weight(kind, result, shown) for kind in dict.fromkeys(caution.kind for caution in result.cautions)}
    for kind in sorted(subject, key=lambda kind: -subject[kind]):
        of = f" ({subject[kind]} of {len(shown)} comparisons)" if shown else ""
        meaning = f"{kind.meaning[0].upper()}{kind.meaning[1:]}{of}"
        console.words(f"! {meaning}")
        about = [caution for caution in result.cautions if caution.kind is kind]
        lines = [text for each in about if (text := ": ".join(part for part in (each.subject, each.detail) if part))]
        for line in lines if whole else lines[:CAUTION_LINES]:
            console.words(f"    {line}")
        if not whole and len(lines) > CAUTION_LINES:
            console.words(f"    and {len(lines) - CAUTION_LINES} more (--all)")
        console.words(f"    -> {kind.advice}", "dim")


def weight(kind: Kind, result: Comparisons, shown: Sequence[Comparison]) -> int:
    """Return the number of comparisons that a kind of caution is about: those that carry it. Where none does, as of cautions
    about the whole study, those whose testbed, metric or cell it names; all of them where it names nothing."""
    if carrying := sum(any(caution.kind is kind for caution in each.cautions) for each in shown):
        return carrying
    subjects = {caution.subject for caution in result.cautions if caution.kind is kind}
    return sum(
        not subjects.isdisjoint({"", each.testbed, each.reference, each.metric, cell_title(each.cell)}) for each in shown
    )
