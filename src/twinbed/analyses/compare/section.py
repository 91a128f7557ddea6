"""Say comparisons as sections: the verdict, each layer's metrics, spread, order, and how to read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from twinbed.analyses.compare import exclusion
from twinbed.analyses.compare.conclusion import MOST_ITEMS, Conclusion, conclusions, distance, matrix, sentence_of, unseen
from twinbed.analyses.compare.forest import MOST, drawable
from twinbed.analyses.compare.order_plot import MOST_RUNS, residuals
from twinbed.analyses.compare.plots import cells_left_out, distribution, forest, ratios, values
from twinbed.analyses.compare.ranked import MOST_KINDS, RANKS, Ranked, ranked
from twinbed.analyses.compare.tables import (
    by_metric,
    measured_tables,
    order_table,
    quantile_table,
    spread_table,
    verdict_table,
)
from twinbed.analyses.compare.words import effect_text, nothing_compared
from twinbed.model.comparison import Comparison, Comparisons, Ordering
from twinbed.model.result import Verdict
from twinbed.model.tables import TESTBED
from twinbed.show.figure import Figure
from twinbed.show.quantities import number, ratio, share, unit_scale
from twinbed.show.section import Item, Listing, Section
from twinbed.show.table import readable
from twinbed.show.words import LAYERS, SYMBOLS, cell_title, heading, interim_sentence, metric_name, metric_title, place

KEY = "verdict"
MOST_SENTENCES = 3
"""Testbeds that have a sentence of their own on the first screen."""
MOST_CARDS = 4
"""Testbeds whose lists come before the matrix."""
MOST_OTHERS = 20
"""Rows of a layer's table of other metrics: those that differ most."""
MOST_ALIKE = 200
"""Comparisons without a difference in spread that a table has."""
MOST_DRAWN = 1
"""Metrics whose residuals are drawn."""


MORE = "Medians, quantiles and ratios of each metric: `twinbed compare RESULTS --html`"
"""The place of details that a report leaves out."""


def section(result: Comparisons, shown: Sequence[Comparison] | None = None) -> Section:
    """Return the verdict with its cautions, then the metrics that are ``shown``: by default the headlines."""
    headlines = [comparison for comparison in result.comparisons if comparison.headline]
    verdict = verdict_section(result)
    metrics = [metric_section(title, rows, result) for title, rows in by_metric(headlines if shown is None else shown)]
    return replace(
        verdict,
        key="comparison",
        title="Comparison",
        items=(*verdict.items, cautions_section(result), *metrics),
        kicker="How faithful, metric by metric and cell by cell",
    )


def verdict_section(result: Comparisons) -> Section:
    """Return the conclusion of each testbed, three lists, the matrix of headline verdicts, and their picture."""
    headlines = [comparison for comparison in result.comparisons if comparison.headline]
    concluded = conclusions(result)
    items: list[Item] = []
    if result.about:
        items.append(result.about)
    if result.interim:
        items.append(interim_sentence(result.interim))
    items += exclusion.items(result)
    if rare := unseen(comparison for comparison in headlines if comparison.verdict is Verdict.EQUIVALENT):
        items.append(rare)
    at_a_glance = [matrix(result)] if headlines else []
    cards = [filled for of in concluded if (filled := card(of)).items]
    items += [*cards, *at_a_glance] if len(cards) <= MOST_CARDS else [*at_a_glance, *cards]
    if shown := drawable(headlines):
        more = f" The first {MOST} of {len(shown)}." if len(shown) > MOST else ""
        caption = f"Headline ratios to {shown[0].reference} with their CIs; the band is the margin, {share(shown[0].margin)}."
        picture = Figure("all headline ratios", spec=lambda: forest(headlines), caption=caption + more)
        items.append(Section("forest", "Picture of all headline ratios", items=(picture,), folded=True, in_text=False))
    if not result.comparisons:
        items += _measured(result)
    return Section(KEY, "Verdict", " ".join(lede(result)), tuple(items))


def lede(result: Comparisons) -> Iterator[str]:
    """Yield the conclusion: a sentence a testbed, or for many testbeds one sentence a verdict with its largest difference."""
    concluded = conclusions(result)
    barred = {reason for conclusion in concluded if (reason := conclusion.barred)}
    if len(concluded) > 1 and len(barred) == 1 and all(conclusion.barred for conclusion in concluded):
        yield f"There is no verdict on any testbed: {barred.pop()}."
    elif not concluded:
        yield f"Nothing to compare: {nothing_compared(result)}."
    elif len(concluded) <= MOST_SENTENCES:
        yield from (conclusion.sentence for conclusion in concluded)
    else:
        yield from _summed(concluded)


