"""What holds senders up as a section: a sentence, a row for each testbed, and congestion windows over time."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.sockets import draw
from twinbed.analyses.sockets.result import Limits, Senders
from twinbed.show.quantities import number, unit_scale
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns, plain
from twinbed.show.words import at_cell

TITLE = "What holds senders up"
WORTH_SAYING = 0.1
"""Of connections' time."""
CAPTION = (
    "What holds senders up: application, the share of a connection's time in which it has nothing to send; the other three are "
    "shares of the rest, by the kernel's own account (tcp_info). Means over runs of the sides that send; cwnd (segments) and "
    "round-trip time are over the time in which there is something to send."
)


def section(result: Senders) -> Section:
    """Return what there is to say of what holds senders up."""
    figures = (*draw.reasons(result), *draw.over_time(result))
    return Section("sockets", TITLE, sentence(result), (limits(result), windows(result), *figures), kicker="TCP connections")


def limits(result: Senders) -> Table:
    """Return a row a cell, testbed and side."""
    scale = unit_scale("s", [each.srtt_s for each in result.limits])
    columns = (
        *cell_columns(result.limits),
        Column("testbed", "Testbed"),
        Column("side", "side"),
        Column("runs", "runs", format="d"),
        Column("application", "application", format=_percent),
        Column("rwnd", "receive window", format=_percent),
        Column("sndbuf", "send buffer", format=_percent),
        Column("network", "network", format=_percent),
        Column("cwnd", "cwnd", format=number),
        Column("srtt_s", "srtt", format=lambda value: f"{number(value / scale.factor)} {scale.unit}"),
        Column("seen"),
    )
    return Table("limits", TITLE, CAPTION, columns, result.limits)


def windows(result: Senders) -> Table:
    """Return a row a point of a congestion window over time, for programs."""
    rows = [
        {
            **each.cell,
            "testbed": each.testbed,
            "run": each.run,
            "host": each.host,
            "median": each.median,
            "seconds": seconds,
            "cwnd": cwnd,
        }
        for each in result.windows
        for seconds, cwnd in zip(each.seconds, each.cwnd, strict=True)
    ]
    return plain("windows", rows)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def sentence(result: Senders) -> str:
    """Return the main reason on each testbed; two where they differ between cells."""
    testbeds: dict[str, list[str]] = {}
    for each in result.limits:
        main = _main(each)
        if main and each.testbed not in testbeds.setdefault(main, []):
            testbeds[main].append(each.testbed)
    said = [f"the {reason} ({', '.join(names)})" for reason, names in testbeds.items()]
    if not said:
        return "It is not known what holds senders up."
    return " ".join([f"Senders are held up most by {', '.join(said)}.", *_difference(result)])


def _difference(result: Senders) -> Iterator[str]:
    """Yield the reason that takes most more than on the reference, where that is more than a little."""
    of_reference = {(repr(each.cell), each.side): each.parts() for each in result.limits if each.testbed == result.reference}
    gains = [
        (part - reference[reason], each, reason, part, reference[reason])
        for each in result.limits
        if (reference := of_reference.get((repr(each.cell), each.side)))
        for reason, part in each.parts().items()
        if reason in reference
    ]
    for gain, each, reason, part, there in sorted(gains, key=lambda found: -found[0])[:1]:
        if gain >= WORTH_SAYING:
            yield (
                f"The largest difference: on {each.testbed}{at_cell(each.cell)} the {reason} takes {100 * part:.0f} % of the "
                f"time, on {result.reference} {100 * there:.0f} %."
            )


def _main(each: Limits) -> str | None:
    parts = each.parts()
    return max(parts, key=lambda reason: parts[reason]) if parts else None
