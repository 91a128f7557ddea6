"""Tables of comparisons for readers: means with verdicts, spreads, quantiles, the order of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeAlias

from twinbed.analyses.compare.grid import centre, mean
from twinbed.analyses.compare.words import (
    RULE,
    column_head,
    deviation,
    disagreement,
    effect_text,
    hardly_varies,
    of_few_runs,
    pooled_text,
    varies,
)
from twinbed.model.comparison import Comparison, Comparisons, Drift, Estimate, Ordering, Pooled, Quantile
from twinbed.model.result import Interval
from twinbed.show.quantities import NONE, UnitScale, number, ratio, share, two_digits, unit_scale
from twinbed.show.table import Table, readable
from twinbed.show.words import SYMBOLS, cell_title, heading, metric_title, p_text, times

QUANTILES = {0.5: "Median", 0.9: "P90", 0.95: "P95", 0.99: "P99"}
YES_NO = {True: "yes", False: "no", None: NONE}
Row: TypeAlias = tuple[str, ...]


def by_metric(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, list[Comparison]]]:
    """Yield the comparisons of each metric at its place, with its title."""
    for key, group in groupby(comparisons, key=lambda comparison: (comparison.metric, comparison.host, comparison.direction)):
        yield metric_title(*key), list(group)


def verdict_table(title: str, comparisons: Sequence[Comparison], pooled: Sequence[Pooled] = ()) -> Table:
    """Return one metric: a row for the reference and each testbed in each cell; last the ratio over all cells."""
    first = comparisons[0]
    rows: list[Row] = []
    for cell, group in groupby(comparisons, key=lambda comparison: cell_title(comparison.cell)):
        of_cell = list(group)
        scale = scale_of(of_cell)
        reference = of_cell[0].reference_estimate
        rows.append((cell, first.reference, "reference", "", mean(reference, scale), *_counted(reference, scale)))
        for comparison in of_cell:
            verdict = f"{SYMBOLS[comparison.verdict]} {comparison.verdict}"
            means = (mean(comparison.estimate, scale), *_counted(comparison.estimate, scale))
            rows.append(("", comparison.testbed, verdict, effect_text(comparison), *means))
    place = (first.metric, first.host, first.direction)
    for pool in pooled:
        if (pool.metric, pool.host, pool.direction) == place:
            name = f"all {pool.cells} cells"
            rows.append((name, pool.testbed, "", pooled_text(pool), disagreement(pool), "", ""))
    level = next((comparison.ratio_interval.level for comparison in comparisons if comparison.ratio_interval), 0.9)
    ratio_head = f"Ratio [{share(round(level, 4))} CI]"
    heads = ("Cell", column_head(first.by), "Verdict", ratio_head, "Mean", "n", "sd")
    return readable(f"verdicts-{'-'.join(filter(None, place))}", heading(title), _caption(comparisons), heads, rows, texts=3)


def _caption(comparisons: Sequence[Comparison]) -> str:
    first = comparisons[0]
    level = next((comparison.estimate.interval.level for comparison in comparisons if comparison.estimate.interval), 0.95)
    effects = {
        "difference": f"Difference of means from {first.reference}.",
        "cliffs_delta": f"Medians; Cliff's delta compared with {first.reference}: pairs above minus pairs below.",
        "total_variation": f"Commonest values; total variation (TV) from {first.reference}: half the differences of shares.",
    }
    if first.effect:
        return effects[first.effect.name]
    return (
        f"Ratio to {first.reference}; margin {share(first.margin)}. Means are geometric where all values are positive, with "
        f"their {share(round(level, 4))} CI; sd: standard deviation."
    )


def _counted(estimate: Estimate, scale: UnitScale) -> tuple[str, str]:
    """Return the number of replicates, and their standard deviation to two digits in the unit of the mean."""
    if not estimate.stdev:
        return str(estimate.n), NONE
    own = estimate.stdev / scale.factor
    return str(estimate.n), f"{number(own, own)} {scale.unit}".rstrip()


def scale_of(rows: Sequence[Comparison]) -> UnitScale:
    """Return the unit of a cell's means."""
    return unit_scale(
        rows[0].unit, [value for comparison in rows for value in (comparison.estimate.mean, comparison.reference_estimate.mean)]
    )