def _summed(concluded: Sequence[Conclusion]) -> Iterator[str]:
    """Yield how many of many testbeds can stand in for the reference, and the largest difference."""
    of_testbeds, reference = concluded[0].by == TESTBED, concluded[0].reference
    texts = {
        Verdict.DIFFERENT: f"cannot stand in for {reference} here" if of_testbeds else f"differ from {reference}",
        Verdict.EQUIVALENT: f"can stand in for {reference} here" if of_testbeds else f"match {reference}",
        Verdict.INCONCLUSIVE: "are inconclusive",
    }
    grounds = {conclusion.ground for conclusion in concluded}
    ground = f"{concluded[0].ground}, " if len(grounds) == 1 and concluded[0].ground else ""
    for verdict, text in texts.items():
        names = [conclusion.testbed for conclusion in concluded if conclusion.verdict is verdict]
        if names:
            count = f"{len(names)} of"
            if len(names) == len(concluded):
                count, text = ("none of the", text.replace("cannot", "can")) if "cannot" in text else ("all", text)
            which = ", ".join(names[:MOST_ITEMS]) + (", ..." if len(names) > MOST_ITEMS else "")
            yield heading(f"{ground}{count} {len(concluded)} {'testbeds' if of_testbeds else 'levels'} {text} ({which}).")
    worst = [conclusion.worst for conclusion in concluded if conclusion.different]
    if worst:
        largest = max(worst, key=distance)
        yield f"Largest difference, on {largest.testbed}: {sentence_of(largest)}."


def card(of: Conclusion) -> Section:
    """Return what to use one testbed for, what not, what is open, and what to do next."""
    items: list[Item] = [
        Listing(title, _first(texts), mark=str(mark))
        for title, texts, mark in (
            ("Use it for", of.use_for, Verdict.EQUIVALENT),
            ("Do not use it for", of.avoid_for, Verdict.DIFFERENT),
            ("Cannot tell yet", () if of.barred else of.cannot_tell, Verdict.INCONCLUSIVE),
        )
        if texts
    ]
    if advice := of.advice:
        items.append(Listing("Next", tuple(advice)))
    return Section("", of.testbed, items=tuple(items), mark=str(of.verdict))


def _first(texts: Sequence[str]) -> tuple[str, ...]:
    more = len(texts) - MOST_ITEMS
    return (*texts[:MOST_ITEMS], f"{more} more in the table") if more > 0 else tuple(texts)


def _measured(result: Comparisons) -> Iterator[Item]:
    """Yield what was measured where nothing is compared."""
    if headlines := [estimated for estimated in result.estimates if estimated.headline and estimated.estimate.values][:MOST]:
        caption = "Every replicate of each headline metric; tick: the mean; bar: its CI, cut at the edge."
        yield Figure("all headline values", spec=lambda: values(headlines), caption=caption)
    yield from measured_tables(result)


def cautions_section(result: Comparisons, *, everything: bool = False) -> Section:
    """Return the cautions by rank: the first few, and the others folded."""
    cautions = ranked(result, [comparison for comparison in result.comparisons if comparison.headline])
    shown = cautions if everything else cautions[:MOST_KINDS]
    items: list[Item] = [*_by_rank(shown)]
    if rest := cautions[len(shown) :]:
        items.append(Section("", f"{len(rest)} more cautions", items=tuple(_by_rank(rest)), folded=True, on_paper=True))
    sentence = "" if cautions else "No run gives a reason to doubt the result."
    return Section("cautions", "Cautions", sentence, tuple(items))


def _by_rank(cautions: Sequence[Ranked]) -> Iterator[Item]:
    for rank, group in groupby(cautions, key=lambda caution: caution.rank):
        yield Section("", RANKS[rank], items=tuple(caution.listing() for caution in group))


def layer_sections(result: Comparisons, *, whole: bool = True) -> Iterator[Section]:
    """Yield a section for comparison layer, closed but for its sentence: its headline metrics, then others that differ. Unless
    ``whole`` without quantiles and without ratios, which the picture of all headline ratios has too."""
    for layer in dict.fromkeys(comparison.layer for comparison in result.comparisons):
        of_layer = [comparison for comparison in result.comparisons if comparison.layer == layer]
        headlines = [comparison for comparison in of_layer if comparison.headline]
        others = [comparison for comparison in of_layer if not comparison.headline]
        items: list[Item] = [metric_section(title, rows, result, whole=whole) for title, rows in by_metric(headlines)]
        if others:
            items.append(_others(others))
        more = () if whole or not headlines else (MORE,)
        title, sentence = LAYERS.get(layer, layer), _layer_sentence(headlines, others)
        yield Section(f"layer-{layer}", title, sentence, tuple(items), more, folded=True)


