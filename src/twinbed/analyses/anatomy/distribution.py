"""How long a step takes on each testbed, as a strip of SVG: quantiles of requests, and the means of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from twinbed.analyses.anatomy.ladder import tick_text, time_text
from twinbed.analyses.anatomy.ladder_svg import PAGE
from twinbed.analyses.anatomy.result import Requests, StepTimes
from twinbed.render.collected import Figure, kept
from twinbed.render.colours import light
from twinbed.render.html import html
from twinbed.render.plots import FONT

WIDTH, LEFT, RIGHT, ROW, FOOT = 360, 84, 22, 26, 24
MOST_LABEL = 12
"""Characters of a testbed's name; its description has the whole."""
FOLD = 20.0
"""The axis is logarithmic from this ratio of its ends on."""


def strip(requests: Sequence[Requests], step: str, text: str, colours: Mapping[str, str] = PAGE) -> Markup:
    """A row a testbed: a line from P5 to P99, a box of the middle half, a bar at the median, a dot a run. Nothing where all
    are 0, or where the picture is wanted as a file instead (``collected``)."""
    found = [(each.testbed, times) for each in requests if (times := each.of(step)) is not None]
    values = [value for _, times in found for value in (*times.quantiles.values(), *times.of_runs)]
    if not values or max(values) <= 0:
        return Markup()
    if colours is PAGE and kept(lambda: Figure(text, text, drawing=strip(requests, step, text, light()))):
        return Markup()
    positive = [value for value in values if value > 0]
    is_log = max(values) > FOLD * min(positive)
    low, high = (min(positive) if is_log else 0.0), max(values)
    place = _place(low, high, is_log)
    height = ROW * len(found) + FOOT
    parts = [
        html(
            '<svg xmlns="http://www.w3.org/2000/svg" class="strip" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}"'
            ' height="{}" font-family="{}" font-size="11">',
            text,
            WIDTH,
            height,
            WIDTH,
            height,
            Markup(FONT),
        )
    ]
    if colours is not PAGE:
        parts.append(html('<rect width="{}" height="{}" fill="{}"/>', WIDTH, height, colours["paper"]))
    for value in _ticks(low, high, is_log):
        x = place(value)
        parts.append(html('<line x1="{:.1f}" x2="{:.1f}" y1="0" y2="{}" stroke="{}"/>', x, x, height - FOOT, colours["rule"]))
        parts.append(
            html(
                '<text x="{:.1f}" y="{}" text-anchor="middle" fill="{}" aria-hidden="true">{}</text>',
                x,
                height - 8,
                colours["muted"],
                tick_text(round(value * 1e9)),
            )
        )
    for at, (testbed, times) in enumerate(found):
        parts.append(_row(testbed, times, ROW * at + ROW / 2, place, colours))
    return Markup().join([*parts, Markup("</svg>")])


def _place(low: float, high: float, is_log: bool) -> Callable[[float], float]:
    room = WIDTH - LEFT - RIGHT
    if is_log:
        return lambda value: LEFT + room * math.log(max(value, low) / low) / math.log(high / low)
    return lambda value: LEFT + room * (value - low) / (high - low)


def _ticks(low: float, high: float, is_log: bool) -> list[float]:
    if is_log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [10.0**power for power in powers if low <= 10.0**power <= high]
    size = 10.0 ** math.floor(math.log10(high))
    step = next(size * part for part in (1, 0.5, 0.2) if high / (size * part) >= 3 or part == 0.2)
    return [step * at for at in range(math.floor(high / step) + 1)]


def _row(testbed: str, times: StepTimes, y: float, place: Callable[[float], float], colours: Mapping[str, str]) -> Markup:
    shares = sorted(times.quantiles)
    said = f"{testbed}: " + ", ".join(f"P{100 * share:g} {time_text(round(times.quantiles[share] * 1e9))}" for share in shares)
    said += f"; mean of {len(times.of_runs)} runs {time_text(round(times.mean * 1e9))}"
    parts = [
        html(
            '<text x="{}" y="{:.1f}" text-anchor="end" fill="{}" aria-hidden="true">{}</text>',
            LEFT - 10,
            y + 4,
            colours["ink"],
            testbed if len(testbed) <= MOST_LABEL else f"{testbed[: MOST_LABEL - 1]}…",
        )
    ]
    if times.quantiles:
        ends = place(times.quantiles[shares[0]]), place(times.quantiles[shares[-1]])
        low, middle, high = (place(times.quantiles[share]) for share in (0.25, 0.5, 0.75))
        line = '<line x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}" stroke="{}"/>'
        parts.append(html(line, *ends, y, y, colours["muted"]))
        parts.append(
            html(
                '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="12" fill="{}" stroke="{}"/>',
                low,
                y - 6,
                max(high - low, 0.5),
                colours["band"],
                colours["muted"],
            )
        )
        parts.append(
            html(
                '<line x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="2"/>',
                middle,
                middle,
                y - 6,
                y + 6,
                colours["ink"],
            )
        )
    dots = [
        html('<circle cx="{:.1f}" cy="{:.1f}" r="2.2" fill="{}" fill-opacity="0.7"/>', place(value), y, colours["equivalent"])
        for value in times.of_runs
    ]
    return html('<g aria-roledescription="testbed" aria-label="{}">{}</g>', said, Markup().join([*parts, *dots]))
