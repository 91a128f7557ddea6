"""`twinbed published`: replay, audit and compare the printed tables of papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.cli import published_tables
from twinbed.cli.help import CommandGroup
from twinbed.contracts import exit_codes as codes
from twinbed.render.rows import STYLES, print_json, print_table
from twinbed.terminal import say, say_text

if TYPE_CHECKING:
    from twinbed.published.printed import Library
    from twinbed.published.printed_metrics import Own

_FORMAT = click.option(
    "--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="How to print it."
)
_EPILOG = "docs/published.md explains how the tables were read, and what the audit found."


@click.group("published", cls=CommandGroup, epilog=_EPILOG)
def group() -> None:
    """Replay, audit and compare the printed tables of the papers that twinbed is built on.

    \b
    Examples:
      twinbed published list
      twinbed published replay ONL-4                     compute its numbers again
      twinbed published compare results/quickstart       printed ratios, and yours
    """


@group.command("list")
@_FORMAT
def list_(style: str) -> None:
    """List the tables with source, page, runs behind each number, and caption.

    \b
    Examples:
      twinbed published list
      twinbed published list --format csv
    """
    library = _library()
    rows = [
        {
            "table": table.id,
            "source": table.source,
            "page": table.page,
            "n": table.n,
            "cells": len(table.cells),
            "caption": table.caption,
        }
        for table in library.tables.values()
    ]
    print_table(rows, style)


@group.command()
@click.argument("name", metavar="TABLE")
@_FORMAT
def show(name: str, style: str) -> None:
    """Show one TABLE, with a row for each number.

    \b
    Examples:
      twinbed published show LDRD-3.4
      twinbed published show ONL-3 --format csv > loss.csv

    TABLE is such as ICNC-III, icnc-3 or ONL-5. Each number has its labels, its kind, its unit and its printed digits.
    """
    library = _library()
    table = library.table(name)
    rows = [published_tables.number(cell) for cell in table.cells]
    if style == "json":
        print_json({**published_tables.about(library, table), "cells": rows})
    elif style == "csv":
        print_table(
            [{"source": table.source, "table": table.id, "page": table.page, "n": table.n, **row} for row in rows], style
        )
    else:
        for about, text in published_tables.about(library, table).items():
            if text not in (None, "", {}):
                say(f"{about:<8} {published_tables.as_text(text)}")
        say("")
        columns = (*table.labels, "metric", "kind", "printed", "unit", "note")
        shown = [column for column in columns if any(row[column] for row in rows)]
        print_table([{column: row[column] for column in shown} for row in rows])


@group.command()
@click.argument("name", metavar="[TABLE]", required=False)
@_FORMAT
def replay(name: str | None, style: str) -> int:
    """Compute printed numbers again from other printed numbers, for TABLE or for all tables and the text.

    \b
    Examples:
      twinbed published replay
      twinbed published replay ONL-4

    \b
    equal             equals the printed number
    within rounding   some inputs that round to the printed ones give it (low to high)
    differs           no such inputs give it
    derived           no printed number to compare with

    Exit code 4: some number differs; 0: none.
    """
    from twinbed.published import replay as replaying
    from twinbed.published.replayed import Status

    library = _library()
    rows = replaying.replay(library, library.table(name) if name else None)
    shown = [
        {
            "table": row.table,
            "cell": row.cell,
            "quantity": row.quantity,
            "printed": row.printed,
            "recomputed": row.recomputed,
            "low": row.low if style != "text" else published_tables.short(row.low),
            "high": row.high if style != "text" else published_tables.short(row.high),
            "unit": row.unit,
            "status": str(row.status),
            "formula": row.formula,
        }
        for row in rows
    ]
    if not shown and style == "text":
        say("No number of this table can be computed from other printed numbers.")
    print_table(shown, style)
    return codes.DIFFERENT if any(row.status is Status.DIFFERS for row in rows) else codes.DONE


@group.command()
@_FORMAT
def audit(style: str) -> int:
    """List printed numbers and claims that do not follow from the printed data.

    \b
    Examples:
      twinbed published audit
      twinbed published audit --format csv

    Findings are sorted by rule, with the arithmetic and their consequence. A number is listed only if no inputs that round to
    the printed ones give it.

    Exit code 4: there are findings; 0: none.
    """
    from dataclasses import asdict

    from twinbed.published.audit import audit as audited

    findings = audited(_library())
    if style == "text":
        say_text("".join(f"{each}\n" for each in published_tables.findings(findings)))
    else:
        print_table([asdict(finding) for finding in findings], style)
    return codes.DIFFERENT if findings else codes.DONE


@group.command()
@click.argument("results", required=False, type=click.Path(path_type=Path))
@click.option(
    "--margin", metavar="SHARE", default="10%", show_default=True, help="Largest difference that counts as equivalent."
)
@_FORMAT
def compare(results: Path | None, margin: str, style: str) -> int:
    """Compare virtual testbeds with physical ones in every printed table, and in RESULTS.

    \b
    Examples:
      twinbed published compare
      twinbed published compare results/quickstart
      twinbed published compare --margin 5% --format csv

    Rows of RESULTS are added where metric, testbed and payload match.

    \b
    in 10 %    the papers' rule, which uses means alone
    verdict    as in twinbed compare, if n and a spread are printed; else the reason

    Exit code for the printed numbers: 4: some differ; 5: none differs, but some are inconclusive; 0: all are equivalent.
    """
    from twinbed.model.error import TwinbedError
    from twinbed.model.result import Verdict
    from twinbed.model.units import QuantityError, parse_share
    from twinbed.published.printed_metrics import printed_with_own
    from twinbed.published.verdicts import compare as compared

    try:
        share = parse_share(margin)
    except QuantityError as error:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="give 10% or 0.1") from error
    if share <= 0:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="give 10% or 0.1")
    library = _library()
    held = compared(library, share)
    if results is None:
        rows = [published_tables.comparison(row, share, style) for row in held]
    else:
        pairs = list(printed_with_own(library, held, own(results, share)))
        if all(own is None for _, own in pairs):
            say(f"No printed table has a metric, testbed and payload of {results}.", err=True)
        rows = [
            {**published_tables.comparison(row, share, style), **published_tables.own_columns(own, style)} for row, own in pairs
        ]
    print_table(rows, style)
    verdicts = {row.verdict for row in held}
    if Verdict.DIFFERENT in verdicts:
        return codes.DIFFERENT
    return codes.DONE if verdicts == {Verdict.EQUIVALENT} else codes.INCONCLUSIVE


def _library() -> Library:
    from twinbed.published.printed import library

    return library()


def own(results: Path, margin: float) -> list[Own]:
    """Return the comparisons of a results folder, by the analysis `compare`."""
    from twinbed import registry
    from twinbed.cli.extraction import extracted
    from twinbed.cli.on import executor
    from twinbed.model.run import level_text
    from twinbed.model.tables import TESTBED
    from twinbed.model.units import QuantityError, parse_size
    from twinbed.published.printed_metrics import Own

    analysis = registry.analysis("compare")
    tables = extracted(results)
    fixed = tables.outline.data.get("workload", {}).get("payload")
    own: list[Own] = []
    for each in analysis.run_on(executor(), tables, analysis.params(by=TESTBED, margin=margin)).comparisons:
        try:
            payload: int | None = parse_size(each.cell.get("payload", fixed))
        except QuantityError:
            payload = None
        levels = [f"{name}={level_text(level)}" for name, level in each.cell.items()]
        own.append(
            Own(
                metric=each.metric,
                testbed=each.testbed,
                reference=each.reference,
                payload=payload,
                where=" ".join(filter(None, [each.host, each.direction, *levels])),
                ratio=each.ratio,
                low=each.ratio_interval.low if each.ratio_interval else None,
                high=each.ratio_interval.high if each.ratio_interval else None,
                verdict=str(each.verdict),
            )
        )
    return own
