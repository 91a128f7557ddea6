"""`twinbed analyse anomaly`: several faster than one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import click

from twinbed.analyses.anomaly.result import Anomalies
from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import Given, Request, options, table_text

MOST = 20
"""The text shows so many counters."""


@click.command(
    name="anomaly", epilog="docs/capacity.md says what is tested. A counter that moves with a rate need not cause it."
)
@click.argument("source", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--alpha", type=click.FloatRange(0, 0.5, True, True), default=0.05, show_default=True, help="Of tests.")
@options(("faster", "counters"), whole=False)
@click.pass_obj
def command(inputs: Inputs, /, alpha: float, **given: Unpack[Given]) -> int:
    """Is a pair faster among several than alone, at which N, and which of the other metrics move with its rate?

    \b
    twinbed analyse anomaly results/
    twinbed analyse anomaly results/ --format csv --table counters
    """
    request = Request.of(inputs, given, "anomaly needs all metrics of every run")
    from twinbed.analyses.anomaly.analysis import AnomalyParams
    from twinbed.analyses.anomaly.analysis import analysis as anomaly

    result = anomaly.run(request.tables, AnomalyParams(**request.rate, alpha=alpha))
    request.write(anomaly.tables(result), result.cautions, result.left_out, _text(result))
    return codes.DONE


def _text(anomalies: Anomalies) -> Iterator[str]:
    yield "A pair among N against a pair alone"
    yield table_text(anomalies.faster)
    counters = [row for row in anomalies.counters if row["moves"]]
    if not any(row["faster"] for row in anomalies.faster):
        yield "\nNowhere is a pair shown to be faster than alone."
        return
    yield f"\n{len(counters)} of {len(anomalies.counters)} other metrics move with the rate up to there"
    yield table_text(counters[:MOST])
    if len(counters) > MOST:
        yield f"... and {len(counters) - MOST} more: --format csv --table counters"
