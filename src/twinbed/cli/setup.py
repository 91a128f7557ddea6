"""``twinbed setup``: install the system packages that testbeds need, by this distribution's names."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from twinbed.cli.envelope import tell
from twinbed.contracts import exit_codes as codes
from twinbed.hosts import packages
from twinbed.hosts.process import run
from twinbed.model.error import TwinbedError
from twinbed.terminal import say

_LIMIT_S = 1800.0
"""Enough for QEMU and its dependencies over a slow line."""


@click.command("setup")
@click.argument("purposes", nargs=-1, metavar="[FOR]...", type=click.Choice(list(packages.FOR_USERS)))
@click.option("--yes", is_flag=True, help="Install missing packages with apt-get or dnf. Needs root.")
def command(purposes: tuple[str, ...], yes: bool) -> int:
    """List the system packages that testbeds need and this machine lacks; with --yes, install them.

    \b
    Examples:
      twinbed setup
      twinbed setup container image --yes     only packages for studies with containers
      twinbed setup --yes

    FOR is one of the printed names, such as a driver or a kind of switch (default: all). Every study on this machine needs
    `container` and `image`.

    Exit code 0: everything is installed; 3: something is missing.
    """
    chosen = purposes or tuple(packages.FOR_USERS)
    wanted: list[packages.Need] = []
    rows: list[dict[str, object]] = []
    for purpose in chosen:
        missing = packages.lacking(packages.PURPOSES[purpose])
        state = f"lacks {', '.join(need.shows for need in missing)}" if missing else "ok"
        say(f"{purpose:<{max(map(len, chosen))}}  {state:<5}  {packages.FOR_USERS[purpose]}")
        wanted += missing
        rows.append({"for": purpose, "lacks": [need.shows for need in missing], "about": packages.FOR_USERS[purpose]})
    tell({"purposes": rows, "mend": packages.mend(wanted) if wanted else None, "installed": []})
    if not wanted:
        return codes.DONE
    whose = packages.distribution()
    if whose is None:
        raise packages.PackagesUnknown(
            "package names of this distribution are not known",
            advice=f"on Debian: apt-get install {' '.join(packages.names(wanted))}",
        )
    if not yes:
        say("", f"fix: twinbed setup {' '.join((*purposes, '--yes'))}, or {packages.mend(wanted)}")
        return codes.PREFLIGHT
    if os.geteuid() != 0:
        raise TwinbedError("only root can install packages", exit_code=codes.PREFLIGHT, advice=packages.mend(wanted))
    code = _install(whose, wanted)
    tell({"purposes": rows, "mend": None, "installed": list(packages.names(wanted, whose))})
    return code


def _install(whose: packages.Distribution, wanted: Sequence[packages.Need]) -> int:
    names = packages.names(wanted, whose)
    say("", f"installing {' '.join(names)}")
    for argv in (*whose.first, (*whose.install, *whose.unasked, *names)):
        run(argv, env={"DEBIAN_FRONTEND": "noninteractive"}, limit_s=_LIMIT_S)
    if still := packages.lacking(wanted):
        raise TwinbedError(f"still missing: {', '.join(need.shows for need in still)}", exit_code=codes.PREFLIGHT)
    say("done")
    return codes.DONE