def measured_tables(result: Comparisons) -> Iterator[Table]:
    """Yield a table of means for each headline metric, where there is nothing to compare."""
    headlines = [estimated for estimated in result.estimates if estimated.headline] if not result.comparisons else []
    for key, group in groupby(headlines, key=lambda estimated: (estimated.metric, estimated.host, estimated.direction)):
        rows = list(group)
        scale = unit_scale(rows[0].unit, [row.estimate.mean for row in rows])
        title = heading(metric_title(*key))
        texts = [(cell_title(row.cell), row.testbed, _measured(row.estimate, scale), str(row.estimate.n)) for row in rows]
        yield readable(title, title, "Mean and 95 % CI of each cell.", ("Cell", "Testbed", "Mean", "n"), texts, texts=2)


def _measured(estimate: Estimate, scale: UnitScale) -> str:
    return "no mean on its scale" if estimate.mean is None else f"{centre(estimate, scale.factor)} {scale.unit}".rstrip()


def spread_table(comparisons: Sequence[Comparison], title: str = "Spread") -> Table:
    """Return how many times as much each testbed varies as the reference."""
    first = comparisons[0]
    level = next(
        (comparison.spread.interval.level for comparison in comparisons if comparison.spread and comparison.spread.interval),
        0.95,
    )
    family = next((comparison.spread.family for comparison in comparisons if comparison.spread), 1)
    heads = (
        "Metric",
        "Cell",
        column_head(first.by),
        "Varies",
        f"[{share(round(level, 4))} CI]",
        "sd",
        f"sd of {first.reference}",
    )
    caption = (
        "Standard deviations (sd) as shares of the mean. P-values are of equal spreads by Bonett's test, corrected for "
        f"{family} comparisons; Brown and Forsythe's test as a check."
    )
    rows = [_spread_row(comparison) for comparison in comparisons if comparison.spread]
    return readable("spread", title, caption, (*heads, "p", "p (Brown-Forsythe)"), rows, texts=3)


def _spread_row(comparison: Comparison) -> Row:
    spread = comparison.spread
    assert spread is not None
    reason = hardly_varies(comparison) or spread.reason
    of = (
        reason
        if hardly_varies(comparison) or not spread.ratio
        else varies(replace(spread, interval=None)).removeprefix("varies ")
    )
    if not hardly_varies(comparison) and spread.ratio and (few := of_few_runs(spread)):
        of = f"{of} ({few})"
    bounds = f"[{times(spread.interval.low)}, {times(spread.interval.high)}]" if spread.interval else NONE
    return (
        metric_title(comparison.metric, comparison.host, comparison.direction),
        cell_title(comparison.cell),
        comparison.testbed,
        f"{'* ' if spread.differs else ''}{of}",
        bounds if spread.ratio and not hardly_varies(comparison) else NONE,
        deviation(comparison, comparison.estimate),
        deviation(comparison, comparison.reference_estimate),
        p_text(spread.p_value),
        p_text(spread.p_brown_forsythe),
    )


