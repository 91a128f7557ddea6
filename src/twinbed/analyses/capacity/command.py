"""`twinbed analyse capacity`: how many fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from twinbed.analyses.capacity.result import Capacities, tables
from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.error import TwinbedError
from twinbed.model.run import level_text
from twinbed.observations.options import factor_of_n, options, table_text, write
from twinbed.show.table import Row


@click.command(name="capacity", epilog="docs/capacity.md says what is tested, and why nothing is said of N not tested.")
@click.argument("source", metavar="RESULTS | FILE", type=click.Path(path_type=Path))
@click.option("--at-most", type=float, metavar="VALUE", help="The mean must not be above it.")
@click.option("--at-least", type=float, metavar="VALUE", help="The mean must not be below it.")
@click.option("--of-one", is_flag=True, help="VALUE is a share of the mean at N = 1: --at-least 0.9 --of-one.")
@click.option("--by", metavar="COLUMN", multiple=True, help="Of FILE: other factors; each combination has its own capacity.")
@click.option("--confidence", type=click.FloatRange(0.5, 1, True, True), default=0.95, show_default=True)
@options(("statements", "steps"), whole=True)
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    source: Path,
    at_most: float | None,
    at_least: float | None,
    of_one: bool,
    by: tuple[str, ...],
    confidence: float,
    response: str | None,
    over: str | None,
    per_pair: bool,
    host: str | None,
    direction: str | None,
    style: str | None,
    table: str,
    output: Path | None,
) -> int:
    """The largest N (pairs, flows, receivers) that keeps an objective, and how sure that is. N is a factor of the study.

    Only tested N are named: between them and above the largest nothing is said.

    \b
    twinbed analyse capacity results/ --response loss --at-most 0.01
    twinbed analyse capacity results/ --response requests_per_second --per-pair --at-least 0.9 --of-one
    twinbed analyse capacity loss.csv --response loss --over receivers --at-most 1
    twinbed analyse capacity results/ --response loss --at-most 0.01 -o capacity.html       as a page
    """
    from twinbed.observations.source import read_frame

    bound = at_least if at_most is None else at_most
    if bound is None or (at_most is not None and at_least is not None):
        raise TwinbedError("what must hold?", advice="either --at-most VALUE or --at-least VALUE")
    if not math.isfinite(bound):
        raise TwinbedError(
            f"{bound:g} is no bound", advice="a finite number, in the unit of the response or with --of-one a share"
        )
    over = factor_of_n(inputs, source, over)
    from twinbed.analyses.capacity.method import CapacityParams
    from twinbed.analyses.capacity.method import analysis as capacity

    params = CapacityParams(
        response=response,
        over=over,
        bound=bound,
        at_most=at_most is not None,
        relative=of_one,
        per_pair=per_pair,
        confidence=confidence,
    )
    columns = None if inputs.is_results(source) else [over, *by]
    capacities = capacity.run(read_frame(inputs, source, response, columns, host=host, direction=direction), params)
    write(capacity, capacities, source, style, table, _text(capacities, tables(capacities)), output)
    return codes.DONE


def _text(capacities: Capacities, rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    for group in capacities.groups:
        levels = [f"{name} {level_text(level)}" for name, level in group.levels.items()]
        yield ": ".join((*([", ".join(levels)] if levels else []), capacities.objective, group.statement))
    yield ""
    yield table_text(rows["steps"])
