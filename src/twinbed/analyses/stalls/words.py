"""Write stalls as a section: a sentence, a table of the stalls, and kernel messages near them."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from twinbed.analyses.stalls.result import StallsFound
from twinbed.model.amount import amount
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns

CAPTION = (
    "Start: seconds since the first packet on the link. Waits: the end that waits for an acknowledgement of so many bytes. "
    "Requests: those under way. Stuck: known only if both links of the connection were captured."
)
REASONS = {"unanswered": "unanswered", "zero_window": "closed window"}
PLACES = {
    "path": "on the way",
    "path_back": "on the way back",
    "receiver": "at the receiver",
    "sender": "at the sender",
}


def section(result: StallsFound) -> Section:
    """Return the section of stalls."""
    return Section(
        "stalls",
        "Stalls",
        sentence(result),
        (stalls(result), messages(result), tuple(_messages_near(result))),
        kicker="When connections stalled, and what kernels reported",
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
        Column("since_s", "start", "s", ".3f"),
        Column("duration_s", "length", "s", ".3f"),
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
    """Return how many connections stalled, and the longest stall."""
    if not result.stalls and result.pauses:
        runs = amount(len({pause.subject for pause in result.pauses}), "run")
        return f"No stall of a connection was seen in packets, but {runs} paused, as requests or intervals show."
    if not result.stalls and not result.runs:
        return "Cannot tell whether connections stalled: no run has captures, and none shows its pace."
    if not result.stalls:
        return f"No connection stalled in {amount(result.runs, 'run')} whose packets or pace are known."
    longest = max(result.stalls, key=lambda stall: stall.duration_s)
    count, runs = amount(len(result.stalls), "time"), amount(len({stall.run for stall in result.stalls}), "run")
    return f"Connections stalled {count} in {runs}, for up to {longest.duration_s:.3g} s (on {longest.testbed})."


def _messages_near(result: StallsFound) -> Iterator[str]:
    """Yield a line for each kernel message near a stall."""
    for stall in result.stalls:
        for message in stall.messages:
            when = f"{abs(message.after_s):.2f} s {'after' if message.after_s >= 0 else 'before'} the start"
            yield f"{stall.testbed}, stall at {stall.since_s:.3f} s: {message.host}'s kernel, {when}: {message.text}"
