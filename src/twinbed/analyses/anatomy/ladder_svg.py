"""Draw a ladder as SVG: lifelines of both hosts and their links, packets as arrows between the links, steps as bands.

Each drawing is as narrow as a phone.  Several stand side by side on a wide screen, and below each other on a narrow one.  All
have the same axis and height.  A band of a folded run has a mark for each of its packets at its time.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.analyses.anatomy import ladder
from twinbed.analyses.anatomy.ladder import WORDS, Axis, Rung, band_lines, described, label, tick_text, time_text
from twinbed.analyses.anatomy.sampled import Packet, Request, Span
from twinbed.analyses.anatomy.steps import Seen
from twinbed.show.figure import PAGE, Colours
from twinbed.show.svg import element, line, picture, words

WHERE = {"client": "inconclusive", "path": "muted", "server": "equivalent"}
"""Whose time a step is -> its colour; packets have their sender's colour."""
WIDTH, TOP, FOOT = 352, 42, 14
TICKS_AT, CLIENT, CLIENT_LINK, SERVER_LINK, SERVER = 42, 56, 118, 264, 330
TEXT, SMALL = 10.0, 9.5
LABEL_ROOM = 10.5
NAMED, TIMED = 22.0, 9.5
"""The least height of a band with its step's name and time, and with its time alone."""
MARK = 7
BESIDE = 13
"""From a lifeline to a label: arrows of the other direction end between."""
IN_BAND = 24
"""Characters of a line of text in a band."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One ladder to draw, with links to its steps."""

    request: Request
    rungs: Sequence[Rung]
    axis: Axis
    titles: Mapping[str, str]
    """Step -> its title."""
    links: Mapping[str, str]
    """Step -> the element of the page that a click on its band opens."""


def svg(drawn: Drawn, text: str, colours: Colours = PAGE) -> str:
    """Return the picture; ``text`` describes it to readers who cannot see it."""
    inner = [*_axis(drawn.axis, colours), *_lifelines(drawn, colours)]
    inner += [_step(drawn, span, colours) for span in drawn.request.spans]
    inner += _rungs(drawn, colours)
    return picture(text, WIDTH, round(TOP + drawn.axis.height + FOOT), inner, TEXT, colours)


def _axis(axis: Axis, colours: Colours) -> Iterator[str]:
    for ns, y in axis.ticks():
        yield line(TICKS_AT + 4, TOP + y, SERVER, TOP + y, colours["rule"])
        yield words(TICKS_AT, TOP + y + 3.5, tick_text(ns), colours["muted"], text_anchor="end", font_size=SMALL)


def _lifelines(drawn: Drawn, colours: Colours) -> Iterator[str]:
    lines: list[tuple[int, tuple[str, ...]]] = [(CLIENT_LINK, ("client's", "link")), (SERVER_LINK, ("server's", "link"))]
    if drawn.request.seen is Seen.CLIENT:
        lines[1] = (SERVER_LINK, ("everything", "behind it"))
    else:
        lines += [(CLIENT, ("client",)), (SERVER, ("server",))]
    for x, title in lines:
        yield line(x, TOP - 8, x, TOP + drawn.axis.height + 6, colours["ink"], stroke_width=1.4)
        for at, word in enumerate(title):
            y = TOP - 13 - 11 * (len(title) - 1 - at)
            yield words(x, y, word, colours["ink"], text_anchor="middle", font_weight=600)


def _step(drawn: Drawn, span: Span, colours: Colours) -> str:
    """Return the band of a step, on the side of the host whose time it is; those of the path are the client's link's."""
    top, bottom = (TOP + drawn.axis.y(ns) for ns in (span.begin_ns, span.end_ns))
    height = max(bottom - top, 0.8)
    low, high = (SERVER_LINK + 2, SERVER - 2) if span.where == "server" else (CLIENT + 2, CLIENT_LINK - 2)
    colour = colours[WHERE[span.where]]
    took = time_text(drawn.request.durations_ns[span.step])
    opacity = 0.1 if span.where == "path" else 0.28
    parts = [_rect(low, top, high - low, height, colour, opacity, stroke=colour, stroke_width=0.7)]
    texts = [WORDS[span.step], took] if height >= NAMED else [took] if height >= TIMED else []
    for at, word in enumerate(texts):
        y = top + height / 2 + 3.5 + 11 * (at - (len(texts) - 1) / 2)
        parts.append(words((low + high) / 2, y, word, colours["ink"], text_anchor="middle", font_size=SMALL))
    attributes = {"data_steps": span.step, "aria_roledescription": "step", "aria_label": f"{drawn.titles[span.step]}: {took}"}
    group = element("g", *parts, class_="step", **attributes)
    target = drawn.links.get(span.step)
    return group if target is None else element("a", group, href=f"#{target}")


def _rect(x: float, y: float, width: float, height: float, fill: str, opacity: float, **more: object) -> str:
    return element("rect", x=x, y=y, width=width, height=height, fill=fill, fill_opacity=opacity, **more)


def _rungs(drawn: Drawn, colours: Colours) -> Iterator[str]:
    """Yield bands first and their texts last, so that neither hides the other or an arrow."""
    for rung in drawn.rungs:
        if rung.is_band:
            yield _band(drawn, rung, colours)
    above = -math.inf
    for rung in drawn.rungs:
        if not rung.is_band:
            (packet,) = rung.packets
            at = max(TOP + drawn.axis.y(packet.sent_ns) - 2.5, above + LABEL_ROOM)
            yield _arrow(drawn, packet, at, colours)
            above = at
    for rung in drawn.rungs:
        if rung.is_band:
            yield from _band_text(drawn, rung, colours)