def _layer_sentence(headlines: Sequence[Comparison], others: Sequence[Comparison]) -> str:
    counts = {verdict: sum(comparison.verdict is verdict for comparison in headlines) for verdict in Verdict}
    parts = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    first = f"{len(headlines)} headline comparison{'s' if len(headlines) > 1 else ''}: {', '.join(parts)}." if headlines else ""
    different = sum(comparison.verdict is Verdict.DIFFERENT for comparison in others)
    second = f"{different} of {len(others)} comparisons of other metrics differ." if others else ""
    return f"{first} {second}".strip()


def metric_section(title: str, comparisons: Sequence[Comparison], result: Comparisons, *, whole: bool = True) -> Section:
    """Return one metric: its table and its values; if ``whole`` its ratios and other estimates too."""
    pooled = [pool for pool in result.pooled if (pool.metric, pool.host, pool.direction) == _place(comparisons[0])]
    items: list[Item] = [verdict_table(title, comparisons, pooled)]
    means = any(
        estimate.mean is not None
        for comparison in comparisons
        for estimate in (comparison.estimate, comparison.reference_estimate)
    )
    every = "Every replicate; tick: the mean; bar: its CI, cut at the edge." if means else "Every replicate."
    items.append(Figure(f"{title} values", spec=lambda: distribution(comparisons), caption=every))
    if whole and any(comparison.ratio is not None for comparison in comparisons):
        caption = f"Ratio to {comparisons[0].reference} with its CIs; the band is the margin."
        items.append(Figure(f"{title} ratio to {comparisons[0].reference}", spec=lambda: ratios(comparisons), caption=caption))
    if left_out := cells_left_out(comparisons):
        items.append(f"{left_out} more cells are in the table only.")
    if whole and (quantiles := quantile_table(comparisons)):
        items.append(Section("", quantiles.title, items=(quantiles,), folded=True, in_text=False))
    return Section("", heading(title), items=tuple(items))


def _place(comparison: Comparison) -> tuple[str, str, str]:
    return comparison.metric, comparison.host, comparison.direction


def _others(comparisons: Sequence[Comparison]) -> Section:
    """Return the other metrics that differ most: those a reader looks at. ``--csv`` has all."""
    differing = [comparison for comparison in comparisons if comparison.verdict is Verdict.DIFFERENT]
    first = sorted(differing, key=_size, reverse=True)[:MOST_OTHERS]
    rows = [
        (
            metric_name(comparison.metric),
            place(comparison.host, comparison.direction),
            cell_title(comparison.cell),
            comparison.testbed,
            effect_text(comparison),
            _value(comparison, reference=False),
            _value(comparison, reference=True),
        )
        for comparison in first
    ]
    heads = ("Metric", "Where", "Cell", "Testbed", "Ratio", "Mean", f"Mean of {comparisons[0].reference}")
    caption = (
        f"{len(differing)} of {len(comparisons)} differ, corrected for their own number"
        + (f"; the {len(first)} largest" if len(differing) > len(first) else "")
        + ". `twinbed report --csv` writes all."
    )
    table = readable("others", "Other metrics that differ", caption, heads, rows, texts=4)
    items: tuple[Item, ...] = (table,) if rows else ("No other metric is shown to differ. `twinbed report --csv` writes all.",)
    return Section("", f"Other metrics of this layer ({len(comparisons)} comparisons)", items=items, folded=True, in_text=False)


def _size(comparison: Comparison) -> float:
    return max(comparison.ratio, 1 / comparison.ratio) if comparison.ratio else float("inf")


def _value(comparison: Comparison, *, reference: bool) -> str:
    estimate = comparison.reference_estimate if reference else comparison.estimate
    if estimate.mean is None:
        return "no values"
    scale = unit_scale(comparison.unit, [comparison.estimate.mean, comparison.reference_estimate.mean])
    own = estimate.centre_interval
    half = (own.high - own.low) / 2 / scale.factor if own else None
    return f"{number((estimate.centre or 0.0) / scale.factor, half)} {scale.unit}".rstrip()


