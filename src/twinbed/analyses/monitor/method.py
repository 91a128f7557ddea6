"""The analysis ``monitor``: the connections beyond the workload's that a monitor sees, by class, and alerts that differ.

In: the tables ``extra_classes``, ``monitored_links`` and ``alerts`` of the instrument ``monitor``, on the clients' links.
Out: for each cell and testbed the events of every run, their rate with Poisson's exact interval, and a verdict on the ratio to
the reference.  Verdicts are each at 5 %, without correction for their number: they show where to look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from twinbed.analyses.monitor import words
from twinbed.analyses.monitor.result import Monitored, Seen
from twinbed.contracts.analysis import Analysis, NoSettings
from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.tables import Tables
from twinbed.observations.inside import CLIENT, Cell, by_cell, complete
from twinbed.observations.samples import cell_of
from twinbed.show.section import Section
from twinbed.show.table import Row
from twinbed.statistics.counts import Tally, count_test, rate_bounds

ALPHA = 0.05

Kind = tuple[str, str, str]
"""Observer, checksums, class or signature."""
Counts = dict[Kind, dict[str, int]]
"""Kind -> run -> events."""


class MonitorAnalysis(Analysis[NoSettings, Monitored]):
    """Count the connections beyond the workload's that a security monitor sees, and the alerts that differ between testbeds.

    The study needs the instrument monitor; alerts need its engine suricata.

    \b
      twinbed analyse monitor results/
      twinbed analyse monitor results/ -o monitor.html              as a page
      twinbed analyse monitor results/ --table alerts -o alerts.csv      the alerts as rows
    """

    name = "monitor"
    params = NoSettings
    epilog = "docs/observer.md explains the classes, and how alerts are compared."
    table_names = ("classes", "alerts")
    is_in_reports = True

    def run(self, source: Tables, params: NoSettings | None = None) -> Monitored:
        seconds = _seconds(source)
        if not seconds:
            raise TwinbedError(
                f"{source.shown} has no captures of a monitor", advice="run the study with instruments: [monitor]"
            )
        every = complete(source)
        records = sorted((record for record in every if record.id in seconds), key=lambda record: cell_of(record.levels)[0])
        margin, reference = source.outline.margin, source.outline.reference
        classes, alerts = (
            tuple(
                _seen(kind, runs, cell, testbed, reference, seconds, margin)
                for cell in by_cell(source, records, lambda record: record)
                for testbed in cell.runs
                for kind, runs in counts.items()
            )
            for counts in (_classes(source), _alerts(source))
        )
        left = len(every) - len(records)
        left_out = {"runs without the instrument monitor": left} if left else {}
        return Monitored(classes, alerts, reference, left_out=left_out)

    def section(self, result: Monitored) -> Section:
        return words.section(result)


def _seconds(source: Tables) -> dict[str, float | None]:
    """Return run -> the length of its longest client's capture."""
    seconds: dict[str, float | None] = {}
    for row in _rows(source, "monitored_links"):
        both = [known for known in (seconds.get(row["run"]), row["seconds"]) if known is not None]
        seconds[row["run"]] = max(both, default=None)
    return seconds


def _rows(source: Tables, name: str) -> Iterator[Row]:
    """Yield the rows of clients' links."""
    table = source.table(name)
    if table.num_rows:
        yield from (row for row in table.to_pylist() if row["link"].startswith(CLIENT))


def _classes(source: Tables) -> Counts:
    rows = _rows(source, "extra_classes")
    counts = ((row, (row["observer"], row["checksums"], row["class"]), row["connections"] + row["frames"]) for row in rows)
    return {kind: runs for kind, runs in _counted(counts).items() if any(runs.values())}


def _alerts(source: Tables) -> Counts:
    names = "{generator}:{signature_id} {signature}"
    rows = _rows(source, "alerts")
    return _counted((row, ("suricata", row["checksums"], names.format_map(row)), row["alerts"]) for row in rows)


def _counted(rows: Iterable[tuple[Row, Kind, int]]) -> Counts:
    """Return the events of each kind and run."""
    counts: Counts = defaultdict(lambda: defaultdict(int))
    for row, kind, events in rows:
        counts[kind][row["run"]] += events
    return counts


def _seen(
    kind: Kind,
    counts: Mapping[str, int],
    cell: Cell[Record],
    testbed: str,
    reference: str | None,
    seconds: Mapping[str, float | None],
    margin: float,
) -> Seen:
    own, others = cell.runs[testbed], cell.runs.get(reference or "", ())
    events, exposure = tuple(counts.get(record.id, 0) for record in own), _exposure(own, seconds)
    bounds = rate_bounds(sum(events), exposure) if exposure else None
    same, verdict = None, None
    if others and testbed != reference:
        theirs = tuple(counts.get(record.id, 0) for record in others)
        same = len({*events, *theirs}) == 1
        verdict = _verdict(events, theirs, exposure, _exposure(others, seconds), margin)
    low, high = (bounds.low, bounds.high) if bounds else (None, None)
    return Seen(cell.levels, testbed, *kind, events, exposure, low, high, same, verdict)


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
