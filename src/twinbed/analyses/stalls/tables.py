"""Stalls as rows for programs and as a table for readers."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.stalls.result import Stalled, StallsFound
from twinbed.contracts.analysis import Row
from twinbed.render.tabular import Tabular
from twinbed.render.words import cell_title

CAPTION = (
    "When connections stood still: from the first packet on the link; who waits for an acknowledgement, of how many bytes; how "
    "often it was sent again; requests that were under way; where it got stuck, where both links were captured."
)
FIELDS = (
    *("client", "server", "start_ns", "since_s", "duration_s", "waiting", "unacknowledged_bytes", "retransmissions", "probes"),
    *("rto_s", "reason", "ended_by", "place", "requests"),
)
REASONS = {"unanswered": "unanswered", "zero_window": "closed window"}
PLACES = {
    "path": "on the way",
    "path_back": "on the way back",
    "receiver": "at the receiver",
    "sender": "at the sender",
    None: "",
}


def rows(result: StallsFound) -> list[Row]:
    """A row a stall."""
    return [
        {
            "run": each.run,
            **each.cell,
            "testbed": each.testbed,
            "links": "+".join(each.links),
            **{name: getattr(each, name) for name in FIELDS},
            "kernel_messages": len(each.messages),
        }
        for each in result.stalls
    ]


def message_rows(result: StallsFound) -> list[Row]:
    """A row a kernel message near a stall."""
    return [
        {"run": each.run, "start_ns": each.start_ns, "host": said.host, "after_s": said.after_s, "text": said.text}
        for each in result.stalls
        for said in each.messages
    ]


def table(result: StallsFound) -> Tabular:
    heads = ("Testbed", "Cell", "Link", "waits", "why", "stuck", "at (s)", "for (s)", "bytes", "sent again", "requests")
    return Tabular("Stalls of connections", CAPTION, heads, tuple(_line(each) for each in result.stalls), texts=6)


def _line(each: Stalled) -> tuple[str, ...]:
    return (
        each.testbed,
        cell_title(each.cell),
        "+".join(each.links),
        each.waiting,
        REASONS[each.reason] + (", to the end" if each.ended_by == "capture_end" else ""),
        PLACES[each.place],
        f"{each.since_s:.3f}",
        f"{each.duration_s:.3f}",
        str(each.unacknowledged_bytes),
        str(each.retransmissions + each.probes),
        "–" if each.requests is None else str(each.requests),
    )


def sentence(result: StallsFound) -> str:
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


def messages(result: StallsFound) -> Iterator[str]:
    """What kernels said near stalls, a line each."""
    for each in result.stalls:
        for said in each.messages:
            when = f"{abs(said.after_s):.2f} s {'after' if said.after_s >= 0 else 'before'} the start"
            yield f"{each.testbed}, stall at {each.since_s:.3f} s: {said.host}'s kernel, {when}: {said.text}"
