"""Plots of comparisons as Vega-Lite specifications, and those as SVG that follows the page's colours.

Two plots a metric, both with one panel a cell: the replicates of every testbed with mean and interval, and the ratio to the
reference with both its intervals over the band of the margin.  Each mark carries its numbers as its description.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from textwrap import wrap
from typing import Any, TypeVar

from markupsafe import Markup

from twinbed.render.collected import Figure, kept
from twinbed.render.slim import slim
from twinbed.show import svg as svg_elements
from twinbed.show.figure import Figure as Shown
from twinbed.terminal import everywhere, visible

Spec = dict[str, Any]
"""A plot or a part of one, as Vega-Lite's schema has it: parts of parts are looked into by name."""
Record = TypeVar("Record")


WIDTH = 268


LABELS = 84
"""Width of the labels of testbeds at least."""
LABEL_GAP = 8
CHARACTER = 6.5
"""Width of a character of labels in the widest of the fonts that pages have: what a label takes is not known here."""


ROW = 24


TITLE = 36
"""Characters of a line above a panel."""
MOST_CELLS = 24
"""Panels in a plot; the tables hold the rest."""


# Placeholders that the page's style sheet replaces, so that plots follow dark mode and print.
COLOURS = {
    "#010101": "var(--ink)",
    "#020202": "var(--muted)",
    "#030303": "var(--rule)",
    "#040404": "var(--band)",
    "#050505": "var(--equivalent)",
    "#060606": "var(--different)",
    "#070707": "var(--inconclusive)",
}


INK, MUTED, RULE, BAND, EQUIVALENT, DIFFERENT, INCONCLUSIVE = COLOURS


FONT = svg_elements.FONT


CONFIG: Spec = {
    "font": FONT,
    "background": None,
    "view": {"stroke": None},
    "concat": {"spacing": 14},
    "title": {"anchor": "start", "frame": "group", "fontSize": 12, "fontWeight": 600, "color": INK, "offset": 4},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "domain": False,
        "tickColor": RULE,
        "gridColor": RULE,
        "labelOverlap": True,
    },
}


def svg(spec: Spec, label: str, name: str = "") -> Markup:
    """Return the drawn plot, to be put into a page as it is. ``label`` describes it to those who cannot see it, ``name`` in
    short. Nothing where the plot itself is wanted instead (``collected``)."""
    if kept(lambda: Figure(name or label, label, spec=spec)):
        return Markup()
    return Markup(labelled(_drawn(json.dumps(everywhere(spec))), label))  # Vega escapes every text that it draws.


@lru_cache(maxsize=64)
def _drawn(spec: str) -> str:
    """Return a drawn plot. It takes 40 ms, so a page, an export and a notebook of the same result draw it once."""
    import vl_convert

    drawn = slim(str(vl_convert.vegalite_to_svg(spec)), FONT)
    for placeholder, variable in COLOURS.items():
        drawn = drawn.replace(placeholder, variable)
    return drawn


def labelled(drawn: str, label: str) -> str:
    """SVG that says what it shows."""
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{_attribute(label)}" ', 1)


def _attribute(text: str) -> str:
    return visible(text).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def panelled(
    name: str,
    caption: str,
    records: Iterable[Record],
    title: Callable[[Record], str],
    panel: Callable[[Sequence[Record]], Spec],
    most: int = MOST_CELLS,
) -> tuple[Shown | str, ...]:
    """Return a figure with a panel for all records of one title, and a note where only the first panels are drawn; nothing
    where there are no records."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(title(record), []).append(record)
    if not groups:
        return ()

    def spec() -> Spec:
        return panels([{"title": wrap(title, TITLE), "width": WIDTH, **panel(of)} for title, of in [*groups.items()][:most]])

    figure = Shown(name, spec=spec, caption=caption)
    return (figure, f"The first {most} of {len(groups)} are drawn.") if len(groups) > most else (figure,)


def axis(field: str, title: str, scale: Spec, **more: object) -> Spec:
    """Return the encoding of numbers along an axis. ``more`` is of the axis itself, such as ``tickCount``."""
    return {"field": field, "type": "quantitative", "scale": scale, "axis": {"title": title, **more}}


def layer(rows: Sequence[Spec], mark: str, encoding: Spec, **more: object) -> Spec:
    """Return a layer of marks, one a row or one through all. ``more`` is of the mark, such as ``strokeWidth``."""
    return {"data": {"values": rows}, "mark": {"type": mark, **more}, "encoding": encoding}


def panels(specs: list[Spec], between: int | None = None) -> Spec:
    """Panels below each other. ``between``: pixels from one's field to the next's, with what is written between them; where
    it is given, those of two plots stand level."""
    if between is not None:
        return {**panels(specs), "bounds": "flush", "spacing": between}
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "vconcat": specs, "config": CONFIG}


def label_width(names: Iterable[str], most: int) -> int:
    """Return the width in which labels are whole, from LABELS to ``most``."""
    return max(LABELS, min(most, LABEL_GAP + math.ceil(CHARACTER * max(map(len, names), default=0))))


def testbed_axis(names: Sequence[str], labels: int = LABELS) -> Spec:
    axis = {
        "title": None,
        "ticks": False,
        "minExtent": labels,
        "maxExtent": labels,
        "labelLimit": labels - LABEL_GAP,
        "labelColor": INK,
    }
    return {"field": "testbed", "type": "nominal", "sort": list(names), "axis": {**axis, "labelFontSize": 12, "grid": False}}


SERIES = (INK, EQUIVALENT, DIFFERENT, INCONCLUSIVE, MUTED)


DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
