"""Write an analysis of variance in sentences, tables and a section.

On a logarithmic scale means are geometric, and effects and differences are factors (1.2 is 20 % more).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from twinbed.analyses.anova import draw
from twinbed.analyses.anova.draw import pair_text, title, unit_of
from twinbed.analyses.anova.result import Anova, Difference, Effect, Line, Mean, Term, Truncation, Unexplained, term_text
from twinbed.model.json import Json
from twinbed.model.result import Interval
from twinbed.model.run import level_text
from twinbed.observations import diagnostics
from twinbed.show.numbers import bounds, figure, fixed, joined, percent, probability
from twinbed.show.quantities import UnitScale, share
from twinbed.show.section import Item, Section
from twinbed.show.table import Column, Table, plain, readable
from twinbed.show.words import heading, metric_name

MOST_NAMED, LEAST_NAMED = 5, 0.001
"""The most terms in the first sentence, and the least share of each."""
MOST_BARS = 21
"""Differences in a figure of a report: all pairs of seven levels."""
MOST_POINTS = 300
"""Residuals in a figure of a report, so that a page of many runs stays light."""
MOST_OPEN = 21
"""A page folds tables of differences with more rows."""
COMPONENT = Column("component", "component", value=lambda line: term_text(line.term))
STATISTIC = Column("statistic", "statistic", format=lambda value: figure(value, 5) or "")
P = Column("p", "p", format=lambda value: probability(value) or "")
INTRODUCTION = (
    "An analysis of variance: how much of a metric's variation each factor explains, and how much remains between replicates "
    "(errors). For other metrics, factors and terms: twinbed analyse anova."
)


def lede(anova: Anova) -> str:
    """Return the terms that explain the variation, the largest share first."""
    of = "the logarithm of " if anova.logarithm else ""
    ranked = sorted(anova.lines, key=lambda line: -line.share)
    named = [line for line in ranked[:MOST_NAMED] if line.share >= LEAST_NAMED or line is ranked[0]]
    if len(ranked) - len(named) == 1:
        named = ranked
    shares = [f"{term_text(line.term)} {'explains ' * (line is named[0])}{percent(line.share)}" for line in named]
    if len(named) < len(ranked):
        shares.append(f"the other terms {percent(sum(line.share for line in ranked[len(named) :]))}")
    if anova.errors.freedom > 0:
        shares.append(f"errors {percent(anova.errors.share)}")
    first, *others = shares
    rest = f"; {joined(others)}" if others else ""
    return f"{first} of the variation of {of}{title(anova)}{rest}."


def design_text(anova: Anova) -> str:
    """Return the number of values, cells and levels in one line."""
    factors = ", ".join(f"{name} ({len(levels)} levels)" for name, levels in anova.factors.items())
    balance = "balanced" if anova.balanced else "not balanced"
    kind = "" if anova.balanced or len(anova.factors) == 1 else f"; sums of squares of type {anova.kind}"
    return f"n = {anova.n} in {anova.cells} cells, {balance}; {factors}{kind}"


def section(anova: Anova) -> Section:
    """Return all of one analysis, from the table to the residuals."""
    return Section(
        f"anova-{anova.response}",
        heading(f"analysis of variance: {title(anova)}"),
        lede(anova),
        (design_text(anova), variance_table(anova), anova.notes, *_model_tables(anova), *details(anova), *_programs(anova)),
    )


def explained(anovas: Sequence[Anova | Unexplained]) -> Section:
    """Return the section of a report: the answer of the first metric, the table of each, and all details of the first."""
    drawn = next((analysis for analysis in anovas if isinstance(analysis, Anova)), None)
    items: list[Item] = [INTRODUCTION, *(_explained(analysis, analysis is drawn) for analysis in anovas)]
    if drawn:
        folded = (Section("", table.title, items=(table,), folded=True) for table in _model_tables(drawn) if table.records)
        items += [*folded, *(replace(part, folded=True) for part in details(drawn, MOST_BARS, MOST_POINTS))]
    sentence = lede(drawn) if drawn else "No metric's variance can be analysed."
    return Section("explained", "Which factors matter", sentence, items)


def _explained(analysis: Anova | Unexplained, is_drawn: bool) -> Section:
    key = f"anova-{analysis.response}"
    if isinstance(analysis, Unexplained):
        return Section(key, heading(metric_name(analysis.response)), f"Cannot analyse its variance: {analysis.reason}.")
    return Section(
        key, heading(title(analysis)), "" if is_drawn else lede(analysis), (variance_table(analysis), analysis.notes)
    )


def _model_tables(anova: Anova) -> list[Table]:
    """Return the other tables of the model itself."""
    truncated = [truncation_table(anova, anova.truncation)] if anova.truncation else []
    return [*truncated, sign_table(anova)]


def details(anova: Anova, most_bars: int = draw.MOST_BARS, most_points: int = diagnostics.MOST_POINTS) -> list[Section]:
    """Return the sections after the table, with limits on the marks of a figure."""
    means: list[Item] = [means_table(anova), *draw.effects(anova, most_bars), *draw.interactions(anova)]
    kinds = dict.fromkeys((difference.factor, difference.neighbours) for difference in anova.differences)
    differences: list[Item] = []
    for kind in kinds:
        of = [difference for difference in anova.differences if (difference.factor, difference.neighbours) == kind]
        table = difference_table(anova, of)
        fold = Section("", f"All {len(of)} differences", items=(table,), folded=True)
        differences += [fold if len(of) > MOST_OPEN else table, draw.differences(anova, of, most_bars)]
    assumptions: list[Item] = [assumption_table(anova), alternative_table(anova), *draw.residuals(anova, most_points)]
    return [
        Section("means", "Levels of each factor", items=means),
        Section("differences", "Differences between levels", items=differences),
        Section("assumptions", "Do the assumptions hold?", items=assumptions),
    ]


def _programs(anova: Anova) -> Iterator[Table]:
    """Yield the tables that programs get."""
    line = ("sum_of_squares", "share", "df", "mean_square", "f", "f_critical", "p")
    of_line = ("sum_of_squares", "share", "freedom", "mean_square", "f", "critical", "p")
    totals = (
        ("total", anova.total, 1.0, anova.n - 1),
        ("mean", anova.mean_squares, None, 1),
        ("responses", anova.squares, None, anova.n),
    )
    terms = (*((term_text(component.term), component) for component in anova.lines), ("errors", anova.errors))
    rows = [(name, *(getattr(component, fact) for fact in of_line)) for name, component in terms]
    rows += [(*total, None, None, None, None) for total in totals]
    level = Column("level", value=_level)
    error, low, high = Column("standard_error"), Column("low", value="interval.low"), Column("high", value="interval.high")
    yield plain("variance", [dict(zip(("component", *line), row, strict=True)) for row in rows])
    yield Table(
        "effects",
        "",
        "",
        (replace(COMPONENT, head=""), level, Column("effect", value="estimate"), error, low, high),
        anova.effects,
    )
    of_mean = Column("component", value=lambda mean: term_text(mean.factors))
    means = (*anova.means, *anova.cell_means)
    yield Table("means", "", "", (of_mean, level, Column("n"), Column("mean"), low, high), means)
    columns = (
        Column("factor"),
        Column("first", value=lambda difference: level_text(difference.first)),
        Column("second", value=lambda difference: level_text(difference.second)),
        Column("neighbours"),
        Column("difference", value="estimate"),
        *(error, low, high, Column("p")),
        Column("simultaneous_low", value="simultaneous.low"),
        Column("simultaneous_high", value="simultaneous.high"),
        Column("simultaneous_p", value="p_simultaneous"),
        Column("method"),
    )
    yield Table("differences", "", "", columns, anova.differences)
    yield plain("residuals", [asdict(residual) for residual in anova.residuals])


def facts_for_programs(anova: Anova) -> dict[str, Json]:
    """Return the fields of JSON besides the tables."""
    cost = anova.truncation
    truncation: Json = None
    if cost is not None:
        dropped: Json = [term_text(term) for term in cost.dropped]
        truncation = {"dropped": dropped, "share": cost.share, "r_squared_of_all": cost.r_squared, "f": cost.f, "p": cost.p}
    return {
        "response": anova.response,
        "unit": anova.unit or None,
        "logarithm": anova.logarithm,
        "type": anova.kind,
        "confidence": anova.confidence,
        "n": anova.n,
        "cells": anova.cells,
        "balanced": anova.balanced,
        "factors": {name: list(levels) for name, levels in anova.factors.items()},
        "mean": anova.mean,
        "r_squared": anova.r_squared,
        "truncation": truncation,
        "notes": list(anova.notes),
    }


def _level(estimate: Effect | Mean) -> str:
    return ":".join(map(level_text, estimate.levels))


def variance_table(anova: Anova) -> Table:
    """Return Jain's layout: the responses, their mean, the variation about it, and its parts."""
    confidence = share(anova.confidence)
    heads = ("component", "sum of squares", "of variation", "df", "mean square", "F", f"F table ({confidence})", "p")
    rows = [
        ("y", fixed(anova.squares), None, str(anova.n), None, None, None, None),
        ("mean", fixed(anova.mean_squares), None, "1", None, None, None, None),
        ("y - mean", fixed(anova.total), "100.00 %", str(anova.n - 1), None, None, None, None),
        *(_line(term_text(line.term), line) for line in anova.lines),
        _line("errors", anova.errors),
    ]
    return readable("variance", f"Analysis of variance of {title(anova)}", f"R² = {anova.r_squared:.4f}.", heads, tuple(rows))


