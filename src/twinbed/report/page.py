"""Write the report as one HTML page that needs nothing else: the answer first, then each layer, then why to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from markupsafe import Markup

from twinbed import registry
from twinbed.analyses.compare.ranked import ranked, summed
from twinbed.analyses.compare.section import (
    cautions_section,
    layer_sections,
    lede,
    method_section,
    order_section,
    spread_section,
    verdict_section,
)
from twinbed.analyses.compare.tables import verdict_table
from twinbed.metrics.metric import Layer
from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparisons
from twinbed.model.tables import TESTBED, Tables
from twinbed.render.document import document
from twinbed.render.html import html
from twinbed.render.pages import contents, in_report
from twinbed.report import segments
from twinbed.report.files import measured_by
from twinbed.report.further import KEY as FURTHER
from twinbed.report.further import Further, further_section
from twinbed.report.pivots import Table
from twinbed.report.pivots_page import own_tables
from twinbed.report.provenance import provenance
from twinbed.show.figure import Figure
from twinbed.show.quantities import share
from twinbed.show.section import Item, Section
from twinbed.show.words import other_settings, place


def page(
    tables: Tables,
    result: Comparisons,
    sections: Sequence[Section] = (),
    own: Sequence[Table] = (),
    over_n: Section | None = None,
    pages: Sequence[Further] = (),
    *,
    whole: bool = False,
) -> Markup:
    """Return the whole page. ``sections`` are what analyses give to it; ``own`` the tables that the study file asks for;
    ``over_n`` how many fit; ``pages`` those of single analyses, which are linked; ``whole``: with every detail."""
    outline, reference = tables.outline, _reference(tables, result)
    title = f"{outline.name}: how faithful to {reference}" if reference else outline.name
    if result.by != TESTBED:
        title = f"{outline.name}: by {result.by}"
    shortened = (lambda section: section) if whole else in_short
    sections = [shortened(section) for section in sections]
    own_sections = [section for section in sections if not section.layer]
    verdict = replace(verdict_section(result), sentence="")
    # With one testbed, how many fit is the verdict.
    beginning = [verdict, *([replace(over_n, folded=bool(result.comparisons))] if over_n else [])]
    first = beginning if result.comparisons else beginning[::-1]
    shown = [*first, cautions_section(result)]
    folded = [*_layers(tables, result, sections, whole=whole), *own_sections]
    folded += [shortened(section) for section in (spread_section(result), order_section(result)) if section]
    links = [
        *((section.key, section.title) for section in shown),
        *([("tables", "Tables")] if own else []),
        *((section.key, section.title.partition(":")[0]) for section in folded),
        *([(FURTHER, "Further pages")] if pages else []),
        *(("testbeds", "Testbeds"), ("runs", "Runs")),
        *([("files", "Files")] if measured_by(outline) else []),
        *(("repeat", "Repeat it"), ("method", "How to read this")),
    ]
    parts = [
        *map(in_report, shown),
        *own_tables(own),
        *(in_report(replace(section, folded=True)) for section in folded),
        *further_section(pages),
        *provenance(tables),
        in_report(method_section(result)),
    ]
    header = html(
        '<header><p class="kicker">{}</p><h1>{}</h1>{}{}{}</header>',
        f"How faithful is it to {reference}?" if reference and result.by == TESTBED else "What changes between its levels?",
        outline.name,
        Markup().join(html('<p class="lede">{}</p>', text) for text in _lede(result, over_n)),
        html('<dl class="conditions">{}</dl>', _conditions(tables, result)),
        _doubt(result),
    )
    body = html('{}<div class="columns">{}<main>{}</main></div>', header, contents(links), Markup().join(parts))
    return document(title, body, "Every number can be rebuilt from the run folders next to this page.")


MORE = {
    "order": "Figures of all metrics: twinbed export RESULTS --figures",
    "spread": "Every comparison: twinbed report RESULTS --csv",
}
"""Section -> the command that shows its details, for sections that no command has a page for."""


def in_short(section: Section) -> Section:
    """Return what a report shows of an analysis: without what its own page has folded away, and says where that is. A report of
    everything takes megabytes, and is not read."""
    kept = tuple(item for item in section.items if not isinstance(item, Section) or not _is_detail(item))
    if len(kept) == len(section.items):
        return section
    name = section.key.partition("-")[0]
    command = registry.analysis_command(name)
    more = MORE.get(name) or (f"Every detail: twinbed {command} RESULTS --html" if command else "")
    return replace(section, items=kept, notes=(*section.notes, *filter(None, [more])))


def _is_detail(section: Section) -> bool:
    """Return whether an inner section is folded away, or holds what is."""
    return bool(section.folded and not section.on_paper) or any(
        isinstance(item, Section) and _is_detail(item) for item in section.items
    )


def _doubt(result: Comparisons) -> Markup:
    """Return one line on the cautions, which the first screen shows."""
    worst = ranked(result, [comparison for comparison in result.comparisons if comparison.headline])
    return html('<p class="doubt"><a href="#cautions">Cautions</a>: {}.</p>', summed(worst)) if worst else Markup()


def _lede(result: Comparisons, over_n: Section | None) -> Iterator[str]:
    """Yield how many fit, where that is the one thing to say; and the conclusion, where testbeds are compared."""
    yield from [over_n.sentence] if over_n and over_n.sentence else []
    if result.comparisons or not (over_n and over_n.sentence):
        yield from lede(result)


def _conditions(tables: Tables, result: Comparisons) -> Markup:
    """Return what the answer holds for: workload, machine, runs, margin, when."""
    outline, reference = tables.outline, _reference(tables, result)
    made, planned = len(tables.records), len(tables.planned)
    runs = f"{made} of {planned}" if planned > made else str(made)
    if tables.other_settings:
        runs += f" ({other_settings(tables.other_settings)})"
    workload = " and ".join(measured_by(outline)) or next(
        (str(record.settings["workload"]["kind"]) for record in tables.records), ""
    )
    loads = dict.fromkeys(name for record in tables.records for name in record.settings.get("background", {}))
    is_emulated = any(caution.kind is Kind.SOFTWARE_CPU for caution in result.cautions)
    times = [record.started_s for record in tables.records]
    replicates = sorted({comparison.runs for comparison in result.comparisons if comparison.headline})
    margin = next((comparison.margin for comparison in result.comparisons), outline.margin)
    facts = [
        ("Workload", workload),
        ("Background", ", ".join(loads)),
        ("Reference", reference),
        ("Accelerator", "TCG: the CPU of guests is emulated" if is_emulated else ""),
        ("Runs", runs),
        ("Replicates", "-".join(map(str, dict.fromkeys((replicates[0], replicates[-1])))) if replicates else ""),
        ("Margin", share(margin)),
        ("Measured", f"{datetime.fromtimestamp(min(times), UTC):%F}" if times else ""),
    ]
    return Markup().join(html("<div><dt>{}</dt><dd>{}</dd></div>", name, text) for name, text in facts if text)


def _reference(tables: Tables, result: Comparisons) -> str | None:
    """Return what the others are compared with: the study's reference where nothing is compared."""
    return next((comparison.reference for comparison in result.comparisons), tables.outline.reference)


