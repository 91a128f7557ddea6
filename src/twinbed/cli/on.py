"""`--on` of every command that reads results: the processes or machines that do the work."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from twinbed.executor import Executor

Command = TypeVar("Command", bound=Callable[..., object] | click.Command)
OFFERED = frozenset(
    ["import", "compare", "advise", "anatomy", "explain", "calibrate", "passport", "analyse", "report", "export", "archive"]
)
"""Commands that read artifacts and compare. `run` has its own option of this name, since it also makes runs."""
HELP = "Read and compare on local:N processes, tcp://SCHEDULER of dask, or the cluster in a file (docs/scale.md)."
INSECURE = "Allow a remote scheduler without TLS. Use it only on a private network."
_ON = "twinbed.on"
_INSECURE = "twinbed.insecure"
_FLEET = "twinbed.fleet"


def with_on(command: click.Command, name: str) -> click.Command:
    """Add --on to a command, or to the commands of a group."""
    if name in OFFERED:
        for member in command.commands.values() if isinstance(command, click.Group) else [command]:
            if not any(parameter.name == "on" for parameter in member.params):
                member.params.append(click.Option(["--on"], metavar="EXECUTOR", help=HELP, expose_value=False, callback=keep))
                insecure(member)
    return command


def insecure(command: Command) -> Command:
    """Add --insecure to a command."""
    option = click.option("--insecure", is_flag=True, help=INSECURE, expose_value=False, callback=_keep_insecure)
    return option(command)


def _keep_insecure(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[_INSECURE] = value


def is_insecure() -> bool:
    """Return whether the command may use a scheduler without TLS."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_INSECURE))


def keep_for_runs(context: click.Context, parameter: click.Parameter, on: str | None) -> str | None:
    """Remember --on of a command that makes runs: a cluster makes runs, ``local`` reads artifacts."""
    context.meta[_FLEET] = on if on and not on.startswith("local") else None
    keep(context, parameter, None if context.meta[_FLEET] else on)
    return on


def fleet() -> str | None:
    """Return the cluster that makes runs; None without one."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_FLEET) if context else None


def keep(context: click.Context, _: click.Parameter, on: str | None) -> str | None:
    """Remember --on for ``executor``."""
    context.meta[_ON] = on
    return on


@functools.cache
def _in(context: click.Context) -> Executor:
    from twinbed.executor import opened

    return context.find_root().with_resource(opened(context.meta.get(_ON), insecure=is_insecure()))


def executor() -> Executor:
    """Return the executor that --on names, open until the command ends; outside a command, this process."""
    from twinbed.executor import Here

    context = click.get_current_context(silent=True)
    return _in(context) if context else Here()
