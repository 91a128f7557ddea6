"""An analysis of variance as a page of its own, and as sections for another page; and as LaTeX."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from html import escape
from statistics import fmean

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
from twinbed.model.result import Interval
from twinbed.model.run import level_text
from twinbed.observations import diagnostics
from twinbed.observations.diagnostics import Bar, Point
from twinbed.render import plots
from twinbed.render.document import document
from twinbed.render.html import notes
from twinbed.render.latex_text import needs
from twinbed.render.tabular import Tabular
from twinbed.render.words import caution_sentences, heading

MOST_INTERACTIONS = 3
"""The strongest pairs of factors that are drawn."""


MOST_BARS = 45
"""Differences in a plot: all pairs of ten levels. A factor with more levels has its effects in the table only."""


MOST_OPEN = 21
"""Rows of a table of differences that is not folded."""


def page(found: Anova) -> str:
    """The whole page."""
    name = f"Analysis of variance: {title(found)}"
    header = (
        f'<header><p class="kicker">{escape(about(found))}</p><h1>{escape(heading(title(found)))}</h1>'
        f'<p class="lede">{escape(lede(found))}</p></header>'
    )
    return document(name, f"{header}<main>{''.join(sections(found))}</main>", f"Made of {found.source}.")


def sections(found: Anova) -> Iterator[str]:
    """What a page shows of it, from the table to the residuals."""
    said = (*found.notes, *caution_sentences(found.cautions))
    yield f"<section><h2>Analysis of variance</h2>{variance_table(found).as_html()}{notes(said)}"
    yield "".join(_titled(table, "h3") for table in model_tables(found)) + "</section>"
    for title_of, content in parts(found):
        yield f"<section><h2>{title_of}</h2>{content}</section>"


def model_tables(found: Anova) -> Iterator[Tabular]:
    """What else there is to say of the model itself."""
    if found.truncation:
        yield truncation_table(found)
    if found.signs:
        yield sign_table(found)


def parts(
    found: Anova, heading_is: str = "h3", most_bars: int = MOST_BARS, most_points: int = diagnostics.MOST_POINTS
) -> Iterator[tuple[str, str]]:
    """What follows the table, each with its title: tables and figures, with headings of a level, and so many marks at most."""
    figures = "".join([*_effects(found, most_bars), *_interactions(found)])
    yield "Means and effects", f'{means_table(found).as_html()}<div class="plots">{figures}</div>'
    yield "Differences between levels", "".join(_differences(found, heading_is, most_bars))
    assumptions = assumption_table(found).as_html()
    if found.alternatives:
        assumptions += _titled(alternative_table(found), heading_is)
    figures = "".join(_residuals(found, most_points))
    yield "Whether the assumptions hold", f'{assumptions}<div class="plots">{figures}</div>'


def latex(found: Anova) -> str:
    r"""All tables, for ``\input``, with the packages that the first line names."""
    name = title(found)
    made = [table.as_latex(f"tab-anova-{name}-{at}") for at, table in enumerate(tables(found), 1)]
    parts = [f"% Analysis of variance of {name}: needs {needs(made)}".replace("\n", " "), *made]
    return "\n".join(part if part.isascii() else part.encode("ascii", "replace").decode() for part in parts)


def _titled(table: Tabular, heading_is: str) -> str:
    return f"<{heading_is}>{escape(table.title)}</{heading_is}>{table.as_html()}"


def _folded(table: Tabular, heading_is: str) -> str:
    rows = f"<summary>All {len(table.rows)} of them</summary>{table.as_html()}"
    return f"<{heading_is}>{escape(table.title)}</{heading_is}><details>{rows}</details>"


def _figure(found: Anova, spec: plots.Spec, caption: str, name: str) -> str:
    drawn = plots.svg(spec, f"{caption} The tables have the numbers.", f"{title(found)} {name}")
    return f"<figure><figcaption>{escape(caption)}</figcaption>{drawn}</figure>"


def _unit(found: Anova) -> str:
    unit = unit_of(found).unit
    return f" [{unit}]" if unit else ""


def _value(found: Anova, value: float) -> float:
    """An effect or difference as it is shown: a factor where logarithms were analysed."""
    return math.exp(value) if found.logarithm else value / unit_of(found).factor


def _bar(found: Anova, name: str, value: float, own: Interval | None, together: Interval | None = None) -> Bar:
    ends = [_value(found, end) for each in (own, together) if each for end in (each.low, each.high)]
    low, high = ends[:2] if own else (None, None)
    wide_low, wide_high = ends[-2:] if together else (None, None)
    return Bar(name, _value(found, value), low, high, wide_low, wide_high)


def _effects(found: Anova, most_bars: int) -> Iterator[str]:
    main = [each for each in found.effects if len(each.term) == 1]
    for factor in found.factors:
        of: list[Effect] = [each for each in main if each.term == (factor,)]
        bars = [_bar(found, level_text(each.levels[0]), each.estimate, each.interval) for each in of]
        if 0 < len(bars) <= most_bars:
            axis = f"factor of {title(found)}" if found.logarithm else f"effect on {title(found)}{_unit(found)}"
            spec = diagnostics.intervals(bars, axis, 1.0 if found.logarithm else 0.0)
            caption = f"Effects of {factor}, with intervals; coloured where the interval excludes no effect."
            yield _figure(found, spec, caption, f"effects of {factor}")


def _interactions(found: Anova) -> Iterator[str]:
    strength = {line.term: line.share for line in found.lines if len(line.term) == 2}
    for pair in sorted(strength, key=lambda term: -strength[term])[:MOST_INTERACTIONS]:
        points = list(_points(found, pair))
        spec = diagnostics.interaction(points, pair[0], f"{title(found)}{_unit(found)}", found.logarithm)
        caption = f"{term_text(pair)}: means of cells, a line for each {pair[1]}; parallel lines are no interaction."
        yield _figure(found, spec, caption, f"means by {' and '.join(pair)}")


def _points(found: Anova, pair: tuple[str, ...]) -> Iterator[Point]:
    """Means of the cells of two factors; over the cells of others, each alike."""
    at = [list(found.factors).index(name) for name in pair]
    factor = unit_of(found).factor

    def shown(value: float) -> float:
        return (math.exp(value) if found.logarithm else value) / factor

    for one, two in itertools.product(*(found.factors[name] for name in pair)):
        of = [each for each in found.cell_means if (each.levels[at[0]], each.levels[at[1]]) == (one, two)]
        if not of:
            continue
        interval = of[0].interval if len(of) == 1 else None
        bounds = (shown(interval.low), shown(interval.high)) if interval else (None, None)
        yield Point(level_text(two), level_text(one), shown(fmean(each.mean for each in of)), *bounds)


def _differences(found: Anova, heading_is: str, most_bars: int) -> Iterator[str]:
    kinds = dict.fromkeys((each.factor, each.neighbours) for each in found.differences)
    for factor, neighbours in kinds:
        of: list[Difference] = [each for each in found.differences if (each.factor, each.neighbours) == (factor, neighbours)]
        table = difference_table(found, of)
        yield _titled(table, heading_is) if len(of) <= MOST_OPEN else _folded(table, heading_is)
        bars = [_bar(found, pair_text(each), each.estimate, each.interval, each.simultaneous) for each in of[:most_bars]]
        axis = "ratio" if found.logarithm else f"difference{_unit(found)}"
        spec = diagnostics.intervals(bars, axis, 1.0 if found.logarithm else 0.0)
        cut = f" The first {most_bars}." if len(of) > most_bars else ""
        caption = f"Thick: the interval of each pair; thin: all together ({of[0].method}); coloured: shown to differ.{cut}"
        yield f'<div class="plots">{_figure(found, spec, caption, f"differences between levels of {factor}")}</div>'


def _residuals(found: Anova, most_points: int) -> Iterator[str]:
    if found.errors.sum_of_squares <= 0:
        return
    unit = " (logarithm)" if found.logarithm else (f" [{found.unit}]" if found.unit else "")
    some = f" {most_points:,} of {found.n:,}." if found.n > most_points else ""
    rows = diagnostics.thinned(found.residuals, most_points)
    yield _figure(
        found,
        diagnostics.residuals(rows, unit),
        f"Residuals against predicted values: equal variances look like a band of one width.{some}",
        "residuals against predicted values",
    )
    yield _figure(
        found,
        diagnostics.normal_quantiles(rows, unit),
        f"Normal Q-Q: residuals of normal errors lie along the line.{some}",
        "normal Q-Q of residuals",
    )
