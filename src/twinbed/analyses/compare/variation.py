"""The parts of the page beyond means: how much testbeds vary, quantiles, and what the order of runs did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from markupsafe import Markup

from twinbed.analyses.compare.order_plot import MOST_RUNS, residuals
from twinbed.analyses.compare.words import RULE, column_head, deviation, hardly_varies, varies
from twinbed.model.comparison import Comparison, Comparisons, Drift, Estimate, Ordering, Quantile
from twinbed.model.result import Interval
from twinbed.render import plots
from twinbed.render.html import html
from twinbed.show.quantities import NONE, number, ratio, share, two_digits, unit_scale
from twinbed.show.words import cell_title, heading, metric_title, p_text, times

MOST_ROWS = 1000
QUANTILES = {0.5: "Median", 0.9: "P90", 0.95: "P95", 0.99: "P99"}
ANSWERS = {True: "yes", False: "no", None: NONE}


def variation(result: Comparisons) -> Iterator[Markup]:
    """The sections, in order; none where there is nothing to say."""
    spreads = [each for each in result.comparisons if each.headline and each.spread]
    if spreads:
        yield from _spreads(spreads)
    if result.orderings:
        yield from _order(result.orderings, result.by)


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    number: bool = False
    strong: bool = False
    note: str = ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[_Cell]], caption: str) -> Markup:
    """On a phone each row becomes a list of its cells with their heads."""
    numbers = [cell.number for cell in rows[0]] if rows else [False] * len(heads)
    columns = Markup().join(
        html('<th scope="col"{}>{}</th>', _NUMBER if number else "", head) for head, number in zip(heads, numbers, strict=True)
    )
    body = Markup().join(
        html("<tr>{}</tr>", Markup().join((_drawn(cell, head) for cell, head in zip(row, heads, strict=True)))) for row in rows
    )
    return html(
        '<div class="scroll"><table class="stack"><caption>{}</caption><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>",
        caption,
        columns,
        body,
    )


_NUMBER = Markup(' class="number"')


def _drawn(cell: _Cell, head: str) -> Markup:
    text = html("<strong>{}</strong>", cell.text) if cell.strong else html("<span>{}</span>", cell.text)
    note = html('<span class="ratio">{}</span>', cell.note) if cell.note else ""
    return html('<td{} data-label="{}">{}{}</td>', _NUMBER if cell.number else "", head, text, note)


def _spreads(comparisons: Sequence[Comparison]) -> Iterator[Markup]:
    reference = comparisons[0].reference
    shown = [each for each in comparisons if each.spread and each.spread.differs]
    rest = [each for each in comparisons if each not in shown]
    yield Markup('<section id="spread"><h2>Spread: does it vary as much?</h2>')
    yield html(
        "<p>{} of {} headline comparisons are shown to vary more or less than {} "
        "from replicate to replicate. A testbed that is right in the mean may still need more replicates, or hide what varies "
        "on the real one.</p>",
        len(shown),
        len(comparisons),
        reference,
    )
    by = column_head(comparisons[0].by)
    heads = ("Metric", "Cell", by, "sd", f"sd of {reference}", "It varies", "p", "p (Brown-Forsythe)")
    family = next((each.spread.family for each in comparisons if each.spread), 1)
    caption = (
        "Standard deviations (sd) as shares of the mean; how many times as much, with the interval of that one comparison; "
        f"p-values that they are equal are corrected for {family} comparisons."
    )
    if shown:
        yield _table(heads, [_spread_row(each) for each in shown], caption)
    if rest:
        yield html(
            '<details class="print"><summary>The {} others: no difference in spread is shown</summary>',
            len(rest),
        )
        yield _table(heads, [_spread_row(each) for each in rest[:MOST_ROWS]], caption) + Markup("</details>")
    yield Markup("</section>")


def _spread_row(each: Comparison) -> list[_Cell]:
    spread = each.spread
    interval = spread.interval if spread else None
    times_text, because = NONE, ""
    if spread:
        times_text = varies(replace(spread, interval=None)).removeprefix("varies ")
        because = f"[{times(interval.low)}, {times(interval.high)}]" if interval else spread.reason if spread.ratio else ""
        if hardly := hardly_varies(each):
            times_text, because = NONE, hardly
    return [
        _Cell(metric_title(each.metric, each.host, each.direction)),
        _Cell(cell_title(each.cell)),
        _Cell(each.testbed),
        _Cell(deviation(each, each.estimate), number=True),
        _Cell(deviation(each, each.reference_estimate), number=True),
        _Cell(times_text, number=True, strong=spread is not None and spread.differs, note=because),
        _Cell(p_text(spread.p_value if spread else None), number=True),
        _Cell(p_text(spread.p_brown_forsythe if spread else None), number=True),
    ]


def other_estimates(comparisons: Sequence[Comparison]) -> Iterator[Markup]:
    """Other estimates of a headline metric: medians, upper quantiles, the bootstrap where used, the seeds' rule of thumb."""
    estimates = [estimate for each in comparisons for estimate in (each.estimate, each.reference_estimate)]
    shares = list(dict.fromkeys(each.share for estimate in estimates for each in estimate.quantiles if each.interval))
    if not any(estimate.quantiles for estimate in estimates):
        return
    first, margin = comparisons[0], share(comparisons[0].margin)
    shares = shares if 0.5 in shares else [0.5, *shares]
    bootstrapped = any(each.bootstrap_interval for each in comparisons)
    heads = ["Cell", column_head(first.by), "n", *(QUANTILES[each] for each in shares), f"Median / {first.reference}"]
    heads += [*(["Ratio by bootstrap"] if bootstrapped else []), f"Means within {margin}", "Intervals overlap"]
    rows: list[list[_Cell]] = []
    for _cell, group in groupby(comparisons, key=lambda each: cell_title(each.cell)):
        of_cell = list(group)
        blank = [_Cell(NONE, number=True)] * (1 + bootstrapped) + [_Cell(NONE)] * 2
        rows.append([*_estimate_cells(of_cell[0].reference, of_cell[0], of_cell[0].reference_estimate, shares), *blank])
        for each in of_cell:
            own = [_Cell(ratio(each.median_ratio), number=True, note=_bounds(each.median_ratio_interval))]
            own += [_Cell(_bounds(each.bootstrap_interval) or NONE, number=True)] if bootstrapped else []
            own += [_Cell(ANSWERS[each.within_rule]), _Cell(ANSWERS[each.intervals_overlap])]
            rows.append([*_estimate_cells(each.testbed, each, each.estimate, shares), *own])
    missing = [f"{each.needed} values for {QUANTILES[each.share]}" for each in _missing(estimates, shares)]
    needs = f" An interval needs {', '.join(missing)}." if missing else ""
    caption = (
        "Intervals of quantiles hold for any continuous distribution, those of ratios of medians for values of one mode."
        f"{needs} The last two columns are the rule of {RULE}, which ignores noise: means differ by no more than {margin}; and "
        "their stronger one, that the intervals of the means overlap."
    )
    yield Markup('<details class="print"><summary>Median, upper quantiles, and the rule of thumb</summary>')
    yield _table(heads, rows, caption) + Markup("</details>")


