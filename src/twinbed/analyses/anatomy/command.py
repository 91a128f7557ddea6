"""`twinbed anatomy`: the steps of requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import STYLES, write, write_rows
from twinbed.observations.pages import no_page

if TYPE_CHECKING:
    from twinbed.analyses.anatomy.ladders import Ladder
    from twinbed.analyses.anatomy.result import Anatomy

MERMAID = (".mmd", ".mermaid")
"""Names of files that Mermaid's own programs read."""


@click.command(name="anatomy", epilog="docs/anatomy.md says what the steps are, and works an example through.")
@click.argument("sources", metavar="RESULTS | CAPTURE [CAPTURE]", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--one-clock", is_flag=True, help="Of two captures: one clock made both, so that each way has a time.")
@click.option("--margin", metavar="SHARE", help="How far apart still counts as equivalent. Default: the study's.")
@click.option("--reference", metavar="TESTBED", help="Hold the others against this one. Default: the study's reference.")
@click.option(
    "--table",
    type=click.Choice(["differences", "steps", "groups", "patterns", "timers"]),
    default="differences",
    help="Which table CSV is of.",
)
@click.option(
    "--ladder", is_flag=True, help="Show a request of each testbed packet by packet, not of the largest difference alone."
)
@click.option("--format", "style", type=click.Choice([*STYLES, "mermaid"]), help="Default: by the name of -o, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; .html makes a page.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    sources: tuple[Path, ...],
    one_clock: bool,
    margin: str | None,
    reference: str | None,
    table: str,
    ladder: bool,
    style: str | None,
    output: Path | None,
) -> int:
    """Where does the time of a request go, and which step makes a testbed slower?

    Each request of RESULTS is taken apart as its packets show it: handshake, request, the server's answer, the way back, the
    transfer, its end. The steps add up, so that the difference between two testbeds is the sum of the differences of steps.

    \b
    twinbed anatomy results/
    twinbed anatomy results/ --format csv --table steps
    twinbed anatomy results/ -o anatomy.html                     as a page, with the waterfall of each difference
    twinbed anatomy results/ --ladder                            a request of every testbed, packet by packet
    twinbed anatomy results/ --format mermaid                    the same as a sequence diagram
    twinbed anatomy client.pcap server.pcap                      of two captures of one path, the client's first
    twinbed anatomy client.pcap                                  of one: what lies behind it is one step
    """
    if style is None and output is not None and output.suffix.lower() in MERMAID:
        style = "mermaid"
    if not inputs.is_results(sources[0]):
        return _of_captures(sources, one_clock, ladder, table, style, output)
    if len(sources) > 1:
        raise click.UsageError(f"{sources[0]} are results: give them alone, or captures")
    from twinbed.analyses.anatomy.method import AnatomyParams
    from twinbed.analyses.anatomy.method import analysis as anatomy
    from twinbed.model.error import TwinbedError
    from twinbed.model.units import QuantityError, parse_share

    try:
        params = AnatomyParams(margin=None if margin is None else parse_share(margin))
    except (QuantityError, ValueError) as error:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="such as 10% or 0.1") from error
    result = anatomy.run(inputs.tables(sources[0], reference), params)
    if style == "mermaid":
        return _mermaid(result.ladders, result.titles, sources[0], output)
    write(anatomy, result, sources[0], style, table, _text(result, all_ladders=ladder), output)
    return codes.DONE


def _mermaid(ladders: Sequence[Ladder], titles: Mapping[str, str], source: Path, output: Path | None) -> int:
    from twinbed.analyses.anatomy.mermaid import diagram
    from twinbed.model.error import TwinbedError
    from twinbed.render.output import put

    if not ladders:
        raise TwinbedError(f"{source} has no packets of requests with all their steps")
    put(diagram(ladders, titles), output)
    return codes.DONE


def _of_captures(
    files: tuple[Path, ...], one_clock: bool, all_rungs: bool, table: str, style: str | None, output: Path | None
) -> int:
    from twinbed.analyses.anatomy.captures import read
    from twinbed.analyses.anatomy.ladder_text import is_short, ladder_lines

    if len(files) > 2:
        raise click.UsageError(f"{len(files)} captures: give the client's and the server's, or one")
    no_page("captures", "import them as results: docs/import.md")
    found = read(files[0], files[1] if len(files) == 2 else None, one_clock=one_clock)
    if style == "mermaid":
        return _mermaid([found.ladder] if found.ladder else [], found.titles, files[0], output)
    lines = [found.table().as_text(), found.table().caption, found.patterns()]
    if (timers := found.timer_table()) is not None:
        lines += [timers.as_text(), timers.caption]
    if found.ladder is not None and (all_rungs or is_short([found.ladder])):
        lines += ["", *ladder_lines(found.ladder, found.titles)]
    left_out = {
        "requests that lack a step, such as an answer or a packet in a capture": found.requests.incomplete,
        "requests with a step that ends before it begins": found.requests.disordered,
    }
    known = {reason: count for reason, count in left_out.items() if count}
    tables = {"steps": found.rows(), "timers": found.timer_rows()}
    write_rows(tables, (), known, files[0], style, table if table in tables else "steps", iter(lines), output)
    return codes.DONE


def _text(result: Anatomy, *, all_ladders: bool) -> Iterator[str]:
    from twinbed.analyses.anatomy.ladder_text import shown
    from twinbed.analyses.anatomy.patterns import sentence
    from twinbed.analyses.anatomy.tables import caption, group_table, places, step_table, timers_of
    from twinbed.analyses.anatomy.words import sentences
    from twinbed.show.words import cell_title

    others = [each for each in result.requests if each.testbed != result.reference]
    for each in others or result.requests:
        if each.cell:
            yield cell_title(each.cell)
        yield step_table(result, each.cell, each.testbed).as_text()
    for cell in places(result):
        if (groups := group_table(result, cell)) is not None:
            yield f"{f'{cell_title(cell)}: ' if cell else ''}{groups.caption}"
            yield groups.as_text()
        if (timers := timers_of(result, cell)) is not None:
            yield f"{cell_title(cell)}: timers" if cell else "Timers"
            yield timers.as_text()
    for each in result.requests:
        if each.patterns:
            yield f"{f'{cell_title(each.cell)}: ' if each.cell else ''}{sentence(each.testbed, each.patterns)}"
    yield from sentences(result)
    yield from shown(result, all_of_them=all_ladders)
    yield caption(result)
