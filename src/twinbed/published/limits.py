"""A finding of the audit, and its rules about impossible values.

The rules find rates above what a link carries, and runs longer than their cap of requests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from scipy.special import ndtr

from twinbed.published.printed import LINKS, Cell, Library, Table
from twinbed.published.replay import goodput
from twinbed.published.rounding import Range
from twinbed.statistics.physics import Accounting, Path, tcp_goodput


@dataclass(frozen=True, slots=True)
class Finding:
    """A printed number that does not follow. ``follows`` does, by ``arithmetic``; ``changes`` is its importance.

    Findings of one ``fact`` have one cause in several places: a number in several tables, one wrong factor in a column, runs of
    one table that one cap ended.
    """

    rule: str
    source: str
    table: str
    cell: str
    printed: str
    follows: str
    arithmetic: str
    changes: str
    cause: str
    """The same for all findings of one fact."""
    fact: int = 0
    """Its number, from 1."""


NORMAL_95 = 1.959963984540054
"""Standard errors in the half-width of an interval that is called "normal 0.95"."""


def above_link(library: Library) -> Iterator[Finding]:
    """Yield goodput above what the link can carry."""
    for table in library.tables.values():
        for cell in table.where(kind="mean", metric="requests_per_second"):
            link = LINKS.get(cell.labels.get("link", ""))
            if link is not None and cell.labels.get("payload") in library.sizes:
                yield from _gate_requests(library, table, cell, link)
        shared = LINKS.get(table.settings.get("shared_link", ""))
        if shared is not None and table.settings.get("transport") == "tcp":
            for cell in table.where(kind="mean", metric="throughput"):
                flows = int(cell.labels["flows"])
                rate = cell.range * Range.exactly(flows * 10**6)
                yield from _gated(table, cell, rate, shared, f"{flows} x {cell.printed} Mbit/s", "")


def _gate_requests(library: Library, table: Table, cell: Cell, link: int) -> Iterator[Finding]:
    rate, formula = goodput(library, cell)
    otherwise = library.sizes[cell.labels["payload"]].otherwise
    doubt = ""
    if otherwise:
        other, _ = goodput(library, cell, otherwise=True)
        if float(other.span.low) <= tcp_goodput(link):
            doubt = f"; if {cell.labels['payload']} means {otherwise} bytes, it is {_mega(float(other.value))}, which fits"
    yield from _gated(table, cell, rate.span, link, f"{formula} = {_mega(float(rate.value))}", doubt)


def _gated(table: Table, cell: Cell, rate: Range, link: int, formula: str, doubt: str) -> Iterator[Finding]:
    most = tcp_goodput(link)
    least = float(rate.low)
    if least <= most:
        return
    shaper = tcp_goodput(link, Path(accounting=Accounting.SHAPER))
    fits = "a shaper that counts no preamble, gap or checksum lets" if least <= shaper else "not even a shaper's count lets"
    yield Finding(
        rule="goodput above the link",
        source=table.source,
        table=table.id,
        cell=cell.name,
        printed=f"{cell.printed} {cell.unit}",
        follows=f"at most {_mega(most)} as TCP payload over Ethernet, MTU 1500, timestamps",
        arithmetic=f"{formula}, at least {_mega(least)} before rounding",
        changes=f"the limit measured is not a wire's: {fits} {_mega(shaper)} through{doubt}",
        cause=formula,
    )


def _mega(rate: float) -> str:
    return f"{rate / 1e6:.1f} Mbit/s"


def request_cap(library: Library) -> Iterator[Finding]:
    """Yield runs that their cap of requests must have ended early, by the mean rate or, for over FEW runs, the interval."""
    for table in library.tables.values():
        if not {"request_cap", "duration_s"} <= table.settings.keys():
            continue
        cap, seconds = int(table.settings["request_cap"]), int(table.settings["duration_s"])
        for cell in table.where(kind="mean", metric="requests_per_second"):
            ended = _share_above(table, cell, cap / seconds)
            if cell.range.low * seconds <= cap and (ended is None or ended <= FEW):
                continue
            after, share = float(cap / cell.number), float(100 * cap / (cell.number * seconds))
            how = f"about {100 * ended:.0f} % of the runs, by the printed interval" if ended is not None else "runs"
            relation = ">" if cell.number * seconds > cap else "<"
            yield Finding(
                rule="request cap",
                source=table.source,
                table=table.id,
                cell=cell.name,
                printed=f"{cell.printed} {cell.unit}, in runs of {seconds} s",
                follows=f"the cap of {cap:,} requests ended {how}: at this rate after {after:.1f} s",
                arithmetic=f"{cell.printed} x {seconds} = {float(cell.number * seconds):,.0f} {relation} {cap:,}",
                changes=f"its runs are {min(100.0, share):.0f} % as long as those that the cap did not end",
                cause=table.id,
            )


FEW = 0.05
"""Share of runs."""


def _share_above(table: Table, cell: Cell, rate: float) -> float | None:
    """Return the share of normal runs above a rate, by the mean and its printed interval; None where n or it is unknown."""
    halves = table.where(**{**cell.labels, "kind": "interval half-width", "metric": cell.metric})
    if not halves or not table.n or table.settings.get("interval") != "normal 0.95":
        return None
    deviation = float(halves[0].number) / NORMAL_95 * math.sqrt(table.n)
    return float(ndtr((float(cell.number) - rate) / deviation)) if deviation else None