def _line(name: str, line: Line) -> tuple[str | None, ...]:
    f, critical = (fixed(line.f), f"{line.critical:.2f}") if line.critical is not None else (None, None)
    squares, mean_square = fixed(line.sum_of_squares), fixed(line.mean_square)
    return name, squares, percent(line.share), str(line.freedom), mean_square, f, critical, probability(line.p)


def sign_table(anova: Anova) -> Table:
    """Return the effects of a 2^k r design."""
    scale = UnitScale(1.0, "") if anova.logarithm else unit_of(anova)
    turns = "; ".join(
        f"{name}: {level_text(levels[0])} is -1, {level_text(levels[1])} is +1" for name, levels in anova.factors.items()
    )
    mean = figure(anova.mean / scale.factor)
    of = "of logarithms" if anova.logarithm else scale.unit
    caption = f"An effect is half of the change from -1 to +1. The mean is {mean} {of}".rstrip() + f". {turns}."
    design = f"2^{len(anova.factors)} x {anova.n // anova.cells} factorial design"
    columns = (
        COMPONENT,
        Column("effect", f"effect {of}".rstrip(), format=lambda effect: figure(effect / scale.factor) or ""),
        Column("sum_of_squares"),
        Column("share", "of variation", format=lambda part: percent(part) or ""),
        *(Column("low", value="interval.low"), Column("high", value="interval.high")),
        Column(
            head=share(anova.confidence) + " interval",
            format="s",
            value=lambda effect: _interval(effect.interval, scale.factor),
        ),
    )
    return Table("signs", heading(design), caption, columns, anova.signs)


