"""The steps of the requests of captures, without results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from twinbed import _core
from twinbed.analyses.anatomy import patterns, steps, waits
from twinbed.analyses.anatomy.ladders import Ladder, ladder
from twinbed.analyses.anatomy.patterns import Counts
from twinbed.analyses.anatomy.sampled import together
from twinbed.analyses.anatomy.steps import STEPS, Requests, Seen
from twinbed.analyses.anatomy.tables import timer_row, timer_table
from twinbed.analyses.anatomy.waits import Timer
from twinbed.model.error import TwinbedError
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import number, unit_scale
from twinbed.show.table import Row

if TYPE_CHECKING:
    import pyarrow as pa

SHARES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Captured:
    """What one or two captures of a path show."""

    files: Sequence[Path]
    seen: Seen
    requests: Requests
    counts: Counts
    timers: tuple[Timer, ...]
    ladder: Ladder | None

    @property
    def titles(self) -> dict[str, str]:
        return {step.name: step.title for step in STEPS[self.seen]}

    def rows(self) -> list[Row]:
        """A row a step, in base units."""
        durations = {**self.requests.durations, "total": self.requests.total}
        return [
            {
                "step": name,
                "requests": len(seconds),
                "mean_s": float(seconds.mean()),
                **{f"p{100 * part:g}_s": float(np.quantile(seconds, part)) for part in SHARES},
            }
            for name, seconds in durations.items()
        ]

    def table(self) -> Tabular:
        durations = {**self.requests.durations, "total": self.requests.total}
        scale = unit_scale("s", [float(durations["total"].mean())])
        rows = tuple(
            (
                self.titles.get(name, "a request, from its first packet to its end"),
                *(number(float(value) / scale.factor) for value in (seconds.mean(), *np.quantile(seconds, SHARES))),
            )
            for name, seconds in durations.items()
        )
        heads = ("Step", *(f"{head}, {scale.unit}" for head in ("mean", "median", "P90", "P99")))
        views = {
            Seen.BOTH: "as if both captures had one clock",
            Seen.APART: "ways there and back taken together, in which the clocks cancel",
            Seen.CLIENT: "seen at the client's link alone",
        }
        return Tabular("Steps of a request", f"{len(self.requests)} requests, {views[self.seen]}.", heads, rows)

    def timer_rows(self) -> list[Row]:
        return [timer_row(each) for each in self.timers]

    def timer_table(self) -> Tabular | None:
        return timer_table({"": self.timers}, self.titles)

    def patterns(self) -> str:
        """Those that occur, with their shares."""
        return patterns.sentence(self.files[0].name, patterns.occurring([self.counts]))


def read(client: Path, server: Path | None, *, one_clock: bool) -> Captured:
    """Raises TwinbedError where a file is no capture, or holds no whole request."""
    read = [_tables(file) for file in (client, server) if file is not None]
    tables = [each for each, _, _ in read]
    seen = Seen.CLIENT if server is None else Seen.BOTH if one_clock else Seen.APART
    found = steps.requests(tables[0], tables[1] if server is not None else None, seen)
    if not len(found):
        lacking = f"{found.incomplete} lack a step" if found.incomplete else "none was found"
        raise TwinbedError(
            f"{client} holds no HTTP request with all its steps: {lacking}",
            advice="the client's capture comes first; both must hold the connections from their SYN on",
        )
    links = dict(zip(("client", "server"), tables, strict=False))
    sampled = together([packets for _, packets, _ in read])
    files = [file for file in (client, server) if file is not None]
    counts = patterns.counted(tables[0], found)
    waiting = dict(zip(("client", "server"), (each for _, _, each in read), strict=False))
    met = waits.counted(tables[0], tables[1] if server is not None else None, found, waiting, seen)
    return Captured(files, seen, found, counts, waits.timers([met]), ladder({}, client.name, [""], {"": links}, sampled, seen))


def _tables(file: Path) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Its steps, the packets of a sample of its requests, and what they waited for."""
    try:
        tables, _ = _core.capture_tables(file, ["steps"])
    except (OSError, ValueError) as error:
        raise TwinbedError(str(error)) from error
    import pyarrow as pa

    return pa.table(tables["steps"]), pa.table(tables["step_packets"]), pa.table(tables["step_waits"])
