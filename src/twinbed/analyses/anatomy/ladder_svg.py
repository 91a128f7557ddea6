"""A ladder as SVG: lifelines of both hosts and of their links, packets as arrows between the links, steps as bands beside them.

Each drawing is as narrow as a phone, so that several stand side by side on a screen, and below each other on a narrow one; all
have the same axis, so that they are equally high.  A band of a folded run has a mark for each of its packets at its time.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from twinbed.analyses.anatomy import ladder
from twinbed.analyses.anatomy.ladder import WORDS, Axis, Rung, band_lines, described, label, tick_text, time_text
from twinbed.analyses.anatomy.sampled import Packet, Request, Span
from twinbed.analyses.anatomy.steps import Seen
from twinbed.render.collected import Figure, kept
from twinbed.render.colours import light
from twinbed.render.html import html
from twinbed.render.plots import FONT

NAMES = ("ink", "muted", "rule", "paper", "band", "equivalent", "different", "inconclusive")
PAGE: Mapping[str, str] = {name: f"var(--{name})" for name in NAMES}
"""Colours that follow the page around them."""
WHERE = {"client": "inconclusive", "path": "muted", "server": "equivalent"}
"""Whose time a step is -> its colour; packets have that of their sender."""
WIDTH, TOP, FOOT = 352, 42, 14
TICKS_AT, CLIENT, CLIENT_LINK, SERVER_LINK, SERVER = 42, 56, 118, 264, 330
TEXT, SMALL = 10.0, 9.5
LABEL_ROOM = 10.5
NAMED, TIMED = 22.0, 9.5
"""Height from which a band has its step's name, and its time alone."""
MARK = 7
BESIDE = 13
"""From a lifeline to a label: arrows of the other direction end between."""
IN_BAND = 24
"""Characters of a line of text in a band."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One ladder to draw, and how its steps are reached."""

    request: Request
    rungs: Sequence[Rung]
    axis: Axis
    titles: Mapping[str, str]
    """Step -> what it is."""
    links: Mapping[str, str]
    """Step -> the element of the page that a click on its band opens."""


def svg(drawn: Drawn, text: str, name: str, colours: Mapping[str, str] = PAGE) -> Markup:
    """The picture; ``text`` says what it shows to those who cannot see it, ``name`` does so in short. Nothing where a page's
    picture is wanted as a file instead (``collected``)."""
    if colours is PAGE and kept(lambda: Figure(name, text, drawing=svg(drawn, text, name, light()))):
        return Markup()
    height = TOP + drawn.axis.height + FOOT
    opening = html(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" viewBox="0 0 {} {:.0f}" width="{}" height="{:.0f}"'
        ' font-family="{}" font-size="{}">',
        text,
        WIDTH,
        height,
        WIDTH,
        height,
        Markup(FONT),
        TEXT,
    )
    parts = [opening]
    if colours is not PAGE:
        parts.append(html('<rect width="{}" height="{:.0f}" fill="{}"/>', WIDTH, height, colours["paper"]))
    parts += [*_axis(drawn.axis, colours), *_lifelines(drawn, colours)]
    parts += [_step(drawn, span, colours) for span in drawn.request.spans]
    parts += _rungs(drawn, colours)
    return Markup().join([*parts, Markup("</svg>")])


def _axis(axis: Axis, colours: Mapping[str, str]) -> Iterator[Markup]:
    for ns, y in axis.ticks():
        yield html(
            '<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" stroke="{}"/>',
            TICKS_AT + 4,
            SERVER,
            TOP + y,
            TOP + y,
            colours["rule"],
        )
        yield html(
            '<text x="{}" y="{:.1f}" text-anchor="end" font-size="{}" fill="{}" aria-hidden="true">{}</text>',
            TICKS_AT,
            TOP + y + 3.5,
            SMALL,
            colours["muted"],
            tick_text(ns),
        )