def _interval(interval: Interval | None, factor: float = 1.0) -> str:
    return bounds(interval.low / factor, interval.high / factor) if interval else bounds(None, None)


def _exponential(interval: Interval | None) -> Interval | None:
    return Interval(math.exp(interval.low), math.exp(interval.high), interval.level) if interval else None


def means_table(anova: Anova) -> Table:
    """Return every level of every factor with its mean and effect."""
    scale = unit_of(anova)
    effects = {(own.term, own.levels): own for own in anova.effects}
    confidence = share(anova.confidence)
    of = f" [{scale.unit}]" if scale.unit else ""
    mean = "geometric mean" if anova.logarithm else "mean"
    effect = "factor" if anova.logarithm else "effect"
    heads = ("factor", "level", "n", mean + of, f"{confidence} interval", effect, f"{confidence} interval of the {effect}")
    rows = tuple(_mean(anova, own, effects.get((own.factors, own.levels)), scale) for own in anova.means)
    effect_is = "Factor: the level's mean divided by" if anova.logarithm else "Effect: the level's mean minus"
    caption = f"{effect_is} the mean of all"
    if len(anova.factors) > 1:
        caption += ". Means weight the cells of the other factors equally"
        if empty := math.prod(map(len, anova.factors.values())) - anova.cells:
            caption += f", with predictions for the {empty} cells without a value"
    return readable("means", "Means and effects", f"{caption}.", heads, rows, texts=2)


