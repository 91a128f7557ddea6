"""`twinbed analyse multifidelity`: few dear runs and many cheap ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from twinbed.analyses.multifidelity.result import Estimated, Multifidelity, tables
from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.run import level_text
from twinbed.observations.draws import DRAW, TESTBED
from twinbed.observations.options import STYLES, table_text, write
from twinbed.show.table import Row


@click.command(name="multifidelity", epilog="docs/multifidelity.md says how it is estimated, and when mixing does not pay.")
@click.argument("source", metavar="RESULTS | FILE", type=click.Path(path_type=Path))
@click.option("--dear", metavar="TESTBED", help="The testbed that is asked about. Of RESULTS by default the reference.")
@click.option("--below", type=float, metavar="VALUE", help="Estimate the share of values below it too.")
@click.option("--quantile", "quantiles", type=float, multiple=True, metavar="P", help="Default: 0.5 and 0.9. More than once.")
@click.option("--response", metavar="NAME", help="The metric. Of RESULTS by default the first headline metric.")
@click.option("--by", metavar="COLUMN", multiple=True, help="Of FILE: other factors; each combination is by itself.")
@click.option("--host", help="Of RESULTS: the host it was measured on, where there are several.")
@click.option("--direction", help="Of RESULTS: client_to_server or server_to_client, where there are both.")
@click.option("--confidence", type=click.FloatRange(0.5, 1, True, True), default=0.95, show_default=True)
@click.option("--format", "style", type=click.Choice(STYLES), help="How to write it. Default: by the output's name, else text.")
@click.option("--table", type=click.Choice(("estimates", "testbeds")), default="estimates", help="Which table CSV is of.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: standard output.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    source: Path,
    dear: str | None,
    below: float | None,
    quantiles: tuple[float, ...],
    response: str | None,
    by: tuple[str, ...],
    host: str | None,
    direction: str | None,
    confidence: float,
    style: str | None,
    table: str,
    output: Path | None,
) -> int:
    """What a dear testbed gives over uncertain inputs: mean, variance, quantiles, and the share below a bound, each with its
    interval, from its own few runs and those of cheaper testbeds that had the same draws (`uncertain:` in the study).

    Where mixing does not pay, the dear testbed's runs stand alone, and it is said why. FILE has the columns testbed, draw and
    the response.

    \b
    twinbed analyse multifidelity results/
    twinbed analyse multifidelity results/ --response requests_per_second --below 500 --quantile 0.05
    twinbed analyse multifidelity runs.csv --response requests_per_second --dear physical
    """
    from twinbed.analyses.multifidelity.method import QUANTILES, MultifidelityParams
    from twinbed.analyses.multifidelity.method import analysis as multifidelity
    from twinbed.observations.source import read_frame

    params = MultifidelityParams(
        response=response,
        host=host,
        direction=direction,
        dear=dear,
        below=below,
        quantiles=quantiles or QUANTILES,
        confidence=confidence,
    )
    if inputs.is_results(source):
        result = multifidelity.run(inputs.tables(source), params)
    else:
        frame = read_frame(inputs, source, response, [TESTBED, DRAW, *by], host=host, direction=direction)
        result = multifidelity.run(frame, params)
    write(multifidelity, result, source, style, table, _text(result, tables(result)), output)
    return codes.DONE


def _text(result: Multifidelity, rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    unit = result.unit.removeprefix("1")
    yield f"{result.response}{f' [{unit}]' if unit else ''} on {result.dear}, intervals at {100 * result.confidence:g} %"
    for group in result.groups:
        if group.levels:
            yield ""
            yield ", ".join(f"{name} {level_text(level)}" for name, level in group.levels.items())
        yield ""
        yield table_text([_row(each) for each in group.estimates])
        refusals = dict.fromkeys(each.refusal for each in group.estimates if each.refusal)
        for refusal in refusals:
            of = ", ".join(each.quantity for each in group.estimates if each.refusal == refusal)
            yield f"Nothing is mixed in for {of}: {refusal}."
        for each in group.estimates:
            if each.at_equal_time is not None:
                yield _paid(each.at_equal_time, result.dear)
    yield ""
    yield table_text(rows["testbeds"])


def _row(each: Estimated) -> Row:
    return {
        "quantity": each.quantity,
        "value": each.value,
        "low": each.low,
        "high": each.high,
        "mixed in": ", ".join(each.testbeds),
        "alone: low": None if each.alone is None else each.alone.low,
        "alone: high": None if each.alone is None else each.alone.high,
    }


def _paid(ratio: float, dear: str) -> str:
    alone = f"the same time of runs on {dear} alone would have given"
    if ratio < 1:
        return f"Mixing paid: the variance of the mean is {ratio:.2g} of what {alone}."
    return f"Mixing did not pay: {alone} a mean of {1 / ratio:.2g} times the variance."
