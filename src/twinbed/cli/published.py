"""`twinbed published`: the seeds' printed tables, worked out again, audited, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.cli import published_tables
from twinbed.contracts import exit_codes as codes
from twinbed.render.rows import STYLES, print_json, print_table
from twinbed.terminal import say, say_text

if TYPE_CHECKING:
    from twinbed.published.printed import Library
    from twinbed.published.printed_metrics import Own

_FORMAT = click.option(
    "--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="How to print it."
)
_EPILOG = "docs/published.md says how the tables were read, and what was found in them."


@click.group("published", epilog=_EPILOG)
def group() -> None:
    """The printed tables of the papers that twinbed is built on, as data: replayed, audited, and beside your own results.

    \b
    twinbed published list                   the tables
    twinbed published show ICNC-III          one of them, a row a number
    twinbed published replay ONL-4           every number that follows from others, worked out again
    twinbed published audit                  what does not follow, with the arithmetic
    twinbed published compare results/       virtual against physical as printed, and as you measured
    """


@group.command("list")
@_FORMAT
def list_(style: str) -> None:
    """List the tables.

    With source, page, how many runs are behind a number where that is said, how many numbers and marks, and caption.
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
    """Show one TABLE, a row a number.

    TABLE is such as ICNC-III, icnc-3 or ONL-5. Each number comes with its labels, what number it is, its unit and its digits
    as printed.

    \b
    twinbed published show LDRD-3.4
    twinbed published show ONL-3 --format csv > loss.csv
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
    """Work printed numbers out again from others.

    Those of TABLE, or without one of all tables and the text.

    \b
    equal             it comes out as printed
    within rounding   some inputs that round to the printed ones give it (low to high)
    differs           none do
    derived           nothing is printed to hold it against

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
        say("nothing in it follows from anything else that is printed")
    print_table(shown, style)
    return codes.DIFFERENT if any(row.status is Status.DIFFERS for row in rows) else codes.DONE


@group.command()
@_FORMAT
def audit(style: str) -> int:
    """Say what does not follow from what is printed.

    By rule, with the arithmetic, and what it changes. A number is flagged only if no numbers that round to the printed ones
    make it right.

    Exit code 4: something is flagged; 0: nothing is.
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
@click.option("--margin", metavar="SHARE", default="10%", show_default=True, help="How far apart still counts as equivalent.")
@_FORMAT
def compare(results: Path | None, margin: str, style: str) -> int:
    """Hold virtual testbeds against physical ones.

    Every virtual testbed of every table; with RESULTS your own beside, where metric, testbed and payload match.

    \b
    in 10 %    the papers' rule, of means alone
    verdict    as twinbed compare gives it, where n and a spread are printed; else why there is none

    Exit code, of the printed numbers: 4: some is shown to differ; 5: none is, but some cannot be decided; 0: all equivalent.
    """
    from twinbed.model.error import TwinbedError
    from twinbed.model.result import Verdict
    from twinbed.model.units import QuantityError, parse_share
    from twinbed.published.printed_metrics import printed_with_own
    from twinbed.published.verdicts import compare as compared

    try:
        share = parse_share(margin)
    except QuantityError as error:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="such as 10% or 0.1") from error
    if share <= 0:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="such as 10% or 0.1")
    library = _library()
    held = compared(library, share)
    if results is None:
        rows = [published_tables.comparison(row, share, style) for row in held]
    else:
        pairs = list(printed_with_own(library, held, own(results, share)))
        if all(own is None for _, own in pairs):
            say(f"no metric, testbed and payload of {results} is in any printed table", err=True)
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
    """The comparisons of a results folder, by the analysis `compare`."""
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
