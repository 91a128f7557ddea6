"""`twinbed passport`: what differs between two testbeds, or two results, most suspicious first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    from twinbed.model.tables import Tables
    from twinbed.observations.passports import Differences


@click.command(name="passport")
@click.argument("sides", metavar="A [B]", nargs=-1, required=True)
@click.option("--all", "everything", is_flag=True, help="Every package of the images too, and all the names of things.")
@click.option("--format", "style", type=click.Choice(STYLES), default="text", show_default=True, help="How to print it.")
@click.pass_obj
def command(inputs: Inputs, sides: tuple[str, ...], everything: bool, style: str) -> int:
    """What differs between A and B, most suspicious first: kernels, QEMU, NICs and firmware, offloads, queueing, versions, TCP
    settings, and what the runs were told to do.

    A and B are results, or one testbed of results as RESULTS:TESTBED. With A alone, each of its testbeds is held against its
    reference. What only one side has recorded is marked: it may be the same.

    \b
    Examples:
      twinbed passport results/quickstart                        each testbed against the reference
      twinbed passport results/quickstart:e1000 results/new:e1000    what has changed since?
      twinbed passport results/cluster:physical results/laptop   one testbed against all of another's

    Exit code 0, whatever differs.
    """
    from twinbed.observations.passports_text import lines
    from twinbed.render.rows import as_csv, print_json

    if len(sides) > 2:
        raise click.UsageError("give one or two of RESULTS or RESULTS:TESTBED")
    from twinbed.analyses.passport.method import PassportParams, analysis
    from twinbed.analyses.passport.result import Passports

    pairs = _pairs(inputs, sides, PassportParams(everything=everything))
    result = Passports(tuple(pairs))
    made_of = Path(" and ".join(sides)) if len(sides) > 1 else Path(sides[0])
    write_page(lambda: analysis.section(result), result, made_of, of_one=len(sides) == 1)
    if style == "json":
        print_json([{**each.summary, "differences": [asdict(row) for row in each.differences]} for each in pairs])
    elif style == "csv":
        say_text(as_csv([row for each in pairs for row in _flat(each)]))
    else:
        for number, each in enumerate(pairs):
            say_text("\n" * bool(number) + "".join(f"{line}\n" for line in lines(each)))
    return codes.DONE


def _pairs(inputs: Inputs, sides: tuple[str, ...], params: PassportParams) -> Sequence[Differences]:
    from twinbed.analyses.passport.method import analysis
    from twinbed.observations.passports import Side, between

    opened = [_opened(inputs, side) for side in sides]
    if len(opened) == 2:
        (one, first), (other, second) = opened
        names = [side.rstrip("/") for side in sides]
        return [between(Side(one, first, names[0]), Side(other, second, names[1]), everything=params.everything)]
    store, testbed = opened[0]
    if testbed is not None or len(store.outline.testbeds) < 2:
        raise TwinbedError(
            f"{sides[0]} is one testbed: there is nothing to hold it against",
            advice="name another RESULTS or RESULTS:TESTBED after it",
        )
    return analysis.run(store, params).pairs


def _opened(inputs: Inputs, side: str) -> tuple[Tables, str | None]:
    """The results, and the testbed where one is named."""

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


def _flat(pair: Differences) -> Iterator[dict[str, object]]:
    for row in pair.differences:
        values = {"left": " | ".join(row.left) or None, "right": " | ".join(row.right) or None}
        yield {"between": pair.left, "and": pair.right, **asdict(row), **values}
