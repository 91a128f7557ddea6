"""An analysis of variance as tables and sentences; the pages, LaTeX and the terminal show these.

On a logarithmic scale means are geometric, effects and differences are factors (1.2 is 20 % more).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from twinbed.analyses.anova.result import Anova, Difference, Effect, Line, Mean, Term, Unexplained, term_text
from twinbed.model.result import Interval
from twinbed.model.run import level_text
from twinbed.render.tabular import Tabular
from twinbed.show.numbers import bounds, figure, fixed, joined, percent, probability
from twinbed.show.quantities import UnitScale, share, unit_scale
from twinbed.show.words import heading, metric_name

MOST_PAIRS = 21
"""Differences of one kind of a factor that a terminal shows: all pairs of seven levels."""


MOST_NAMED = 5


LEAST_NAMED = 0.001
"""The first sentence names so many terms at most, each of at least this share."""


def title(anova: Anova) -> str:
    """``loss percentage``, with its place."""
    name, *where = anova.response.split("@")
    return f"{metric_name(name)} ({', '.join(where)})" if where else metric_name(name)


def lede(anova: Anova) -> str:
    """The terms that account for the variation, the largest share first."""
    of = "the logarithm of " if anova.logarithm else ""
    ranked = sorted(anova.lines, key=lambda line: -line.share)
    named = [line for line in ranked[:MOST_NAMED] if line.share >= LEAST_NAMED or line is ranked[0]]
    if len(ranked) - len(named) == 1:
        named = ranked
    shares = [f"{term_text(line.term)} {percent(line.share)}" for line in named]
    if len(named) < len(ranked):
        shares.append(f"the other terms {percent(sum(line.share for line in ranked[len(named) :]))}")
    if anova.errors.freedom > 0:
        shares.append(f"errors {percent(anova.errors.share)}")
    return f"Of the variation of {of}{title(anova)}: {joined(shares)}."


def no_analysis(unexplained: Unexplained) -> str:
    """Why there is no analysis, in one sentence."""
    return f"No analysis of variance: {unexplained.reason}."


def about(anova: Anova) -> str:
    """How many values of which response, in one line."""
    factors = ", ".join(f"{name} ({len(levels)} levels)" for name, levels in anova.factors.items())
    each = "equally many in each" if anova.balanced else "not balanced"
    kind = "" if anova.balanced or len(anova.factors) == 1 else f"; sums of squares of type {anova.kind}"
    return f"n = {anova.n} in {anova.cells} cells, {each}; {factors}{kind}"


def unit_of(anova: Anova) -> UnitScale:
    """The unit that means are shown in."""
    if anova.logarithm:
        return unit_scale(anova.unit, [math.exp(each.mean) for each in anova.means])
    return unit_scale(anova.unit, [each.mean for each in anova.means])


def tables(anova: Anova, most_pairs: int | None = None) -> Iterator[Tabular]:
    """All tables. ``most_pairs`` cuts long lists of differences; None shows them whole."""
    yield variance_table(anova)
    if anova.signs:
        yield sign_table(anova)
    yield means_table(anova)
    yield from _difference_tables(anova, most_pairs)
    yield assumption_table(anova)
    if anova.alternatives:
        yield alternative_table(anova)
    if anova.truncation:
        yield truncation_table(anova)


def variance_table(anova: Anova) -> Tabular:
    """Jain's layout: the responses, their mean, the variation about it, and how that is allocated."""
    confidence = share(anova.confidence)
    heads = ("component", "sum of squares", "of variation", "df", "mean square", "F", f"F table ({confidence})", "p")
    rows = [
        ("y", fixed(anova.squares), None, str(anova.n), None, None, None, None),
        ("mean", fixed(anova.mean_squares), None, "1", None, None, None, None),
        ("y - mean", fixed(anova.total), "100.00 %", str(anova.n - 1), None, None, None, None),
        *(_line(term_text(line.term), line) for line in anova.lines),
        _line("errors", anova.errors),
    ]
    return Tabular(f"Analysis of variance of {title(anova)}", f"R² = {anova.r_squared:.4f}.", heads, tuple(rows))


