"""The parts of the page beyond means: how much testbeds vary, quantiles, and what the order of runs did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from twinbed.model.result import Comparison, Drift, Estimate, Interval, Ordering, Result
from twinbed.report import plots
from twinbed.report.order_plot import MOST_RUNS, residuals
from twinbed.report.quantities import NONE, number, ratio, relative_deviation, scaling, share
from twinbed.report.words import RULE, cell_title, heading, metric_title, p_text, varies

MOST_ROWS = 1000
ANSWERS = {True: "yes", False: "no", None: NONE}


def variation(result: Result) -> Iterator[str]:
    """The sections, in order; none where there is nothing to say."""
    found = [each for each in result.comparisons if each.headline and each.spread]
    if found:
        yield from _spreads(found)
    if result.orderings:
        yield from _order(result.orderings)


def _table(heads: Sequence[str], rows: Sequence[str], caption: str, kind: str = "") -> str:
    columns = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    name = f' class="{kind}"' if kind else ""
    return (
        f'<div class="scroll"><table{name}><caption>{escape(caption)}</caption><thead><tr>{columns}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cells(texts: Sequence[str]) -> str:
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


def _spreads(comparisons: Sequence[Comparison]) -> Iterator[str]:
    reference = comparisons[0].reference
    shown = [each for each in comparisons if each.spread and each.spread.differs]
    rest = [each for each in comparisons if each not in shown]
    yield '<section id="spread"><h2>Spread: does it vary as much?</h2>'
    yield (
        f"<p>{len(shown)} of {len(comparisons)} headline comparisons are shown to vary more or less than {escape(reference)} "
        "from replicate to replicate. A testbed that is right in the mean may still need more replicates, or hide what varies "
        "on the real one.</p>"
    )
    heads = ("Metric", "Cell", "Testbed", "sd", f"sd of {reference}", "How many times", "p (Holm)")
    caption = "Standard deviations (sd) as shares of the mean; how many times as much, with its 95 % interval."
    if shown:
        yield _table(heads, [_spread_row(each) for each in shown], caption)
    if rest:
        yield f'<details class="print"><summary>The {len(rest)} others: no difference in spread is shown</summary>'
        yield _table(heads, [_spread_row(each) for each in rest[:MOST_ROWS]], caption, "sortable") + "</details>"
    yield "</section>"


def _spread_row(each: Comparison) -> str:
    found = each.spread
    if found is None:
        return ""
    texts = (metric_title(each.metric, each.host, each.direction), cell_title(each.cell), each.testbed)
    said = f"<strong>{escape(varies(found))}</strong>" if found.differs else escape(varies(found))
    own, reference = relative_deviation(each.estimate), relative_deviation(each.reference_estimate)
    numbers = f'<td class="number">{own}</td><td class="number">{reference}</td>'
    value = "" if found.ratio is None else found.ratio
    because = f' <span class="note">{escape(found.reason)}</span>' if found.reason and found.ratio else ""
    return (
        f'<tr>{_cells(texts)}{numbers}<td data-value="{value}">{said}{because}</td>'
        f'<td class="number">{p_text(found.p_value)}</td></tr>'
    )


def other_estimates(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Of one headline metric: medians, upper quantiles, the bootstrap where it was used, and the seeds' rule of thumb."""
    if not any(each.estimate.quantiles for each in comparisons):
        return
    first = comparisons[0]
    margin = share(first.margin)
    heads = ["Cell", "Testbed", "n", "Median", "P90", "P95", "P99", f"Median / {first.reference}"]
    bootstrapped = any(each.bootstrap_interval for each in comparisons)
    heads += [*(["Ratio by bootstrap"] if bootstrapped else []), f"Means within {margin}", "Intervals overlap"]
    rows, seen = [], set()
    for each in comparisons:
        cell = cell_title(each.cell)
        if cell not in seen:
            seen.add(cell)
            blank = [NONE] * (3 + bootstrapped)
            rows.append(_estimate_row(cell, each.reference, each, each.reference_estimate, blank))
        own = [f"{ratio(each.median_ratio)}{_bounds(each.median_ratio_interval)}"]
        own += [_bounds(each.bootstrap_interval).strip() or NONE] if bootstrapped else []
        own += [ANSWERS[each.within_rule], ANSWERS[each.intervals_overlap]]
        rows.append(_estimate_row(cell, each.testbed, each, each.estimate, own))
    caption = (
        f"Intervals hold for any distribution. The last two columns are the rule of {RULE}, which ignores noise: means differ by "
        f"no more than {margin}; and their stronger one, that the intervals of the means overlap."
    )
    yield '<details class="print"><summary>Median, upper quantiles, and the rule of thumb</summary>'
    yield _table(heads, rows, caption) + "</details>"


