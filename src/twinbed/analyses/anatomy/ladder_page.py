"""Ladders in a page: those of one cell side by side, and below them its steps, which unfold to packets and to distributions.

A click on a step's band leads to the step below, which the page's script unfolds, marking its packets in all ladders; without
the script the link does the same but for the marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from twinbed.analyses.anatomy.distribution import strip
from twinbed.analyses.anatomy.ladder import Rung, axis, band_lines, caption, label, rungs, time_text
from twinbed.analyses.anatomy.ladder_svg import Drawn, svg
from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.patterns import percent
from twinbed.analyses.anatomy.result import Anatomy
from twinbed.analyses.anatomy.steps import Seen
from twinbed.model.run import Level
from twinbed.render.html import html
from twinbed.render.tabular import Tabular
from twinbed.show.words import cell_title

MOST_CELLS = 6
"""Cells whose ladders are drawn."""
STRIP = (
    "All requests: a line from P5 to P99, a box of the middle half, a bar at the median, each the mean over runs; a dot is a "
    "run's mean. Below, the packets of the ladders."
)


def ladder_parts(result: Anatomy, cells: Sequence[Mapping[str, Level]]) -> Iterator[Markup]:
    """Nothing where no ladder can be drawn."""
    drawn = [cell for cell in cells if result.ladders_of(cell)]
    if not drawn:
        return
    yield Markup("<h3>The packets of one request</h3>")
    yield html('<p class="note">{}</p>', _caption(result))
    for number, cell in enumerate(drawn[:MOST_CELLS], start=1):
        title = cell_title(cell) if cell else "Ladders"
        is_open = Markup(" open") if number == 1 else ""
        yield html(
            '<details class="print ladders"{}><summary>{}</summary>{}</details>',
            is_open,
            title,
            Markup().join(_cell(result, cell, number)),
        )
    if len(drawn) > MOST_CELLS:
        yield html('<p class="note">Ladders of the first {} of {} cells are drawn.</p>', MOST_CELLS, len(drawn))


def _caption(result: Anatomy) -> str:
    text = (
        "Of each testbed the medoid: of a sample of its requests the one that is least unlike the others in its packets and "
        "their times; never an average. An arrow is a packet between the links, thicker where it stands for several on the "
        "wire; a band beside it is a step. Time runs down, the same for all ladders of a row. Click or tap a step for its "
        "packets and its distribution."
    )
    if result.seen is Seen.APART:
        text += " Clocks of both hosts are set so that the fastest packet takes as long there as back."
    return text


def _cell(result: Anatomy, cell: Mapping[str, Level], number: int) -> Iterator[Markup]:
    ladders = result.ladders_of(cell)
    of_all = [rungs(each.request) for each in ladders]
    shared = axis([(each.request, of_one) for each, of_one in zip(ladders, of_all, strict=True)])
    links = {step: f"anatomy-{number}-{step}" for step in result.titles}
    figures = []
    for each, of_one in zip(ladders, of_all, strict=True):
        said = f"{caption(each)} {_pattern(result, each)}".strip()
        name = " ".join(filter(None, ("ladder", cell_title(cell) if cell else "", each.testbed)))
        drawn = svg(Drawn(each.request, of_one, shared, result.titles, links), said, name)
        figures.append(html("<figure><figcaption>{}</figcaption>{}</figure>", said, drawn))
    yield html('<div class="plots ladder">{}</div>', Markup().join(figures))
    if shared.is_stretched:
        yield Markup(
            '<p class="note">The axis is stretched where packets are close together, alike in all ladders: see its times.</p>'
        )
    steps = [step for step in result.titles if any(step in each.request.durations_ns for each in ladders)]
    yield Markup().join(_step(result, cell, step, links[step], list(zip(ladders, of_all, strict=True))) for step in steps)


def _pattern(result: Anatomy, each: Ladder) -> str:
    """How common what it consists of is."""
    own = next((one for one in result.requests if one.cell == each.cell and one.testbed == each.testbed), None)
    part = sum(one.share for one in own.patterns if one.packets == each.request.pattern) if own else 0
    return f"{percent(part)} of requests are {each.request.pattern}." if part else ""


def _step(
    result: Anatomy, cell: Mapping[str, Level], step: str, id: str, ladders: Sequence[tuple[Ladder, Sequence[Rung]]]
) -> Markup:
    """One step, folded: its packets on each testbed, and how long it takes on all."""
    took = "; ".join(f"{each.testbed} {time_text(each.request.durations_ns.get(step, 0))}" for each, _ in ladders)
    tables = Markup().join(packet_table(each, of_one, step).as_html() for each, of_one in ladders)
    requests = [each for each in result.requests if each.cell == cell]
    where = f"{cell_title(cell)}, " if cell else ""
    drawn = strip(requests, step, f"{where}{result.titles[step]}: its distribution over testbeds")
    return html(
        '<details class="step" id="{}" data-step="{}"><summary>{}: {}</summary>{}{}'
        '<div class="plots ladder">{}</div></details>',
        id,
        step,
        result.titles[step],
        took,
        drawn,
        html('<p class="note">{}</p>', STRIP) if drawn else "",
        tables,
    )


def packet_table(each: Ladder, of_one: Sequence[Rung], step: str) -> Tabular:
    """The packets of a step, what begins it and what ends it too, folded as in the ladder."""
    spans = [span for span in each.request.spans if span.step == step]
    rungs = (rung for rung in of_one if any(span.holds(packet) for span in spans for packet in rung.packets))
    title = f"{each.testbed}: {time_text(each.request.durations_ns.get(step, 0))}"
    return Tabular(title, title, ("Packet", "From", "Sent after", "On its way"), tuple(map(_row, rungs)), texts=2)


def _row(rung: Rung) -> tuple[str | None, ...]:
    if rung.is_band:
        return f"{len(rung.packets)} packets: {'; '.join(band_lines(rung.packets))}", "both", time_text(rung.begin_ns), None
    (packet,) = rung.packets
    way = None
    if packet.was_seen_sent and packet.arrived_ns is not None:
        way = time_text(max(0, packet.arrived_ns - packet.sent_ns))
    return label(packet), "client" if packet.from_client else "server", time_text(packet.sent_ns), way
