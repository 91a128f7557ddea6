"""An analysis of variance as tables and sentences; the pages, LaTeX and the terminal show these.

On a logarithmic scale means are geometric, effects and differences are factors (1.2 is 20 % more).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from twinbed.analyses.anova.result import Anova, Difference, Effect, Line, Mean, Term, Unexplained, term_text
from twinbed.model.result import Interval
from twinbed.model.run import level_text
from twinbed.render.quantities import UnitScale, share, unit_scale
from twinbed.render.tabular import Tabular, bounds, figure, fixed, joined, percent, probability
from twinbed.render.words import heading, metric_name

MOST_PAIRS = 21
"""Differences of one kind of a factor that a terminal shows: all pairs of seven levels."""


MOST_NAMED = 5


LEAST_NAMED = 0.001
"""Terms, and least share of one, that the first sentence names."""


def title(found: Anova) -> str:
    """``loss percentage``, with its place."""
    name, *where = found.response.split("@")
    return f"{metric_name(name)} ({', '.join(where)})" if where else metric_name(name)


def lede(found: Anova) -> str:
    """What accounts for the variation, the most first."""
    of = "the logarithm of " if found.logarithm else ""
    ranked = sorted(found.lines, key=lambda line: -line.share)
    named = [line for line in ranked[:MOST_NAMED] if line.share >= LEAST_NAMED or line is ranked[0]]
    if len(ranked) - len(named) == 1:
        named = ranked
    shares = [f"{term_text(line.term)} {percent(line.share)}" for line in named]
    if len(named) < len(ranked):
        shares.append(f"the other terms {percent(sum(line.share for line in ranked[len(named) :]))}")
    if found.errors.freedom > 0:
        shares.append(f"errors {percent(found.errors.share)}")
    return f"Of the variation of {of}{title(found)}: {joined(shares)}."


def no_analysis(found: Unexplained) -> str:
    """Why there is none, in one sentence."""
    return f"No analysis of variance: {found.reason}."


def about(found: Anova) -> str:
    """How many values of what, in one line."""
    factors = ", ".join(f"{name} ({len(levels)} levels)" for name, levels in found.factors.items())
    each = "equally many in each" if found.balanced else "not balanced"
    kind = "" if found.balanced or len(found.factors) == 1 else f"; sums of squares of type {found.kind}"
    return f"n = {found.n} in {found.cells} cells, {each}; {factors}{kind}"


def unit_of(found: Anova) -> UnitScale:
    """What means are shown in."""
    if found.logarithm:
        return unit_scale(found.unit, [math.exp(each.mean) for each in found.means])
    return unit_scale(found.unit, [each.mean for each in found.means])


def tables(found: Anova, most_pairs: int | None = None) -> Iterator[Tabular]:
    """All of it. ``most_pairs`` cuts long lists of differences; None shows them whole."""
    yield variance_table(found)
    if found.signs:
        yield sign_table(found)
    yield means_table(found)
    yield from _difference_tables(found, most_pairs)
    yield assumption_table(found)
    if found.alternatives:
        yield alternative_table(found)
    if found.truncation:
        yield truncation_table(found)


def variance_table(found: Anova) -> Tabular:
    """Jain's layout: the responses, their mean, what is left about it, and how that is allocated."""
    confidence = share(found.confidence)
    heads = ("component", "sum of squares", "of variation", "df", "mean square", "F", f"F table ({confidence})", "p")
    rows = [
        ("y", fixed(found.squares), None, str(found.n), None, None, None, None),
        ("mean", fixed(found.mean_squares), None, "1", None, None, None, None),
        ("y - mean", fixed(found.total), "100.00 %", str(found.n - 1), None, None, None, None),
        *(_line(term_text(line.term), line) for line in found.lines),
        _line("errors", found.errors),
    ]
    return Tabular(f"Analysis of variance of {title(found)}", f"R² = {found.r_squared:.4f}.", heads, tuple(rows))


def _line(name: str, line: Line) -> tuple[str | None, ...]:
    f, critical = (fixed(line.f), f"{line.critical:.2f}") if line.critical is not None else (None, None)
    squares, mean_square = fixed(line.sum_of_squares), fixed(line.mean_square)
    return name, squares, percent(line.share), str(line.freedom), mean_square, f, critical, probability(line.p)


def sign_table(found: Anova) -> Tabular:
    """The effects of a 2^k r design."""
    scale = UnitScale(1.0, "") if found.logarithm else unit_of(found)
    rows = [
        (
            term_text(each.term),
            figure(each.effect / scale.factor),
            _interval(each.interval, scale.factor),
            percent(each.share),
        )
        for each in found.signs
    ]
    turns = "; ".join(
        f"{name}: {level_text(levels[0])} is -1, {level_text(levels[1])} is +1" for name, levels in found.factors.items()
    )
    mean = figure(found.mean / scale.factor)
    of = "of logarithms" if found.logarithm else scale.unit
    caption = f"An effect is half the change from -1 to +1; the mean is {mean} {of}".rstrip() + f". {turns}."
    design = f"2^{len(found.factors)} x {found.n // found.cells} factorial design"
    heads = ("component", f"effect {of}".rstrip(), share(found.confidence) + " interval", "of variation")
    return Tabular(heading(design), caption, heads, tuple(rows))


def _interval(found: Interval | None, factor: float = 1.0) -> str:
    return bounds(found.low / factor, found.high / factor) if found else bounds(None, None)


def _exponential(found: Interval | None) -> Interval | None:
    return Interval(math.exp(found.low), math.exp(found.high), found.level) if found else None