def _estimate_row(cell: str, testbed: str, each: Comparison, found: Estimate, rest: Sequence[str]) -> str:
    scale = scaling(each.unit, [each.reference_estimate.mean, each.estimate.mean])
    quantiles = []
    for quantile in found.quantiles:
        interval = quantile.interval
        if interval is None and quantile.share != 0.5:
            quantiles.append(f"needs n = {quantile.needed}")
            continue
        width = (interval.high - interval.low) / scale.factor if interval else None
        bounds = (
            f" [{number(interval.low / scale.factor, width)}, {number(interval.high / scale.factor, width)}]"
            if interval
            else f" (interval: n = {quantile.needed})"
        )
        quantiles.append(f"{number(quantile.value / scale.factor, width)}{bounds} {scale.unit}".rstrip())
    quantiles += [NONE] * (4 - len(quantiles))
    return f"<tr>{_cells([cell, testbed, str(found.n), *quantiles, *rest])}</tr>"


def _bounds(found: Interval | None) -> str:
    return f" [{ratio(found.low)}, {ratio(found.high)}]" if found else ""


def _order(orderings: Sequence[Ordering]) -> Iterator[str]:
    yield '<section id="order"><h2>Order: did anything change while it was measured?</h2>'
    yield (
        "<p>Each value less the mean of its cell, in the order in which runs were made. What drifts or comes in blocks is no "
        "property of a testbed.</p>"
    )
    heads = (
        "Metric",
        "Testbed",
        "Runs",
        "First to last run",
        "p (Holm)",
        "With the run before",
        "p (Holm)",
        "Blocks, p (Holm)",
    )
    rows = [_order_row(each, drift) for each in orderings for drift in each.drifts]
    caption = "Drift by the seasonal Kendall test; correlation of neighbouring runs by Bartels's; blocks by Friedman's."
    yield _table(heads, rows, caption)
    told = [each for each in orderings if each.blocks_differ or any(drift.trend or drift.serial for drift in each.drifts)]
    rest = [each for each in orderings if each not in told]
    if told:
        yield f'<div class="plots">{"".join(map(_figure, told))}</div>'
    if rest:
        plural = "s" if len(rest) > 1 else ""
        yield f"<details><summary>Residuals of {len(rest)} metric{plural} in which no effect of order is shown</summary>"
        yield f'<div class="plots">{"".join(map(_figure, rest))}</div></details>'
    yield "</section>"


def _order_row(each: Ordering, drift: Drift) -> str:
    change = _change(each, drift)
    serial = NONE if drift.correlation is None else f"{drift.correlation:+.2f}"
    texts = (metric_title(each.metric, each.host, each.direction), drift.testbed, str(drift.runs))
    numbers = (
        _marked(change, drift.trend),
        _marked(p_text(drift.p_trend), drift.trend),
        _marked(serial, drift.serial),
        _marked(p_text(drift.p_serial), drift.serial),
        _marked(p_text(each.p_blocks), each.blocks_differ),
    )
    return f"<tr>{_cells(texts)}{''.join(numbers)}</tr>"


def _marked(text: str, shown: bool) -> str:
    return f'<td class="number"><strong>{escape(text)}</strong></td>' if shown else f'<td class="number">{escape(text)}</td>'


def _change(each: Ordering, drift: Drift) -> str:
    if each.relative:
        return f"{100 * drift.change:+.2g} %"
    scale = scaling(each.unit, [drift.change])
    return f"{drift.change / scale.factor:+.3g} {scale.unit}".rstrip()


def _figure(each: Ordering) -> str:
    title = heading(metric_title(each.metric, each.host, each.direction))
    left_out = f"; {MOST_RUNS} of {len(each.residuals)} runs are drawn" if len(each.residuals) > MOST_RUNS else ""
    caption = f"{title}: residuals in the order of runs{left_out}."
    return f"<figure><figcaption>{escape(caption)}</figcaption>{plots.svg(residuals(each), caption)}</figure>"
