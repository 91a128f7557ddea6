"""The waterfall of a difference: each step's part of it, one after the other, up to the whole."""

from __future__ import annotations

from collections.abc import Mapping

from twinbed.analyses.anatomy.result import BETWEEN, TOTAL, Anatomy, Difference
from twinbed.model.run import Level
from twinbed.render.plots import DIFFERENT, EQUIVALENT, INK, MUTED, Spec, label_width, panels
from twinbed.show.quantities import number, plus_minus, unit_scale
from twinbed.show.words import cell_title

ROW, WIDTH, MOST_LABEL = 20, 460, 320
MOST = 24
"""Panels; the table has the rest."""
LEAST = 0.05
"""Share of the largest difference from which a part of a step is drawn; the table has them all."""
OF_PART = 0.5
"""The opacity of a part's bar, which lies within its step's."""


def waterfall(result: Anatomy) -> Spec:
    """A panel a cell and testbed; from the reference's time to the testbed's."""
    seen: list[tuple[Mapping[str, Level], str]] = []
    for each in result.differences:
        if (each.cell, each.testbed) not in seen:
            seen.append((each.cell, each.testbed))
    return panels([_panel(result, cell, testbed) for cell, testbed in seen[:MOST]])


def _panel(result: Anatomy, cell: Mapping[str, Level], testbed: str) -> Spec:
    own = {each.step: each for each in result.differences if each.cell == cell and each.testbed == testbed}
    order = [step for step in result.titles if step in own and step not in (TOTAL, BETWEEN)]
    order += [step for step in (BETWEEN,) if step in own]
    whole = sum(own[step].seconds for step in order)
    scale = unit_scale("s", [each.seconds for each in own.values()])
    rows, at = [], 0.0
    parts = result.parts_of(cell, testbed)
    worth_s = LEAST * max(abs(each.seconds) for each in own.values())
    for step in order:
        rows.append(_bar(result.titles[step], at, own[step], scale.factor, scale.unit))
        of_part = at
        for part in (parts[name] for name in result.parts.get(step, ()) if name in parts):
            if abs(part.seconds) >= worth_s:
                title = f"– {result.part_titles[part.step]}"
                rows.append(_bar(title, of_part, part, scale.factor, scale.unit) | {"opacity": OF_PART})
            of_part += part.seconds
        at += own[step].seconds
    sums = "together: what one request costs a client" if BETWEEN in own else "together: the request"
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
    axis: Spec = {
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
    x: Spec = {
        "field": "from",
        "type": "quantitative",
        "axis": {"title": f"{scale.unit} longer than on {result.reference}", "tickCount": 5, "titleAnchor": "end"},
    }
    layers: list[Spec] = [
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": MUTED, "aria": False},
            "encoding": {"x": {**x, "field": "zero"}},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "bar", "height": 11, "minBandSize": 1},
            "encoding": {
                "y": axis,
                "x": x,
                "x2": {"field": "to"},
                "color": {"field": "colour", "type": "nominal", "scale": None},
                "opacity": {"field": "opacity", "type": "quantitative", "scale": None},
                "description": {"field": "said"},
            },
        },
        {
            "data": {"values": [row for row in rows if "low" in row]},
            "mark": {"type": "rule", "color": MUTED, "strokeWidth": 2, "aria": False},
            "encoding": {"y": axis, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
        },
    ]
    title = ", ".join(filter(None, (cell_title(cell) if cell else "", testbed)))
    return {"title": title, "width": WIDTH, "height": {"step": ROW}, "layer": layers}


def _bar(title: str, at: float, each: Difference, factor: float, unit: str) -> dict[str, object]:
    end = at + each.seconds
    half = (each.interval.high - each.interval.low) / 2 if each.interval else None
    amount = plus_minus(each.seconds / factor, None if half is None else half / factor)
    row: dict[str, object] = {
        "step": title,
        "from": at / factor,
        "to": end / factor,
        "colour": DIFFERENT if each.seconds > 0 else EQUIVALENT,
        "said": f"{title}: {amount} {unit}",
        "text": number(each.seconds / factor),
    }
    if half is not None:
        row |= {"low": (end - half) / factor, "high": (end + half) / factor}
    return row
