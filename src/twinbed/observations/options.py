"""What the commands on N have in common: options, and results in text, JSON, CSV, or as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypedDict, TypeVar

import click

from twinbed.contracts.analysis import Analysis, Inputs, ParamsT, ResultT
from twinbed.model.caution import Caution
from twinbed.model.error import TwinbedError
from twinbed.observations.pages import shown_as_page, write_page
from twinbed.show.table import Row
from twinbed.terminal import as_json, one_line

if TYPE_CHECKING:
    from twinbed.contracts.analysis import Section
    from twinbed.model.tables import Tables
    from twinbed.show.section import Section as Shown

OF_ROWS = ("text", "json", "csv")
STYLES = (*OF_ROWS, "html")
SUFFIXES = {".json": "json", ".csv": "csv", ".html": "html", ".htm": "html"}
Arguments = ParamSpec("Arguments")
Code = TypeVar("Code")


class Given(TypedDict):
    """What RESULTS and ``options`` give a command: the rest of its parameters, as ``**given: Unpack[Given]``."""

    source: Path
    response: str | None
    over: str | None
    per_pair: bool
    host: str | None
    direction: str | None
    style: str | None
    table: str
    output: Path | None


class Rate(TypedDict):
    """Which rate is meant, over which N: these are names of settings of an analysis."""

    response: str | None
    over: str
    per_pair: bool
    host: str | None
    direction: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """What a command on N that takes RESULTS alone is asked for: which data, and how to write what comes of them."""

    tables: Tables
    rate: Rate
    given: Given

    @classmethod
    def of(cls, inputs: Inputs, given: Given, needs: str) -> Request:
        """``needs`` says what the command takes of results. Raises TwinbedError where the source is none."""
        source = given["source"]
        if not inputs.is_results(source):
            raise TwinbedError(f"{source} is no results folder", advice=needs)
        rate = Rate(
            response=given["response"],
            over=factor_of_n(inputs, source, given["over"]),
            per_pair=given["per_pair"],
            host=given["host"],
            direction=given["direction"],
        )
        return cls(inputs.tables(source), rate, given)

    def write(
        self,
        analysis: Analysis[ParamsT, ResultT],
        result: ResultT,
        text: Iterator[str],
    ) -> None:
        """As the function ``write``, by the options given."""
        given = self.given
        write(analysis, result, given["source"], given["style"], given["table"], text, given["output"])


def options(tables: tuple[str, ...], *, whole: bool) -> Callable[[Callable[Arguments, Code]], Callable[Arguments, Code]]:
    """``tables`` are those that CSV may be of; ``whole`` is whether responses are of all pairs together unless said."""
    per_pair = "Divide the response by N. Default: {}."

    def add(command: Callable[Arguments, Code]) -> Callable[Arguments, Code]:
        for option in reversed(
            (
                click.option("--response", metavar="NAME", help="The metric. Of RESULTS by default the first headline metric."),
                click.option("--over", metavar="FACTOR", help="The factor that is N. Default: the number of pairs."),
                click.option("--per-pair/--whole", default=not whole, help=per_pair.format("whole" if whole else "per pair")),
                click.option("--host", help="Of RESULTS: the host it was measured on, where there are several."),
                click.option("--direction", help="Of RESULTS: client_to_server or server_to_client, where there are both."),
                click.option(
                    "--format",
                    "style",
                    type=click.Choice(STYLES),
                    help="How to write it. Default: by the output's name, else text.",
                ),
                click.option("--table", type=click.Choice(tables), default=tables[0], help="Which table CSV is of."),
                click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: standard output."),
            )
        ):
            command = option(command)
        return command

    return add


def factor_of_n(inputs: Inputs, source: Path, over: str | None) -> str:
    """``over`` where given; of results else the number of pairs, however the study writes it. Raises TwinbedError."""
    from twinbed.observations.numbered import PAIRS, of_pairs, varied_numbers

    if over is not None:
        return over
    if not inputs.is_results(source):
        return PAIRS
    numbers = varied_numbers(inputs.tables(source))
    factor = of_pairs(numbers)
    if factor is None:
        there = ", ".join(numbers)
        advice = f"--over FACTOR; those that could be N: {there}" if there else "N is a factor of whole numbers, such as pairs"
        raise TwinbedError(f"{source}: no number of pairs varies", advice=advice)
    return factor


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
    """Write a result in a style, and as a page beside it where that is asked for. ``text`` are the lines for people, without
    cautions; None takes those of its section, with ``more`` those of every inner section."""

    def section() -> Shown | Section:
        return analysis.section(result)

    from twinbed.render.output import put
    from twinbed.render.sections import lines

    style = style or SUFFIXES.get(output.suffix.lower() if output else "", "text")
    write_page(section, result, source)
    if style == "html":
        put(shown_as_page(section(), result, source), output)
    else:
        if text is None:
            text = lines(analysis.section(result), everything=more)
        write_rows(analysis.tables(result), result.cautions, result.left_out, source, style, table, text, output)


def write_rows(
    tables: Mapping[str, Sequence[Row]],
    cautions: Sequence[Caution],
    rows_left_out: Mapping[str, int],
    source: Path,
    style: str | None,
    table: str,
    text: Iterator[str],
    output: Path | None,
) -> None:
    """As ``write``, of what is no result of an analysis, and has no page. Raises TwinbedError where one is asked for."""
    from twinbed.render.output import put
    from twinbed.render.rows import as_csv
    from twinbed.show.words import left_out

    style = style or SUFFIXES.get(output.suffix.lower() if output else "", "text")
    if style == "html":
        raise TwinbedError("there is no page of this", advice="--format text, json or csv")
    if style == "json":
        noted = [caution.to_json() for caution in cautions]
        about = {"source": str(source), "cautions": noted, "left_out": dict(rows_left_out)}
        shown = as_json({**about, **tables}, allow_nan=False) + "\n"
    elif style == "csv":
        shown = as_csv(tables[table])
    else:
        shown = "".join(f"{line}\n" for line in (*text, *left_out(rows_left_out), *map(one_line, _cautions(cautions))))
    put(shown, output)


def table_text(rows: Sequence[Row]) -> str:
    """Numbers to four digits."""
    from twinbed.render.rows import as_text

    return as_text([{name: _short(value) for name, value in row.items()} for row in rows]).rstrip("\n")


def _short(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _cautions(cautions: Sequence[Caution]) -> Iterator[str]:
    for each in cautions:
        where = ", ".join(part for part in (each.subject, each.detail) if part)
        yield f"! {each.kind.meaning}{f' ({where})' if where else ''}: {each.kind.advice}"
