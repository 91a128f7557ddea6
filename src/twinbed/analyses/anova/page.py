"""An analysis of variance as a section, and its parts for the report's; and as LaTeX."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from statistics import fmean

from markupsafe import Markup

from twinbed.analyses.anova.result import Anova, Difference, Effect, term_text
from twinbed.analyses.anova.tables import (
    about,
    alternative_table,
    assumption_table,
    difference_table,
    lede,
    means_table,
    pair_text,
    sign_table,
    tables,
    title,
    truncation_table,
    unit_of,
    variance_table,
)
from twinbed.contracts.analysis import Part, Section
from twinbed.model.result import Interval
from twinbed.model.run import level_text
from twinbed.observations import diagnostics
from twinbed.observations.diagnostics import Bar, Point
from twinbed.render import plots
from twinbed.render.html import html, notes
from twinbed.render.latex_text import needs
from twinbed.render.tabular import Tabular
from twinbed.show.words import heading

MOST_INTERACTIONS = 3
"""The strongest pairs of factors that are drawn."""


MOST_BARS = 45
"""Differences in a plot: all pairs of ten levels. A factor with more levels has them in the table only."""


MOST_OPEN = 21
"""Rows of a table of differences that is not folded."""


def whole(anova: Anova) -> Section:
    """All of one analysis, from the table to the residuals."""
    part = Part(anova.response, f"tab-anova-{anova.response}", heading(title(anova)), lede(anova), variance_table(anova))
    return Section(
        "anova",
        f"Analysis of variance: {title(anova)}",
        lambda: Markup().join(_sections(anova)),
        (part,),
        lede=lede(anova),
        kicker=about(anova),
    )


def _sections(anova: Anova) -> Iterator[Markup]:
    yield html("<section>{}{}", variance_table(anova).as_html(), notes(anova.notes))
    yield Markup().join(_titled(table, "h3") for table in model_tables(anova)) + Markup("</section>")
    for title_of, content in parts(anova):
        yield html("<section><h2>{}</h2>{}</section>", title_of, content)


def model_tables(anova: Anova) -> Iterator[Tabular]:
    """Other tables of the model itself."""
    if anova.truncation:
        yield truncation_table(anova)
    if anova.signs:
        yield sign_table(anova)


def parts(
    anova: Anova, heading_is: str = "h3", most_bars: int = MOST_BARS, most_points: int = diagnostics.MOST_POINTS
) -> Iterator[tuple[str, str]]:
    """Titled tables and figures that follow the table, with headings of a level, and so many marks at most."""
    figures = Markup().join([*_effects(anova, most_bars), *_interactions(anova)])
    yield "Means and effects", html('{}<div class="plots">{}</div>', means_table(anova).as_html(), figures)
    yield "Differences between levels", Markup().join(_differences(anova, heading_is, most_bars))
    assumptions = assumption_table(anova).as_html()
    if anova.alternatives:
        assumptions += _titled(alternative_table(anova), heading_is)
    figures = Markup().join(_residuals(anova, most_points))
    yield "Whether the assumptions hold", html('{}<div class="plots">{}</div>', assumptions, figures)


def latex(anova: Anova) -> str:
    r"""All tables, for ``\input``; the first line names the packages that they need."""
    name = title(anova)
    made = [table.as_latex(f"tab-anova-{name}-{at}") for at, table in enumerate(tables(anova), 1)]
    parts = [f"% Analysis of variance of {name}: needs {needs(made)}".replace("\n", " "), *made]
    return "\n".join(part if part.isascii() else part.encode("ascii", "replace").decode() for part in parts)


def _titled(table: Tabular, heading_is: str) -> Markup:
    return html("<{}>{}</{}>{}", heading_is, table.title, heading_is, table.as_html())


def _folded(table: Tabular, heading_is: str) -> Markup:
    rows = html("<summary>All {} of them</summary>{}", len(table.rows), table.as_html())
    return html("<{}>{}</{}><details>{}</details>", heading_is, table.title, heading_is, rows)


def _figure(anova: Anova, spec: plots.Spec, caption: str, name: str) -> Markup:
    drawn = plots.svg(spec, f"{caption} The tables have the numbers.", f"{title(anova)} {name}")
    return html("<figure><figcaption>{}</figcaption>{}</figure>", caption, drawn)


def _unit(anova: Anova) -> str:
    unit = unit_of(anova).unit
    return f" [{unit}]" if unit else ""


def _value(anova: Anova, value: float) -> float:
    """An effect or difference as it is shown: a factor where logarithms were analysed."""
    return math.exp(value) if anova.logarithm else value / unit_of(anova).factor


def _bar(anova: Anova, name: str, value: float, own: Interval | None, together: Interval | None = None) -> Bar:
    ends = [_value(anova, end) for each in (own, together) if each for end in (each.low, each.high)]
    low, high = ends[:2] if own else (None, None)
    wide_low, wide_high = ends[-2:] if together else (None, None)
    return Bar(name, _value(anova, value), low, high, wide_low, wide_high)


def _effects(anova: Anova, most_bars: int) -> Iterator[Markup]:
    main = [each for each in anova.effects if len(each.term) == 1]
    for factor in anova.factors:
        of: list[Effect] = [each for each in main if each.term == (factor,)]
        bars = [_bar(anova, level_text(each.levels[0]), each.estimate, each.interval) for each in of]
        if 0 < len(bars) <= most_bars:
            axis = f"factor of {title(anova)}" if anova.logarithm else f"effect on {title(anova)}{_unit(anova)}"
            spec = diagnostics.intervals(bars, axis, 1.0 if anova.logarithm else 0.0)
            caption = f"Effects of {factor}, with intervals; coloured where the interval excludes no effect."
            yield _figure(anova, spec, caption, f"effects of {factor}")


def _interactions(anova: Anova) -> Iterator[Markup]:
    strength = {line.term: line.share for line in anova.lines if len(line.term) == 2}
    for pair in sorted(strength, key=lambda term: -strength[term])[:MOST_INTERACTIONS]:
        points = list(_points(anova, pair))
        spec = diagnostics.interaction(points, pair[0], f"{title(anova)}{_unit(anova)}", anova.logarithm)
        caption = f"{term_text(pair)}: means of cells, a line for each {pair[1]}; parallel lines are no interaction."
        yield _figure(anova, spec, caption, f"means by {' and '.join(pair)}")


def _points(anova: Anova, pair: tuple[str, ...]) -> Iterator[Point]:
    """Means of the cells of two factors, over the cells of the other factors, which count alike."""
    at = [list(anova.factors).index(name) for name in pair]
    factor = unit_of(anova).factor

    def shown(value: float) -> float:
        return (math.exp(value) if anova.logarithm else value) / factor

    for one, two in itertools.product(*(anova.factors[name] for name in pair)):
        of = [each for each in anova.cell_means if (each.levels[at[0]], each.levels[at[1]]) == (one, two)]
        if not of:
            continue
        interval = of[0].interval if len(of) == 1 else None
        bounds = (shown(interval.low), shown(interval.high)) if interval else (None, None)
        yield Point(level_text(two), level_text(one), shown(fmean(each.mean for each in of)), *bounds)


def _differences(anova: Anova, heading_is: str, most_bars: int) -> Iterator[Markup]:
    kinds = dict.fromkeys((each.factor, each.neighbours) for each in anova.differences)
    for factor, neighbours in kinds:
        of: list[Difference] = [each for each in anova.differences if (each.factor, each.neighbours) == (factor, neighbours)]
        table = difference_table(anova, of)
        yield _titled(table, heading_is) if len(of) <= MOST_OPEN else _folded(table, heading_is)
        bars = [_bar(anova, pair_text(each), each.estimate, each.interval, each.simultaneous) for each in of[:most_bars]]
        axis = "ratio" if anova.logarithm else f"difference{_unit(anova)}"
        spec = diagnostics.intervals(bars, axis, 1.0 if anova.logarithm else 0.0)
        cut = f" The first {most_bars}." if len(of) > most_bars else ""
        caption = f"Thick: the interval of each pair; thin: all together ({of[0].method}); coloured: shown to differ.{cut}"
        yield html(
            '<div class="plots">{}</div>',
            _figure(anova, spec, caption, f"differences between levels of {factor}"),
        )


def _residuals(anova: Anova, most_points: int) -> Iterator[Markup]:
    if anova.errors.sum_of_squares <= 0:
        return
    unit = " (logarithm)" if anova.logarithm else (f" [{anova.unit}]" if anova.unit else "")
    some = f" {most_points:,} of {anova.n:,}." if anova.n > most_points else ""
    rows = diagnostics.thinned(anova.residuals, most_points)
    yield _figure(
        anova,
        diagnostics.residuals(rows, unit),
        f"Residuals against predicted values: equal variances look like a band of one width.{some}",
        "residuals against predicted values",
    )
    yield _figure(
        anova,
        diagnostics.normal_quantiles(rows, unit),
        f"Normal Q-Q: residuals of normal errors lie along the line.{some}",
        "normal Q-Q of residuals",
    )