def _lifelines(drawn: Drawn, colours: Mapping[str, str]) -> Iterator[Markup]:
    lines: list[tuple[int, tuple[str, ...]]] = [(CLIENT_LINK, ("client's", "link")), (SERVER_LINK, ("server's", "link"))]
    if drawn.request.seen is Seen.CLIENT:
        lines[1] = (SERVER_LINK, ("what lies", "behind it"))
    else:
        lines += [(CLIENT, ("client",)), (SERVER, ("server",))]
    for x, words in lines:
        yield html(
            '<line x1="{}" x2="{}" y1="{}" y2="{:.1f}" stroke="{}" stroke-width="1.4"/>',
            x,
            x,
            TOP - 8,
            TOP + drawn.axis.height + 6,
            colours["ink"],
        )
        for at, word in enumerate(words):
            y = TOP - 13 - 11 * (len(words) - 1 - at)
            yield html(
                '<text x="{}" y="{}" text-anchor="middle" font-weight="600" fill="{}" aria-hidden="true">{}</text>',
                x,
                y,
                colours["ink"],
                word,
            )


def _step(drawn: Drawn, span: Span, colours: Mapping[str, str]) -> Markup:
    """The band of a step, on the side of the host whose time it is; those of the path are the client's link's."""
    top, bottom = (TOP + drawn.axis.y(ns) for ns in (span.begin_ns, span.end_ns))
    height = max(bottom - top, 0.8)
    low, high = (SERVER_LINK + 2, SERVER - 2) if span.where == "server" else (CLIENT + 2, CLIENT_LINK - 2)
    colour = colours[WHERE[span.where]]
    took = time_text(drawn.request.durations_ns[span.step])
    parts = [
        html(
            '<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}" fill="{}" fill-opacity="{}" stroke="{}" stroke-width="0.7"/>',
            low,
            top,
            high - low,
            height,
            colour,
            0.1 if span.where == "path" else 0.28,
            colour,
        )
    ]
    words = [WORDS[span.step], took] if height >= NAMED else [took] if height >= TIMED else []
    for at, word in enumerate(words):
        y = top + height / 2 + 3.5 + 11 * (at - (len(words) - 1) / 2)
        parts.append(
            html(
                '<text x="{:.0f}" y="{:.1f}" text-anchor="middle" font-size="{}" fill="{}" aria-hidden="true">{}</text>',
                (low + high) / 2,
                y,
                SMALL,
                colours["ink"],
                word,
            )
        )
    said = f"{drawn.titles[span.step]}: {took}"
    group = html(
        '<g class="step" data-steps="{}" aria-roledescription="step" aria-label="{}">{}</g>',
        span.step,
        said,
        Markup().join(parts),
    )
    target = drawn.links.get(span.step)
    return group if target is None else html('<a href="#{}">{}</a>', target, group)


def _rungs(drawn: Drawn, colours: Mapping[str, str]) -> Iterator[Markup]:
    """Bands first, and what they say last, so that neither hides the other or an arrow."""
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
    """The steps that a packet begins, ends or lies in."""
    return " ".join(dict.fromkeys(span.step for span in request.spans if span.holds(packet)))


def _colour(packet: Packet, colours: Mapping[str, str]) -> str:
    if packet.kind in "XYZRxyzr":
        return colours["different"]
    return colours["inconclusive" if packet.from_client else "equivalent"]


def _arrow(drawn: Drawn, packet: Packet, text_y: float, colours: Mapping[str, str]) -> Markup:
    sent = TOP + drawn.axis.y(packet.sent_ns)
    lost = packet.was_seen_sent and packet.arrived_ns is None and drawn.request.seen is not Seen.CLIENT
    arrived = TOP + drawn.axis.y(packet.arrived_ns) if packet.arrived_ns is not None else sent
    start, end = (CLIENT_LINK, SERVER_LINK) if packet.from_client else (SERVER_LINK, CLIENT_LINK)
    if lost:
        end, arrived = (start + end) // 2, sent
    colour, ink = _colour(packet, colours), colours["ink"]
    width = min(5.0, 1.2 + 0.75 * math.log2(max(packet.wire_packets, 1)))
    unseen = not packet.was_seen_sent and drawn.request.seen is not Seen.CLIENT
    dashes = Markup(' stroke-dasharray="3 2"') if unseen else ""
    line = html(
        '<line x1="{}" y1="{:.1f}" x2="{}" y2="{:.1f}" stroke="{}" stroke-width="{:.1f}"{}/>',
        start,
        sent,
        end,
        arrived,
        colour,
        width,
        dashes,
    )
    head = _cross(end, arrived, colours["different"]) if lost else _head(start, sent, end, arrived, colour, width)
    x, anchor = (start + BESIDE, "start") if packet.from_client else (start - BESIDE, "end")
    text = html(
        '<text x="{}" y="{:.1f}" text-anchor="{}" fill="{}" stroke="{}" stroke-width="2.5" paint-order="stroke"'
        ' font-size="{}" aria-hidden="true">{}</text>',
        x,
        text_y,
        anchor,
        ink,
        colours["paper"],
        SMALL,
        label(packet) + (", lost" if lost else ""),
    )
    return html(
        '<g class="packet" data-steps="{}" data-sent-ns="{}" data-arrived-ns="{}" aria-roledescription="packet"'
        ' aria-label="{}">{}{}{}</g>',
        _steps_of(drawn.request, packet),
        packet.sent_ns,
        "" if packet.arrived_ns is None else packet.arrived_ns,
        described(packet, drawn.request.seen),
        line,
        head,
        text,
    )


