"""Ladders as a sequence diagram of Mermaid: one diagram, whose parts are the testbeds of each cell, one after the other.

Syntax: https://mermaid.js.org/syntax/sequenceDiagram. In texts ``#`` begins an entity and ``;`` ends a statement.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from twinbed.analyses.anatomy.ladder import Rung, band_lines, label, rungs, time_text
from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.sampled import Packet, Span
from twinbed.analyses.anatomy.steps import Seen
from twinbed.show.words import cell_title

IN_NOTE = 34
"""Characters of a line of a note."""
NAMES = {"C": "client", "CL": "client's link", "SL": "server's link", "S": "server"}


def diagram(ladders: Sequence[Ladder], titles: Mapping[str, str]) -> str:
    """Return ladders as one diagram. ``titles``: step -> what it is."""
    return "\n".join(_diagram(ladders, titles)) + "\n"


def _diagram(ladders: Sequence[Ladder], titles: Mapping[str, str]) -> Iterator[str]:
    alone = all(each.request.seen is Seen.CLIENT for each in ladders)
    names = {"CL": "client's link", "SL": "what lies behind it"} if alone else NAMES
    yield "sequenceDiagram"
    for name, title in names.items():
        yield f"    participant {name} as {_text(title)}"
    ends = "CL,SL" if alone else "C,S"
    for each in ladders:
        where = ", ".join(part for part in (cell_title(each.cell) if each.cell else "", each.testbed) if part)
        about = f"{where}: {time_text(each.request.total_ns)}, the medoid of {each.of} requests"
        yield f"    Note over {ends}: {_text(about)}"
        yield from _packets(each, titles, alone)


def _packets(each: Ladder, titles: Mapping[str, str], alone: bool) -> Iterator[str]:
    begins = sorted(each.request.spans, key=lambda span: span.begin_ns)
    for rung in rungs(each.request):
        yield f"    {_message(rung, alone)}"
        while begins and begins[0].begin_ns <= rung.end_ns:
            yield f"    {_note(begins.pop(0), each, titles, alone)}"
    for span in begins:
        yield f"    {_note(span, each, titles, alone)}"


def _message(rung: Rung, alone: bool) -> str:
    if rung.is_band:
        took = time_text(rung.end_ns - rung.begin_ns)
        return f"Note over CL,SL: {_text(f'{took}: ' + ', and '.join(band_lines(rung.packets)))}"
    (packet,) = rung.packets
    ends = ("CL", "SL") if packet.from_client else ("SL", "CL")
    arrow = "-x" if packet.was_seen_sent and packet.arrived_ns is None and not alone else "->>"
    if not packet.was_seen_sent and not alone:
        arrow = "-->>"
    return f"{ends[0]}{arrow}{ends[1]}: {_text(_said(packet))}"


def _said(packet: Packet) -> str:
    text = f"{label(packet)}, {time_text(packet.sent_ns)}"
    if packet.arrived_ns is not None and packet.was_seen_sent:
        text += f" + {time_text(max(0, packet.arrived_ns - packet.sent_ns))}"
    return text


def _note(span: Span, each: Ladder, titles: Mapping[str, str], alone: bool) -> str:
    place = {"client": "left of CL" if alone else "over C,CL", "server": "right of SL" if alone else "over SL,S"}
    text = f"{titles[span.step]}: {time_text(each.request.durations_ns[span.step])}"
    return f"Note {place.get(span.where, 'over CL,SL')}: {'<br/>'.join(textwrap.wrap(_text(text), IN_NOTE))}"


_ESCAPED = str.maketrans({"#": "#35;", ";": "#59;"})


def _text(text: str) -> str:
    return " ".join(text.translate(_ESCAPED).split())
