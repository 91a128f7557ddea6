"""`twinbed published`: replay, audit and compare the printed tables of papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.cli.help import CommandGroup
from twinbed.contracts import exit_codes as codes
from twinbed.render.rows import STYLES, print_json, print_table
from twinbed.terminal import say, say_text

if TYPE_CHECKING:
    from twinbed.published.limits import Finding
    from twinbed.published.printed import Cell, Library, Table
    from twinbed.published.printed_metrics import Own
    from twinbed.published.verdicts import Held

_FORMAT = click.option(
    "--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="Format to print."
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

    TABLE is a name such as ICNC-III, icnc-3 or ONL-5. Each number has its labels, its kind, its unit and its printed digits.
    """
    library = _library()
    table = library.table(name)
    rows = [_number(cell) for cell in table.cells]
    if style == "json":
        print_json({**_about(library, table), "cells": rows})
    elif style == "csv":
        print_table(
            [{"source": table.source, "table": table.id, "page": table.page, "n": table.n, **row} for row in rows], style
        )
    else:
        for title, text in _about(library, table).items():
            if text not in (None, "", {}):
                say(f"{title:<8} {_as_text(text)}")
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
            "low": row.low if style != "text" else _short(row.low),
            "high": row.high if style != "text" else _short(row.high),
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
        say_text("".join(f"{line}\n" for line in _finding_lines(findings)))
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
        rows = [_comparison(row, share, style) for row in held]
    else:
        pairs = list(printed_with_own(library, held, own(results, share)))
        if all(own is None for _, own in pairs):
            say(f"No printed table has a metric, testbed and payload of {results}.", err=True)
        rows = [{**_comparison(row, share, style), **_own_columns(own, style)} for row, own in pairs]
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
    for comparison in analysis.run_on(executor(), tables, analysis.params(by=TESTBED, margin=margin)).comparisons:
        try:
            payload: int | None = parse_size(comparison.cell.get("payload", fixed))
        except QuantityError:
            payload = None
        levels = [f"{name}={level_text(level)}" for name, level in comparison.cell.items()]
        own.append(
            Own(
                metric=comparison.metric,
                testbed=comparison.testbed,
                reference=comparison.reference,
                payload=payload,
                where=" ".join(filter(None, [comparison.host, comparison.direction, *levels])),
                ratio=comparison.ratio,
                low=comparison.ratio_interval.low if comparison.ratio_interval else None,
                high=comparison.ratio_interval.high if comparison.ratio_interval else None,
                verdict=str(comparison.verdict),
            )
        )
    return own


def _about(library: Library, table: Table) -> dict[str, object]:
    """Return everything about a table except its cells."""
    source = library.sources[table.source]
    return {
        "table": table.id,
        "caption": table.caption,
        "source": f"{source.title}; {source.authors}; {source.number or source.date}",
        "page": table.page,
        "n": table.n,
        "n said": table.n_said,
        "note": table.note,
        "settings": dict(table.settings),
    }


def _as_text(value: object) -> str:
    """Return a value of ``about`` as text."""
    return ", ".join(f"{name} {part}" for name, part in value.items()) if isinstance(value, dict) else str(value)


def _number(cell: Cell) -> dict[str, object]:
    """Return a number as a row."""
    return {
        **cell.labels,
        "metric": cell.metric,
        "kind": cell.kind,
        "printed": cell.printed,
        "value": None if cell.value is None else float(cell.value),
        "decimals": cell.decimals,
        "significant_digits": cell.significant_digits,
        "unit": cell.unit,
        "note": cell.note,
    }


def _short(number: float | None) -> str | None:
    return None if number is None else f"{number:.6g}"


def _finding_lines(all_findings: Sequence[Finding]) -> Iterator[str]:
    """Yield lines under a heading for each rule. Text that all places of a fact share is printed once."""
    for rule in dict.fromkeys(finding.rule for finding in all_findings):
        of_rule = [finding for finding in all_findings if finding.rule == rule]
        facts = len({finding.fact for finding in of_rule})
        yield f"{rule}: {_counted(facts, len(of_rule))}\n"
        for fact in dict.fromkeys(finding.fact for finding in of_rule):
            yield from _fact([finding for finding in of_rule if finding.fact == fact])
            yield ""
    yield _counted(len({finding.fact for finding in all_findings}), len(all_findings))


def _counted(facts: int, places: int) -> str:
    return f"{facts} finding{'s' if facts > 1 else ''}" + (f" in {places} places" if places > facts else "")


def _fact(places: Sequence[Finding]) -> Iterator[str]:
    names = ("printed", "follows", "arithmetic", "changes")
    common = [name for name in names if len({getattr(place, name) for place in places}) == 1]
    for finding in places:
        yield f"  {' '.join(filter(None, (finding.source, finding.table)))}, {finding.cell}"
        for name in names if len(places) == 1 else [name for name in names if name not in common]:
            if getattr(finding, name):
                yield f"    {name:<10} {getattr(finding, name)}"
    for name in common if len(places) > 1 else []:
        if getattr(places[0], name):
            yield f"    {name:<10} {getattr(places[0], name)}"


def _comparison(row: Held, margin: float, style: str) -> dict[str, object]:
    rounded: Callable[[float | None], object] = _ratio_text if style == "text" else lambda value: value
    named = {
        "table": row.table,
        "cell": row.cell,
        "metric": row.metric,
        "printed": row.printed,
        "physical": row.reference,
        "n": row.n,
        "ratio": rounded(row.ratio),
    }
    rule = {True: "yes", False: "no", None: "rounding" if row.ratio else None}[row.within_rule]
    if style == "text":
        interval = None if row.ratio_low is None or row.ratio_high is None else f"[{row.ratio_low:.3f}, {row.ratio_high:.3f}]"
        verdict = str(row.verdict) if row.verdict else row.because
        return {
            **named,
            "interval": interval,
            f"in {margin * 100:g} %": rule,
            "verdict": verdict,
            "cautions": "; ".join(row.cautions),
        }
    return {
        **named,
        "testbed": row.testbed,
        "ratio_low": row.ratio_low,
        "ratio_high": row.ratio_high,
        "within_rule": row.within_rule,
        "intervals_overlap": row.intervals_overlap,
        "p_equivalent": row.p_equivalent,
        "p_different_holm": row.p_different,
        "verdict": None if row.verdict is None else str(row.verdict),
        "because": row.because,
        "cautions": "; ".join(row.cautions),
    }


def _ratio_text(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def _own_columns(own: Own | None, style: str) -> dict[str, object]:
    rounded: Callable[[float | None], object] = _ratio_text if style == "text" else lambda value: value
    return {
        "own_testbed": f"{own.testbed} / {own.reference}" if own else None,
        "own_cell": own.where if own else None,
        "own_ratio": rounded(own.ratio) if own else None,
        "own_low": rounded(own.low) if own else None,
        "own_high": rounded(own.high) if own else None,
        "own_verdict": own.verdict if own else None,
    }
