"""The report's figures as files: Vega-Lite JSON, SVG, PNG at twice the size, PDF.  Chains' pictures have no Vega-Lite.

Colours are those of the page by day, on white.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from twinbed.render import output, standing
from twinbed.render.collected import Figure
from twinbed.render.file_names import Names
from twinbed.render.spreadsheet import csv_text
from twinbed.terminal import as_json

SCALE = 2
INDEX = "figures.csv"


def write(figures: Sequence[Figure], folder: Path, on_progress: Callable[[int, int], None]) -> int:
    """Write every figure in each form, and ``figures.csv`` with their titles; return the number of files."""
    names = Names()
    rows = []
    files = 0
    digits = len(str(len(figures)))
    for number, figure in enumerate(figures, start=1):
        name = names.of(f"{number:0{digits}}-{figure.name}")
        forms = plot(figure) if figure.spec is not None else drawing(figure)
        for suffix, content in forms.items():
            (folder / f"{name}{suffix}").write_bytes(content)
        files += len(forms)
        rows.append((name, figure.label))
        on_progress(number, len(figures))
    output.write(csv_text(("figure", "shows"), rows), folder / INDEX)
    return files


def plot(figure: Figure) -> dict[str, bytes]:
    """Return suffix -> content."""
    import vl_convert

    specification = standing.specification(figure)
    text = json.dumps(specification)
    return {
        ".vl.json": (as_json(specification) + "\n").encode(),
        ".svg": standing.svg(figure).encode(),
        ".png": vl_convert.vegalite_to_png(text, scale=SCALE),
        ".pdf": vl_convert.vegalite_to_pdf(text),
    }


def drawing(figure: Figure) -> dict[str, bytes]:
    """Return suffix -> content."""
    import vl_convert

    text = figure.drawing or ""
    return {
        ".svg": (text + "\n").encode(),
        ".png": vl_convert.svg_to_png(text, scale=SCALE),
        ".pdf": vl_convert.svg_to_pdf(text),
    }
