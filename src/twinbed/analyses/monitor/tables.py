"""What a monitor sees, as rows for programs and as tables for readers."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.monitor.result import Monitored, Seen
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import NONE
from twinbed.show.table import Row
from twinbed.show.words import cell_title

CLASSES, ALERTS = "Connections that are not the workload's", "Alerts"
CAPTION = (
    "Of each run, on the clients' links; a second: the rate over all runs with its exact 95 % interval, if they come by "
    "chance. ARP's frames count, since they are in no connection. What has none on any testbed has no row."
)
OF_ALERTS = "Alerts of Suricata in each run. The same: every run has as many as every run of the reference."


def rows(seen: Sequence[Seen], what: str) -> list[Row]:
    """A row a cell, testbed and kind."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "observer": each.observer,
            "checksums": each.checksums,
            what: each.what,
            "runs": len(each.events),
            "events": sum(each.events),
            "least": min(each.events),
            "most": max(each.events),
            "rate": each.rate,
            "low": each.low,
            "high": each.high,
            "same": each.same,
            "verdict": each.verdict,
        }
        for each in seen
    ]


def classes(result: Monitored) -> Tabular:
    heads = ("Cell", "Testbed", "class", "observer", "checksums", "of each run", "a second", "verdict")
    lines = tuple(
        (
            cell_title(each.cell),
            each.testbed,
            each.what,
            each.observer,
            each.checksums,
            _spread(each),
            NONE if each.rate is None else f"{each.rate:.3g} ({each.low:.3g} to {each.high:.3g})",
            each.verdict or NONE,
        )
        for each in result.classes
    )
    return Tabular(CLASSES, CAPTION, heads, lines, texts=5)


def alerts(result: Monitored) -> Tabular:
    heads = ("Cell", "Testbed", "signature", "checksums", "of each run", "the same")
    lines = tuple(
        (
            cell_title(each.cell),
            each.testbed,
            each.what,
            each.checksums,
            _spread(each),
            NONE if each.same is None else "yes" if each.same else "no",
        )
        for each in result.alerts
    )
    return Tabular(ALERTS, OF_ALERTS, heads, lines, texts=4)


def _spread(each: Seen) -> str:
    least, most = min(each.events), max(each.events)
    return str(least) if least == most else f"{least} to {most}"


def sentence(result: Monitored) -> str:
    """How many extra connections there are, and which alerts differ."""
    own = [each for each in result.classes if each.observer == "twinbed" and each.checksums == "ignored"]
    of: dict[str, int] = {}
    for each in own:
        of[each.testbed] = of.get(each.testbed, 0) + sum(each.events)
    said = ", ".join(f"{count} on {testbed}" for testbed, count in of.items())
    first = f"Not the workload's, with checksums ignored: {said}."
    if not said:
        first = "Every connection is the workload's, with checksums ignored."
    if not result.alerts:
        return first
    differing = list(dict.fromkeys(f"{each.what} on {each.testbed}" for each in result.differing()))
    if not differing:
        return f"{first} All testbeds give the same alerts."
    return f"{first} Alerts that the reference does not have as often: {'; '.join(differing)}."
