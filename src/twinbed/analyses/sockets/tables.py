"""What holds senders up, as rows for programs and as a table for readers."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.sockets.result import Limits, Senders
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import NONE, number, unit_scale
from twinbed.show.table import Row
from twinbed.show.words import cell_title

WORTH_SAYING = 0.1
"""Of connections' time."""
NAMES = ("application", "rwnd", "sndbuf", "network", "cwnd", "srtt_s", "seen")


def rows(result: Senders) -> list[Row]:
    """A row a cell, testbed and side."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "side": each.side,
            "runs": each.runs,
            **{name: getattr(each, name) for name in NAMES},
        }
        for each in result.limits
    ]


def window_rows(result: Senders) -> list[Row]:
    """A row a point of a congestion window over time."""
    return [
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


CAPTION = (
    "What holds senders up: application, the share of a connection's time in which it has nothing to send; the other three are "
    "shares of the rest, by the kernel's own account (tcp_info). Means over runs of the sides that send; cwnd (segments) and "
    "round-trip time are over the time in which there is something to send."
)


def table(result: Senders) -> Tabular:
    """A row a cell, testbed and side, with shares in per cent."""
    heads = ("Cell", "Testbed", "side", "runs", "application", "receive window", "send buffer", "network", "cwnd", "srtt")
    scale = unit_scale("s", [each.srtt_s for each in result.limits])
    lines = [
        (
            cell_title(each.cell),
            each.testbed,
            each.side,
            str(each.runs),
            *(_percent(part) for part in (each.application, each.rwnd, each.sndbuf, each.network)),
            number(each.cwnd),
            NONE if each.srtt_s is None else f"{number(each.srtt_s / scale.factor)} {scale.unit}",
        )
        for each in result.limits
    ]
    return Tabular("What holds senders up", CAPTION, heads, tuple(lines), texts=3)


def _percent(part: float | None) -> str:
    return NONE if part is None else f"{100 * part:.1f} %"


def sentence(result: Senders) -> str:
    """The main reason on each testbed; two where they differ between cells."""
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
    """The reason that takes most more than on the reference, where that is more than a little."""
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
            where = f" at {cell_title(each.cell)}" if each.cell else ""
            yield (
                f"The largest difference: on {each.testbed}{where} the {reason} takes {100 * part:.0f} % of the time, on "
                f"{result.reference} {100 * there:.0f} %."
            )


def _main(each: Limits) -> str | None:
    parts = each.parts()
    return max(parts, key=lambda reason: parts[reason]) if parts else None
