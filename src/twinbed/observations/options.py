"""Writers of analyses' results as text, JSON, CSV, or as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.contracts.analysis import Analysis, ParamsT, ResultT
from twinbed.model.caution import Caution
from twinbed.model.error import TwinbedError
from twinbed.observations.pages import shown_as_page, write_page
from twinbed.show.table import Row
from twinbed.terminal import as_json, one_line

if TYPE_CHECKING:
    from twinbed.model.json import Json
    from twinbed.show.section import Section

OF_ROWS = ("text", "json", "csv")
STYLES = (*OF_ROWS, "html")
SUFFIXES = {".json": "json", ".csv": "csv", ".html": "html", ".htm": "html", ".tex": "latex"}


def write(
    analysis: Analysis[ParamsT, ResultT],
    result: ResultT,
    source: Path,
    style: str | None,
    table: str,
    text: Iterator[str] | None,
    output: Path | None,
    *,
    more: bool = False,
) -> None:
    """Write a result in a style, and as a page too if --html asks for it. Argument ``text`` has the lines for people, without
    cautions; None takes the lines of its section, with ``more`` those of every inner section."""

    def section() -> Section:
        return analysis.section(result)

    from twinbed.render.output import put
    from twinbed.render.sections import latex, lines

    style = style or SUFFIXES.get(output.suffix.lower() if output else "", "text")
    write_page(section, result, source)
    if style == "html":
        put(shown_as_page(section(), result, source), output)
    elif style == "latex":
        put(latex(section()), output)
    else:
        if text is None:
            text = lines(analysis.section(result), everything=more)
        write_rows(
            analysis.tables(result),
            result.cautions,
            result.left_out,
            source,
            style,
            table,
            text,
            output,
            about=analysis.facts(result),
        )


def write_rows(
    tables: Mapping[str, Sequence[Row]],
    cautions: Sequence[Caution],
    rows_left_out: Mapping[str, int],
    source: Path,
    style: str | None,
    table: str,
    text: Iterator[str],
    output: Path | None,
    *,
    about: Mapping[str, Json] | None = None,
) -> None:
    """Write rows that are no result of an analysis, and have no page. Raises TwinbedError if a page is requested. ``about`` is
    what JSON has in addition to the tables."""
    from twinbed.render.output import put
    from twinbed.render.rows import as_csv
    from twinbed.show.words import left_out

    style = style or SUFFIXES.get(output.suffix.lower() if output else "", "text")
    if style == "html":
        raise TwinbedError("this has no page", advice="--format text, json or csv")
    if style == "json":
        carried = [caution.to_json() for caution in cautions]
        noted = {"cautions": carried, "left_out": dict(rows_left_out)}
        shown = as_json({"source": str(source), **(about or {}), **noted, **tables}, allow_nan=False) + "\n"
    elif style == "csv":
        shown = as_csv(tables[table])
    else:
        shown = "".join(f"{line}\n" for line in (*text, *left_out(rows_left_out), *map(one_line, _cautions(cautions))))
    put(shown, output)


def table_text(rows: Sequence[Row]) -> str:
    """Return rows as aligned text, numbers to four digits."""
    from twinbed.render.rows import as_text

    return as_text([{name: _short(value) for name, value in row.items()} for row in rows]).rstrip("\n")


def _short(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _cautions(cautions: Sequence[Caution]) -> Iterator[str]:
    for caution in cautions:
        where = ", ".join(part for part in (caution.subject, caution.detail) if part)
        yield f"! {caution.kind.meaning}{f' ({where})' if where else ''}: {caution.kind.advice}"
