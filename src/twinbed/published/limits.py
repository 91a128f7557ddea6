"""Rules of the audit about impossible values: rates above what a link carries, runs longer than their cap of requests."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.published.finding import Finding
from twinbed.published.printed import LINKS, Cell, Library, Table
from twinbed.published.replay import goodput
from twinbed.published.rounding import Range
from twinbed.statistics.physics import Accounting, Path, tcp_goodput


def above_link(library: Library) -> Iterator[Finding]:
    """Goodput above what the link can carry."""
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
    )


def _mega(rate: float) -> str:
    return f"{rate / 1e6:.1f} Mbit/s"


def request_cap(library: Library) -> Iterator[Finding]:
    """Runs that their cap of requests must have ended before their time."""
    for table in library.tables.values():
        if not {"request_cap", "duration_s"} <= table.settings.keys():
            continue
        cap, seconds = int(table.settings["request_cap"]), int(table.settings["duration_s"])
        for cell in table.where(kind="mean", metric="requests_per_second"):
            if cell.range.low * seconds <= cap:
                continue
            share = float(100 * cap / (cell.number * seconds))
            yield Finding(
                rule="request cap",
                source=table.source,
                table=table.id,
                cell=cell.name,
                printed=f"{cell.printed} {cell.unit}, in runs of {seconds} s",
                follows=f"the cap of {cap:,} requests ended runs: at this rate after {float(cap / cell.number):.1f} s",
                arithmetic=f"{cell.printed} x {seconds} = {float(cell.number * seconds):,.0f} > {cap:,}",
                changes=f"its runs are {share:.0f} % as long as those that the cap did not end",
            )