def quantile_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Return other estimates of a headline metric: median, upper quantiles, the bootstrap where used, the seeds' rule of
    thumb; None where there are no quantiles."""
    estimates = [estimate for comparison in comparisons for estimate in (comparison.estimate, comparison.reference_estimate)]
    shares = list(
        dict.fromkeys(quantile.share for estimate in estimates for quantile in estimate.quantiles if quantile.interval)
    )
    if not any(estimate.quantiles for estimate in estimates):
        return None
    first, margin = comparisons[0], share(comparisons[0].margin)
    shares = shares if 0.5 in shares else [0.5, *shares]
    bootstrapped = any(comparison.bootstrap_interval for comparison in comparisons)
    heads = ["Cell", column_head(first.by), "n", *(QUANTILES[part] for part in shares), f"Median / {first.reference}"]
    heads += [*(["Ratio by bootstrap"] if bootstrapped else []), f"Means within {margin}", "CIs overlap"]
    rows: list[Row] = []
    for _cell, group in groupby(comparisons, key=lambda comparison: cell_title(comparison.cell)):
        of_cell = list(group)
        blank = [NONE] * (3 + bootstrapped)
        rows.append((*_quantile_cells(of_cell[0].reference, of_cell[0], of_cell[0].reference_estimate, shares), *blank))
        for comparison in of_cell:
            own = [f"{ratio(comparison.median_ratio)} {_bounds(comparison.median_ratio_interval)}".rstrip()]
            own += [_bounds(comparison.bootstrap_interval) or NONE] if bootstrapped else []
            own += [YES_NO[comparison.within_rule], YES_NO[comparison.intervals_overlap]]
            rows.append((*_quantile_cells(comparison.testbed, comparison, comparison.estimate, shares), *own))
    missing = [f"{quantile.needed} values for {QUANTILES[quantile.share]}" for quantile in _missing(estimates)]
    needs = f" An interval needs {', '.join(missing)}." if missing else ""
    caption = (
        f"CIs of quantiles hold for any continuous distribution. CIs of ratios of medians need values of one mode.{needs} The "
        f"last two columns are the rules of {RULE}: means differ by at most {margin}; CIs overlap. Both ignore noise."
    )
    return readable("quantiles", "Median, upper quantiles, and the rule of thumb", caption, heads, rows, texts=2)


def _missing(estimates: Sequence[Estimate]) -> list[Quantile]:
    """Return the quantiles that no sample, or not every sample, is large enough for."""
    absent = {
        quantile.share: quantile for estimate in estimates for quantile in estimate.quantiles if quantile.interval is None
    }
    return [absent[share] for share in sorted(absent)]


def _quantile_cells(testbed: str, comparison: Comparison, estimate: Estimate, shares: Sequence[float]) -> Iterator[str]:
    scale = unit_scale(comparison.unit, [comparison.reference_estimate.mean, comparison.estimate.mean])
    of_share = {quantile.share: quantile for quantile in estimate.quantiles}
    yield from (cell_title(comparison.cell), testbed, str(estimate.n))
    for wanted in shares:
        quantile = of_share.get(wanted)
        if quantile is None or (quantile.interval is None and wanted != 0.5):
            yield NONE
            continue
        interval = quantile.interval
        width = (interval.high - interval.low) / scale.factor if interval else None
        value = f"{number(quantile.value / scale.factor, width)} {scale.unit}".rstrip()
        bounds = [number(bound / scale.factor, width) for bound in (interval.low, interval.high)] if interval else []
        yield f"{value} [{', '.join(bounds)}]" if bounds else value


def _bounds(interval: Interval | None) -> str:
    return f"[{ratio(interval.low)}, {ratio(interval.high)}]" if interval else ""


def order_table(orderings: Sequence[Ordering], by: str) -> Table:
    """Return what the order of runs did to each metric on each testbed; a star marks what is significant."""
    heads = ("Metric", column_head(by), "Runs", "First to last run", "p", "Run before", "p", "Blocks", "p")
    rows = [_order_row(ordering, drift) for ordering in orderings for drift in ordering.drifts]
    caption = (
        "Drift by the seasonal Kendall test, correlation with the run before by Bartels's, blocks by a permutation test. "
        "P-values are of each test alone; * marks what is significant and large enough to matter."
    )
    return readable("order", "Order of runs", caption, heads, rows, texts=2)


def _order_row(ordering: Ordering, drift: Drift) -> Row:
    serial = NONE if drift.correlation is None else f"{drift.correlation:+.2f}"
    blocks = f"{ordering.blocks} blocks" if ordering.p_blocks is not None else NONE
    where = ", inside cells" if drift.inside_cells else ""
    return (
        metric_title(ordering.metric, ordering.host, ordering.direction),
        drift.testbed,
        str(drift.runs),
        f"{'* ' if drift.trend else ''}{_drifted(ordering, drift)}{where}",
        p_text(drift.p_trend),
        f"{'* ' if drift.serial else ''}{serial}",
        p_text(drift.p_serial),
        f"{'* ' if ordering.blocks_differ else ''}{blocks}",
        p_text(ordering.p_blocks),
    )


def _drifted(ordering: Ordering, drift: Drift) -> str:
    if ordering.relative:
        return f"{two_digits(100 * drift.change, '+')} %"
    scale = unit_scale(ordering.unit, [drift.change])
    return f"{drift.change / scale.factor:+.3g} {scale.unit}".rstrip()
