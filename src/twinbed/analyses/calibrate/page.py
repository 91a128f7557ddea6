"""A calibration as a section: what it says, curves, what was left out, the numbers, and what it is tied to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from twinbed.analyses.calibrate.plot import curves_plot, kinds, left_out_plot, ratios_plot
from twinbed.analyses.calibrate.result import Calibrated, Calibrations, Held, Place
from twinbed.analyses.calibrate.seed import seed_table
from twinbed.analyses.calibrate.words import NAMED, sentences
from twinbed.contracts.analysis import Part, Section
from twinbed.model.run import level_text
from twinbed.render import plots
from twinbed.render.html import html, notes
from twinbed.render.tabular import Tabular
from twinbed.show.numbers import bounds, figure
from twinbed.show.quantities import unit_scale
from twinbed.show.words import cell_title, heading

MOST_LINES = 5
"""Kinds in one picture."""
MOST_FIGURES = 8
"""Kinds, such as numbers of threads, that are drawn of each response."""


def section(found: Calibrations) -> Section:
    """Each response, and what the calibration is tied to."""
    parts = tuple(
        Part(each.response, f"tab-{_anchor(each)}", _title(each), " ".join(_sentences(found, each)), _table(found, each))
        for each in found.each
    )
    said = [line.strip() for line in sentences(found, found.each[0])]
    return Section(
        "calibration",
        "Calibration",
        lambda: Markup().join((*(_response(found, each) for each in found.each), _tied(found))),
        parts,
        lede=f"{heading(said[2])}. {heading(said[3])}.",
        kicker=f"from {found.cheap} to {found.dear}",
    )


def _title(each: Calibrated) -> str:
    return heading(f"{each.title}{f', {cell_title(each.fitted.levels)}' if each.fitted.levels else ''}")


def _anchor(each: Calibrated) -> str:
    return f"calibration-{each.response.replace('@', '-')}"


def _sentences(found: Calibrations, each: Calibrated) -> list[str]:
    return [f"{heading(line.strip())}." for line in list(sentences(found, each))[1:]]


def _response(found: Calibrations, each: Calibrated) -> Markup:
    """One response."""
    drawn = Markup().join(_figures(found, each))
    held = [one for one in each.held if not one.is_outside]
    return html(
        '<section id="{}"><h2>{}</h2>{}<div class="plots">{}{}</div>{}{}</section>',
        _anchor(each),
        _title(each),
        notes(_sentences(found, each)),
        html("{}{}", _ratios(found, each), drawn),
        _left_out(each, held) if held else "",
        Markup().join(table.as_html() for table in seed_table(found, each)),
        html("<details><summary>Every cell</summary>{}</details>", _table(found, each).as_html()),
    )


def _figures(found: Calibrations, each: Calibrated) -> Iterator[Markup]:
    scale = unit_scale(each.unit, [place.cheap for place in each.cells])
    axis = each.title + (f" [{scale.unit}]" if scale.unit not in NAMED else "")
    for kind in kinds(each)[:MOST_FIGURES]:
        where = f" at {cell_title(kind)}" if kind else ""
        caption = (
            f"{heading(each.title)}{where}: both testbeds, and what is predicted of {found.dear} with its"
            " interval. Shaded: where anything is."
        )
        drawn = plots.svg(curves_plot(found, each, kind, scale, axis), f"{caption} The table has the numbers.")
        yield html("<figure><figcaption>{}</figcaption>{}</figure>", caption, drawn)


def _ratios(found: Calibrations, each: Calibrated) -> Markup:
    caption = f"What {found.dear} gives, as a multiple of what {found.cheap} gives, with the interval of the process."
    drawn = plots.svg(ratios_plot(found, each, kinds(each)[:MOST_LINES]), caption)
    return html("<figure><figcaption>{}</figcaption>{}</figure>", caption, drawn)


def _left_out(each: Calibrated, held: Sequence[Held]) -> Markup:
    caption = f"Every {each.fitted.by} left out once: what was measured there less what all others predict, with the interval."
    drawn = plots.svg(left_out_plot(each, held), caption)
    return html("<figure><figcaption>{}</figcaption>{}</figure>", caption, drawn)


def _table(found: Calibrations, each: Calibrated) -> Tabular:
    scale = unit_scale(each.unit, [place.cheap for place in each.cells])
    unit = f" ({scale.unit})" if scale.unit not in NAMED else ""
    names = [one.name for one in each.fitted.inputs]
    heads = (*names, f"{found.cheap}{unit}", f"{found.dear}, measured", "predicted", "interval", "not predicted")
    rows = tuple(
        (*(level_text(place.levels[name]) for name in names), *_figures_of(place, scale.factor)) for place in each.cells
    )
    caption = f"Geometric means of runs, and what is predicted of {found.dear}."
    return Tabular("Every cell", caption, heads, rows, texts=len(names))


def _figures_of(place: Place, factor: float) -> Sequence[str | None]:
    cheap, dear, value, low, high = (
        None if each is None else each / factor for each in (place.cheap, place.dear, place.value, place.low, place.high)
    )
    return figure(cheap), figure(dear), figure(value), bounds(low, high), place.refused


def _tied(found: Calibrations) -> Markup:
    facts = [
        f"{name}: {'; '.join(f'{fact} {chr(44).join(values)}' for fact, values in passport.items()) or 'nothing was recorded'}."
        for name, passport in found.passports.items()
    ]
    despite = [f"Made despite {' and '.join(found.accepted)}."] if found.accepted else []
    return html(
        "<section><h2>What it is tied to</h2><p>It says nothing of testbeds that differ in one of these.</p>{}{}</section>",
        notes(facts),
        notes(despite),
    )
