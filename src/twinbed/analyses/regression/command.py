"""`twinbed analyse regression`: by how much factors and numbers change a response."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.error import TwinbedError
from twinbed.observations.pages import shown_as_page, write_page
from twinbed.terminal import as_json

if TYPE_CHECKING:
    from twinbed.analyses.regression.result import Regression

STYLES = ("text", "json", "csv", "latex", "html")
_PAIR = re.compile(r"[A-Za-z_]\w*\s*=\s*[^=]+")
SUFFIXES = {".json": "json", ".csv": "csv", ".tex": "latex", ".html": "html"}


@click.command(name="regression", epilog="docs/analyse-regression.md says what each number means and how to read the checks.")
@click.argument("source", metavar="RESULTS | FILE", type=click.Path(path_type=Path))
@click.option("--formula", "formulas", multiple=True, required=True, help="RESPONSE ~ TERMS. Several are set side by side.")
@click.option("--base", "bases", metavar="FACTOR=LEVEL", multiple=True, help="The level that others are held against.")
@click.option(
    "--effect", "effects", metavar="NAME[=TO[:FROM]]", multiple=True, help="What changing it does, in % of log models."
)
@click.option("--at", metavar="NAME=VALUE", multiple=True, help="Where a variable stands that an effect depends on.")
@click.option(
    "--errors",
    type=click.Choice(["auto", "classical", "hc3"]),
    default="auto",
    help="Standard errors. auto: HC3 where variances are shown to differ.",
)
@click.option("--cluster", metavar="COLUMN", help="Errors for rows that depend on each other within its levels.")
@click.option("--random", metavar="COLUMN", help="Beside: a mixed model, with a random intercept for each of its levels.")
@click.option("--robust", type=click.Choice(["huber", "tukey"]), help="Beside: a fit that large residuals do not decide.")
@click.option("--confidence", type=click.FloatRange(0.5, 1, True, True), default=0.95, show_default=True, help="Of intervals.")
@click.option("--stars", is_flag=True, help="Standard errors and stars of significance in place of intervals.")
@click.option("--host", help="Of RESULTS: the response at this host.")
@click.option("--direction", help="Of RESULTS: the response in this direction.")
@click.option("--format", "style", type=click.Choice(STYLES), help="How to write it. Default: by the output's name, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write. Default: standard output.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    source: Path,
    formulas: tuple[str, ...],
    bases: tuple[str, ...],
    effects: tuple[str, ...],
    at: tuple[str, ...],
    errors: Literal["auto", "classical", "hc3"],
    cluster: str | None,
    random: str | None,
    robust: Literal["huber", "tukey"] | None,
    confidence: float,
    host: str | None,
    direction: str | None,
    stars: bool,
    style: str | None,
    output: Path | None,
) -> int:
    """By how much do factors and numbers change a response? A linear model of the runs in RESULTS, or of the rows of FILE (CSV
    or Parquet), with checks of all that it assumes, and intervals that hold where variances differ.

    \b
    Formulas: a + b           effects of a and of b
              a * b           and their interaction: a + b + a:b
              log(y) ~ ...    effects as percentages; boxcox(y) finds the best power
              centre(x)       x less its mean; centre(x, 1): less 1
              C(x)            a number as categorical; C(x, base=8)
              I(x^2)          arithmetic

    \b
    twinbed analyse regression results/ --formula "log(requests_per_second) ~ testbed * payload"
    twinbed analyse regression runs.csv --formula "log(rps) ~ centre(pairs, 1) * nic" \\
        --base nic=e1000 --effect nic=container --at pairs=40
    twinbed analyse regression runs.csv --formula "rtt ~ nic" --formula "rtt ~ nic * load" -o table.tex
    twinbed analyse regression runs.csv --formula "boxcox(rtt) ~ nic" --random block

    With --effect nic=container --at pairs=40 it says by how many percent a container's response differs from the base level's
    at 40 pairs, all else held.
    """
    from twinbed.observations.source import read_frame

    style = style or SUFFIXES.get(output.suffix.lower() if output else "", "text")
    from twinbed.analyses.regression.method import RegressionParams
    from twinbed.analyses.regression.method import analysis as regression

    asked = RegressionParams(
        formulas=formulas,
        bases=dict(_pairs("--base", bases)),
        effects=tuple(_effects(effects)),
        at=dict(_pairs("--at", at)),
        errors=errors,
        cluster=cluster,
        random=random,
        robust=robust,
        confidence=confidence,
    )
    response, columns = regression.columns(asked)
    frame = read_frame(inputs, source, response, columns, host=host, direction=direction)
    result = regression.run(frame, asked)
    from twinbed.analyses.regression.page import section

    write_page(lambda: section(result, stars), result, source)
    if style == "html":
        _write(shown_as_page(section(result, stars), result, source), output)
    else:
        _write(_shown(result, style, stars), output)
    return codes.DONE


def _pairs(option: str, given: Sequence[str]) -> Iterator[tuple[str, str]]:
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name or not value:
            raise TwinbedError(f"{option}: {each!r} is not NAME=VALUE", advice=f"such as {option} nic=e1000")
        several = [part.strip() for part in each.split(",")]
        if len(several) > 1 and all(_PAIR.fullmatch(part) for part in several):
            raise TwinbedError(
                f"{option}: {each!r} has several of NAME=VALUE",
                advice="give each its own: " + " ".join(f"{option} {shlex.quote(part)}" for part in several),
            )
        yield name.strip(), value.strip()


def _effects(given: Sequence[str]) -> Iterator[tuple[str, str | None, str | None]]:
    for each in given:
        name, _, change = each.partition("=")
        to, _, base = change.partition(":")
        yield name.strip(), to.strip() or None, base.strip() or None


def _shown(regression: Regression, style: str, stars: bool) -> str:
    from twinbed.analyses.regression import tables as report
    from twinbed.analyses.regression.result import tables

    if style == "json":
        about = {
            "source": regression.source,
            "response": regression.response,
            "unit": regression.unit or None,
            "confidence": regression.confidence,
            "left_out": dict(regression.left_out),
            "cautions": [caution.to_json() for caution in regression.cautions],
        }
        return as_json({**about, **tables(regression)}, allow_nan=False) + "\n"
    if style == "csv":
        from twinbed.render.rows import as_csv

        return as_csv(tables(regression)["coefficients"])
    if style == "latex":
        return report.latex(regression, stars)
    return "".join(f"{line}\n" for line in _text(regression, stars))


def _text(regression: Regression, stars: bool) -> Iterator[str]:
    from twinbed.analyses.regression import tables as report
    from twinbed.show.words import caution_sentences

    yield f"{regression.source}: {regression.response}{f' in {regression.unit}' if regression.unit else ''}\n"
    yield report.text(regression, stars)
    for number, model in enumerate(regression.models, 1):
        of = f" of model {number}: {model.formula}" if len(regression.models) > 1 else ""
        if effects := list(report.effect_lines(model)):
            yield f"Effects{of}, all else held"
            yield from (f"  {line}" for line in effects)
            yield ""
        yield f"Assumptions{of}"
        yield from (f"  {line}" for line in report.check_lines(model))
        if model.inflation:
            each = ", ".join(f"{term.term} {term.scaled:.3f} ({term.gvif:.3f}, {term.columns} df)" for term in model.inflation)
            yield f"\nGVIF^(1/(2 df)) (and GVIF) before interactions and powers: {each}"
        yield from (f"! {note}" for note in model.notes)
    yield from (f"! {caution}" for caution in caution_sentences(regression.cautions))


def _write(text: str, output: Path | None) -> None:
    from twinbed.render.output import put

    put(text, output)