def _layers(tables: Tables, result: Comparisons, sections: Sequence[Section], *, whole: bool) -> Iterator[Section]:
    """Yield the layers, each with what analyses give to it."""
    for section in layer_sections(result, whole=whole):
        layer = section.key.removeprefix("layer-")
        given = [replace(part, layer="") for part in sections if part.layer == layer]
        segmented = [*_segment_sizes(tables, result)] if layer == Layer.NETWORK else []
        yield replace(section, items=(*section.items, *given, *segmented))


def _segment_sizes(tables: Tables, result: Comparisons) -> Iterator[Section]:
    """Yield how payload was cut into segments each way, with the verdict on their mean."""
    for direction, sizes in segments.segment_sizes(tables).items():
        title = f"Segment sizes ({place('', direction)})"
        means = [
            comparison
            for comparison in result.comparisons
            if (comparison.metric, comparison.host, comparison.direction) == (segments.MEAN, "", direction)
            and comparison.layer == Layer.NETWORK
        ]
        caption = "Segments by payload, as captured on the clients' links: a disc's area is the share of a testbed's segments."
        plot = segments.plot(sizes, tables.outline.testbeds)
        figure = Figure(title, spec=lambda plot=plot: plot, caption=caption)  # type: ignore[misc]
        items: tuple[Item, ...] = (*([verdict_table(title, means)] if means else []), figure)
        yield Section("", title, items=items)
