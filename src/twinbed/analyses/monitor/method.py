"""The analysis ``monitor``: which connections that are not the workload's a monitor sees on each testbed, by class, and which
alerts testbeds do not share.

In: the tables ``extra_classes``, ``monitored_links`` and ``alerts`` of the instrument ``monitor``, on the clients' links.
Out: for each cell and testbed the events of every run, their rate with Poisson's exact interval, and whether they are the
reference's.  The verdicts are each at 5 %, not corrected for their number: they say where to look.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from twinbed.analyses.monitor.result import Monitored, Seen
from twinbed.contracts.analysis import Analysis, Section
from twinbed.model.error import TwinbedError
from twinbed.model.json import loads
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.model.tables import Tables
from twinbed.show.table import Row
from twinbed.statistics.counts import Tally, count_test
from twinbed.statistics.events import rate_bounds

CLIENT = "client"
ALPHA = 0.05

Kind = tuple[str, str, str]
"""Observer, checksums, class or signature."""
Counts = dict[Kind, dict[str, int]]
"""Kind -> run -> events."""


class MonitorAnalysisParams(BaseModel):
    """It has no settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MonitorAnalysis(Analysis[MonitorAnalysisParams, Monitored]):
    """What a security monitor sees."""

    name = "monitor"
    params = MonitorAnalysisParams
    summary = "what a security monitor sees that is not the workload's, and which alerts differ"

    def run(self, source: Tables, params: MonitorAnalysisParams | None = None) -> Monitored:
        seconds = _seconds(source)
        if not seconds:
            raise TwinbedError(f"{source.shown} has no captures of a monitor", advice="the instrument monitor takes them")
        complete = [record for record in source.records if record.status is Status.COMPLETE]
        records = [record for record in complete if record.id in seconds]
        groups: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            groups.setdefault((_cell(record), str(record.settings["testbed"]["name"])), []).append(record)
        ordered = sorted(groups, key=lambda group: (group[0], source.outline.testbeds.index(group[1])))
        margin, reference = source.outline.margin, source.outline.reference
        classes, alerts = (
            tuple(
                _seen(kind, cell, testbed, groups, reference, counts, seconds, margin)
                for cell, testbed in ordered
                for kind in counts
            )
            for counts in (_classes(source), _alerts(source))
        )
        left = len(complete) - len(records)
        left_out = {"runs without the instrument monitor": left} if left else {}
        return Monitored(classes, alerts, reference, (), left_out)

    def tables(self, result: Monitored) -> Mapping[str, Sequence[Row]]:
        from twinbed.analyses.monitor.tables import rows

        return {"classes": rows(result.classes, "class"), "alerts": rows(result.alerts, "signature")}

    def section(self, result: Monitored) -> Section:
        from twinbed.analyses.monitor.section import section

        return section(result)

    def sections(self, source: Tables) -> Sequence[Section]:
        try:
            result = self.run(source)
        except TwinbedError:  # nothing was monitored
            return ()
        return (self.section(result),)


def _cell(record: Record) -> str:
    return json.dumps({factor: value for factor, value in record.levels.items() if factor != "testbed"}, sort_keys=True)


def _seconds(source: Tables) -> dict[str, float | None]:
    """Run -> how long its longest client's capture is."""
    seconds: dict[str, float | None] = {}
    for row in _rows(source, "monitored_links"):
        both = [each for each in (seconds.get(row["run"]), row["seconds"]) if each is not None]
        seconds[row["run"]] = max(both, default=None)
    return seconds


def _rows(source: Tables, name: str) -> Iterator[Row]:
    """Of the clients' links."""
    table = source.table(name)
    if table.num_rows:
        yield from (row for row in table.to_pylist() if row["link"].startswith(CLIENT))


def _classes(source: Tables) -> Counts:
    counts: Counts = {}
    for row in _rows(source, "extra_classes"):
        runs = counts.setdefault((row["observer"], row["checksums"], row["class"]), {})
        runs[row["run"]] = runs.get(row["run"], 0) + row["connections"] + row["frames"]
    return {kind: runs for kind, runs in counts.items() if any(runs.values())}


def _alerts(source: Tables) -> Counts:
    counts: Counts = {}
    for row in _rows(source, "alerts"):
        kind = ("suricata", row["checksums"], f"{row['generator']}:{row['signature_id']} {row['signature']}")
        runs = counts.setdefault(kind, {})
        runs[row["run"]] = runs.get(row["run"], 0) + row["alerts"]
    return counts


def _seen(
    kind: Kind,
    cell: str,
    testbed: str,
    groups: Mapping[tuple[str, str], Sequence[Record]],
    reference: str | None,
    counts: Counts,
    seconds: Mapping[str, float | None],
    margin: float,
) -> Seen:
    observer, checksums, what = kind
    runs = counts[kind]
    own = groups[cell, testbed]
    events = tuple(runs.get(record.id, 0) for record in own)
    exposure = _exposure(own, seconds)
    bounds = rate_bounds(sum(events), exposure) if exposure else None
    others = groups.get((cell, reference or ""), ())
    same, verdict = None, None
    if others and testbed != reference:
        theirs = tuple(runs.get(record.id, 0) for record in others)
        same = len({*events, *theirs}) == 1
        verdict = _verdict(events, theirs, exposure, _exposure(others, seconds), margin)
    low, high = (bounds.low, bounds.high) if bounds else (None, None)
    return Seen(loads(cell), testbed, observer, checksums, what, events, exposure, low, high, same, verdict)


def _exposure(records: Sequence[Record], seconds: Mapping[str, float | None]) -> float | None:
    spans = [seconds[record.id] for record in records]
    return None if None in spans else sum(span for span in spans if span is not None)


def _verdict(
    events: Sequence[int], theirs: Sequence[int], exposure: float | None, other: float | None, margin: float
) -> str | None:
    if not exposure or not other or not (sum(events) or sum(theirs)):
        return None
    test = count_test(Tally(events, exposure), Tally(theirs, other), margin, ALPHA)
    if test.p_different <= ALPHA:
        return "different"
    return "equivalent" if test.p_equivalent <= ALPHA else "inconclusive"


analysis = MonitorAnalysis()