def _steps_of(request: Request, packet: Packet) -> str:
    """Return the steps that a packet begins, ends or lies in."""
    return " ".join(dict.fromkeys(span.step for span in request.spans if span.holds(packet)))


def _colour(packet: Packet, colours: Colours) -> str:
    if packet.kind in "XYZRxyzr":
        return colours["different"]
    return colours["inconclusive" if packet.from_client else "equivalent"]


def _arrow(drawn: Drawn, packet: Packet, text_y: float, colours: Colours) -> str:
    sent = TOP + drawn.axis.y(packet.sent_ns)
    lost = packet.was_seen_sent and packet.arrived_ns is None and drawn.request.seen is not Seen.CLIENT
    arrived = TOP + drawn.axis.y(packet.arrived_ns) if packet.arrived_ns is not None else sent
    start, end = (CLIENT_LINK, SERVER_LINK) if packet.from_client else (SERVER_LINK, CLIENT_LINK)
    if lost:
        end, arrived = (start + end) // 2, sent
    colour = _colour(packet, colours)
    width = min(5.0, 1.2 + 0.75 * math.log2(max(packet.wire_packets, 1)))
    unseen = not packet.was_seen_sent and drawn.request.seen is not Seen.CLIENT
    shaft = line(start, sent, end, arrived, colour, stroke_width=width, stroke_dasharray="3 2" if unseen else None)
    head = _cross(end, arrived, colours["different"]) if lost else _head(start, sent, end, arrived, colour, width)
    x, anchor = (start + BESIDE, "start") if packet.from_client else (start - BESIDE, "end")
    text = _above(x, text_y, label(packet) + (", lost" if lost else ""), colours["ink"], colours["paper"], text_anchor=anchor)
    return element(
        "g",
        shaft,
        head,
        text,
        class_="packet",
        data_steps=_steps_of(drawn.request, packet),
        data_sent_ns=packet.sent_ns,
        data_arrived_ns="" if packet.arrived_ns is None else packet.arrived_ns,
        aria_roledescription="packet",
        aria_label=described(packet, drawn.request.seen),
    )


def _above(x: float, y: float, text: str, ink: str, ground: str, **more: object) -> str:
    """Return a text with a margin in the colour of its ground, so that it is legible over lines."""
    return words(x, y, text, ink, stroke=ground, stroke_width=2.5, paint_order="stroke", font_size=SMALL, **more)


def _head(start: float, sent: float, end: float, arrived: float, colour: str, width: float) -> str:
    length = math.hypot(end - start, arrived - sent)
    dx, dy = (end - start) / length, (arrived - sent) / length
    back, half = 6 + width, 2 + width / 2
    corners = (
        (end, arrived),
        (end - back * dx - half * dy, arrived - back * dy + half * dx),
        (end - back * dx + half * dy, arrived - back * dy - half * dx),
    )
    return element("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners), fill=colour)


def _cross(x: float, y: float, colour: str) -> str:
    return element("path", d=f"M{x - 4} {y - 4:.1f}l8 8m0 -8l-8 8", stroke=colour, stroke_width=1.6, fill="none")


def _ends(drawn: Drawn, rung: Rung) -> tuple[float, float]:
    """Return the top and bottom of a band: at least as high as its text."""
    top, bottom = (TOP + drawn.axis.y(ns) for ns in (rung.begin_ns, rung.end_ns))
    return top, max(bottom, top + ladder.BAND - ladder.LINE - 1)


def _band(drawn: Drawn, rung: Rung, colours: Colours) -> str:
    top, bottom = _ends(drawn, rung)
    parts = [_rect(CLIENT_LINK + 1, top, SERVER_LINK - CLIENT_LINK - 2, bottom - top, colours["band"], 0.75)]
    for from_client, x, sign in ((True, CLIENT_LINK + 1, ""), (False, SERVER_LINK - 1, "-")):
        own = [packet for packet in rung.packets if packet.from_client is from_client]
        if path := "".join(f"M{x} {TOP + drawn.axis.y(packet.sent_ns):.1f}h{sign}{MARK}" for packet in own):
            colour = colours["inconclusive" if from_client else "equivalent"]
            parts.append(element("path", d=path, stroke=colour, stroke_width=0.8, fill="none"))
    text = f"{len(rung.packets)} packets in {time_text(rung.end_ns - rung.begin_ns)}: {'; '.join(band_lines(rung.packets))}"
    attributes = {"data_steps": _steps_of(drawn.request, rung.packets[0]), "data_packets": len(rung.packets)}
    return element("g", *parts, class_="packets", **attributes, aria_roledescription="packets", aria_label=text)


def _band_text(drawn: Drawn, rung: Rung, colours: Colours) -> Iterator[str]:
    top, bottom = _ends(drawn, rung)
    sides = band_lines(rung.packets)
    lines = [line for side in sides for line in textwrap.wrap(side, IN_BAND, subsequent_indent="   ", break_long_words=False)]
    for at, text in enumerate(lines):
        x, y = (CLIENT_LINK + SERVER_LINK) // 2, (top + bottom) / 2 + 3.5 + 10.5 * (at - (len(lines) - 1) / 2)
        yield _above(x, y, text, colours["ink"], colours["band"], text_anchor="middle", pointer_events="none")
