"""Ladders for the terminal, and as a sequence diagram of Mermaid.

The terminal gets a line for each packet, with its time, its arrow, how long it took, and the steps that it ends.  Mermaid gets
one diagram, whose parts are the testbeds of each cell (syntax: https://mermaid.js.org/syntax/sequenceDiagram).  In its texts
``#`` begins an entity and ``;`` ends a statement.
"""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from twinbed.analyses.anatomy.ladder import Rung, band_lines, caption, label, rungs, time_text
from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.result import TOTAL, Anatomy
from twinbed.analyses.anatomy.sampled import Packet, Request, Span
from twinbed.analyses.anatomy.steps import Seen
from twinbed.show.words import cell_title

ARROW, TIME = 42, 9
"""Characters between the lifelines, and of a time."""

MOST_SHOWN = 16
"""The most lines of a ladder that is shown without --ladder."""


def shown(result: Anatomy, *, all_of_them: bool) -> Iterator[str]:
    """Yield every ladder; by default those of the largest difference, the reference's first, if they are short."""
    ladders = list(result.ladders) if all_of_them else _of_the_largest(result)
    if not all_of_them and not is_short(ladders):
        if ladders:
            yield "--ladder shows a request of each testbed packet by packet."
        return
    for ladder in ladders:
        yield ""
        yield from ladder_lines(ladder, result.titles)
    if ladders:
        yield ""


def is_short(ladders: Sequence[Ladder]) -> bool:
    """Return whether there are ladders, all short enough for the terminal."""
    return bool(ladders) and all(len(rungs(ladder.request)) <= MOST_SHOWN for ladder in ladders)


def ladder_lines(ladder: Ladder, titles: Mapping[str, str]) -> Iterator[str]:
    """Yield a caption and one ladder."""
    yield f"{f'{cell_title(ladder.cell)}, ' if ladder.cell else ''}{caption(ladder)}"
    yield from lines(ladder.request, titles)


def _of_the_largest(result: Anatomy) -> list[Ladder]:
    """Return the ladders of the pair whose requests differ most by ratio; without a reference, those of the first cell."""
    totals = [difference for difference in result.differences if difference.step == TOTAL and difference.ratio]
    if not totals:
        return list(result.ladders_of(result.ladders[0].cell)) if result.ladders else []
    most = max(totals, key=lambda difference: abs(math.log(difference.ratio or 1.0)))
    pair = (most.reference, most.testbed)
    return sorted(
        (ladder for ladder in result.ladders_of(most.cell) if ladder.testbed in pair),
        key=lambda ladder: pair.index(ladder.testbed),
    )


def lines(request: Request, titles: Mapping[str, str]) -> Iterator[str]:
    """Yield one ladder, 80 characters wide without the titles of steps. ``titles``: step -> its title."""
    of_all = rungs(request)
    right = "" if request.seen is Seen.CLIENT else "server's link"
    yield f"{'':{TIME}}  client's link{right:>{ARROW - 11}}   steps"
    ended = _ended(request, of_all)
    for at, rung in enumerate(of_all):
        first, *others = _arrows(rung, request.seen)
        notes = [f"{titles[step]}: {time_text(request.durations_ns[step])}" for step in ended[at]]
        yield f"{time_text(rung.begin_ns):>{TIME}}  {first}  {notes[0] if notes else ''}".rstrip()
        for other in others:
            yield f"{'':{TIME}}  {other}"
        for note in notes[1:]:
            yield f"{'':{TIME}}  |{'':{ARROW}}|  {note}"


def _ended(request: Request, of_all: tuple[Rung, ...]) -> Mapping[int, list[str]]:
    """Return place of a rung -> the steps that its packet ends, by the last span of each step."""
    ended: dict[int, list[str]] = defaultdict(list)
    for step, span in {span.step: span for span in request.spans}.items():
        at = max(
            (at for at, rung in enumerate(of_all) if rung.begin_ns <= span.end_ns),
            key=lambda at: of_all[at].begin_ns,
            default=0,
        )
        ended[at].append(step)
    return ended


