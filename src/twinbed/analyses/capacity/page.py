"""How many fit, as a page of its own: the statements, a picture for each combination of levels, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import chain

from twinbed.analyses.capacity.plot import capacity_plot, interval_text
from twinbed.analyses.capacity.result import Capacities, Group
from twinbed.model.run import level_text
from twinbed.render import plots
from twinbed.render.document import document
from twinbed.render.html import notes
from twinbed.render.quantities import NONE, UnitScale, share, unit_scale
from twinbed.render.tabular import Tabular, bounds, figure, percent
from twinbed.render.words import caution_sentences, cell_title, heading, left_out, metric_name

MOST_FIGURES = 12
"""Combinations of levels that are drawn; the table has the others too."""
NAMED = ("", "/s", "1")
"""Units that a metric's name says itself."""


def page(found: Capacities) -> str:
    """The whole page."""
    name = f"How many fit: {_objective(found)}"
    said = [f"{_where(group)}{group.statement}" for group in found.groups]
    header = (
        f'<header><p class="kicker">{escape(heading(_objective(found)))}, {share(found.confidence)} sure of what is named</p>'
        f'<h1>How many fit</h1><p class="lede">{escape(heading(said[0]))}.</p></header>'
    )
    rest = notes([f"{heading(each)}." for each in said[1:]])
    body = f"{header}<main>{rest}{''.join(_sections(found))}</main>"
    return document(name, body, f"Made of {found.source}.")


def _sections(found: Capacities) -> Iterator[str]:
    values = [value for group in found.groups for step in group.steps for value in step.values]
    scale = unit_scale(found.unit, values)
    drawn = "".join(_figure(found, group, scale) for group in found.groups[:MOST_FIGURES])
    undrawn = len(found.groups) - MOST_FIGURES
    more = notes([f"The first {MOST_FIGURES} of {len(found.groups)} combinations are drawn."] if undrawn > 0 else [])
    yield (
        f'<section id="fitting"><h2>Each number of {escape(found.one)}s that was tested</h2><p>Between them, and above the'
        f' largest, nothing is said.</p><div class="plots">{drawn}</div>{more}</section>'
    )
    remarks = [*left_out(found.left_out), *caution_sentences(found.cautions)]
    yield f"<section><h2>The numbers</h2>{_table(found, scale).as_html()}{notes(remarks)}</section>"


def _figure(found: Capacities, group: Group, scale: UnitScale) -> str:
    named = f"{metric_name(found.response)}{f' per {found.one}' if found.per_pair else ''}"
    unit = f" [{scale.unit}]" if scale.unit not in NAMED else ""
    held = f" and the mean at 1 {found.one}" if group.single is not None else ""
    caption = (
        f"{heading(f'{_where(group)}{named}')}: runs, means with intervals; dashed: what the objective demands{held};"
        f" shaded: {interval_text(found, group)}."
    )
    drawn = plots.svg(capacity_plot(found, group, scale, f"{named}{unit}"), f"{caption} The table has the numbers.")
    return f"<figure><figcaption>{escape(caption)}</figcaption>{drawn}</figure>"


def _objective(found: Capacities) -> str:
    return found.objective.replace(found.response, metric_name(found.response))


def _where(group: Group) -> str:
    return f"{cell_title(group.levels)}: " if group.levels else ""


def _sure(share: float) -> str | None:
    """Never all of it: a test leaves a rest."""
    return ">99.99 %" if share > 0.9999 else percent(share)


def _table(found: Capacities, scale: UnitScale) -> Tabular:
    names = [name.rpartition(".")[2] for name in found.groups[0].levels]
    unit = f" ({scale.unit})" if scale.unit not in NAMED else ""
    heads = (*names, f"{found.one}s", "runs", f"mean{unit}", "interval", "monotone", "bound", "keeps", "fails")
    rows = (
        (
            *(level_text(level) for level in group.levels.values()),
            str(step.n),
            str(len(step.values)),
            figure(step.mean / scale.factor),
            bounds(step.interval.low / scale.factor, step.interval.high / scale.factor) if len(step.values) > 1 else NONE,
            figure(step.monotone / scale.factor),
            figure(group.bound / scale.factor),
            _sure(step.keeps),
            _sure(step.fails),
        )
        for group, step in chain.from_iterable(((group, step) for step in group.steps) for group in found.groups)
    )
    caption = (
        f"{heading(_objective(found))}. Keeps: how sure it is that this and all smaller numbers keep it; fails: that this and"
        " all larger ones do not. Monotone: the means made to worsen with N."
    )
    return Tabular(f"Each number of {found.one}s", caption, heads, tuple(rows), texts=len(names) or 1)