def _head(start: float, sent: float, end: float, arrived: float, colour: str, width: float) -> Markup:
    length = math.hypot(end - start, arrived - sent)
    dx, dy = (end - start) / length, (arrived - sent) / length
    back, half = 6 + width, 2 + width / 2
    points = " ".join(
        f"{x:.1f},{y:.1f}"
        for x, y in (
            (end, arrived),
            (end - back * dx - half * dy, arrived - back * dy + half * dx),
            (end - back * dx + half * dy, arrived - back * dy - half * dx),
        )
    )
    return html('<polygon points="{}" fill="{}"/>', points, colour)


def _cross(x: float, y: float, colour: str) -> Markup:
    return html('<path d="M{} {:.1f}l8 8m0 -8l-8 8" stroke="{}" stroke-width="1.6" fill="none"/>', x - 4, y - 4, colour)


def _ends(drawn: Drawn, rung: Rung) -> tuple[float, float]:
    """Of a band, downwards: at least as high as what it says."""
    top, bottom = (TOP + drawn.axis.y(ns) for ns in (rung.begin_ns, rung.end_ns))
    return top, max(bottom, top + ladder.BAND - ladder.LINE - 1)


def _band(drawn: Drawn, rung: Rung, colours: Mapping[str, str]) -> Markup:
    top, bottom = _ends(drawn, rung)
    marks = []
    for from_client, x in ((True, f"{CLIENT_LINK + 1}"), (False, f"{SERVER_LINK - 1}")):
        own = [packet for packet in rung.packets if packet.from_client is from_client]
        sign = "" if from_client else "-"
        path = "".join(f"M{x} {TOP + drawn.axis.y(packet.sent_ns):.1f}h{sign}{MARK}" for packet in own)
        if path:
            colour = colours["inconclusive" if from_client else "equivalent"]
            marks.append(html('<path d="{}" stroke="{}" stroke-width="0.8" fill="none"/>', path, colour))
    said = f"{len(rung.packets)} packets in {time_text(rung.end_ns - rung.begin_ns)}: {'; '.join(band_lines(rung.packets))}"
    return html(
        '<g class="packets" data-steps="{}" data-packets="{}" aria-roledescription="packets" aria-label="{}">'
        '<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}" fill="{}" fill-opacity="0.75"/>{}</g>',
        _steps_of(drawn.request, rung.packets[0]),
        len(rung.packets),
        said,
        CLIENT_LINK + 1,
        top,
        SERVER_LINK - CLIENT_LINK - 2,
        bottom - top,
        colours["band"],
        Markup().join(marks),
    )


def _band_text(drawn: Drawn, rung: Rung, colours: Mapping[str, str]) -> Iterator[Markup]:
    top, bottom = _ends(drawn, rung)
    sides = band_lines(rung.packets)
    lines = [line for side in sides for line in textwrap.wrap(side, IN_BAND, subsequent_indent="   ", break_long_words=False)]
    for at, line in enumerate(lines):
        yield html(
            '<text x="{}" y="{:.1f}" text-anchor="middle" fill="{}" stroke="{}" stroke-width="2.5" paint-order="stroke"'
            ' font-size="{}" pointer-events="none" aria-hidden="true">{}</text>',
            (CLIENT_LINK + SERVER_LINK) // 2,
            (top + bottom) / 2 + 3.5 + 10.5 * (at - (len(lines) - 1) / 2),
            colours["ink"],
            colours["band"],
            SMALL,
            line,
        )