def _arrows(rung: Rung, seen: Seen) -> list[str]:
    if rung.is_band:
        return [f":{line:^{ARROW}}:" for line in band_lines(rung.packets)]
    return [_arrow(rung.packets[0], seen)]


def _arrow(packet: Packet, seen: Seen) -> str:
    text = label(packet)
    if packet.arrived_ns is not None and packet.was_seen_sent:
        text += f", {time_text(max(0, packet.arrived_ns - packet.sent_ns))}"
    elif seen is not Seen.CLIENT:
        text += ", lost" if packet.was_seen_sent else ", not seen when sent"
    shown = f" {text[: ARROW - 6]} "
    return f"|{f'--{shown}':-<{ARROW - 1}}>|" if packet.from_client else f"|<{f'{shown}--':->{ARROW - 1}}|"


IN_NOTE = 34
"""Characters of a line of a note."""
NAMES = {"C": "client", "CL": "client's link", "SL": "server's link", "S": "server"}


def diagram(ladders: Sequence[Ladder], titles: Mapping[str, str]) -> str:
    """Return ladders as one diagram of Mermaid. ``titles``: step -> its title."""
    return "\n".join(_diagram(ladders, titles)) + "\n"


def _diagram(ladders: Sequence[Ladder], titles: Mapping[str, str]) -> Iterator[str]:
    alone = all(ladder.request.seen is Seen.CLIENT for ladder in ladders)
    names = {"CL": "client's link", "SL": "everything behind it"} if alone else NAMES
    yield "sequenceDiagram"
    for name, title in names.items():
        yield f"    participant {name} as {_text(title)}"
    ends = "CL,SL" if alone else "C,S"
    for ladder in ladders:
        where = ", ".join(part for part in (cell_title(ladder.cell) if ladder.cell else "", ladder.testbed) if part)
        note = f"{where}: {time_text(ladder.request.total_ns)}, the medoid of {ladder.of} requests"
        yield f"    Note over {ends}: {_text(note)}"
        yield from _packets(ladder, titles, alone)


def _packets(ladder: Ladder, titles: Mapping[str, str], alone: bool) -> Iterator[str]:
    begins = sorted(ladder.request.spans, key=lambda span: span.begin_ns)
    for rung in rungs(ladder.request):
        yield f"    {_message(rung, alone)}"
        while begins and begins[0].begin_ns <= rung.end_ns:
            yield f"    {_note(begins.pop(0), ladder, titles, alone)}"
    for span in begins:
        yield f"    {_note(span, ladder, titles, alone)}"


def _message(rung: Rung, alone: bool) -> str:
    if rung.is_band:
        took = time_text(rung.end_ns - rung.begin_ns)
        return f"Note over CL,SL: {_text(f'{took}: ' + ', and '.join(band_lines(rung.packets)))}"
    (packet,) = rung.packets
    ends = ("CL", "SL") if packet.from_client else ("SL", "CL")
    arrow = "-x" if packet.was_seen_sent and packet.arrived_ns is None and not alone else "->>"
    if not packet.was_seen_sent and not alone:
        arrow = "-->>"
    return f"{ends[0]}{arrow}{ends[1]}: {_text(_packet_text(packet))}"


def _packet_text(packet: Packet) -> str:
    text = f"{label(packet)}, {time_text(packet.sent_ns)}"
    if packet.arrived_ns is not None and packet.was_seen_sent:
        text += f" + {time_text(max(0, packet.arrived_ns - packet.sent_ns))}"
    return text


def _note(span: Span, ladder: Ladder, titles: Mapping[str, str], alone: bool) -> str:
    place = {"client": "left of CL" if alone else "over C,CL", "server": "right of SL" if alone else "over SL,S"}
    text = f"{titles[span.step]}: {time_text(ladder.request.durations_ns[span.step])}"
    return f"Note {place.get(span.where, 'over CL,SL')}: {'<br/>'.join(textwrap.wrap(_text(text), IN_NOTE))}"


_ESCAPED = str.maketrans({"#": "#35;", ";": "#59;"})


def _text(text: str) -> str:
    return " ".join(text.translate(_ESCAPED).split())
