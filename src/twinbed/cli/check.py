"""`twinbed check`: test what this machine can do, and name what is missing and the command that fixes it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.cli.studyfile import read_study, ssh_config_option, study_options
from twinbed.contracts import exit_codes as codes
from twinbed.model.error import TwinbedError
from twinbed.terminal import say

if TYPE_CHECKING:
    from twinbed.contracts.check import Check

_HEADINGS = {
    "machine": "This machine",
    "driver": "Drivers",
    "NIC": "NICs of guests",
    "switch": "Switches",
    "trunk": "Trunks",
    "parameter": "Parameters",
    "instrument": "Instruments",
    "workload": "Workloads",
    "background": "Background loads",
    "plug-in": "Plug-ins of installed packages",
    "": "The study",
}
_WIDTH = 100
"""Columns without a terminal."""
_NARROWEST = 60
_NAMES = 32
"""Columns of names at most; a longer name gets a line of its own."""
_SHORT = 60
"""Longest reason that is repeated; a longer one is replaced by a reference to the first."""
_LONG = 300
"""Characters of a reason at most; JSON and CSV have all of it."""


@click.command(name="check")
@click.argument("study_file", metavar="[STUDY]", required=False, type=click.Path(path_type=Path))
@study_options
@click.option(
    "--boot", is_flag=True, help="Also boot a guest with every NIC, unless one has booted since this machine started."
)
@ssh_config_option
@click.option("-q", "--quiet", is_flag=True, help="Print only tests that failed.")
@click.option("--format", "style", type=click.Choice(["text", "json", "csv"]), default="text", help="Format to print.")
def command(
    study_file: Path | None, profile: str | None, overrides: tuple[str, ...], boot: bool, quiet: bool, style: str
) -> int:
    """Test what this machine can do, or what STUDY needs of it; nothing is changed.

    \b
    Examples:
      twinbed check                  drivers, NICs, switches, instruments, workloads ...
      twinbed check quickstart       only what this study needs
      twinbed check --boot -q        only failed tests, with a guest booted for every NIC

    Tests run in trial labs that are removed afterwards. A failed test shows the reason and the command that fixes it.

    \b
    ok     tested, works
    no     tested, does not work; only studies that use it cannot run
    FAILS  tested, does not work, and every study (or STUDY) needs it
    -      cannot be tested here yet

    Exit code 0: everything needed works; 3: something needed does not.
    """
    from twinbed import registry
    from twinbed.lab import matrix, needs
    from twinbed.render.rows import print_table

    if study_file:
        study = read_study(study_file, overrides, profile)
        cells = [cell.run(replicate=0, block=0, position=0) for cell in study.cells]
        checks = needs.checks(cells, registry.PLUGINS, builds=False)
    elif profile is not None or overrides:
        raise click.UsageError(f"{'--set' if profile is None else '--profile'} changes a study: give STUDY too")
    else:
        checks = [*matrix.matrix(registry.PLUGINS, boot=boot), *_plugins()]
    shown = [check for check in checks if check.tried and not check.works] if quiet else checks
    if style == "text":
        for line in _lines(shown, _width(), summary=not quiet):
            say(line)
    else:
        print_table(
            [
                {
                    "kind": check.group or None,
                    "what": check.what,
                    "works": check.works if check.tried else None,
                    "required": check.required,
                    "found": check.found,
                    "mend": None if check.works else check.mend or None,
                }
                for check in shown
            ],
            style,
        )
    return codes.PREFLIGHT if matrix.broken(checks) else codes.DONE


def _plugins() -> Iterator[Check]:
    from twinbed.contracts.check import Check
    from twinbed.contracts.installed import KINDS
    from twinbed.registry import of_packages

    for offer, plugin in of_packages():
        wrong = plugin.message if isinstance(plugin, TwinbedError) else ""
        mend = f"twinbed test-plugin {offer.package}" if wrong else ""
        what = f"{KINDS[offer.kind][0]} {offer.name}"
        yield Check(what, not wrong, wrong or offer.requirement, mend, required=False, group="plug-in")


def _width() -> int:
    return max(_NARROWEST, shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH)


def _lines(checks: Sequence[Check], width: int, *, summary: bool = True) -> Iterator[str]:
    """Yield a block of lines for each group, then the ``summary``. A remedy follows the last check that it fixes."""
    names = min(_NAMES, max((len(check.what) for check in checks), default=0))
    for group, members in groupby(checks, key=lambda check: check.group):
        yield _HEADINGS[group]
        of_group = list(members)
        for check, following in zip(of_group, [*of_group[1:], None], strict=True):
            # A remedy of several checks in a row is printed below the last.
            again = following is not None and (following.works, following.mend) == (check.works, check.mend)
            first = next(other for other in of_group if other.found == check.found)
            repeated = first is not check and len(check.found) > _SHORT
            found_text = f"same as {first.what}" if repeated else textwrap.shorten(check.found, _LONG, placeholder=" ...")
            yield from _check(check, names, width, found_text, "" if again else check.mend)
        yield ""
    if not summary:
        return
    failing = [check.what for check in checks if check.required and not check.works]
    if failing:
        yield f"Not ready: {len(failing)} of {len(checks)} do not work here: {', '.join(failing)}."
    else:
        optional = sum(not check.works and check.tried for check in checks)
        yield "Ready: everything that is needed works here."
        if optional:
            yield f"{optional} of {len(checks)} do not work; only studies that use them cannot run."
    if untried := [check for check in checks if not check.tried]:
        yield f"{len(untried)} of {len(checks)} were not tested."


def _check(check: Check, names: int, width: int, text: str, mend: str) -> Iterator[str]:
    status = "ok" if check.works else "-" if not check.tried else "FAILS" if check.required else "no"
    indent = " " * (2 + 7 + names + 2)
    first = f"  {status:<7}{check.what:<{names}}  "
    if len(check.what) > names:
        yield first.rstrip()
        first = indent
    yield from textwrap.wrap(text or " ", width, break_on_hyphens=False, initial_indent=first, subsequent_indent=indent) or [
        first.rstrip()
    ]
    if mend and not check.works:
        yield from textwrap.wrap(
            f"fix: {mend}", width, break_on_hyphens=False, initial_indent=indent, subsequent_indent=indent + "     "
        )
