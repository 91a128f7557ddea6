"""Draw the anatomy: the waterfall of each difference, and how long a step takes on each testbed, as a strip."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from twinbed.analyses.anatomy.ladder import tick_text, time_text
from twinbed.analyses.anatomy.result import BETWEEN, TOTAL, Anatomy, Difference, Requests, StepTimes
from twinbed.model.run import Level
from twinbed.render.plots import DIFFERENT, EQUIVALENT, INK, MUTED, Spec, axis, label_width, layer, panels
from twinbed.show import svg
from twinbed.show.figure import Colours, Figure
from twinbed.show.quantities import number, plus_minus, unit_scale
from twinbed.show.words import cell_title

ROW, WIDTH, MOST_LABEL = 20, 460, 320
MOST = 24
"""Panels; the table has the rest."""
LEAST = 0.05
"""A part with less than this share of the largest difference is not drawn; the table has all parts."""
OF_PART = 0.5
"""The opacity of a part's bar, which lies within its step's."""
STRIP, LEFT, RIGHT, TALL, FOOT = 360, 84, 22, 26, 24
MOST_NAME = 12
"""Characters of a testbed's name; its description has the whole."""
FOLD = 20.0
"""The axis is logarithmic from this ratio of its ends on."""
STRIP_CAPTION = (
    "All requests: a line from P5 to P99, a box from P25 to P75, a bar at the median (means over runs). A dot is the mean of a "
    "run. Below: the packets of the ladders."
)


def waterfall(result: Anatomy) -> Iterator[Figure | str]:
    """Yield a panel for each cell and testbed: the steps' differences, one after the other, up to the total."""
    pairs = result.compared
    if not pairs:
        return
    text = f"The steps in which a request takes longer or less time than on {result.reference}, one after the other."
    label = f"{text} The tables have the numbers."
    shown = pairs[:MOST]
    yield Figure("waterfall of steps", label, lambda: panels([_panel(result, *pair) for pair in shown]), caption=text)
    if len(pairs) > MOST:
        yield f"The first {MOST} of {len(pairs)} differences are drawn."


def _panel(result: Anatomy, cell: Mapping[str, Level], testbed: str) -> Spec:
    own = {
        difference.step: difference
        for difference in result.differences
        if difference.cell == cell and difference.testbed == testbed
    }
    order = [step for step in result.titles if step in own and step not in (TOTAL, BETWEEN)]
    order += [step for step in (BETWEEN,) if step in own]
    whole = sum(own[step].seconds for step in order)
    scale = unit_scale("s", [difference.seconds for difference in own.values()])
    rows, at = [], 0.0
    parts = result.parts_of(cell, testbed)
    worth_s = LEAST * max(abs(difference.seconds) for difference in own.values())
    for step in order:
        rows.append(_bar(result.titles[step], at, own[step], scale.factor, scale.unit))
        of_part = at
        for part in (parts[name] for name in result.parts.get(step, ()) if name in parts):
            if abs(part.seconds) >= worth_s:
                title = f"– {result.part_titles[part.step]}"
                rows.append(_bar(title, of_part, part, scale.factor, scale.unit) | {"opacity": OF_PART})
            of_part += part.seconds
        at += own[step].seconds
    sums = "total: the time that a request costs a client" if BETWEEN in own else "total: the request"
    longer = f"{number(abs(whole) / scale.factor)} {scale.unit} {'longer' if whole > 0 else 'shorter'}"
    rows.append(
        {
            "step": sums,
            "from": 0.0,
            "to": whole / scale.factor,
            "colour": INK,
            "said": f"{sums}: {longer} than on {result.reference}",
            "text": number(whole / scale.factor),
        }
    )
    labels = label_width([str(row["step"]) for row in rows], MOST_LABEL)
    # Parts of several steps have one title.
    rows = [{"opacity": 1, **row, "step": f"{at}|{row['step']}"} for at, row in enumerate(rows)]
    names = [str(row["step"]) for row in rows]
    y: Spec = {
        "field": "step",
        "type": "nominal",
        "sort": names,
        "axis": {
            "title": None,
            "labelExpr": "slice(datum.label, indexof(datum.label, '|') + 1)",
            "ticks": False,
            "minExtent": labels,
            "maxExtent": labels,
            "labelLimit": labels - 8,
            "labelColor": INK,
            "grid": False,
        },
    }
    x = axis("from", f"{scale.unit} longer than on {result.reference}", {}, tickCount=5, titleAnchor="end")
    bars: Spec = {
        "y": y,
        "x": x,
        "x2": {"field": "to"},
        "color": {"field": "colour", "type": "nominal", "scale": None},
        "opacity": {"field": "opacity", "type": "quantitative", "scale": None},
        "description": {"field": "said"},
    }
    ends: Spec = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    layers = [
        layer([{"zero": 0}], "rule", {"x": {**x, "field": "zero"}}, color=MUTED, aria=False),
        layer(rows, "bar", bars, height=11, minBandSize=1),
        layer([row for row in rows if "low" in row], "rule", ends, color=MUTED, strokeWidth=2, aria=False),
    ]
    title = ", ".join(filter(None, (cell_title(cell) if cell else "", testbed)))
    return {"title": title, "width": WIDTH, "height": {"step": ROW}, "layer": layers}


