"""A measurement of all its ways: values, a table of intervals, and what to doubt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Measurement
from twinbed.imports.formats.iperf3.way import UNITS, Way
from twinbed.imports.text.load import values
from twinbed.model.caution import Caution, Kind

if TYPE_CHECKING:
    import pyarrow as pa

C_TO_S, S_TO_C = "client_to_server", "server_to_client"
CLEARLY_SHORT = 0.98
"""Share of the duration below which a stream ended early, as for the workload."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """``error``: what iperf3 itself said went wrong."""

    facts: Mapping[str, str | int | float | bool]
    started_s: float | None
    duration_s: float | None
    error: str | None
    diagnostics: Sequence[Diagnostic]


def measurement(ways: Sequence[Way], about: Circumstances) -> Measurement:
    rows = [row for way in ways for row in way.rows()]
    return Measurement(
        values=[value for way in ways for value in values(way.numbers(), UNITS, way.direction)],
        tables={"intervals": table(rows)} if rows else {},
        cautions=[*_cautions(ways, about), *(caution for way in ways for caution in way.contradictions())],
        diagnostics=about.diagnostics,
        facts=about.facts,
        started_s=about.started_s,
    )


def _cautions(ways: Sequence[Way], about: Circumstances) -> Iterator[Caution]:
    if about.error:
        yield Caution(Kind.CUT_SHORT, f"iperf3: {about.error}")
        return
    for way in ways:
        side = way.receiver if way.receiver.intervals is not None else way.sender
        intervals = None if side.lacking else side.intervals
        whole = math.fsum(each.seconds for each in intervals or ())
        if about.duration_s and intervals and whole < CLEARLY_SHORT * about.duration_s:
            whither = f" ({way.direction})" if way.direction else ""
            yield Caution(Kind.CUT_SHORT, f"{whole:.3g} s of {about.duration_s:g} s are recorded{whither}")
        if way.udp and way.near_sends and way.near == "client" and way.sender.intervals:
            yield from _unknown(way.numbers())


def _unknown(numbers: Mapping[str, float | None]) -> Iterator[Caution]:
    """Cautions on what no report says. A client before iperf 3.7 knows only losses, those of omitted seconds included."""
    if numbers.get("goodput") is None and numbers.get("loss") is None:
        detail = "goodput and loss are null: what arrived is not in this report, or only with what was omitted"
        yield Caution(Kind.UNREADABLE, detail)


def table(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """As the workload's ``intervals``; with a column ``direction`` where there are two."""
    from twinbed.readers.iperf3 import interval_table

    intervals = interval_table(rows)
    if "direction" in rows[0]:
        import pyarrow as pa

        intervals = intervals.append_column("direction", pa.array([row["direction"] for row in rows], pa.string()))
    return intervals
