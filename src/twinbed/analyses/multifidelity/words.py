"""Write the estimates of an expensive testbed as a section: estimates, and the runs behind them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from twinbed.analyses.multifidelity.result import Estimated, Group, Multifidelity
from twinbed.show.numbers import bounds, figure, fixed, joined
from twinbed.show.quantities import NONE, number, share, unit_scale
from twinbed.show.section import Section
from twinbed.show.table import Column, Of, Table, cell_columns
from twinbed.show.words import cell_title, heading, metric_title

TITLE = "Over uncertain inputs"
DIGITS = 4
MEANS = ("mean", "quantile")
"""Quantities in the unit of the metric."""


def section(result: Multifidelity) -> Section:
    """Return the section of the expensive testbed's estimates."""
    rests = Section("rests", "Runs behind the estimates", items=(_testbeds(result),), folded=True)
    return Section(
        "uncertain",
        TITLE,
        _sentence(result),
        (tuple(_remarks(result)), _estimates(result), rests),
        kicker="Few expensive runs and many cheap ones",
    )


def _sentence(result: Multifidelity) -> str:
    """Return the first estimate, and the testbeds that it comes from."""
    mixed = dict.fromkeys(chain.from_iterable(each.testbeds for group in result.groups for each in group.estimates))
    runs = f"its own runs and those of {joined(list(mixed))} with the same draws" if mixed else "its own runs alone"
    group = result.groups[0]
    first = group.estimates[0]
    scale = unit_scale(result.unit, [first.value])
    unit = f" {scale.unit}" if scale.unit not in ("", "1") else ""
    where = f" at {cell_title(group.levels)}" if group.levels else ""
    value, interval = number(first.value / scale.factor), _interval(first, scale.factor)
    bounds = f" ({share(result.confidence)} CI {interval})" if interval else ""
    title = heading(metric_title(result.response))
    return f"{title} of {result.dear}{where}: {first.quantity} {value}{unit}{bounds} over the uncertain inputs, from {runs}."


def _remarks(result: Multifidelity) -> Iterator[str]:
    for group in result.groups:
        where = f"{heading(cell_title(group.levels))}: " if group.levels else ""
        for each in group.estimates:
            if each.at_equal_time is not None:
                yield f"{where}{_paid(each.at_equal_time, result.dear)}"
        for refusal in dict.fromkeys(each.refusal for each in group.estimates if each.refusal):
            of = ", ".join(each.quantity for each in group.estimates if each.refusal == refusal)
            yield f"{where}No cheap testbed helps for {of}: {refusal}."


def _paid(ratio: float, dear: str) -> str:
    alone = f"{dear} alone in the same time"
    if ratio < 1:
        return f"Mixing paid: the variance of the mean is {ratio:.2g} times that of {alone}."
    return f"Mixing did not pay: {alone} would have {1 / ratio:.2g} times the variance of the mean."


def _estimates(result: Multifidelity) -> Table:
    records = [Of(group, each) for group in result.groups for each in group.estimates]
    scale = unit_scale(result.unit, [each.value for _, each in records if each.quantity.startswith(MEANS)])
    unit = f" ({scale.unit})" if scale.unit not in ("", "1") else ""

    def factor(each: Estimated) -> float:
        own = each.quantity.startswith(MEANS)
        return scale.factor if own else scale.factor**2 if each.quantity == "variance" else 1.0

    def value(record: Of[Group, Estimated]) -> str:
        each, by = record.each, factor(record.each)
        return number(each.value / by, None if each.low is None or each.high is None else (each.high - each.low) / 2 / by)

    def alone(record: Of[Group, Estimated]) -> str | None:
        interval, by = record.each.alone, factor(record.each)
        return None if interval is None else bounds(interval.low / by, interval.high / by)

    columns = (
        *cell_columns(records, lambda record: record.group.levels),
        Column("quantity", "quantity", value="each.quantity"),
        Column("value", value="each.value"),
        Column("low", value="each.low"),
        Column("high", value="each.high"),
        Column("confidence", value=lambda _: result.confidence),
        Column("mixed_in", value=lambda record: "+".join(record.each.testbeds) or None),
        Column("alone_low", value="each.alone.low"),
        Column("alone_high", value="each.alone.high"),
        Column("variance_at_equal_time", value="each.at_equal_time"),
        Column("because", value=lambda record: record.each.refusal or None),
        Column(head="mixed in", value=lambda record: ", ".join(record.each.testbeds) or NONE),
        Column(head="value", format="s", value=value),
        Column(head="interval", format="s", value=lambda record: _interval(record.each, factor(record.each))),
        Column(head="alone", format="s", value=alone),
    )
    caption = f"Estimates{unit} with {share(result.confidence)} intervals. Alone: from {result.dear}'s own runs."
    return Table("estimates", TITLE, caption, columns, records)


def _interval(each: Estimated, factor: float) -> str | None:
    if each.low is not None and each.high is not None:
        return bounds(each.low / factor, each.high / factor)
    if each.low is not None:
        return f"at least {figure(each.low / factor, DIGITS)}"
    return None if each.high is None else f"at most {figure(each.high / factor, DIGITS)}"


def _testbeds(result: Multifidelity) -> Table:
    records = [Of(group, each) for group in result.groups for each in group.testbeds]
    columns = (
        *cell_columns(records, lambda record: record.group.levels),
        Column("testbed", "testbed", value="each.name"),
        Column("draws", "draws", format="d", value="each.draws"),
        Column("shared", "shared", format="d", value="each.shared"),
        Column("correlation", "correlation", format=fixed, value="each.correlation"),
        Column("at_most_by_noise", "noise allows", format=fixed, value="each.cap"),
        Column("seconds_a_run", "seconds a run", format=figure, value="each.seconds"),
    )
    caption = f"Shared: draws that {result.dear} ran too. Only shared draws show how testbeds correlate."
    return Table("testbeds", "Testbeds", caption, columns, records)
