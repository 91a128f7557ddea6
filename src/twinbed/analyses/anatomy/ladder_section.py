"""Write ladders as sections: those of one cell side by side; below, its steps, which unfold to packets and distributions.

A click on a step's band leads to the section of the step.  The page's script unfolds it and marks its packets in all ladders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from twinbed.analyses.anatomy import draw
from twinbed.analyses.anatomy.ladder import Rung, axis, band_lines, caption, label, rungs, time_text
from twinbed.analyses.anatomy.ladder_svg import Drawn, svg
from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.patterns import percent
from twinbed.analyses.anatomy.result import Anatomy
from twinbed.analyses.anatomy.steps import Seen
from twinbed.model.run import Level
from twinbed.show.figure import Figure
from twinbed.show.section import Item, Section
from twinbed.show.table import Column, Table
from twinbed.show.words import cell_title

MOST_CELLS = 6
"""Cells whose ladders are drawn."""
TEXT = (
    "Each ladder shows one real request: the medoid, which is the sampled request most like all others in packets and times. "
    "An arrow is a packet between the links, thicker if it stands for several on the wire. A band is a step. Time runs down, "
    "alike in all ladders of a row. Click or tap a step for its packets and its distribution."
)
APART = " Both hosts' clocks are shifted so that the fastest packet takes the same time there and back."
STRETCHED = "The axis is stretched where packets are close together, alike in all ladders."


def ladders(result: Anatomy) -> Iterator[Section]:
    """Yield the section of all ladders; nothing if none can be drawn."""
    cells = [cell for cell in result.cells if result.ladders_of(cell)]
    if not cells:
        return
    items: list[Item] = [_cell(result, cell, at) for at, cell in enumerate(cells[:MOST_CELLS], start=1)]
    if len(cells) > MOST_CELLS:
        items.append(f"Ladders of the first {MOST_CELLS} of {len(cells)} cells are drawn.")
    text = TEXT + (APART if result.seen is Seen.APART else "")
    yield Section("anatomy-ladders", "The packets of one request", text, items, in_text=False)


def _cell(result: Anatomy, cell: Mapping[str, Level], at: int) -> Section:
    """Return the ladders of one cell; the first is unfolded."""
    drawn = [(ladder, rungs(ladder.request)) for ladder in result.ladders_of(cell)]
    shared = axis([(ladder.request, of_one) for ladder, of_one in drawn])
    links = {step: f"anatomy-{at}-{step}" for step in result.titles}
    items: list[Item] = []
    for ladder, of_one in drawn:
        text = f"{caption(ladder)} {_pattern(result, ladder)}".strip()
        name = " ".join(filter(None, ("ladder", cell_title(cell) if cell else "", ladder.testbed)))
        draws = partial(svg, Drawn(ladder.request, of_one, shared, result.titles, links), text)
        items.append(Figure(name, text, drawing=draws, caption=text, is_narrow=True))
    if shared.is_stretched:
        items.append(STRETCHED)
    steps = [step for step in result.titles if any(step in ladder.request.durations_ns for ladder, _ in drawn)]
    items += [_step(result, cell, step, links[step], drawn) for step in steps]
    title = cell_title(cell) if cell else "Ladders"
    return Section(f"anatomy-{at}", title, items=items, folded=at > 1, on_paper=True, in_text=False)


def _pattern(result: Anatomy, ladder: Ladder) -> str:
    """Return how common the request's pattern of packets is."""
    own = next((group for group in result.of(ladder.cell) if group.testbed == ladder.testbed), None)
    part = sum(pattern.share for pattern in own.patterns if pattern.packets == ladder.request.pattern) if own else 0
    return f"{percent(part)} of requests are {ladder.request.pattern}." if part else ""


def _step(
    result: Anatomy, cell: Mapping[str, Level], step: str, key: str, drawn: Sequence[tuple[Ladder, Sequence[Rung]]]
) -> Section:
    """Return one step, folded: how long it takes on all testbeds, and its packets on each."""
    took = "; ".join(f"{ladder.testbed} {time_text(ladder.request.durations_ns.get(step, 0))}" for ladder, _ in drawn)
    where = f"{cell_title(cell)}, " if cell else ""
    strip = draw.strip(result.of(cell), step, f"{where}{result.titles[step]}: its distribution over testbeds")
    tables = [packet_table(ladder, of_one, step) for ladder, of_one in drawn]
    items: list[Item] = [strip, *tables] if strip else [*tables]
    return Section(key, f"{result.titles[step]}: {took}", items=items, folded=True, on_paper=False, in_text=False)


def packet_table(ladder: Ladder, of_one: Sequence[Rung], step: str) -> Table:
    """Return the packets of a step, with those that begin and end it, folded as in the ladder."""
    spans = [span for span in ladder.request.spans if span.step == step]
    own = [rung for rung in of_one if any(span.holds(packet) for span in spans for packet in rung.packets)]
    columns = (
        Column(head="Packet", value=_packets),
        Column(head="From", value=_side),
        Column(head="Sent after", format="s", value=lambda rung: time_text(rung.begin_ns)),
        Column(head="Took", format=str, value=_way),
    )
    return Table("packets", f"{ladder.testbed}: {time_text(ladder.request.durations_ns.get(step, 0))}", "", columns, own)


def _packets(rung: Rung) -> str:
    return f"{len(rung.packets)} packets: {'; '.join(band_lines(rung.packets))}" if rung.is_band else label(rung.packets[0])


def _side(rung: Rung) -> str:
    return "both" if rung.is_band else "client" if rung.packets[0].from_client else "server"


def _way(rung: Rung) -> str | None:
    first = rung.packets[0]
    if rung.is_band or not first.was_seen_sent or first.arrived_ns is None:
        return None
    return time_text(max(0, first.arrived_ns - first.sent_ns))
