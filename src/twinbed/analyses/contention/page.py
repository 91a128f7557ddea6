"""Where rates bend and whether the machine shows it, as a section; the detector's pictures for a report too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from twinbed.analyses.contention.bend_plot import bends
from twinbed.analyses.contention.plots import early, roc, scores
from twinbed.analyses.contention.result import Contention, Curve, DetectorResult, LevelContention, Turn
from twinbed.analyses.contention.sentences import counted, rough, sentences, where
from twinbed.contracts.analysis import Part, Section
from twinbed.render import plots
from twinbed.render.html import html, notes
from twinbed.render.tabular import Tabular
from twinbed.show.numbers import figure, percent
from twinbed.show.quantities import NONE, share
from twinbed.show.words import heading, metric_name

MOST_CURVES = 4
"""A picture has so many metrics: the rate, and those that bend most."""
WHOLE = "Where it bends, and what the machine shows"
MOST_GROUPS = 6
"""Combinations of levels that are drawn."""


def section(contention: Contention) -> Section:
    """The sentences, and for each combination of levels its pictures and tables."""
    title = f"Contention: {metric_name(contention.rate)} over {contention.one}s"
    tables = [(group, table) for group in contention.groups for table in _tables(contention, group)]
    parts = (
        Part(contention.rate, "tab-contention", f"{heading(where(group))}{table.title}", "", table) for group, table in tables
    )
    lede, *rest = sentences(contention)
    first = Part(contention.rate, "tab-contention", title, " ".join((lede, *rest)))
    undrawn = len(contention.groups) - MOST_GROUPS
    more = [f"The first {MOST_GROUPS} of {len(contention.groups)} combinations are shown."] if undrawn > 0 else []
    return Section(
        "contention",
        title,
        lambda: notes([*rest, *more]) + _groups(contention),
        (first, *parts),
        lede=lede,
        kicker=f"Was a run contended? {heading(metric_name(contention.rate))} of a {contention.one}, and the metrics of the"
        " machine that carries them",
    )


def _groups(contention: Contention) -> Markup:
    return Markup().join(_group(contention, group) for group in contention.groups[:MOST_GROUPS])


def _group(contention: Contention, group: LevelContention) -> Markup:
    title = where(group).removesuffix(": ")
    parts = [html('<section class="wide"><h2>{}</h2>', heading(title) or WHOLE)]
    parts.append(html('<div class="plots">{}</div>', Markup().join(_figures(contention, group))))
    parts += [html("<h3>{}</h3>{}", table.title, table.as_html()) for table in _tables(contention, group)]
    return Markup().join([*parts, Markup("</section>")])


def _figures(contention: Contention, group: LevelContention) -> Iterator[Markup]:
    curves, turns = drawn(group)
    if curves:
        undrawn = len(group.curves) - len(curves)
        cut = f"The rate and the {len(curves) - 1} metrics that bend most, of {len(group.curves) - 1}. " if undrawn else ""
        order = "; ".join(f"{at}. {_turn(turn)}" for at, turn in enumerate(turns, 1))
        yield _figure(
            bends(curves, turns, f"{contention.one}s"),
            f"{cut}Above, each by LOESS between its least and its greatest; below, its second difference. Triangles are where a"
            f" slope turns, up where it begins to rise, numbered in the order of N: {order or 'none'}.",
        )
    if group.detector is not None:
        yield from detector_figures(contention, group, group.detector)


def drawn(group: LevelContention) -> tuple[Sequence[Curve], Sequence[Turn]]:
    """The rate and the metrics that bend most, with their turns."""
    rate, rest = group.curves[:1], group.curves[1:]
    curves = [*rate, *sorted(rest, key=lambda curve: -curve.bent)[: MOST_CURVES - 1]]
    kept = {curve.metric for curve in curves}
    return curves, [turn for turn in group.turns if turn.metric in kept]


def _turn(turn: Turn) -> str:
    return f"{metric_name(turn.metric)} at {turn.n:.3g}"


def detector_figures(contention: Contention, group: LevelContention, detector: DetectorResult) -> Iterator[Markup]:
    """Scores over N, how early it alarms, and the ROC curve."""
    tested = [step.n for step in detector.steps]
    yield _figure(
        scores(detector, tested, f"{contention.one}s"),
        f"{where(group)}the score of each test run, from the machine's metrics alone. Above the dashed line the detector"
        f" alarms. Contended: the run and the mean at its N have lost {share(contention.drop)} of the rate.",
    )
    yield _figure(
        early(contention, detector),
        f"{where(group)}where it alarms (dotted: most runs, from there on) against where the rate has fallen by"
        f" {share(contention.fallen)} (shaded). Bars: 95 % intervals.",
    )
    yield _figure(
        roc(detector),
        f"{where(group)}ROC curve of {sum(run.tested for run in detector.runs)} test runs: the share of contended runs found"
        " against the share of false alarms, for every threshold.",
    )


def _tables(contention: Contention, group: LevelContention) -> Iterator[Tabular]:
    if group.turns:
        yield _turns(group)
    if group.detector is not None:
        yield _alarms(group.detector)


def _turns(group: LevelContention) -> Tabular:
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


def _alarms(detector: DetectorResult) -> Tabular:
    rows = []
    for step in detector.steps:
        row: list[str | None] = [str(step.n), percent(step.lost), NONE, NONE, NONE, NONE]
        if step.alarms is not None:
            low, high = rough(step.alarms.interval.low), rough(step.alarms.interval.high)
            row[2:] = [str(step.alarms.count), str(step.alarms.of), rough(step.alarms.share), f"{low} to {high}"]
        rows.append(tuple(row))
    before = f" Before it matters, {counted(detector.before)}." if detector.before else ""
    caption = f"Test runs at each N. Rate lost: of the mean at the least N, made monotone.{before}"
    return Tabular("How early it alarms", caption, ("N", "rate lost", "alarm", "of", "share", "interval"), tuple(rows))


def _figure(spec: plots.Spec, caption: str) -> Markup:
    title = heading(caption)
    return html(
        "<figure><figcaption>{}</figcaption>{}</figure>",
        title,
        plots.svg(spec, f"{title} The tables have the numbers."),
    )
