"""`twinbed passport`: compare what two testbeds, or two results, recorded of themselves."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.error import TwinbedError
from twinbed.observations.pages import write_page
from twinbed.render.rows import STYLES
from twinbed.terminal import say_text

if TYPE_CHECKING:
    from twinbed.analyses.passport.method import PassportParams
    from twinbed.analyses.passport.result import Passports
    from twinbed.model.tables import Tables


@click.command(name="passport")
@click.argument("sides", metavar="A [B]", nargs=-1, required=True)
@click.option("--all", "everything", is_flag=True, help="Show every package of the images, and all names, too.")
@click.option("--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="The form to print.")
@click.pass_obj
def command(inputs: Inputs, sides: tuple[str, ...], everything: bool, style: str) -> int:
    """List how A and B differ, most suspicious first: kernels, QEMU, NICs, offloads, queueing, versions, TCP and run settings.

    A passport is everything known about a testbed's hosts. A and B are results, or one testbed of results (RESULTS:TESTBED).
    With A alone, each of its testbeds is compared with its reference. Facts that only one side has recorded are marked: they
    may be the same.

    \b
    Examples:
      twinbed passport results/quickstart                        each testbed against the reference
      twinbed passport results/quickstart:e1000 results/new:e1000    what has changed since?
      twinbed passport results/cluster:physical results/laptop   one testbed against all of another's

    Exit code 0, whatever differs.
    """
    from twinbed.analyses.passport.method import PassportParams, analysis
    from twinbed.observations.passports import lines
    from twinbed.render.rows import as_csv, print_json

    if len(sides) > 2:
        raise click.UsageError(f"{len(sides)} sides are too many: give one or two of RESULTS or RESULTS:TESTBED")
    result = _result(inputs, sides, PassportParams(everything=everything))
    write_page(lambda: analysis.section(result), result, Path(" and ".join(sides)), of_one=len(sides) == 1)
    if style == "json":
        print_json([{**pair.summary, "differences": [asdict(row) for row in pair.differences]} for pair in result.pairs])
    elif style == "csv":
        rows = analysis.tables(result)["differences"]
        say_text(as_csv([row | {side: " | ".join(row[side]) or None for side in ("left", "right")} for row in map(dict, rows)]))
    else:
        for number, pair in enumerate(result.pairs):
            say_text("\n" * bool(number) + "".join(f"{line}\n" for line in lines(pair)))
    return codes.DONE


def _result(inputs: Inputs, sides: tuple[str, ...], params: PassportParams) -> Passports:
    from twinbed.analyses.passport.method import analysis
    from twinbed.analyses.passport.result import Passports
    from twinbed.observations.passports import Side, between

    opened = [_opened(inputs, side) for side in sides]
    if len(opened) == 2:
        first, second = (Side(*of_side, side.rstrip("/")) for of_side, side in zip(opened, sides, strict=True))
        return Passports((between(first, second, everything=params.everything),))
    store, testbed = opened[0]
    if testbed is not None or len(store.outline.testbeds) < 2:
        raise TwinbedError(
            f"{sides[0]} is one testbed, and there is nothing to compare it with",
            advice="name another RESULTS or RESULTS:TESTBED after it",
        )
    return analysis.run(store, params)


def _opened(inputs: Inputs, side: str) -> tuple[Tables, str | None]:
    """Return the results, and the testbed if one is named. Raises TwinbedError if the results have no such testbed."""
    if Path(side).exists():
        return inputs.tables(Path(side)), None
    path, colon, testbed = side.rpartition(":")
    if not colon or testbed.startswith("/"):  # the colon of an address is no testbed's
        return inputs.tables(Path(side)), None
    store = inputs.tables(Path(path))
    if testbed not in store.outline.testbeds:
        raise TwinbedError(
            f"{path} has no testbed {testbed!r}", advice=f"it has: {', '.join(store.outline.testbeds) or 'none'}"
        )
    return store, testbed
