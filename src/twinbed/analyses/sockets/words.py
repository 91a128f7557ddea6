"""Write why senders wait as a section: a sentence, a row for each testbed, and congestion windows over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinbed.analyses.sockets import draw
from twinbed.analyses.sockets.result import Senders
from twinbed.show.numbers import joined
from twinbed.show.quantities import number, unit_scale
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns, plain
from twinbed.show.words import at_cell

TITLE = "Why senders wait"
WORTH_SAYING = 0.1
"""The share of connections' time from which a difference is reported."""
CAPTION = (
    "Application: the share of a connection's time with nothing to send. The other three are shares of the rest, by the "
    "kernel's own account (tcp_info). Means over runs, for the sides that send. cwnd (segments) and srtt (round-trip time) "
    "cover only the time with something to send."
)


def section(result: Senders) -> Section:
    """Return the section of why senders wait."""
    figures = (*draw.reasons(result), *draw.over_time(result))
    return Section("sockets", TITLE, sentence(result), (limits(result), windows(result), *figures), kicker="TCP connections")


def limits(result: Senders) -> Table:
    """Return a row for each cell, testbed and side."""
    scale = unit_scale("s", [sender.srtt_s for sender in result.limits])
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
    """Return a row for each point of a congestion window over time, for programs."""
    rows = [
        {
            **window.cell,
            "testbed": window.testbed,
            "run": window.run,
            "host": window.host,
            "median": window.median,
            "seconds": seconds,
            "cwnd": cwnd,
        }
        for window in result.windows
        for seconds, cwnd in zip(window.seconds, window.cwnd, strict=True)
    ]
    return plain("windows", rows)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def sentence(result: Senders) -> str:
    """Return the main reason on each testbed with its shares over cells and sides; two if cells differ."""
    shares: dict[str, dict[str, list[float]]] = {}
    for sender in result.limits:
        if parts := sender.parts():
            main = max(parts, key=lambda reason: parts[reason])
            shares.setdefault(main, {}).setdefault(sender.testbed, []).append(parts[main])
    if not shares:
        return "Cannot tell why senders wait: no run has samples of all reasons."
    reasons = [
        f"the {reason} ({', '.join(f'{name} {_range(parts)}' for name, parts in by_testbed.items())} of the time)"
        for reason, by_testbed in shares.items()
    ]
    return " ".join([f"Senders wait most for {joined(reasons)}.", *_difference(result)])


def _range(parts: Sequence[float]) -> str:
    low, high = f"{100 * min(parts):.0f}", f"{100 * max(parts):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _difference(result: Senders) -> Iterator[str]:
    """Yield the reason that exceeds the reference's share most, if by at least WORTH_SAYING."""
    of_reference = {
        (repr(sender.cell), sender.side): sender.parts() for sender in result.limits if sender.testbed == result.reference
    }
    gains = [
        (part - reference[reason], sender, reason, part, reference[reason])
        for sender in result.limits
        if (reference := of_reference.get((repr(sender.cell), sender.side)))
        for reason, part in sender.parts().items()
        if reason in reference
    ]
    for gain, sender, reason, part, reference_part in sorted(gains, key=lambda entry: -entry[0])[:1]:
        if gain >= WORTH_SAYING:
            yield (
                f"The largest difference: the {reason} takes {100 * part:.0f} % of the time on {sender.testbed}"
                f"{at_cell(sender.cell)}, and {100 * reference_part:.0f} % on {result.reference}."
            )
