"""`twinbed merge`: put several results together as one study."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.cli.envelope import tell
from twinbed.contracts import exit_codes as codes
from twinbed.model.amount import amount
from twinbed.model.error import TwinbedError
from twinbed.model.run import Level
from twinbed.terminal import say

if TYPE_CHECKING:
    from twinbed.results.merge.plan import Plan


@click.command(name="merge")
@click.argument("results", metavar="RESULTS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Results folder to write.")
@click.option(
    "--reference", metavar="TESTBED", help="Reference of the merged study. Default: the reference of the first RESULTS."
)
@click.option(
    "--rename",
    "renames",
    metavar="RESULTS:OLD=NEW",
    multiple=True,
    help="Rename a testbed of RESULTS. Testbeds with the same name become one testbed with all replicates.",
)
@click.option(
    "--level",
    "given",
    metavar="RESULTS:FACTOR=LEVEL",
    multiple=True,
    help="Level of a factor that RESULTS do not name, for all their runs.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be written; write nothing.")
def command(
    results: tuple[Path, ...],
    output: Path,
    reference: str | None,
    renames: tuple[str, ...],
    given: tuple[str, ...],
    dry_run: bool,
) -> int:
    """Put several RESULTS, run or imported, together into one results folder.

    For example, a physical testbed measured years ago can be compared with a virtual one of today. RESULTS are not changed;
    their artifacts are linked. The same command again brings the folder up to date. A factor that some RESULTS do not name is
    taken from their settings. Comparisons get a caution where RESULTS differ in anything else (duration, kernel, versions);
    `twinbed passport` shows all differences.

    \b
    Examples:
      twinbed merge results/physical results/virtual -o results/both --reference physical
      twinbed merge old new -o both --rename old:e1000=before --rename new:e1000=after
      twinbed merge imported run -o both --level imported:payload=500B
    """
    from twinbed.render.rows import print_table
    from twinbed.results.archive.unpack import folder_of
    from twinbed.results.merge.plan import plan, refuse_without_artifacts
    from twinbed.results.merge.sources import sources
    from twinbed.results.merge.write import write
    from twinbed.results.store import Store
    from twinbed.show.words import other_settings

    if len(results) < 2:
        raise click.UsageError("give two or more RESULTS")
    if output.resolve() in {path.resolve() for path in results}:
        raise TwinbedError(f"{output} is one of the RESULTS", advice="choose another folder with -o")
    stores = [Store.open(folder_of(path), path).as_it_stands() for path in results]
    renamed = _of_sources(renames, results, "--rename")
    for at, testbed in renamed:
        if testbed not in stores[at].outline.testbeds:
            known = ", ".join(stores[at].outline.testbeds)
            raise TwinbedError(f"--rename: {results[at]} has no testbed {testbed!r}", advice=f"it has: {known}")
    levels = {key: _level(text) for key, text in _of_sources(given, results, "--level").items()}
    options = [f"--rename={rename}" for rename in renames] + [f"--level={level}" for level in given]
    options += [f"--reference={reference}"] if reference else []
    command_line = shlex.join(["twinbed", "merge", *(path.name for path in results), "-o", output.name, *options])
    of = sources(stores, renamed, levels)
    refuse_without_artifacts(of)
    made = plan(of, output.resolve().name, reference, command_line)
    left_out = [f"{store.shown}: {other_settings(store.other_settings)}" for store in stores if store.other_settings]
    testbeds, notes = _testbeds(made), [*made.notes, *left_out]
    marked = [
        {**row, "testbed": f"{row['testbed']} (reference)"} if row["testbed"] == made.reference else row for row in testbeds
    ]
    print_table(marked)
    for note in notes:
        say(f"- {note}")
    written = [] if dry_run else [str(output)]
    tell({"written": written, "runs": len(made.runs), "reference": made.reference, "testbeds": testbeds, "notes": notes})
    if dry_run:
        return codes.DONE
    write(made, output)
    say(f"{output}: {amount(len(made.runs), 'run')}; next: twinbed compare {shlex.quote(str(output))}")
    return codes.DONE


def _of_sources(texts: tuple[str, ...], results: tuple[Path, ...], option: str) -> dict[tuple[int, str], str]:
    """Parse RESULTS:NAME=TEXT, where RESULTS is a path as given or the folder's name."""
    texts_of = {}
    for text in texts:
        left, equals, right = text.partition("=")
        source, colon, name = left.rpartition(":")
        at = [number for number, path in enumerate(results) if source in (str(path), path.name)]
        if not equals or not colon or not name or not right or len(at) != 1:
            known = ", ".join(str(path) for path in results)
            raise TwinbedError(f"{option} {text!r} is not of the form RESULTS:NAME=TEXT", advice=f"RESULTS is one of: {known}")
        texts_of[at[0], name] = right
    return texts_of


def _level(text: str) -> Level:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"on": True, "off": False, "true": True, "false": False}.get(text, text)


def _testbeds(made: Plan) -> list[dict[str, object]]:
    """Return a row for each testbed."""
    rows: list[dict[str, object]] = []
    for testbed in made.testbeds:
        of = [(source, record) for source, _, record in made.runs if record.levels["testbed"] == testbed]
        rows.append(
            {
                "testbed": testbed,
                "from": ", ".join(dict.fromkeys(source.name for source, _ in of)),
                "runs": len(of),
                "cells": len({record.cell for _, record in of}),
            }
        )
    return rows
