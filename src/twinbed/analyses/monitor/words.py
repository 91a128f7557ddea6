"""What a monitor sees as a section: a sentence, connections by class, and alerts."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.monitor.result import Monitored, Seen
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns

OF_CLASSES = (
    "Of each run, on the clients' links; a second: the rate over all runs with its exact 95 % interval, if they come by "
    "chance. ARP's frames count, since they are in no connection. What has none on any testbed has no row."
)
OF_ALERTS = "Alerts of Suricata in each run. The same: every run has as many as every run of the reference."


def section(result: Monitored) -> Section:
    """Return what there is to say of connections and alerts that a monitor sees."""
    items = (classes(result), alerts(result))
    return Section("monitor", "What a security monitor sees", sentence(result), items, kicker="Monitor")


def classes(result: Monitored) -> Table:
    """Return a row a cell, testbed and class of connections."""
    columns = (
        *_columns(result.classes, "class"),
        Column(head="a second", format="s", value=_rate),
        Column(head="verdict", format=str, value="verdict"),
    )
    return Table("classes", "Connections that are not the workload's", OF_CLASSES, columns, result.classes)


def alerts(result: Monitored) -> Table:
    """Return a row a cell, testbed and signature of alerts."""
    same = Column(head="the same", format=lambda same: "yes" if same else "no", value="same")
    columns = (*_columns(result.alerts, "signature"), same)
    return Table("alerts", "Alerts", OF_ALERTS, columns, result.alerts)


def _columns(seen: Sequence[Seen], what: str) -> tuple[Column, ...]:
    """Return what both tables have."""
    return (
        *cell_columns(seen),
        Column("testbed", "Testbed"),
        Column("observer"),
        Column("checksums"),
        Column(what, what, value="what"),
        Column(head="observer" if what == "class" else "", value="observer"),
        Column(head="checksums", value="checksums"),
        Column("runs", value=lambda each: len(each.events)),
        Column("events", value=lambda each: sum(each.events)),
        Column("least", value=lambda each: min(each.events)),
        Column("most", value=lambda each: max(each.events)),
        Column(head="of each run", format="s", value=_spread),
        *(Column(name) for name in ("rate", "low", "high", "same", "verdict")),
    )


def _rate(each: Seen) -> str | None:
    return None if each.rate is None else f"{each.rate:.3g} ({each.low:.3g} to {each.high:.3g})"


def _spread(each: Seen) -> str:
    least, most = min(each.events), max(each.events)
    return str(least) if least == most else f"{least} to {most}"


def sentence(result: Monitored) -> str:
    """Return how many extra connections there are, and which alerts differ."""
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
