"""The report as one HTML page that needs nothing else: verdict first, then each layer, then why to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from twinbed.analyses.compare.section import headline_metric, layer_names, lede, method, metric_table, other_metrics, verdicts
from twinbed.analyses.compare.summary import summaries
from twinbed.analyses.compare.variation import variation
from twinbed.analyses.compare.words import nothing_compared
from twinbed.metrics.metric import Layer
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.tables import TESTBED, Tables
from twinbed.render import plots
from twinbed.render.document import document
from twinbed.render.html import html
from twinbed.render.pages import in_report
from twinbed.report import segments
from twinbed.report.files import measured_by
from twinbed.report.further import KEY as FURTHER
from twinbed.report.further import Further, further_section
from twinbed.report.pivots import Table
from twinbed.report.pivots_page import own_tables
from twinbed.report.provenance import provenance
from twinbed.show.section import Section
from twinbed.show.words import LAYERS, other_settings, place


def page(
    tables: Tables,
    result: Comparisons,
    sections: Sequence[Section] = (),
    own: Sequence[Table] = (),
    over_n: Section | None = None,
    pages: Sequence[Further] = (),
) -> Markup:
    """The whole page. ``sections`` are what analyses give to it; ``own`` the tables that the study file asks
    for; ``over_n`` how many fit; ``pages`` those of single analyses, which are linked."""
    outline = tables.outline
    reference = _reference(tables, result)
    title = f"{outline.name}: how faithful to {reference}" if reference else outline.name
    if result.by != TESTBED:
        title = f"{outline.name}: by {result.by}"
    # Of one testbed, how many fit is the verdict.
    own_sections = [section for section in sections if not section.layer]
    beginning = [verdicts(result), [in_report(over_n)] if over_n else []]
    parts = [part for each in (beginning if result.comparisons else reversed(beginning)) for part in each]
    parts += [*own_tables(own), *_layers(tables, result, sections)]
    parts += [*map(in_report, own_sections), *variation(result), *further_section(pages)]
    parts += [*provenance(tables, result), method(result)]
    body = Markup().join([_header(tables, result, own_sections, bool(own), over_n, pages), Markup("<main>"), *parts])
    return document(title, body + Markup("</main>"), "Every number can be rebuilt from the run folders beside this page.")


def _header(
    tables: Tables,
    result: Comparisons,
    sections: Sequence[Section],
    tabulates: bool,
    over_n: Section | None,
    pages: Sequence[Further],
) -> Markup:
    outline, reference = tables.outline, _reference(tables, result)
    made, planned = len(tables.records), len(tables.planned)
    runs = f"{made} of {planned} runs" if planned > made else f"{made} runs"
    if tables.other_settings:
        runs += f" ({other_settings(tables.other_settings)})"
    workload = " and ".join(measured_by(outline)) or next(
        (str(record.settings["workload"]["kind"]) for record in tables.records), ""
    )
    loads = dict.fromkeys(name for record in tables.records for name in record.settings.get("background", {}))
    facts = [
        f"workload {workload}" if workload else "",
        f"background {', '.join(loads)}" if loads else "",
        runs,
        f"reference {reference}" if reference else "",
    ]
    beginning = [("verdict", "Verdict"), *([(over_n.key, over_n.title)] if over_n else [])]
    links = [
        *(beginning if result.comparisons else reversed(beginning)),
        *([("tables", "Tables")] if tabulates else []),
        *((f"layer-{layer}", LAYERS.get(layer, layer).split(":")[0]) for layer in layer_names(result)),
    ]
    links += [(section.key, section.title) for section in sections]
    links += [("spread", "Spread")] if any(each.headline and each.spread for each in result.comparisons) else []
    links += [("order", "Order")] if result.orderings else []
    links += [(FURTHER, "Further pages")] if pages else []
    links += [
        ("cautions", f"Cautions ({len({each.kind for each in result.cautions})})"),
        ("testbeds", "Testbeds"),
        ("runs", "Runs"),
        *([("files", "Files")] if measured_by(outline) else []),
    ]
    links += [("repeat", "Repeat it"), ("method", "How to read this")]
    nav = Markup().join(html('<a href="#{}">{}</a>', target, text) for target, text in links)
    return html(
        '<header><p class="kicker">{}</p><h1>{}</h1><p class="lede">{}</p><nav aria-label="Sections">{}</nav></header>',
        " · ".join(fact for fact in facts if fact),
        outline.name,
        _lede(result, reference, over_n),
        nav,
    )


def _reference(tables: Tables, result: Comparisons) -> str | None:
    """What is held against: the study's testbed where nothing is compared."""
    return next((each.reference for each in result.comparisons), tables.outline.reference)


def _lede(result: Comparisons, reference: str | None, over_n: Section | None) -> str:
    """How many fit, where that is the one thing to say; and the verdicts, where testbeds are compared."""
    parts = [over_n.sentence] if over_n and over_n.sentence else []
    sentences = summaries(result)
    if sentences:
        parts.append(lede(sentences, reference))
    return " ".join(parts) or f"There is nothing to compare: {nothing_compared(result)}."


def _layers(tables: Tables, result: Comparisons, sections: Sequence[Section]) -> Iterator[Markup]:
    for layer in layer_names(result):
        of_layer = [each for each in result.comparisons if each.layer == layer]
        yield html('<section id="layer-{}"><h2>{}</h2>', layer, LAYERS.get(layer, layer))
        for _key, group in groupby(
            (each for each in of_layer if each.headline), key=lambda each: (each.metric, each.host, each.direction)
        ):
            yield from headline_metric(list(group), result.pooled)
        yield from (in_report(section) for section in sections if section.layer == layer)
        if layer == Layer.NETWORK:
            yield from _segment_sizes(tables, of_layer)
        yield from other_metrics([each for each in of_layer if not each.headline])
        yield Markup("</section>")


def _segment_sizes(tables: Tables, comparisons: Sequence[Comparison]) -> Iterator[Markup]:
    """How payload was cut into segments each way, with the verdict on their mean."""
    for direction, sizes in segments.segment_sizes(tables).items():
        title = f"Segment sizes ({place('', direction)})"
        yield html("<h3>{}</h3>", title)
        means = [each for each in comparisons if (each.metric, each.host, each.direction) == (segments.MEAN, "", direction)]
        if means:
            yield metric_table(means)
        caption = "Segments by payload, as captured on the clients' links: a disc's area is the share of a testbed's segments."
        drawn = plots.svg(segments.plot(sizes, tables.outline.testbeds), f"{title}: {caption}", title)
        yield html('<div class="plots"><figure><figcaption>{}</figcaption>{}</figure></div>', caption, drawn)