def _bar(title: str, at: float, difference: Difference, factor: float, unit: str) -> dict[str, object]:
    end = at + difference.seconds
    half = (difference.interval.high - difference.interval.low) / 2 if difference.interval else None
    amount = plus_minus(difference.seconds / factor, None if half is None else half / factor)
    row: dict[str, object] = {
        "step": title,
        "from": at / factor,
        "to": end / factor,
        "colour": DIFFERENT if difference.seconds > 0 else EQUIVALENT,
        "said": f"{title}: {amount} {unit}",
        "text": number(difference.seconds / factor),
    }
    if half is not None:
        row |= {"low": (end - half) / factor, "high": (end + half) / factor}
    return row


def strip(requests: Sequence[Requests], step: str, title: str) -> Figure | None:
    """Return the figure of how long a step takes, a row for each testbed (see STRIP_CAPTION); None where all times are 0."""
    rows = [(group.testbed, times) for group in requests if (times := group.of(step)) is not None]
    values = [value for _, times in rows for value in (*times.quantiles.values(), *times.of_runs)]
    if not values or max(values) <= 0:
        return None
    return Figure(title, title, drawing=partial(_strip, rows, values, title), caption=STRIP_CAPTION)


def _strip(rows: Sequence[tuple[str, StepTimes]], values: Sequence[float], text: str, colours: Colours) -> str:
    positive = [value for value in values if value > 0]
    is_log = max(values) > FOLD * min(positive)
    low, high = (min(positive) if is_log else 0.0), max(values)
    place, foot = _place(low, high, is_log), TALL * len(rows)
    inner = []
    for value in _ticks(low, high, is_log):
        x = place(value)
        inner.append(svg.line(x, 0, x, foot, colours["rule"]))
        inner.append(svg.words(x, foot + 16, tick_text(round(value * 1e9)), colours["muted"], text_anchor="middle"))
    inner += [_row(testbed, times, TALL * at + TALL / 2, place, colours) for at, (testbed, times) in enumerate(rows)]
    return svg.picture(text, STRIP, foot + FOOT, inner, 11, colours, "strip")


def _place(low: float, high: float, is_log: bool) -> Callable[[float], float]:
    room = STRIP - LEFT - RIGHT
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


def _row(testbed: str, times: StepTimes, y: float, place: Callable[[float], float], colours: Colours) -> str:
    shares = sorted(times.quantiles)
    text = f"{testbed}: " + ", ".join(f"P{100 * share:g} {time_text(round(times.quantiles[share] * 1e9))}" for share in shares)
    text += f"; mean of {len(times.of_runs)} runs {time_text(round(times.mean * 1e9))}"
    name = testbed if len(testbed) <= MOST_NAME else f"{testbed[: MOST_NAME - 1]}…"
    parts = [svg.words(LEFT - 10, y + 4, name, colours["ink"], text_anchor="end")]
    if times.quantiles:
        first, last = (place(times.quantiles[share]) for share in (shares[0], shares[-1]))
        low, middle, high = (place(times.quantiles[share]) for share in (0.25, 0.5, 0.75))
        box = {"width": max(high - low, 0.5), "height": 12, "fill": colours["band"], "stroke": colours["muted"]}
        parts.append(svg.line(first, y, last, y, colours["muted"]))
        parts.append(svg.element("rect", x=low, y=y - 6, **box))
        parts.append(svg.line(middle, y - 6, middle, y + 6, colours["ink"], stroke_width=2))
    for value in times.of_runs:
        parts.append(svg.element("circle", cx=place(value), cy=y, r=2.2, fill=colours["equivalent"], fill_opacity=0.7))
    return svg.element("g", *parts, data_said=text)
