"""`twinbed analyse anomaly`: several faster than one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from twinbed.cli import exit as codes
from twinbed.cli.analyse.numbered import factor_of_n, options, table_text, write
from twinbed.model.error import TwinbedError
from twinbed.model.result import Result
from twinbed.results.archive.unpack import is_results

MOST = 20
"""Counters shown in text."""


@click.command(
    name="anomaly", epilog="docs/capacity.md says what is tested. A counter that moves with a rate need not cause it."
)
@click.argument("source", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--alpha", type=click.FloatRange(0, 0.5, True, True), default=0.05, show_default=True, help="Of tests.")
@options(("faster", "counters"), whole=False)
def command(
    source: Path,
    alpha: float,
    response: str | None,
    over: str | None,
    per_pair: bool,
    host: str | None,
    direction: str | None,
    style: str | None,
    table: str,
    output: Path | None,
) -> int:
    """Is a pair faster among several than alone, at which N, and which of the other metrics move with its rate?

    \b
    twinbed analyse anomaly results/
    twinbed analyse anomaly results/ --format csv --table counters
    """
    from twinbed import registry
    from twinbed.cli.extraction import extracted

    if not is_results(source):
        raise TwinbedError(f"{source} is no results folder", advice="anomaly needs all metrics of every run")
    anomaly = registry.analysis("anomaly")
    params = anomaly.params(
        response=response, over=factor_of_n(source, over), per_pair=per_pair, alpha=alpha, host=host, direction=direction
    )
    found = anomaly.run(extracted(source), params)
    write(found, source, style, table, _text(found), output)
    return codes.DONE


def _text(found: Result) -> Iterator[str]:
    yield "A pair among N against a pair alone"
    yield table_text(found.tables["faster"])
    counters = [row for row in found.tables["counters"] if row["moves"]]
    if not any(row["faster"] for row in found.tables["faster"]):
        yield "\nNowhere is a pair shown to be faster than alone."
        return
    yield f"\n{len(counters)} of {len(found.tables['counters'])} other metrics move with the rate up to there"
    yield table_text(counters[:MOST])
    if len(counters) > MOST:
        yield f"... and {len(counters) - MOST} more: --format csv --table counters"