def _line(name: str, line: Line) -> tuple[str | None, ...]:
    f, critical = (fixed(line.f), f"{line.critical:.2f}") if line.critical is not None else (None, None)
    squares, mean_square = fixed(line.sum_of_squares), fixed(line.mean_square)
    return name, squares, percent(line.share), str(line.freedom), mean_square, f, critical, probability(line.p)


def sign_table(anova: Anova) -> Tabular:
    """The effects of a 2^k r design."""
    scale = UnitScale(1.0, "") if anova.logarithm else unit_of(anova)
    rows = [
        (
            term_text(each.term),
            figure(each.effect / scale.factor),
            _interval(each.interval, scale.factor),
            percent(each.share),
        )
        for each in anova.signs
    ]
    turns = "; ".join(
        f"{name}: {level_text(levels[0])} is -1, {level_text(levels[1])} is +1" for name, levels in anova.factors.items()
    )
    mean = figure(anova.mean / scale.factor)
    of = "of logarithms" if anova.logarithm else scale.unit
    caption = f"An effect is half the change from -1 to +1; the mean is {mean} {of}".rstrip() + f". {turns}."
    design = f"2^{len(anova.factors)} x {anova.n // anova.cells} factorial design"
    heads = ("component", f"effect {of}".rstrip(), share(anova.confidence) + " interval", "of variation")
    return Tabular(heading(design), caption, heads, tuple(rows))


def _interval(interval: Interval | None, factor: float = 1.0) -> str:
    return bounds(interval.low / factor, interval.high / factor) if interval else bounds(None, None)


def _exponential(interval: Interval | None) -> Interval | None:
    return Interval(math.exp(interval.low), math.exp(interval.high), interval.level) if interval else None


def means_table(anova: Anova) -> Tabular:
    """Every level of every factor with its mean and effect."""
    scale = unit_of(anova)
    effects = {(each.term, each.levels): each for each in anova.effects}
    confidence = share(anova.confidence)
    of = f" [{scale.unit}]" if scale.unit else ""
    mean = "geometric mean" if anova.logarithm else "mean"
    effect = "factor" if anova.logarithm else "effect"
    heads = ("factor", "level", "n", mean + of, f"{confidence} interval", effect, f"{confidence} interval of it")
    rows = tuple(_mean(anova, each, effects.get((each.factors, each.levels)), scale) for each in anova.means)
    effect_is = "A factor is the level's mean over" if anova.logarithm else "An effect is the level's mean less"
    caption = f"{effect_is} the mean of all"
    if len(anova.factors) > 1:
        caption += "; means are over the cells of the other factors, each cell alike"
        if empty := math.prod(map(len, anova.factors.values())) - anova.cells:
            caption += f", and for the {empty} without a value what the terms kept predict"
    return Tabular("Means and effects", f"{caption}.", heads, rows, texts=2)


def _mean(anova: Anova, each: Mean, effect: Effect | None, scale: UnitScale) -> tuple[str | None, ...]:
    where = (each.factors[0], level_text(each.levels[0]), str(each.n))
    if anova.logarithm:
        middle = (figure(math.exp(each.mean) / scale.factor, 5), _interval(_exponential(each.interval), scale.factor))
        if effect is None:
            return *where, *middle, None, None
        return *where, *middle, figure(math.exp(effect.estimate), 4), _interval(_exponential(effect.interval))
    middle = (figure(each.mean / scale.factor, 5), _interval(each.interval, scale.factor))
    if effect is None:
        return *where, *middle, None, None
    return *where, *middle, figure(effect.estimate / scale.factor, 4), _interval(effect.interval, scale.factor)


