"""`twinbed analyse anova`: which factors matter, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts.analysis import Inputs
from twinbed.model.error import TwinbedError
from twinbed.observations.pages import shown_as_page, write_page
from twinbed.terminal import as_json

if TYPE_CHECKING:
    from twinbed.analyses.anova.result import Anova
    from twinbed.observations.frame import Frame

STYLES = ["text", "json", "csv", "latex", "html"]
SUFFIXES = {".json": "json", ".csv": "csv", ".tex": "latex", ".html": "html", ".htm": "html"}
TABLES = ["variance", "effects", "signs", "means", "differences", "assumptions", "alternatives", "residuals"]


@click.command(name="anova", epilog="docs/analyse.md says what each number means, and when to believe it.")
@click.argument("source", metavar="RESULTS | FILE", type=click.Path(path_type=Path))
@click.option("--response", metavar="NAME", help="The metric, or column. Of RESULTS by default the first headline metric.")
@click.option("--factor", "factors", metavar="NAME", multiple=True, help="May be repeated. Default: all factors of the study.")
@click.option("--terms", "formula", metavar="FORMULA", help="Such as 'testbed * payload' or 'y ~ a + b + a:b'. Default: all.")
@click.option("--log/--no-log", "logarithm", default=None, help="Default: for positive ratio metrics of RESULTS.")
@click.option("--levels", metavar="NAME=A,B,...", multiple=True, help="Only these levels, in this order; may be repeated.")
@click.option("--type", "kind", type=click.Choice(["I", "II", "III"]), default="II", help="Of sums of squares. Default: II.")
@click.option("--model", type=click.Choice(["auto", "2kr"]), default="auto", help="2kr: insist on a 2^k r design.")
@click.option("--variances", type=click.Choice(["auto", "equal", "unequal"]), default="auto", help="Default: a test decides.")
@click.option("--keep", metavar="FORMULA", help="A truncated model: only these of the terms.")
@click.option("--drop-below", metavar="SHARE", help="A truncated model: only terms of at least this share, such as 1%.")
@click.option("--confidence", metavar="SHARE", default="95%", help="Of intervals and of the table's F. Default: 95%.")
@click.option("--host", help="Of RESULTS: the host it was measured on, where there are several.")
@click.option("--direction", help="Of RESULTS: client_to_server or server_to_client, where there are both.")
@click.option("--format", "style", type=click.Choice(STYLES), help="How to write it. Default: by the output's name, else text.")
@click.option("--table", type=click.Choice(TABLES), default="variance", help="Which table CSV is of. Default: variance.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write. Default: standard output.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    source: Path,
    response: str | None,
    factors: tuple[str, ...],
    formula: str | None,
    logarithm: bool | None,
    levels: tuple[str, ...],
    kind: str,
    model: str,
    variances: str,
    keep: str | None,
    drop_below: str | None,
    confidence: str,
    host: str | None,
    direction: str | None,
    style: str | None,
    table: str,
    output: Path | None,
) -> int:
    """How much of the variation of a response each factor accounts for, and each interaction; the rest are errors.

    Of the RESULTS of a study, or of a FILE of one row an observation: CSV, TSV or Parquet. Sums of squares, F and p; means,
    effects and differences of levels with intervals; and whether the assumptions hold, with other tests where they do not.
    Levels are categories, numbers too. Of a 2^k r design the sign table is shown as well. Replicates are what errors are
    estimated from: without them there is no F.

    \b
    twinbed analyse anova results/                                    all factors, the headline metric
    twinbed analyse anova results/ --response requests_per_second --factor testbed --factor payload
    twinbed analyse anova loss.csv --response loss --factor receivers --confidence 99%
    twinbed analyse anova loss.csv --response loss --factor receivers --levels receivers=6,7,8,9,10
    twinbed analyse anova results/ --drop-below 1% -o anova.html      only what matters, as a page
    """
    from twinbed.analyses.anova.method import AnovaParams
    from twinbed.analyses.anova.method import analysis as anova
    from twinbed.observations.source import read_frame

    if formula is not None and factors:
        raise TwinbedError("--terms names the factors already", advice="leave --factor out")
    params = AnovaParams(
        response=response,
        factors=factors,
        formula=formula,
        type=kind,
        model=model,
        logarithm=logarithm,
        confidence=_share("--confidence", confidence, 0.5),
        variances=variances,
        keep=keep,
        drop_below=_share("--drop-below", drop_below, 0.0) if drop_below is not None else None,
    )
    only = dict(_levels(each) for each in levels)
    asked = anova.columns(params)
    columns = None if asked is None else [*asked, *(name for name in only if name not in asked)]
    if columns is None and not inputs.is_results(source):
        raise TwinbedError("which factors?", advice=_advice(source))
    frame = read_frame(inputs, source, anova.response(params), columns, host=host, direction=direction)
    result = anova.run(_only(frame, only), params)
    style = style or SUFFIXES.get(output.suffix.lower() if output else "", "text")
    write_page(lambda: anova.section(result), result, source)
    if style == "html":
        _write(shown_as_page(anova.section(result), result, source), output)
    else:
        _write(rendered(result, style, table), output)
    return 0


def rendered(anova: Anova, style: str, table: str) -> str:
    """The analysis in a style of STYLES but as a page; ``table`` is the one that CSV has."""
    if style == "latex":
        from twinbed.analyses.anova.page import latex

        return latex(anova)
    if style == "text":
        return "\n".join(_text(anova))
    from twinbed.analyses.anova.result import tables
    from twinbed.render.rows import as_csv

    rows = tables(anova)
    if style == "csv":
        return as_csv(rows[table])
    about = {
        "source": anova.source,
        "response": anova.response,
        "unit": anova.unit or None,
        "logarithm": anova.logarithm,
        "type": anova.kind,
        "confidence": anova.confidence,
        "n": anova.n,
        "cells": anova.cells,
        "balanced": anova.balanced,
        "factors": anova.factors,
        "mean": anova.mean,
        "r_squared": anova.r_squared,
        "truncation": _truncation(anova),
        "notes": anova.notes,
        "cautions": [caution.to_json() for caution in anova.cautions],
    }
    return as_json({**about, **rows}, allow_nan=False) + "\n"


def _text(anova: Anova) -> list[str]:
    from twinbed.analyses.anova.tables import MOST_PAIRS, about, lede, tables
    from twinbed.show.words import caution_sentences

    parts = [f"{lede(anova)}\n{about(anova)}\n"]
    captions = {""}
    for table in tables(anova, MOST_PAIRS):
        parts.append(table.as_text() + ("" if table.caption in captions else f"{table.caption}\n"))
        captions.add(table.caption)
    if anova.notes or anova.cautions:
        parts.append("".join(f"! {each}\n" for each in (*anova.notes, *caution_sentences(anova.cautions))))
    return parts


def _truncation(anova: Anova) -> Mapping[str, object] | None:
    from twinbed.analyses.anova.result import term_text

    cost = anova.truncation
    if cost is None:
        return None
    dropped = [term_text(term) for term in cost.dropped]
    return {"dropped": dropped, "share": cost.share, "r_squared_of_all": cost.r_squared, "f": cost.f, "p": cost.p}


def _share(option: str, text: str, above: float) -> float:
    from twinbed.model.units import QuantityError, parse_share

    try:
        value = parse_share(text)
    except QuantityError as error:
        raise TwinbedError(f"{option}: {text!r} is not a share", advice="such as 95% or 0.95") from error
    if not above < value < 1:
        raise TwinbedError(f"{option}: {text} is not between {above * 100:g}% and 100%", advice="such as 95% or 0.95")
    return value


def _levels(text: str) -> tuple[str, list[str]]:
    name, sign, listed = text.partition("=")
    if not sign or not name or not listed:
        raise TwinbedError(f"--levels: {text!r} is not NAME=LEVEL,LEVEL", advice="such as receivers=6,7,8")
    return name, listed.split(",")


def _only(frame: Frame, only: Mapping[str, list[str]]) -> Frame:
    for name, levels in only.items():
        frame = frame.only(name, levels)
    return frame


def _advice(source: Path) -> str:
    return f"--factor NAME for each, or --terms; {source} has no study that says it"


def _write(text: str, output: Path | None) -> None:
    from twinbed.render.output import put

    put(text, output)