def means_table(found: Anova) -> Tabular:
    """Every level of every factor with its mean and effect."""
    scale = unit_of(found)
    effects = {(each.term, each.levels): each for each in found.effects}
    confidence = share(found.confidence)
    of = f" [{scale.unit}]" if scale.unit else ""
    mean = "geometric mean" if found.logarithm else "mean"
    effect = "factor" if found.logarithm else "effect"
    heads = ("factor", "level", "n", mean + of, f"{confidence} interval", effect, f"{confidence} interval of it")
    rows = tuple(_mean(found, each, effects.get((each.factors, each.levels)), scale) for each in found.means)
    effect_is = "A factor is the level's mean over" if found.logarithm else "An effect is the level's mean less"
    caption = f"{effect_is} the mean of all"
    if len(found.factors) > 1:
        caption += "; means are over the cells of the other factors, each cell alike"
    return Tabular("Means and effects", f"{caption}.", heads, rows, texts=2)


def _mean(found: Anova, each: Mean, effect: Effect | None, scale: UnitScale) -> tuple[str | None, ...]:
    where = (each.factors[0], level_text(each.levels[0]), str(each.n))
    if found.logarithm:
        middle = (figure(math.exp(each.mean) / scale.factor, 5), _interval(_exponential(each.interval), scale.factor))
        if effect is None:
            return *where, *middle, None, None
        return *where, *middle, figure(math.exp(effect.estimate), 4), _interval(_exponential(effect.interval))
    middle = (figure(each.mean / scale.factor, 5), _interval(each.interval, scale.factor))
    if effect is None:
        return *where, *middle, None, None
    return *where, *middle, figure(effect.estimate / scale.factor, 4), _interval(effect.interval, scale.factor)


def _difference_tables(found: Anova, most: int | None) -> Iterator[Tabular]:
    kinds = dict.fromkeys((each.factor, each.neighbours) for each in found.differences)
    for factor, neighbours in kinds:
        of = [each for each in found.differences if (each.factor, each.neighbours) == (factor, neighbours)]
        yield difference_table(found, of, most)


def difference_table(found: Anova, of: Sequence[Difference], most: int | None = None) -> Tabular:
    """The differences of one factor: of neighbours, or of all pairs."""
    scale = UnitScale(1.0, "") if found.logarithm else unit_of(found)
    confidence = share(found.confidence)
    what = "ratio" if found.logarithm else "difference"
    kind = f"neighbours of {of[0].factor}" if of[0].neighbours else f"all pairs of {of[0].factor}"
    shown = of if most is None else of[:most]
    rows = [_difference(found, each, scale) for each in shown]
    unit = f" [{scale.unit}]" if scale.unit else ""
    heads = (of[0].factor, what + unit, f"{confidence} interval", "p", f"all together ({of[0].method})", "p together")
    rest = f" The first {len(shown)} of {len(of)}; JSON, CSV and HTML have all." if len(shown) < len(of) else ""
    sign = "over" if found.logarithm else "less"
    caption = (
        f"The second level's mean {sign} the first's. The first interval is for one pair that was chosen beforehand.{rest}"
    )
    return Tabular(f"{heading(what)}s of {kind}", caption, heads, tuple(rows))


def pair_text(each: Difference) -> str:
    """``container → e1000``."""
    return f"{level_text(each.first)} → {level_text(each.second)}"


def _difference(found: Anova, each: Difference, scale: UnitScale) -> tuple[str | None, ...]:
    pair = pair_text(each)
    if found.logarithm:
        own, together = _interval(_exponential(each.interval)), _interval(_exponential(each.simultaneous))
        return pair, figure(math.exp(each.estimate), 4), own, probability(each.p), together, probability(each.p_simultaneous)
    own, together = _interval(each.interval, scale.factor), _interval(each.simultaneous, scale.factor)
    middle = figure(each.estimate / scale.factor, 4)
    return pair, middle, own, probability(each.p), together, probability(each.p_simultaneous)


def assumption_table(found: Anova) -> Tabular:
    """What was asked of the errors."""
    said = {True: "holds", False: "FAILS", None: "not tested"}
    because = any(each.reason for each in found.checks)
    heads = ("assumption", "test", "", *(("because",) if because else ()), "statistic", "p")
    rows = tuple(
        (
            each.assumption,
            each.test,
            said[each.holds],
            *((each.reason or None,) if because else ()),
            figure(each.statistic, 5),
            probability(each.p),
        )
        for each in found.checks
    )
    return Tabular("Assumptions", "", heads, rows, texts=4 if because else 3)


def alternative_table(found: Anova) -> Tabular:
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
        for each in found.alternatives
    )
    heads = ("component", "test", "does without", "statistic", "df", "p")
    return Tabular("Instead, because assumptions fail", "", heads, rows, texts=3)


def truncation_table(found: Anova) -> Tabular:
    """What the truncated model costs."""
    cost = found.truncation
    if cost is None:
        return Tabular("Truncated model", "", ("dropped",), ())
    row = (
        _terms(cost.dropped),
        percent(cost.share),
        f"{cost.r_squared:.4f}",
        f"{found.r_squared:.4f}",
        figure(cost.f),
        probability(cost.p),
    )
    heads = ("dropped", "of variation", "R² before", "R² after", "F of dropped", "p")
    return Tabular("Truncated model", "What the dropped terms accounted for is in the errors now.", heads, (row,))


def _terms(terms: Sequence[Term]) -> str:
    return ", ".join(term_text(term) for term in terms)
