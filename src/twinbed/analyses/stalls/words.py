"""Stalls as a section: a sentence, a table of the stalls, and what kernels said near them."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from twinbed.analyses.stalls.result import StallsFound
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns

CAPTION = (
    "When connections stood still: from the first packet on the link; who waits for an acknowledgement, of how many bytes; how "
    "often it was sent again; requests that were under way; where it got stuck, where both links were captured."
)
REASONS = {"unanswered": "unanswered", "zero_window": "closed window"}
PLACES = {
    "path": "on the way",
    "path_back": "on the way back",
    "receiver": "at the receiver",
    "sender": "at the sender",
}


def section(result: StallsFound) -> Section:
    """Return what there is to say of stalls."""
    return Section(
        "stalls",
        "Stalls",
        sentence(result),
        (stalls(result), messages(result), tuple(_spoken(result))),
        kicker="When connections stood still, and what kernels said",
    )


def stalls(result: StallsFound) -> Table:
    """Return a row a stall."""
    columns = (
        Column("run"),
        *cell_columns(result.stalls),
        Column("testbed", "Testbed"),
        Column("links", "Link", value=lambda stall: "+".join(stall.links)),
        Column("client"),
        Column("server"),
        Column("start_ns"),
        Column(head="waits", value=attrgetter("waiting")),
        Column(head="why", value=lambda stall: REASONS[stall.reason] + _to_the_end(stall.ended_by)),
        Column(head="stuck", value=lambda stall: PLACES.get(stall.place)),
        Column("since_s", "at", "s", ".3f"),
        Column("duration_s", "for", "s", ".3f"),
        Column("waiting"),
        Column("unacknowledged_bytes", "bytes", format="d"),
        Column("retransmissions"),
        Column("probes"),
        Column(head="sent again", format="d", value=lambda stall: stall.retransmissions + stall.probes),
        Column("rto_s"),
        Column("reason"),
        Column("ended_by"),
        Column("place"),
        Column("requests", "requests", format="d"),
        Column("kernel_messages", value=lambda stall: len(stall.messages)),
    )
    return Table("stalls", "Stalls of connections", CAPTION, columns, result.stalls)


def messages(result: StallsFound) -> Table:
    """Return a row a message of a kernel near a stall, for programs."""
    columns = (
        Column("run", value=lambda pair: pair[0].run),
        Column("start_ns", value=lambda pair: pair[0].start_ns),
        Column("host", value=lambda pair: pair[1].host),
        Column("after_s", value=lambda pair: pair[1].after_s),
        Column("text", value=lambda pair: pair[1].text),
    )
    return Table("messages", "", "", columns, [(stall, message) for stall in result.stalls for message in stall.messages])


def _to_the_end(ended_by: str) -> str:
    return ", to the end" if ended_by == "capture_end" else ""


def sentence(result: StallsFound) -> str:
    """Return how many connections stood still, and the longest."""
    if not result.stalls and result.pauses:
        runs = len({each.subject for each in result.pauses})
        paused = f"{runs} run{'s' if runs > 1 else ''} paused"
        return f"No connection is known to have stood still; {paused}, by what requests or intervals show."
    if not result.stalls:
        return f"No connection stood still, in {result.runs} runs whose packets or pace are known."
    longest = max(result.stalls, key=lambda each: each.duration_s)
    runs = len({each.run for each in result.stalls})
    count = len(result.stalls)
    return (
        f"{count} stall{'s' if count > 1 else ''} of connections in {runs} run{'s' if runs > 1 else ''}, "
        f"the longest {longest.duration_s:.3g} s on {longest.testbed}."
    )


def _spoken(result: StallsFound) -> Iterator[str]:
    """What kernels said near stalls, a line each."""
    for each in result.stalls:
        for said in each.messages:
            when = f"{abs(said.after_s):.2f} s {'after' if said.after_s >= 0 else 'before'} the start"
            yield f"{each.testbed}, stall at {each.since_s:.3f} s: {said.host}'s kernel, {when}: {said.text}"
