"""Results for readers: terminal, one HTML page, Markdown, LaTeX, CSV.  It decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinbed.model.fitting import Fits
from twinbed.model.result import Result
from twinbed.model.tables import Tables
from twinbed.model.variance import Anova, Unexplained
from twinbed.render.pivots import Table


def write_html(
    tables: Tables,
    result: Result,
    file: Path,
    chain: Result | None = None,
    explained: Sequence[Anova | Unexplained] = (),
    own: Sequence[Table] = (),
    fits: Fits | None = None,
) -> None:
    """Writes the page; whoever has the old one open never sees half of the new."""
    from twinbed.render.page import page

    write(page(tables, result, chain, explained, own, fits), file)


def write(text: str, file: Path) -> None:
    """Writes a text under a temporary name and renames it."""
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
