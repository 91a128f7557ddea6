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
LIKELY = 0.05
DETAILS = {"kendall", "p_kendall", "p_spearman", "p_holm", "p_at_equal_n", "spearman_as_measured", "moves", "not_tested"}
"""Columns of the tables that the text leaves out."""


@click.command(
    name="anomaly", epilog="docs/capacity.md says what is tested. A metric that moves with a rate need not cause it."
)
@click.argument("source", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--alpha", type=click.FloatRange(0, 0.5, True, True), default=0.05, show_default=True, help="Of tests.")
@options(("faster", "counters"), whole=False)
@click.pass_obj
def command(inputs: Inputs, /, alpha: float, **given: Unpack[Given]) -> int:
    """Is a pair faster among several than alone, at which N, and which of the other metrics move with its rate
    beyond what goes with the work done and with time?

    \b
    twinbed analyse anomaly results/
    twinbed analyse anomaly results/ --format csv --table counters
    """
    request = Request.of(inputs, given, "anomaly needs all metrics of every run")
    from twinbed.analyses.anomaly.method import AnomalyParams
    from twinbed.analyses.anomaly.method import analysis as anomaly

    result = anomaly.run(request.tables, AnomalyParams(**request.rate, alpha=alpha))
    request.write(anomaly, result, _text(result))
    return codes.DONE


def _text(anomalies: Anomalies) -> Iterator[str]:
    from twinbed.analyses.anomaly.section import TITLE, sentences

    yield TITLE
    yield table_text(anomalies.faster)
    if not any(row["faster"] for row in anomalies.faster):
        yield f"\n{''.join(sentences(anomalies))}."
        return
    counters = [row for row in anomalies.counters if row["moves"]]
    yield f"\n{''.join(sentences(anomalies))}"
    if counters:
        yield table_text([{name: value for name, value in row.items() if name not in DETAILS} for row in counters[:MOST]])
    if len(counters) > MOST:
        yield f"... and {len(counters) - MOST} more: --format csv --table counters"
    if forms := sum(row["not_tested"] is not None for row in anomalies.counters):
        yield f"{forms} are the rate, the work or the time in another form, and not tested."
    if counters and all(row["p_at_equal_n"] is None or row["p_at_equal_n"] > LIKELY for row in counters):
        yield "None of them moves with the rate at equal N: what changes with N for a reason of its own looks the same."
