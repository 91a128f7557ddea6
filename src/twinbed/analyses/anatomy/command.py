"""Read captures and show requests packet by packet: `twinbed anatomy` beyond printing a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.error import TwinbedError
from twinbed.observations.options import STYLES, write, write_rows
from twinbed.observations.pages import no_page

if TYPE_CHECKING:
    from twinbed.analyses.anatomy.ladders import Ladder
    from twinbed.analyses.anatomy.result import Anatomy
    from twinbed.contracts.analysis import Judged

MERMAID = (".mmd", ".mermaid")
"""Names of files that Mermaid's own programs read."""


@click.command(name="anatomy")
@click.argument("sources", metavar="RESULTS | CAPTURE [CAPTURE]", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--one-clock", is_flag=True, help="Both captures have timestamps of one clock: time each direction by itself.")
@click.option(
    "--ladder",
    is_flag=True,
    help="Show a request of every testbed packet by packet. Default: the cell with the largest difference.",
)
@click.option("--format", "style", type=click.Choice([*STYLES, "mermaid"]), help="Default: by the name of -o, else text.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    sources: tuple[Path, ...],
    params: Judged,
    one_clock: bool,
    reference: str | None,
    table: str,
    ladder: bool,
    style: str | None,
    output: Path | None,
) -> int:
    from twinbed.analyses.anatomy.method import analysis

    if style is None and output is not None and output.suffix.lower() in MERMAID:
        style = "mermaid"
    if not inputs.is_results(sources[0]):
        return _of_captures(sources, one_clock, ladder, table, style, output)
    if len(sources) > 1:
        raise click.UsageError(f"{sources[0]} is a results folder: give it alone, or give captures only")
    result = analysis.run(inputs.tables(sources[0], reference), params)
    if style == "mermaid":
        return _mermaid(result.ladders, result.titles, sources[0], output)
    write(analysis, result, sources[0], style, table, _text(result, all_ladders=ladder), output)
    return codes.DONE


def _text(result: Anatomy, *, all_ladders: bool) -> Iterator[str]:
    from twinbed.analyses.anatomy.ladder_text import shown
    from twinbed.analyses.anatomy.words import section
    from twinbed.render.sections import lines

    yield from lines(section(result))
    yield from shown(result, all_of_them=all_ladders)


def _mermaid(ladders: Sequence[Ladder], titles: Mapping[str, str], source: Path, output: Path | None) -> int:
    from twinbed.analyses.anatomy.ladder_text import diagram
    from twinbed.render.output import put

    if not ladders:
        raise TwinbedError(f"{source} has no request with all its steps and packets", advice="instruments: [packets] keep them")
    put(diagram(ladders, titles), output)
    return codes.DONE


def _of_captures(
    files: tuple[Path, ...], one_clock: bool, all_rungs: bool, table: str, style: str | None, output: Path | None
) -> int:
    from twinbed.analyses.anatomy.captures import read, section
    from twinbed.analyses.anatomy.ladder_text import is_short, ladder_lines
    from twinbed.render.sections import lines

    if len(files) > 2:
        raise click.UsageError(f"{len(files)} captures are too many: give the client's and the server's, or one")
    no_page("captures", "import them as results: docs/import.md")
    captured = read(files[0], files[1] if len(files) == 2 else None, one_clock=one_clock)
    if style == "mermaid":
        return _mermaid([captured.ladder] if captured.ladder else [], captured.titles, files[0], output)
    shown = section(captured)
    text = list(lines(shown))
    if captured.ladder is not None and (all_rungs or is_short([captured.ladder])):
        text += ["", *ladder_lines(captured.ladder, captured.titles)]
    tables = {own.key: own.rows() for own in shown.tables() if own.is_for_programs}
    name = table if table in tables else "steps"
    write_rows(tables, (), captured.left_out, files[0], style, name, iter(text), output)
    return codes.DONE
