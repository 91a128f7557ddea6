"""Split the requests of captures into steps, without results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from twinbed import _core
from twinbed.analyses.anatomy import patterns, steps, waits
from twinbed.analyses.anatomy.ladders import Ladder, ladder
from twinbed.analyses.anatomy.patterns import Counts
from twinbed.analyses.anatomy.result import SPECIAL, TOTAL
from twinbed.analyses.anatomy.sampled import together
from twinbed.analyses.anatomy.steps import STEPS, Requests, Seen
from twinbed.analyses.anatomy.waits import Timer
from twinbed.analyses.anatomy.words import TIMER, TITLE, timers
from twinbed.model.error import TwinbedError
from twinbed.show.quantities import number, unit_scale
from twinbed.show.section import Section
from twinbed.show.table import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

VIEWS = {
    Seen.BOTH: "as if both captures had one clock",
    Seen.APART: "both directions added, so that the clocks' offset cancels",
    Seen.CLIENT: "captured at the client's link alone",
}


@dataclass(frozen=True, slots=True)
class Captured:
    """The requests of one or two captures of a path."""

    files: Sequence[Path]
    seen: Seen
    requests: Requests
    counts: Counts
    timers: tuple[Timer, ...]
    ladder: Ladder | None

    @property
    def titles(self) -> dict[str, str]:
        """Return step -> its title."""
        return {step.name: step.title for step in STEPS[self.seen]}

    @property
    def left_out(self) -> dict[str, int]:
        """Return reason -> number of requests left out."""
        counts = {
            "requests that lack a step, such as an answer or a packet in a capture": self.requests.incomplete,
            "requests with a step that ends before it begins": self.requests.disordered,
        }
        return {reason: count for reason, count in counts.items() if count}


def section(captured: Captured) -> Section:
    """Return the steps, patterns of packets and timers of captures."""
    rows = Table("timers", "", "", [Column(name) for name in TIMER], captured.timers)
    pattern = patterns.sentence(captured.files[0].name, patterns.occurring([captured.counts]))
    shown = timers({"": captured.timers}, captured.titles)
    return Section("anatomy", TITLE, pattern, (_steps(captured), rows, *([shown] if shown else [])))


def _steps(captured: Captured) -> Table:
    """Return a row a step."""
    durations = {**captured.requests.durations, "total": captured.requests.total}
    scale = unit_scale("s", [float(durations["total"].mean())])

    def scaled(value: float) -> str:
        return number(value / scale.factor)

    def quantile(part: float) -> Callable[[str], float]:
        return lambda step: float(np.quantile(durations[step], part))

    heads = {0.5: "median", 0.9: "P90", 0.99: "P99"}
    columns = (
        Column("step", value=str),
        Column(head="Step", value=lambda step: captured.titles.get(step, SPECIAL[TOTAL])),
        Column("requests", value=lambda step: len(durations[step])),
        Column("mean_s", "mean", scale.unit, scaled, lambda step: float(durations[step].mean())),
        *(Column(f"p{100 * part:g}_s", head, scale.unit, scaled, quantile(part)) for part, head in heads.items()),
    )
    text = f"{len(captured.requests)} requests, {VIEWS[captured.seen]}."
    return Table("steps", "Steps of a request", text, columns, list(durations))


def read(client: Path, server: Path | None, *, one_clock: bool) -> Captured:
    """Return the steps of one or two captures. Raises TwinbedError if a file is no capture, or has no complete request."""
    read = [_tables(file) for file in (client, server) if file is not None]
    tables = [table for table, _, _ in read]
    seen = Seen.CLIENT if server is None else Seen.BOTH if one_clock else Seen.APART
    requests = steps.requests(tables[0], tables[1] if server is not None else None, seen)
    if not len(requests):
        lacking = f"{requests.incomplete} requests lack a step" if requests.incomplete else "it has no requests"
        raise TwinbedError(
            f"{client} has no HTTP request with all its steps: {lacking}",
            advice="give the client's capture first; both captures must begin before the connections' SYN",
        )
    links = dict(zip(("client", "server"), tables, strict=False))
    sampled = together([packets for _, packets, _ in read])
    files = [file for file in (client, server) if file is not None]
    counts = patterns.counted(tables[0], requests)
    waiting = dict(zip(("client", "server"), (of_link for _, _, of_link in read), strict=False))
    met = waits.counted(tables[0], tables[1] if server is not None else None, requests, waiting, seen)
    return Captured(
        files, seen, requests, counts, waits.timers([met]), ladder({}, client.name, [""], {"": links}, sampled, seen)
    )


def _tables(file: Path) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Return a capture's steps, the packets of sampled requests, and their waits."""
    try:
        tables, _ = _core.capture_tables(file, ["steps"])
    except (OSError, ValueError) as error:
        raise TwinbedError(str(error)) from error
    import pyarrow as pa

    return pa.table(tables["steps"]), pa.table(tables["step_packets"]), pa.table(tables["step_waits"])
