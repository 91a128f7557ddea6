"""What the reference testbed gives over uncertain inputs, in a report: a table of estimates, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from markupsafe import Markup

from twinbed.analyses.multifidelity.result import Estimated, Multifidelity
from twinbed.contracts.analysis import Part, Section
from twinbed.model.run import level_text
from twinbed.render.html import html, notes
from twinbed.render.tabular import Tabular
from twinbed.show.numbers import bounds, figure, fixed
from twinbed.show.quantities import NONE, UnitScale, number, share, unit_scale
from twinbed.show.words import heading, metric_title

KEY, TITLE = "uncertain", "Over uncertain inputs"
DIGITS = 4
MEANS = ("mean", "quantile")
"""Quantities in the unit of the metric."""


def section(result: Multifidelity) -> Section:
    """The section in every form of a report."""
    table = _estimates(result)
    part = Part(result.response, "tab-uncertain", TITLE, f"{_sentence(result)} {' '.join(_remarks(result))}".strip(), table)
    return Section(
        KEY,
        TITLE,
        lambda: Markup().join(_body(result, table)),
        (part,),
        lede=_sentence(result),
        kicker="Few dear runs and many cheap ones",
    )


def _body(result: Multifidelity, table: Tabular) -> Iterator[Markup]:
    yield table.as_html()
    yield notes(list(_remarks(result)))
    yield html("<details><summary>What it rests on</summary>{}</details>", _testbeds(result).as_html())


def _sentence(result: Multifidelity) -> str:
    mixed = dict.fromkeys(chain.from_iterable(each.testbeds for group in result.groups for each in group.estimates))
    with_them = f"with the runs of {', '.join(mixed)} that had the same draws" if mixed else "from its own runs alone"
    return f"{heading(metric_title(result.response))} of {result.dear} over all draws of the uncertain inputs, {with_them}."


def _remarks(result: Multifidelity) -> Iterator[str]:
    for group in result.groups:
        where = "".join(f"{name} {level_text(level)}: " for name, level in group.levels.items())
        reasons: dict[str, list[str]] = {}
        for each in group.estimates:
            if each.refusal:
                reasons.setdefault(each.refusal, []).append(each.quantity)
            if each.at_equal_time is not None:
                yield _paid(where, each.at_equal_time, result.dear)
        for refusal, quantities in reasons.items():
            yield f"{where}Nothing is mixed in for {', '.join(quantities)}: {refusal}."


def _paid(where: str, ratio: float, dear: str) -> str:
    return f"{where}The mean has {ratio:.2g} of the variance that the same time of runs on {dear} alone would have given."


def _estimates(result: Multifidelity) -> Tabular:
    values = [each.value for group in result.groups for each in group.estimates if each.quantity.startswith(MEANS)]
    scale = unit_scale(result.unit, values)
    names = tuple(result.groups[0].levels)
    unit = f" ({scale.unit})" if scale.unit not in ("", "1") else ""
    rows = (
        (*(level_text(level) for level in group.levels.values()), *_row(each, scale))
        for group in result.groups
        for each in group.estimates
    )
    caption = f"Estimates{unit} with intervals at {share(result.confidence)}. Alone: from {result.dear}'s own runs."
    return Tabular(TITLE, caption, (*names, "quantity", "mixed in", "value", "interval", "alone"), tuple(rows), len(names) + 2)


def _row(each: Estimated, scale: UnitScale) -> tuple[str | None, ...]:
    own = each.quantity.startswith(MEANS)
    factor = scale.factor if own else scale.factor**2 if each.quantity == "variance" else 1.0
    alone = NONE if each.alone is None else bounds(each.alone.low / factor, each.alone.high / factor)
    half_width = None if each.low is None or each.high is None else (each.high - each.low) / 2 / factor
    value = number(each.value / factor, half_width)
    return each.quantity, ", ".join(each.testbeds) or NONE, value, _interval(each, factor), alone


def _interval(each: Estimated, factor: float) -> str:
    if each.low is not None and each.high is not None:
        return bounds(each.low / factor, each.high / factor)
    if each.low is not None:
        return f"at least {figure(each.low / factor, DIGITS)}"
    return NONE if each.high is None else f"at most {figure(each.high / factor, DIGITS)}"


def _testbeds(result: Multifidelity) -> Tabular:
    names = tuple(result.groups[0].levels)
    heads = (*names, "testbed", "draws", "shared", "correlation", "noise allows", "seconds a run")
    rows = (
        (
            *(level_text(level) for level in group.levels.values()),
            each.name,
            str(each.draws),
            str(each.shared),
            fixed(each.correlation),
            fixed(each.cap),
            figure(each.seconds),
        )
        for group in result.groups
        for each in group.testbeds
    )
    caption = f"Shared: draws that {result.dear} ran too. Only these show how testbeds go together."
    return Tabular("Testbeds", caption, heads, tuple(rows), len(names) + 1)
