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
    mixed = dict.fromkeys(chain.from_iterable(estimate.testbeds for group in result.groups for estimate in group.estimates))
    runs = f"its own runs and those of {joined(list(mixed))} with the same draws" if mixed else "its own runs alone"
    group = result.groups[0]
    first = group.estimates[0]
    scale = unit_scale(result.unit, [first.value])
    unit = f" {scale.unit}" if scale.unit not in ("", "1") else ""
    where = f" at {cell_title(group.levels)}" if group.levels else ""
    value, interval = number(first.value / scale.factor), _interval(first, scale.factor)
    bounds = f" ({share(result.confidence)} CI {interval})" if interval else ""
    title = heading(metric_title(result.response))
    return (
        f"{title} of {result.expensive}{where}: {first.quantity} {value}{unit}{bounds} over the uncertain inputs, from {runs}."
    )


def _remarks(result: Multifidelity) -> Iterator[str]:
    for group in result.groups:
        where = f"{heading(cell_title(group.levels))}: " if group.levels else ""
        for estimate in group.estimates:
            if estimate.at_equal_time is not None:
                yield f"{where}{_paid(estimate.at_equal_time, result.expensive)}"
        for refusal in dict.fromkeys(estimate.refusal for estimate in group.estimates if estimate.refusal):
            of = ", ".join(estimate.quantity for estimate in group.estimates if estimate.refusal == refusal)
            yield f"{where}No cheap testbed helps for {of}: {refusal}."


def _paid(ratio: float, expensive: str) -> str:
    alone = f"{expensive} alone in the same time"
    if ratio < 1:
        return f"Mixing paid: the variance of the mean is {ratio:.2g} times that of {alone}."
    return f"Mixing did not pay: {alone} would have {1 / ratio:.2g} times the variance of the mean."


def _estimates(result: Multifidelity) -> Table:
    records = [Of(group, estimate) for group in result.groups for estimate in group.estimates]
    scale = unit_scale(result.unit, [estimate.value for _, estimate in records if estimate.quantity.startswith(MEANS)])
    unit = f" ({scale.unit})" if scale.unit not in ("", "1") else ""

    def factor(estimated: Estimated) -> float:
        own = estimated.quantity.startswith(MEANS)
        return scale.factor if own else scale.factor**2 if estimated.quantity == "variance" else 1.0

    def value(record: Of[Group, Estimated]) -> str:
        estimated, by = record.item, factor(record.item)
        return number(
            estimated.value / by,
            None if estimated.low is None or estimated.high is None else (estimated.high - estimated.low) / 2 / by,
        )

    def alone(record: Of[Group, Estimated]) -> str | None:
        interval, by = record.item.alone, factor(record.item)
        return None if interval is None else bounds(interval.low / by, interval.high / by)

    columns = (
        *cell_columns(records, lambda record: record.group.levels),
        Column("quantity", "quantity", value="item.quantity"),
        Column("value", value="item.value"),
        Column("low", value="item.low"),
        Column("high", value="item.high"),
        Column("confidence", value=lambda _: result.confidence),
        Column("mixed_in", value=lambda record: "+".join(record.item.testbeds) or None),
        Column("alone_low", value="item.alone.low"),
        Column("alone_high", value="item.alone.high"),
        Column("variance_at_equal_time", value="item.at_equal_time"),
        Column("because", value=lambda record: record.item.refusal or None),
        Column(head="mixed in", value=lambda record: ", ".join(record.item.testbeds) or NONE),
        Column(head="value", format="s", value=value),
        Column(head="interval", format="s", value=lambda record: _interval(record.item, factor(record.item))),
        Column(head="alone", format="s", value=alone),
    )
    caption = f"Estimates{unit} with {share(result.confidence)} intervals. Alone: from {result.expensive}'s own runs."
    return Table("estimates", TITLE, caption, columns, records)


def _interval(estimated: Estimated, factor: float) -> str | None:
    if estimated.low is not None and estimated.high is not None:
        return bounds(estimated.low / factor, estimated.high / factor)
    if estimated.low is not None:
        return f"at least {figure(estimated.low / factor, DIGITS)}"
    return None if estimated.high is None else f"at most {figure(estimated.high / factor, DIGITS)}"


def _testbeds(result: Multifidelity) -> Table:
    records = [Of(group, testbed) for group in result.groups for testbed in group.testbeds]
    columns = (
        *cell_columns(records, lambda record: record.group.levels),
        Column("testbed", "testbed", value="item.name"),
        Column("draws", "draws", format="d", value="item.draws"),
        Column("shared", "shared", format="d", value="item.shared"),
        Column("correlation", "correlation", format=fixed, value="item.correlation"),
        Column("at_most_by_noise", "noise allows", format=fixed, value="item.cap"),
        Column("seconds_a_run", "seconds a run", format=figure, value="item.seconds"),
    )
    caption = f"Shared: draws that {result.expensive} ran too. Only shared draws show how testbeds correlate."
    return Table("testbeds", "Testbeds", caption, columns, records)
