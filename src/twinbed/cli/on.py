"""`--on` of every command that reads results: who reads artifacts, and judges comparisons where they are many."""

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
"""Commands that read artifacts, and compare. `run` has an option of the same name of its own, as it makes runs too."""
HELP = "Who reads artifacts and compares: local:N processes, tcp://SCHEDULER of dask, or a file with a cluster. docs/scale.md"
INSECURE = "The scheduler of --on may be on another machine without TLS: only on a network that is yours alone."
_ON = "twinbed.on"
_INSECURE = "twinbed.insecure"
_FLEET = "twinbed.fleet"


def with_on(command: click.Command, name: str) -> click.Command:
    """The command, with --on added to it, or to those of a group."""
    if name in OFFERED:
        for each in command.commands.values() if isinstance(command, click.Group) else [command]:
            if not any(parameter.name == "on" for parameter in each.params):
                each.params.append(click.Option(["--on"], metavar="EXECUTOR", help=HELP, expose_value=False, callback=keep))
                insecure(each)
    return command


def insecure(command: Command) -> Command:
    """The command, with --insecure added to it."""
    option = click.option("--insecure", is_flag=True, help=INSECURE, expose_value=False, callback=_keep_insecure)
    return option(command)


def _keep_insecure(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[_INSECURE] = value


def is_insecure() -> bool:
    """Whether the command's scheduler may do without TLS."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_INSECURE))


def keep_for_runs(context: click.Context, parameter: click.Parameter, on: str | None) -> str | None:
    """The same of a command that makes runs: what is no ``local`` is for those, and artifacts are read here."""
    context.meta[_FLEET] = on if on and not on.startswith("local") else None
    keep(context, parameter, None if context.meta[_FLEET] else on)
    return on


def fleet() -> str | None:
    """The cluster that makes runs."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_FLEET) if context else None


def keep(context: click.Context, _: click.Parameter, on: str | None) -> str | None:
    """Remembers what --on says, for ``executor``."""
    context.meta[_ON] = on
    return on


@functools.cache
def _in(context: click.Context) -> Executor:
    from twinbed.executor import opened

    return context.find_root().with_resource(opened(context.meta.get(_ON), insecure=is_insecure()))


def executor() -> Executor:
    """The one that --on names, until the command ends; outside of a command this process."""
    from twinbed.executor import Here

    context = click.get_current_context(silent=True)
    return _in(context) if context else Here()