def _mean(anova: Anova, mean: Mean, effect: Effect | None, scale: UnitScale) -> tuple[str | None, ...]:
    where = (mean.factors[0], level_text(mean.levels[0]), str(mean.n))
    if anova.logarithm:
        middle = (figure(math.exp(mean.mean) / scale.factor, 5), _interval(_exponential(mean.interval), scale.factor))
        if effect is None:
            return *where, *middle, None, None
        return *where, *middle, figure(math.exp(effect.estimate), 4), _interval(_exponential(effect.interval))
    middle = (figure(mean.mean / scale.factor, 5), _interval(mean.interval, scale.factor))
    if effect is None:
        return *where, *middle, None, None
    return *where, *middle, figure(effect.estimate / scale.factor, 4), _interval(effect.interval, scale.factor)


def difference_table(anova: Anova, of: Sequence[Difference]) -> Table:
    """Return the differences of one factor: of neighbours, or of all pairs."""
    scale = UnitScale(1.0, "") if anova.logarithm else unit_of(anova)
    confidence = share(anova.confidence)
    what = "ratio" if anova.logarithm else "difference"
    kind = f"neighbours of {of[0].factor}" if of[0].neighbours else f"all pairs of {of[0].factor}"
    rows = [_difference(anova, difference, scale) for difference in of]
    unit = f" [{scale.unit}]" if scale.unit else ""
    heads = (of[0].factor, what + unit, f"{confidence} interval", "p", f"all together ({of[0].method})", "p together")
    sign = "divided by" if anova.logarithm else "less"
    caption = f"The second level's mean {sign} the first's. The first interval holds for one pair chosen beforehand."
    return readable("differences", f"{heading(what)}s of {kind}", caption, heads, tuple(rows))


def _difference(anova: Anova, difference: Difference, scale: UnitScale) -> tuple[str | None, ...]:
    pair = pair_text(difference)
    if anova.logarithm:
        own, together = _interval(_exponential(difference.interval)), _interval(_exponential(difference.simultaneous))
        return (
            pair,
            figure(math.exp(difference.estimate), 4),
            own,
            probability(difference.p),
            together,
            probability(difference.p_simultaneous),
        )
    own, together = _interval(difference.interval, scale.factor), _interval(difference.simultaneous, scale.factor)
    middle = figure(difference.estimate / scale.factor, 4)
    return pair, middle, own, probability(difference.p), together, probability(difference.p_simultaneous)


def assumption_table(anova: Anova) -> Table:
    """Return the tests of the errors."""
    answers = {True: "holds", False: "FAILS", None: "not tested"}
    because = [Column(head="because", value="reason")] if any(check.reason for check in anova.checks) else []
    columns = (
        *(Column("assumption", "assumption"), Column("test", "test")),
        *(Column(head="result", value=lambda check: answers[check.holds]), *because),
        *(STATISTIC, P, Column("holds"), Column("reason")),
    )
    return Table("assumptions", "Assumptions", "", columns, anova.checks)


def alternative_table(anova: Anova) -> Table:
    """Return tests that do not need the failed assumptions."""
    columns = (
        *(COMPONENT, Column("test", "test"), Column("instead_of", "does not need"), STATISTIC),
        Column("df", value=lambda alternative: alternative.freedom[0] if alternative.freedom else None),
        Column("df_errors", value=lambda alternative: alternative.freedom[1] if len(alternative.freedom) > 1 else None),
        Column(
            head="df",
            format="s",
            value=lambda alternative: ", ".join(figure(freedom, 4) or "" for freedom in alternative.freedom),
        ),
        P,
    )
    return Table("alternatives", "Tests for failed assumptions", "", columns, anova.alternatives)


def truncation_table(anova: Anova, cost: Truncation) -> Table:
    """Return the cost of the truncated model."""
    row = (
        _terms(cost.dropped),
        percent(cost.share),
        f"{cost.r_squared:.4f}",
        f"{anova.r_squared:.4f}",
        figure(cost.f),
        probability(cost.p),
    )
    heads = ("dropped", "of variation", "R² before", "R² after", "F of dropped", "p")
    return readable("truncation", "Truncated model", "The errors now include what the dropped terms explained.", heads, (row,))


def _terms(terms: Sequence[Term]) -> str:
    return ", ".join(term_text(term) for term in terms)