def _missing(estimates: Sequence[Estimate], shares: Sequence[float]) -> list[Quantile]:
    """The quantiles that no sample, or not every sample, is large enough for."""
    absent = {each.share: each for estimate in estimates for each in estimate.quantiles if each.interval is None}
    return [absent[share] for share in sorted(absent)]


def _estimate_cells(testbed: str, each: Comparison, estimate: Estimate, shares: Sequence[float]) -> list[_Cell]:
    scale = unit_scale(each.unit, [each.reference_estimate.mean, each.estimate.mean])
    of_share = {quantile.share: quantile for quantile in estimate.quantiles}
    cells = [_Cell(cell_title(each.cell)), _Cell(testbed), _Cell(str(estimate.n), number=True)]
    for wanted in shares:
        quantile = of_share.get(wanted)
        if quantile is None or (quantile.interval is None and wanted != 0.5):
            cells.append(_Cell(NONE, number=True))
            continue
        interval = quantile.interval
        width = (interval.high - interval.low) / scale.factor if interval else None
        low, high = (
            (number(bound / scale.factor, width) for bound in (interval.low, interval.high)) if interval else (NONE, NONE)
        )
        value = f"{number(quantile.value / scale.factor, width)} {scale.unit}".rstrip()
        cells.append(_Cell(value, number=True, note=f"[{low}, {high}]" if interval else ""))
    return cells