def _difference_tables(anova: Anova, most: int | None) -> Iterator[Tabular]:
    kinds = dict.fromkeys((each.factor, each.neighbours) for each in anova.differences)
    for factor, neighbours in kinds:
        of = [each for each in anova.differences if (each.factor, each.neighbours) == (factor, neighbours)]
        yield difference_table(anova, of, most)


def difference_table(anova: Anova, of: Sequence[Difference], most: int | None = None) -> Tabular:
    """The differences of one factor: of neighbours, or of all pairs."""
    scale = UnitScale(1.0, "") if anova.logarithm else unit_of(anova)
    confidence = share(anova.confidence)
    what = "ratio" if anova.logarithm else "difference"
    kind = f"neighbours of {of[0].factor}" if of[0].neighbours else f"all pairs of {of[0].factor}"
    shown = of if most is None else of[:most]
    rows = [_difference(anova, each, scale) for each in shown]
    unit = f" [{scale.unit}]" if scale.unit else ""
    heads = (of[0].factor, what + unit, f"{confidence} interval", "p", f"all together ({of[0].method})", "p together")
    rest = f" The first {len(shown)} of {len(of)}; JSON, CSV and HTML have all." if len(shown) < len(of) else ""
    sign = "over" if anova.logarithm else "less"
    caption = (
        f"The second level's mean {sign} the first's. The first interval is for one pair that was chosen beforehand.{rest}"
    )
    return Tabular(f"{heading(what)}s of {kind}", caption, heads, tuple(rows))


def pair_text(each: Difference) -> str:
    """``container → e1000``."""
    return f"{level_text(each.first)} → {level_text(each.second)}"


def _difference(anova: Anova, each: Difference, scale: UnitScale) -> tuple[str | None, ...]:
    pair = pair_text(each)
    if anova.logarithm:
        own, together = _interval(_exponential(each.interval)), _interval(_exponential(each.simultaneous))
        return pair, figure(math.exp(each.estimate), 4), own, probability(each.p), together, probability(each.p_simultaneous)
    own, together = _interval(each.interval, scale.factor), _interval(each.simultaneous, scale.factor)
    middle = figure(each.estimate / scale.factor, 4)
    return pair, middle, own, probability(each.p), together, probability(each.p_simultaneous)


def assumption_table(anova: Anova) -> Tabular:
    """The tests of the errors."""
    answers = {True: "holds", False: "FAILS", None: "not tested"}
    because = any(each.reason for each in anova.checks)
    heads = ("assumption", "test", "", *(("because",) if because else ()), "statistic", "p")
    rows = tuple(
        (
            each.assumption,
            each.test,
            answers[each.holds],
            *((each.reason or None,) if because else ()),
            figure(each.statistic, 5),
            probability(each.p),
        )
        for each in anova.checks
    )
    return Tabular("Assumptions", "", heads, rows, texts=4 if because else 3)


def alternative_table(anova: Anova) -> Tabular:
    """Tests that do without the assumptions that fail."""
    rows = tuple(
        (
            term_text(each.term),
            each.test,
            each.instead_of,
            figure(each.statistic, 5),
            ", ".join(figure(freedom, 4) or "" for freedom in each.freedom),
            probability(each.p),
        )
        for each in anova.alternatives
    )
    heads = ("component", "test", "does without", "statistic", "df", "p")
    return Tabular("Instead, because assumptions fail", "", heads, rows, texts=3)


def truncation_table(anova: Anova) -> Tabular:
    """What the truncated model costs."""
    cost = anova.truncation
    if cost is None:
        return Tabular("Truncated model", "", ("dropped",), ())
    row = (
        _terms(cost.dropped),
        percent(cost.share),
        f"{cost.r_squared:.4f}",
        f"{anova.r_squared:.4f}",
        figure(cost.f),
        probability(cost.p),
    )
    heads = ("dropped", "of variation", "R² before", "R² after", "F of dropped", "p")
    return Tabular("Truncated model", "What the dropped terms accounted for is in the errors now.", heads, (row,))


def _terms(terms: Sequence[Term]) -> str:
    return ", ".join(term_text(term) for term in terms)