def spread_section(result: Comparisons) -> Section | None:
    """Return how many times as much testbeds vary from run to run; None where that is unknown."""
    spreads = [comparison for comparison in result.comparisons if comparison.headline and comparison.spread]
    if not spreads:
        return None
    shown = [comparison for comparison in spreads if comparison.spread and comparison.spread.differs]
    rest = [comparison for comparison in spreads if comparison not in shown]
    sentence = (
        f"{len(shown)} of {len(spreads)} headline comparisons vary more or less than {spreads[0].reference} from run to run."
        if shown
        else f"No headline comparison is shown to vary more or less than {spreads[0].reference} from run to run."
    )
    items: list[Item] = [spread_table(shown)] if shown else []
    if rest:
        title = f"{len(rest)} comparisons without a difference in spread"
        more = (f"The first {MOST_ALIKE} of {len(rest)}; `twinbed report --csv` writes all.",) if len(rest) > MOST_ALIKE else ()
        table = spread_table(rest[:MOST_ALIKE], title)
        items.append(Section("", title, items=(table, *more), folded=True))
    return Section("spread", "Spread: does it vary as much?", sentence, tuple(items), folded=True)


def order_section(result: Comparisons) -> Section | None:
    """Return what changed while runs were made; None where nothing varies."""
    if not result.orderings:
        return None
    affected = [ordering for ordering in result.orderings if _is_affected(ordering)]
    sentence = (
        f"{len(affected)} of {len(result.orderings)} metrics depend on the order of runs. A drift is no property of a testbed."
        if affected
        else f"No effect of the order of runs is shown in {len(result.orderings)} metrics."
    )
    drawn = [_residuals(ordering) for ordering in (*affected, *(other for other in result.orderings if other not in affected))]
    first = min(MOST_DRAWN, len(affected))
    items: list[Item] = [order_table(result.orderings, result.by), *drawn[:first]]
    if rest := drawn[first:]:
        items.append(Section("", f"Residuals of {len(rest)} more metrics", items=tuple(rest), folded=True))
    return Section("order", "Order: did anything change while it was measured?", sentence, tuple(items), folded=True)


def _is_affected(ordering: Ordering) -> bool:
    return ordering.blocks_differ or any(drift.trend or drift.serial for drift in ordering.drifts)


def _residuals(ordering: Ordering) -> Figure:
    title = metric_title(ordering.metric, ordering.host, ordering.direction)
    left_out = f"; {MOST_RUNS} of {len(ordering.residuals)} runs are drawn" if len(ordering.residuals) > MOST_RUNS else ""
    caption = f"{heading(title)}: residuals in the order of runs{left_out}."
    return Figure(f"{title} in the order of runs", spec=lambda: residuals(ordering), caption=caption)


def method_section(result: Comparisons) -> Section:
    """Return how to read the verdicts: what each means, and how often it is wrong."""
    first = next(iter(result.comparisons), None)
    margin = first.margin if first else 0.1
    level = first.ratio_interval.level if first and first.ratio_interval else 0.9
    alpha = share(round((1 - level) / 2, 4))
    between = f"{ratio(1 / (1 + margin))} and {ratio(1 + margin)}"
    meanings = (
        f"{SYMBOLS[Verdict.EQUIVALENT]} equivalent: the ratio lies between {between}. A single such verdict is wrong in at "
        f"most {alpha} of studies.",
        f"{SYMBOLS[Verdict.DIFFERENT]} different: the ratio does not lie between {between}. The chance that any such verdict "
        f"about headline metrics is wrong is at most {alpha}, and as much again about all other metrics.",
        f"{SYMBOLS[Verdict.INCONCLUSIVE]} inconclusive: neither is shown. The reason stands with it, and the replicates that "
        "would decide where they are known.",
    )
    text = (
        f"Ratios are of geometric means: t on logarithms, {_design(result.comparisons)}; of a 0 Fieller's interval. "
        "Equivalence takes two one-sided tests (Schuirmann 1987). Difference takes a two-sided test with Holm's correction "
        "over all headline comparisons. An interval scale compares differences of means with a margin in the metric's unit. "
        "An ordinal scale takes Cliff's delta, names the total variation. Spreads take Bonett's test with Holm's correction; "
        "Brown and Forsythe's test is a check. Runs without values are left out, never counted as 0."
    )
    return Section("method", "How to read this", items=(meanings, text), folded=True)


def _design(comparisons: Sequence[Comparison]) -> str:
    """Return how means are compared, which the study fixes beforehand."""
    of_sessions = "sessions" if any(comparison.sessions for comparison in comparisons) else "blocks"
    pairs = [comparison.paired for comparison in comparisons if comparison.method]
    if pairs and all(pairs):
        return f"of the differences within {of_sessions}"
    if any(pairs):
        return f"of the differences within {of_sessions} where these are complete, else Welch's"
    return (
        "Welch's, of means of sessions"
        if any(comparison.sessions for comparison in comparisons)
        else "Welch's, of independent runs"
    )