def _bounds(interval: Interval | None) -> str:
    return f"[{ratio(interval.low)}, {ratio(interval.high)}]" if interval else ""


def _order(orderings: Sequence[Ordering], by: str) -> Iterator[Markup]:
    yield Markup('<section id="order"><h2>Order: did anything change while it was measured?</h2>')
    yield Markup(
        "<p>Each value less the mean of its cell, in the order in which runs were made. What drifts or comes in blocks is no "
        "property of a testbed.</p>"
    )
    heads = ("Metric", column_head(by), "Runs", "First to last run", "Run before", "Blocks")
    rows = [_order_row(each, drift) for each in orderings for drift in each.drifts]
    caption = (
        "Drift by the seasonal Kendall test, correlation with the run before by Bartels's, blocks by a permutation test; "
        "p-values are corrected for the number of tests of a kind."
    )
    yield _table(heads, rows, caption)
    affected = [each for each in orderings if each.blocks_differ or any(drift.trend or drift.serial for drift in each.drifts)]
    rest = [each for each in orderings if each not in affected]
    if affected:
        yield html('<div class="plots">{}</div>', Markup().join(map(_figure, affected)))
    if rest:
        plural = "s" if len(rest) > 1 else ""
        yield html(
            "<details><summary>Residuals of {} metric{} in which no effect of order is shown</summary>",
            len(rest),
            plural,
        )
        yield html('<div class="plots">{}</div></details>', Markup().join(map(_figure, rest)))
    yield Markup("</section>")


def _order_row(each: Ordering, drift: Drift) -> list[_Cell]:
    serial = NONE if drift.correlation is None else f"{drift.correlation:+.2f}"
    blocks = f"{each.blocks} blocks" if each.p_blocks is not None else NONE
    return [
        _Cell(metric_title(each.metric, each.host, each.direction)),
        _Cell(drift.testbed),
        _Cell(str(drift.runs), number=True),
        _Cell(_change(each, drift), number=True, strong=drift.trend, note=_p(drift.p_trend) + _where(drift)),
        _Cell(serial, number=True, strong=drift.serial, note=_p(drift.p_serial)),
        _Cell(blocks, number=True, strong=each.blocks_differ, note=_p(each.p_blocks)),
    ]


def _where(drift: Drift) -> str:
    return ", inside cells" if drift.inside_cells else ""


def _p(value: float | None) -> str:
    return "" if value is None else f"p {p_text(value)}"


def _change(each: Ordering, drift: Drift) -> str:
    if each.relative:
        return f"{two_digits(100 * drift.change, '+')} %"
    scale = unit_scale(each.unit, [drift.change])
    return f"{drift.change / scale.factor:+.3g} {scale.unit}".rstrip()


def _figure(each: Ordering) -> Markup:
    title = heading(metric_title(each.metric, each.host, each.direction))
    left_out = f"; {MOST_RUNS} of {len(each.residuals)} runs are drawn" if len(each.residuals) > MOST_RUNS else ""
    caption = f"{title}: residuals in the order of runs{left_out}."
    drawn = plots.svg(residuals(each), caption, f"{title} in the order of runs")
    return html("<figure><figcaption>{}</figcaption>{}</figure>", caption, drawn)
