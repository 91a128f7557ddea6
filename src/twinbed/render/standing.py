"""A page's figures by themselves, in colours that need no style sheet: those of the page by day, on white."""

from __future__ import annotations

import json

from twinbed.model.json import Document, loads
from twinbed.render.collected import Figure
from twinbed.render.colours import light
from twinbed.render.plots import COLOURS, labelled
from twinbed.terminal import everywhere


def specification(figure: Figure) -> Document:
    """Return the plot's Vega-Lite specification."""
    text = json.dumps(everywhere({**(figure.spec or {}), "description": figure.label}))
    for placeholder, variable in COLOURS.items():
        text = text.replace(placeholder, light()[variable.removeprefix("var(--").removesuffix(")")])
    coloured = loads(text)
    return {**coloured, "config": {**coloured.get("config", {}), "background": light()["paper"]}}


def svg(figure: Figure) -> str:
    """Return the figure drawn."""
    if figure.drawing is not None:
        return figure.drawing
    import vl_convert

    return labelled(vl_convert.vegalite_to_svg(json.dumps(specification(figure))), figure.label)
