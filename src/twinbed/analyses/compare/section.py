"""What a page shows of comparisons: the verdicts, each layer's metrics, and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from markupsafe import Markup

from twinbed.analyses.compare import exclusion
from twinbed.analyses.compare.estimate_tables import measured
from twinbed.analyses.compare.forest import MOST, drawable
from twinbed.analyses.compare.grid import grid, spread
from twinbed.analyses.compare.plots import cells_left_out, distribution, forest, ratios, values
from twinbed.analyses.compare.summary import Summary, summaries
from twinbed.analyses.compare.variation import other_estimates
from twinbed.analyses.compare.words import (
    SYMBOLS,
    disagreement,
    emulated,
    explanation,
    finding,
    held,
    pooled_text,
    varies_finding,
)
from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparison, Comparisons, Estimate, Pooled
from twinbed.model.result import Verdict
from twinbed.render import plots
from twinbed.render.html import html
from twinbed.show.quantities import UnitScale, number, ratio, share, unit_scale
from twinbed.show.words import cell_title, heading, interim_sentence, metric_name, metric_title, place

MOST_ROWS = 4000
"""Rows of the table of other metrics in a layer; a page that takes seconds to open is not read."""


MOST_FINDINGS = 6


EFFECT_CAPTIONS = {
    "difference": "Mean ± {interval} interval, standard deviation (sd), and the difference from {reference} with its interval.",
    "cliffs_delta": "Median, and Cliff's delta against {reference} with its interval: pairs above less pairs below.",
    "total_variation": "The commonest value, and the total variation (TV) from {reference}: half the differences of shares.",
}


def verdict_mark(verdict: Verdict, text: str | None = None) -> Markup:
    return html(
        '<span class="verdict {}"><span aria-hidden="true">{}</span> {}</span>',
        verdict,
        SYMBOLS[verdict],
        text or verdict,
    )


def lede(summaries_of: Sequence[Summary], reference: str | None) -> str:
    """The verdict on all testbeds in one or two sentences."""
    margin = share(summaries_of[0].margin)
    texts = {
        Verdict.EQUIVALENT: "{} equivalent to {} within {} in everything compared.",
        Verdict.DIFFERENT: "{} not: at least one headline metric is off by more than {}.",
        Verdict.INCONCLUSIVE: "{} undecided: nothing is shown to be off by more than {}, but not all is shown to be within it.",
    }
    parts = []
    for verdict in (Verdict.EQUIVALENT, Verdict.DIFFERENT, Verdict.INCONCLUSIVE):
        names = [each.testbed for each in summaries_of if each.verdict is verdict]
        if names:
            who = f"{listed(names)} {'is' if len(names) == 1 else 'are'}"
            parts.append(texts[verdict].format(who, *([reference, margin] if verdict is Verdict.EQUIVALENT else [margin])))
    if not any(each.verdict is Verdict.EQUIVALENT for each in summaries_of):
        parts[0] = parts[0].replace(" not:", f" not equivalent to {reference}:", 1)
    return " ".join(parts)


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def verdicts(result: Comparisons) -> Iterator[Markup]:
    yield Markup('<section id="verdict"><h2>Verdict</h2>')
    if banner := emulated(result):
        yield html('<p class="banner" role="note">{}</p>', banner)
    on_emulator = {each.subject for each in result.cautions if each.kind is Kind.SOFTWARE_CPU}
    if result.cautions:
        kinds = len({each.kind for each in result.cautions})
        yield html('<p>Read it with the <a href="#cautions">{} caution{}</a>.</p>', kinds, "s" if kinds > 1 else "")
    if result.about:
        yield html("<p>{}</p>", result.about)
    if result.interim:
        yield html("<p>{}</p>", interim_sentence(result.interim))
    if not result.comparisons:
        yield from _measured(result)
    headlines = [each for each in result.comparisons if each.headline]
    if shown := drawable(headlines):
        first = shown[0]
        caption = (
            f"All headline ratios to {first.reference} with their intervals; the band is the margin, {share(first.margin)}."
        )
        more = f" The first {MOST} of {len(shown)}." if len(shown) > MOST else ""
        drawn = plots.svg(forest(headlines), f"{caption} The tables below have the numbers.", "all headline ratios")
        yield html('<figure class="forest"><figcaption>{}</figcaption>{}</figure>', caption + more, drawn)
    yield from exclusion.paragraphs(result)
    yield Markup('<div class="cards">')
    for summary in summaries(result):
        yield html(
            '<article class="card {}"><h3>{} {}</h3>',
            summary.verdict,
            summary.testbed,
            verdict_mark(summary.verdict),
        )
        if on_emulator & {summary.testbed, summary.reference}:
            yield Markup('<p class="emulated">on an emulated CPU</p>')
        yield html("<p>{}</p>", summary.sentence)
        yield from _findings("Differs", sorted(summary.different, key=_size, reverse=True), finding)
        yield from _findings("Undecided", summary.inconclusive, lambda each: f"{finding(each)}: {explanation(each)}")
        yield from _findings("Equivalent", summary.equivalent, finding)
        if summary.spread:
            yield html("<p>{}</p>", summary.spread_sentence)
            yield from _findings("Spread", summary.spread, varies_finding)
        if summary.advice:
            yield (
                Markup('<div class="do"><h4>What to do</h4>')
                + Markup().join(html("<p>{}</p>", text) for text in summary.advice)
                + Markup("</div>")
            )
        yield Markup("</article>")
    yield Markup("</div></section>")


def _measured(result: Comparisons) -> Iterator[Markup]:
    if headlines := [each for each in result.estimates if each.headline and each.estimate.values][:MOST]:
        caption = "Every replicate of each headline metric; tick: the mean; bar: its interval, cut at the edge."
        drawn = plots.svg(values(headlines), f"{caption} The tables below have the numbers.", "all headline values")
        yield html('<figure class="forest"><figcaption>{}</figcaption>{}</figure>', caption, drawn)
    for metric in measured(result):
        rows = Markup().join(
            html('<tr><th scope="row">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>', cell, testbed, text, count)
            for cell, testbed, text, count in metric.rows
        )
        heads = Markup().join(html('<th scope="col">{}</th>', head) for head in ("Cell", "Testbed", "Mean ± interval", "n"))
        yield html('<h3>{}</h3><div class="scroll"><table><thead><tr>{}</tr></thead>', heading(metric.metric), heads)
        yield html("<tbody>{}</tbody></table></div>", rows)


def _size(each: Comparison) -> float:
    return max(each.ratio, 1 / each.ratio) if each.ratio else float("inf")


def _findings(title: str, comparisons: Sequence[Comparison], say: Callable[[Comparison], str]) -> Iterator[Markup]:
    if not comparisons:
        return
    items = Markup().join(html("<li>{}</li>", say(each)) for each in comparisons[:MOST_FINDINGS])
    rest = len(comparisons) - MOST_FINDINGS
    yield (
        html("<h4>{}</h4><ul>{}", title, items)
        + (html("<li>and {} more below</li>", rest) if rest > 0 else "")
        + Markup("</ul>")
    )


def layer_names(result: Comparisons) -> list[str]:
    return list(dict.fromkeys(each.layer for each in result.comparisons))


Place = tuple[str, str, str]


def _place(each: Comparison) -> Place:
    return each.metric, each.host, each.direction


def headline_metric(comparisons: Sequence[Comparison], pooled: Sequence[Pooled]) -> Iterator[Markup]:
    first = comparisons[0]
    title = metric_title(*_place(first))
    yield html("<h3>{}</h3>", heading(title))
    yield metric_table(comparisons, [each for each in pooled if (each.metric, each.host, each.direction) == _place(first)])
    left_out = cells_left_out(comparisons)
    yield Markup('<div class="plots">')
    means = any(estimate.mean is not None for each in comparisons for estimate in (each.estimate, each.reference_estimate))
    every_replicate = "Every replicate; tick: the mean; bar: its interval, cut at the edge." if means else "Every replicate."
    drawings = [(distribution(comparisons), every_replicate, "values")]
    if any(each.ratio is not None for each in comparisons):
        caption = f"Ratio to {first.reference} with its intervals; the band is the margin."
        drawings.append((ratios(comparisons), caption, f"ratio to {first.reference}"))
    for spec, caption, name in drawings:
        drawn = plots.svg(spec, f"{title}: {caption} The table above has the numbers.", f"{title} {name}")
        yield html("<figure><figcaption>{}</figcaption>{}</figure>", caption, drawn)
    yield Markup("</div>")
    if left_out:
        yield html('<p class="note">{} more cells are in the table only.</p>', left_out)
    yield from other_estimates(comparisons)


def metric_table(comparisons: Sequence[Comparison], pooled: Sequence[Pooled] = ()) -> Markup:
    """As the field prints it: a row a cell, a column a testbed; last the ratio over all cells."""
    table = grid(comparisons)
    names = (f"{table.reference} (reference)", *table.testbeds)
    head = Markup().join(html('<th scope="col" class="number">{}</th>', name) for name in names)
    rows = []
    for row in table.rows:
        one = next(each for each in row.comparisons if each is not None)
        cells = [
            html(
                '<td class="number" data-label="{}">{}</td>',
                names[0],
                _mean(row.reference, one.reference_estimate, row.scale),
            )
        ]
        cells += [_compared(each, mean, row.scale) for each, mean in zip(row.comparisons, row.means, strict=True)]
        rows.append(html('<tr><th scope="row">{}</th>{}</tr>', row.cell, Markup().join(cells)))
    if pooled:
        of = {each.testbed: (pooled_text(each), disagreement(each)) for each in pooled}
        texts = [
            html('<td class="number" data-label="{}">{}<span class="ratio">{}</span></td>', name, *of.get(name, ("", "")))
            for name in table.testbeds
        ]
        title = f"All {max(each.cells for each in pooled)} cells, geometric mean"
        rows.append(html('<tr class="all"><th scope="row">{}</th><td></td>{}</tr>', title, Markup().join(texts)))
    level = next((each.estimate.interval.level for each in comparisons if each.estimate.interval), 0.95)
    interval = share(round(level, 4))
    caption = (
        "Mean (geometric where all values are positive) with its {interval} interval, standard deviation (sd), and the ratio "
        "to {reference} with its interval."
    )
    effect = next((each.effect.name for each in comparisons if each.effect), "")
    caption = EFFECT_CAPTIONS.get(effect, caption).format(interval=interval, reference=table.reference)
    return html(
        '<div class="scroll"><table class="stack"><caption>{}</caption>'
        '<thead><tr><th scope="col">Cell</th>{}</tr></thead><tbody>{}</tbody></table></div>',
        caption,
        head,
        Markup().join(rows),
    )


def _mean(text: str, estimate: Estimate, scale: UnitScale) -> Markup:
    return html('<span>{}</span><span class="ratio">{}</span>', text, spread(estimate, scale))


def _compared(each: Comparison | None, mean: str, scale: UnitScale) -> Markup:
    if each is None:
        return Markup("<td></td>")
    return html(
        '<td class="number" data-label="{}">{}<span class="ratio">{}</span><span title="{}">{}</span></td>',
        each.testbed,
        _mean(mean, each.estimate, scale),
        held(each),
        explanation(each),
        verdict_mark(each.verdict),
    )


def other_metrics(comparisons: Sequence[Comparison]) -> Iterator[Markup]:
    if not comparisons:
        return
    head = ("metric", "where", "cell", comparisons[0].by, "mean", "reference", "ratio", "verdict")
    columns = Markup().join(html('<th scope="col">{}</th>', name) for name in head)
    yield html("<details><summary>All other metrics of this layer ({} comparisons)</summary>", len(comparisons))
    yield Markup(
        '<div class="scroll"><table class="sortable"><caption>Not headline metrics; corrected for their own number.</caption>'
    )
    yield html("<thead><tr>{}</tr></thead><tbody>", columns)
    yield from (_other(each) for each in comparisons[:MOST_ROWS])
    yield Markup("</tbody></table></div>")
    if len(comparisons) > MOST_ROWS:
        yield html('<p class="note">The first {}; <code>twinbed report --csv</code> writes all.</p>', MOST_ROWS)
    yield Markup("</details>")


def _other(each: Comparison) -> Markup:
    scale = unit_scale(each.unit, [each.estimate.mean, each.reference_estimate.mean])

    def mean(estimate: Estimate) -> Markup:
        if estimate.mean is None:
            return Markup('<td class="number" data-value="">no values</td>')
        own = estimate.centre_interval
        half = (own.high - own.low) / 2 / scale.factor if own else None
        text = f"{number((estimate.centre or 0.0) / scale.factor, half)} {scale.unit}".rstrip()
        return html('<td class="number" data-value="{}">{}</td>', estimate.centre, text)

    texts: Iterable[str] = (metric_name(each.metric), place(each.host, each.direction), cell_title(each.cell), each.testbed)
    value = "" if each.ratio is None else each.ratio
    return html(
        '<tr>{}{}{}<td class="number" data-value="{}">{}</td><td>{}</td></tr>',
        Markup().join(html("<td>{}</td>", text) for text in texts),
        mean(each.estimate),
        mean(each.reference_estimate),
        value,
        held(each),
        verdict_mark(each.verdict),
    )


def _design(comparisons: Sequence[Comparison]) -> str:
    """How means are compared, which the study says beforehand."""
    of_sessions = "sessions" if any(each.sessions for each in comparisons) else "blocks"
    pairs = [each.paired for each in comparisons if each.method]
    if pairs and all(pairs):
        return f"of the differences within {of_sessions}"
    if any(pairs):
        return f"of the differences within {of_sessions} where these are complete, else Welch's"
    return "Welch's, of means of sessions" if any(each.sessions for each in comparisons) else "Welch's, of independent runs"


def method(result: Comparisons) -> Markup:
    first = next(iter(result.comparisons), None)
    margin = first.margin if first else 0.1
    level = first.ratio_interval.level if first and first.ratio_interval else 0.9
    alpha = share(round((1 - level) / 2, 4))
    between, wrong = f"{ratio(1 / (1 + margin))} and {ratio(1 + margin)}", f"at most {alpha}"
    meanings = [
        (Verdict.EQUIVALENT, f"the ratio is shown to lie between {between}; wrong {wrong} of the time"),
        (
            Verdict.DIFFERENT,
            f"the ratio is shown not to lie between {between}; the chance that any of these claims about headline metrics is "
            f"wrong is {wrong} (about all other metrics together: as much again; intervals hold one by one)",
        ),
        (
            Verdict.INCONCLUSIVE,
            "neither is shown; the reason is given, and the replicates that would decide where that is known",
        ),
    ]
    items = Markup().join(html("<dt>{}</dt><dd>{}</dd>", verdict_mark(verdict), text) for verdict, text in meanings)
    return html(
        '<section id="method"><h2>How to read this</h2><dl>{}</dl>'
        "<p>Ratios are of geometric means (t on logarithms, {}; Fieller's interval where a value is 0). Equivalence is "
        "decided by two one-sided tests (Schuirmann 1987), difference by a two-sided test with Holm's correction over all "
        "headline comparisons. On an interval scale differences of means are compared, at a margin in the metric's unit; on an "
        "ordinal one Cliff's delta; of names the total variation. Spreads are compared by Bonett's test with Holm's "
        "correction, which agrees with the intervals of their ratio; Brown and Forsythe's test stands beside. Runs without "
        "values are left out, never counted as 0.</p>"
        "</section>",
        items,
        _design(result.comparisons),
    )
