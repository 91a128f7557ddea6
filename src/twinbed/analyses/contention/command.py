"""`twinbed analyse contention`: where it bends, and whether the machine shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Unpack

import click

from twinbed.analyses.contention.result import Contention, tables
from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import Given, Request, options, table_text
from twinbed.show.table import Row


@click.command(name="contention", epilog="docs/capacity.md says how the detector is trained and what its threshold promises.")
@click.argument("source", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Of the machine; may be repeated. Default: all.")
@click.option("--span", type=click.FloatRange(0, min_open=True), default=0.75, show_default=True, help="Of LOESS.")
@click.option("--degree", type=click.IntRange(1, 2), default=2, show_default=True, help="Of LOESS.")
@click.option(
    "--drop",
    type=click.FloatRange(0, 1, True, True),
    default=0.05,
    show_default=True,
    help="Share of the rate lost: contended.",
)
@click.option("--fallen", type=click.FloatRange(0, 1, True, True), default=0.1, show_default=True, help="Lost: too much.")
@options(("inflections", "curves", "detectors", "alarms", "scores", "roc"), whole=False)
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    metrics: tuple[str, ...],
    span: float,
    degree: int,
    drop: float,
    fallen: float,
    **given: Unpack[Given],
) -> int:
    """Where the rate of a pair and the machine's metrics bend as N grows, in what order, and whether the machine's metrics
    alone tell a contended run: one whose rate has begun to fall (--drop), before it has fallen too far (--fallen). The
    detector is tested on replicates that it was not trained on.

    \b
    twinbed analyse contention results/
    twinbed analyse contention results/ --metric cpu_idle --metric interrupts --format csv --table curves
    twinbed analyse contention results/ -o contention.html                                         as a page
    """
    request = Request.of(inputs, given, "contention needs the machine's metrics of every run")
    from twinbed.analyses.contention.method import ContentionParams
    from twinbed.analyses.contention.method import analysis as contention

    params = ContentionParams(**request.rate, metrics=metrics, span=span, degree=degree, drop=drop, fallen=fallen)
    result = contention.run(request.tables, params)
    request.write(contention, result, _text(result, tables(result)))
    return codes.DONE


def _text(contention: Contention, rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    from twinbed.analyses.contention.sentences import sentences
    from twinbed.show.words import caution_sentences

    yield "Where the slope turns, in the order of N"
    yield table_text(rows["inflections"]) or "  nowhere"
    yield ""
    yield from sentences(contention)
    if rows["alarms"]:
        yield ""
        yield "How early it alarms: test runs at each N, and the share of the rate lost there"
        yield table_text(rows["alarms"])
    yield from (f"! {each}" for each in caution_sentences(contention.cautions))
