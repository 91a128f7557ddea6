"""The command ``twinbed``.  A command's module is imported only when the command is used, so that ``--help`` is quick."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

import twinbed
from twinbed.cli import exit as codes
from twinbed.model.error import TwinbedError
from twinbed.model.problem import StudyError


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command is, and its one-line help, so that listing it imports nothing."""

    module: str
    attribute: str
    help: str


COMMANDS: Mapping[str, Lazy] = {
    "check": Lazy("twinbed.cli.check", "command", "What this machine can do, what is missing, how to get it."),
    "plan": Lazy("twinbed.cli.plan", "command", "The cells, order, time and disk of a study; nothing is run."),
    "run": Lazy("twinbed.cli.run", "command", "Run a study, or go on with it."),
    "compare": Lazy("twinbed.cli.compare", "command", "The verdict on each testbed against the reference."),
    "report": Lazy("twinbed.cli.report", "command", "One self-contained HTML page of results."),
    "flows": Lazy("twinbed.cli.flows", "command", "tcptrace's statistics of every TCP connection of captures."),
    "connections": Lazy("twinbed.cli.connections", "command", "The connections of captures, as in Zeek's conn.log."),
    "match": Lazy("twinbed.cli.match", "command", "Two captures of one path: loss, delay, splits, joins."),
    "chain": Lazy("twinbed.cli.chain", "command", "System calls as Markov chains, from traces or results."),
    "published": Lazy("twinbed.cli.published", "group", "The printed tables of the papers: replayed, audited, compared."),
    "image": Lazy("twinbed.cli.image", "image", "The root file system and guest kernel that every testbed runs."),
    "sweep": Lazy("twinbed.cli.sweep", "command", "Remove what a dead lab left behind, by its id."),
}


class LazyGroup(click.Group):
    """A group of the commands in COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name)
        if lazy is None:
            return None
        command = getattr(importlib.import_module(lazy.module), lazy.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{lazy.module}.{lazy.attribute} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.help) for name, lazy in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.command(
    cls=LazyGroup,
    epilog=codes.TEXT,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(twinbed.__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """How faithful is a virtual testbed to the real one, for your workload?

    twinbed builds testbeds, runs the same workload on each in a designed experiment, and compares them.

    \b
    Begin with:
      twinbed check                          is this machine fit for it?
      twinbed plan studies/quickstart.yaml   what would be run, and how long it takes
      twinbed run studies/quickstart.yaml    run it; the same command again goes on
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. A command returns its exit code, or None for 0."""
    try:
        code = cli.main(args=list(arguments), prog_name="twinbed", standalone_mode=False)
    except StudyError as error:
        count = len(error.problems)
        click.echo(error.message, err=True)
        click.echo(f"{count} problem{'s' if count > 1 else ''}; docs/study-file.md describes every key", err=True)
        return error.exit_code
    except TwinbedError as error:
        click.echo(f"twinbed: {error.message}", err=True)
        if error.advice:
            click.echo(f"  {error.advice}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return codes.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return codes.INTERRUPTED
    return code if isinstance(code, int) else codes.DONE


def main() -> None:
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
