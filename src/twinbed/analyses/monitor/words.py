"""Write what a monitor sees as a section: a sentence, connections by class, and alerts."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.monitor.result import Monitored, Seen
from twinbed.model.amount import amount
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns

OF_CLASSES = (
    "On the clients' links. Per second: the rate over all runs with its exact 95 % interval, for events that come by chance. "
    "Frames of ARP count too, since they belong to no connection. Classes without events on any testbed have no row."
)
OF_ALERTS = "Alerts of Suricata in each run. The same: every run has as many alerts as every run of the reference."


def section(result: Monitored) -> Section:
    """Return the section of connections and alerts that a monitor sees."""
    items = (classes(result), alerts(result))
    return Section("monitor", "What a security monitor sees", sentence(result), items, kicker="Monitor")


def classes(result: Monitored) -> Table:
    """Return a row a cell, testbed and class of connections."""
    columns = (
        *_columns(result.classes, "class"),
        Column(head="per second", format="s", value=_rate),
        Column(head="verdict", format=str, value="verdict"),
    )
    return Table("classes", "Connections beyond the workload's", OF_CLASSES, columns, result.classes)


def alerts(result: Monitored) -> Table:
    """Return a row a cell, testbed and signature of alerts."""
    same = Column(head="the same", format=lambda same: "yes" if same else "no", value="same")
    columns = (*_columns(result.alerts, "signature"), same)
    return Table("alerts", "Alerts", OF_ALERTS, columns, result.alerts)


def _columns(seen: Sequence[Seen], what: str) -> tuple[Column, ...]:
    """Return the columns of both tables."""
    return (
        *cell_columns(seen),
        Column("testbed", "Testbed"),
        Column("observer"),
        Column("checksums"),
        Column(what, what, value="what"),
        Column(head="observer" if what == "class" else "", value="observer"),
        Column(head="checksums", value="checksums"),
        Column("runs", value=lambda kind: len(kind.events)),
        Column("events", value=lambda kind: sum(kind.events)),
        Column("least", value=lambda kind: min(kind.events)),
        Column("most", value=lambda kind: max(kind.events)),
        Column(head="per run", format="s", value=_spread),
        *(Column(name) for name in ("rate", "low", "high", "same", "verdict")),
    )


def _rate(seen: Seen) -> str | None:
    return None if seen.rate is None else f"{seen.rate:.3g} ({seen.low:.3g} to {seen.high:.3g})"


def _spread(seen: Seen) -> str:
    least, most = min(seen.events), max(seen.events)
    return str(least) if least == most else f"{least} to {most}"


def sentence(result: Monitored) -> str:
    """Return how many extra connections there are, and which alerts differ."""
    counts: dict[str, int] = {}
    for seen in result.classes:
        if seen.observer == "twinbed" and seen.checksums == "ignored":
            counts[seen.testbed] = counts.get(seen.testbed, 0) + sum(seen.events)
    shown = ", ".join(f"{count} on {testbed}" for testbed, count in counts.items())
    first = f"A monitor sees {shown} connections and frames beyond the workload's (checksums ignored)."
    if not shown:
        first = "A monitor sees 0 connections beyond the workload's (checksums ignored)."
    if not result.alerts:
        return first
    differing = list(dict.fromkeys(f"{alert.what} on {alert.testbed}" for alert in result.differing()))
    if not differing:
        return f"{first} All testbeds raise the same alerts."
    return f"{first} {amount(len(differing), 'alert')} not as often as on the reference: {'; '.join(differing)}."
