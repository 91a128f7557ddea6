"""Where rates bend and whether the machine shows it, as a page of its own; the detector's pictures for a report too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from twinbed.analyses.contention.bend_plot import bends
from twinbed.analyses.contention.plots import early, roc, scores
from twinbed.analyses.contention.result import Contention, Curve, Group, Told, Turn
from twinbed.analyses.contention.sentences import counted, rough, sentences, where
from twinbed.render import plots
from twinbed.render.document import document
from twinbed.render.html import notes
from twinbed.render.quantities import NONE, share
from twinbed.render.tabular import Tabular, figure, percent
from twinbed.render.words import caution_sentences, heading, left_out, metric_name

MOST_CURVES = 4
"""Metrics in a picture: the rate, and those that bend most."""
WHOLE = "Where it bends, and what the machine shows"
MOST_GROUPS = 6
"""Combinations of levels that are drawn."""


def page(found: Contention) -> str:
    """The whole page."""
    first, *rest = sentences(found)
    title = f"Contention: {metric_name(found.rate)} over {found.one}s"
    header = (
        f'<header><p class="kicker">{escape(heading(metric_name(found.rate)))} of a {escape(found.one)}, and the metrics of'
        f' the machine that carries them</p><h1>Was a run contended?</h1><p class="lede">{escape(first)}</p></header>'
    )
    body = "".join(_group(found, group) for group in found.groups[:MOST_GROUPS])
    undrawn = len(found.groups) - MOST_GROUPS
    more = [f"The first {MOST_GROUPS} of {len(found.groups)} combinations are shown."] if undrawn > 0 else []
    said = notes([*rest, *more, *left_out(found.left_out), *caution_sentences(found.cautions)])
    return document(title, f"{header}<main>{said}{body}</main>", f"Made of {found.source}.")


def _group(found: Contention, group: Group) -> str:
    title = where(group).removesuffix(": ")
    parts = [f'<section id="fitting"><h2>{escape(heading(title) or WHOLE)}</h2>']
    parts.append(f'<div class="plots">{"".join(_figures(found, group))}</div>')
    parts += [f"<h3>{escape(table.title)}</h3>{table.as_html()}" for table in _tables(found, group)]
    return "".join([*parts, "</section>"])


def _figures(found: Contention, group: Group) -> Iterator[str]:
    curves, turns = drawn(group)
    if curves:
        undrawn = len(group.curves) - len(curves)
        cut = f"The rate and the {len(curves) - 1} metrics that bend most, of {len(group.curves) - 1}. " if undrawn else ""
        order = "; ".join(f"{at}. {_turn(turn)}" for at, turn in enumerate(turns, 1))
        yield _figure(
            bends(curves, turns, f"{found.one}s"),
            f"{cut}Above, each by LOESS between its least and its greatest; below, its second difference. Triangles are where a"
            f" slope turns, up where it begins to rise, numbered in the order of N: {order or 'none'}.",
        )
    if group.told is not None:
        yield from detector_figures(found, group, group.told)


def drawn(group: Group) -> tuple[Sequence[Curve], Sequence[Turn]]:
    """The rate and the metrics that bend most, with their turns."""
    rate, rest = group.curves[:1], group.curves[1:]
    curves = [*rate, *sorted(rest, key=lambda curve: -curve.bent)[: MOST_CURVES - 1]]
    kept = {curve.metric for curve in curves}
    return curves, [turn for turn in group.turns if turn.metric in kept]


def _turn(turn: Turn) -> str:
    return f"{metric_name(turn.metric)} at {turn.n:.3g}"


def detector_figures(found: Contention, group: Group, told: Told) -> Iterator[str]:
    """Scores over N, how early it alarms, and the ROC curve."""
    tested = [step.n for step in told.steps]
    yield _figure(
        scores(told, tested, f"{found.one}s"),
        f"{where(group)}the score of each test run, from the machine's metrics alone. Above the dashed line the detector"
        f" alarms. Contended: the run and the mean at its N have lost {share(found.drop)} of the rate.",
    )
    yield _figure(
        early(found, told),
        f"{where(group)}where it alarms (dotted: most runs, from there on) against where the rate has fallen by"
        f" {share(found.fallen)} (shaded). Bars: 95 % intervals.",
    )
    yield _figure(
        roc(told),
        f"{where(group)}ROC curve of {sum(run.tested for run in told.runs)} test runs: the share of contended runs found"
        " against the share of false alarms, for every threshold.",
    )


def _tables(found: Contention, group: Group) -> Iterator[Tabular]:
    if group.turns:
        yield _turns(group)
    if group.told is not None:
        yield _alarms(group.told)


def _turns(group: Group) -> Tabular:
    bent = {curve.metric: curve.bent for curve in group.curves}
    rows = tuple(
        (metric_name(turn.metric), figure(turn.n, 4), "rise" if turn.rises else "fall", percent(bent[turn.metric]))
        for turn in group.turns
    )
    caption = (
        "In the order of N. Idle time is mirrored. Bend: what the curve explains of what a straight line over N leaves; where"
        " that is little, turns are noise."
    )
    return Tabular("Inflection points", caption, ("metric", "N", "slope begins to", "bend"), rows)


def _alarms(told: Told) -> Tabular:
    rows = []
    for step in told.steps:
        row: list[str | None] = [str(step.n), percent(step.lost), NONE, NONE, NONE, NONE]
        if step.alarms is not None:
            low, high = rough(step.alarms.interval.low), rough(step.alarms.interval.high)
            row[2:] = [str(step.alarms.count), str(step.alarms.of), rough(step.alarms.share), f"{low} to {high}"]
        rows.append(tuple(row))
    before = f" Before it matters, {counted(told.before)}." if told.before else ""
    caption = f"Test runs at each N. Rate lost: of the mean at the least N, made monotone.{before}"
    return Tabular("How early it alarms", caption, ("N", "rate lost", "alarm", "of", "share", "interval"), tuple(rows))


def _figure(spec: plots.Spec, caption: str) -> str:
    said = heading(caption)
    return f"<figure><figcaption>{escape(said)}</figcaption>{plots.svg(spec, f'{said} The tables have the numbers.')}</figure>"
