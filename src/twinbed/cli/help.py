"""The layout of every ``--help``: a sentence, examples, options in groups, then the rest. `twinbed help` prints it too.

cloup and rich-click do the same by decorators in each file or by configuration for each command. Here one table names the
group of each option for all commands, also for those that are made of analyses.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import click

from twinbed.terminal import say_text, visible

VERBATIM = "\b"
"""Begins a paragraph whose lines stay as they are."""
_EXAMPLES = re.compile(r"\A\x08\s*(?:Examples:\n)?\s*(?=twinbed )")
EXAMPLES, METHOD, DETAILS = "Examples", "Method", "Details"


class Group(NamedTuple):
    """Options that ``--help`` lists below one title; of all commands, or of one."""

    title: str
    options: str
    command: str = ""


GROUPS: Sequence[Group] = (
    Group("Testbeds and network", "--testbeds --rate --delay", "init"),
    Group("Work and measurements", "--workload --payload --vary --record --replicates", "init"),
    Group(
        "How files are read",
        "--pattern --regex --manifest --layout --testbed --number-replicates --factor --most-files",
        "import",
    ),
    Group("What the study says", "--testbeds --reference --passport --link-rate --mtu --margin --confidence", "import"),
    Group("Packets", "--port --host --from --until --tunnels --ignore-checksums --mtu", "flows connections match"),
    Group("Calls", "--program --skip --limit --architecture", "chain"),
    Group("Host", "--host --ssh-config --folder", "sweep"),
    Group("What is written", "--tables --latex --figures --chains --flent --metrics", "export"),
    Group("What is written", "--raw --author --title --license", "archive publish"),
    Group("What is kept", "--keep --dry-run", "prune"),
    Group(
        "What is done",
        "--yes --force --kernel --package --image --miniccc --boot --run",
        "setup image build minimega check test-plugin",
    ),
    Group(
        "Input",
        "--profile --set --only --all-settings --with --rename --level",
        "plan check run try compare report predict merge",
    ),
    Group(
        "What to compare",
        "--reference --by --metric --response --factor --formula --over --per-pair --host --direction --base --at --levels "
        "--from --to --dear --times --observer --testbed --against --of-one --all",
    ),
    Group(METHOD, ""),
    Group("Statistics", "--margin --confidence --level --error --alpha --sessions --exclude --order --threshold --smoothing"),
    Group("Replicates", "--pilot --multifidelity", "plan"),
    Group("What to measure next", "--next --until --study", "calibrate"),
    Group("Proof of a cause", "--study --cause --proof", "explain"),
    Group("After a failure", "--keep-going --retry-failed", "run"),
    Group(
        "Output",
        "--output --format --table --html --markdown --latex --csv --tables-csv --stars --long --link --report --dry-run",
    ),
    Group("Where it runs", "--on --insecure --threads --ssh-config"),
    Group("General", "--json --quiet --verbose --help --version"),
)
"""Every option's group, in the order of ``--help``. The settings of an analysis that are in none are its ``METHOD``."""


def group_of(command: str, option: click.Parameter) -> tuple[str, int]:
    """Return the title of the group of a command's option, and its place there; an entry for the command counts first."""
    for entry in sorted(GROUPS, key=lambda group: not group.command):
        names = entry.options.split()
        if (not entry.command or command in entry.command.split()) and (
            name := next((n for n in names if n in option.opts), None)
        ):
            return entry.title, names.index(name)
    return METHOD, 0


def groups(context: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return each option with its help, below the title of its group, in the order of ``GROUPS``."""
    rows: dict[str, list[tuple[int, tuple[str, str]]]] = {group.title: [] for group in GROUPS}
    for option in context.command.get_params(context):
        if isinstance(option, click.Option) and (record := option.get_help_record(context)):
            title, place = group_of(context.info_name or "", option)
            rows[title].append((place, record))
    return {
        title: [row for _, row in sorted(members, key=lambda member: member[0])] for title, members in rows.items() if members
    }


@dataclass(frozen=True, slots=True)
class Description:
    """The text of a command, in the parts in which help shows it."""

    sentence: str
    examples: Sequence[str]
    """Lines, each a command line with what it does."""
    notes: Sequence[str]
    """Paragraphs. One that begins with VERBATIM keeps its lines."""


def described(command: click.Command) -> Description:
    """Take a command's docstring apart: its first sentence, the block of lines that begin with ``twinbed``, and all else."""
    first, *paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))
    sentence, *rest = re.split(r"(?<=[.?])\s+", first, maxsplit=1)
    examples = next((paragraph for paragraph in paragraphs if _EXAMPLES.match(paragraph)), "")
    notes = [*rest, *(paragraph for paragraph in paragraphs if paragraph is not examples)]
    lines = _EXAMPLES.sub("", examples).splitlines()
    return Description(" ".join(sentence.split()), [line.removeprefix("  ") for line in lines], notes)


class _Formatter(click.HelpFormatter):
    def getvalue(self) -> str:
        return visible(super().getvalue())


class _Context(click.Context):
    """Writes help, of plug-ins too, as all other text is written."""

    formatter_class = _Formatter


class _Layout(click.Command):
    context_class = _Context

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        text = described(self)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text.sentence)
        if text.examples:
            with formatter.section(EXAMPLES):
                formatter.write_text("\n".join([VERBATIM, *text.examples]))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        for title, rows in groups(ctx).items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if notes := [*described(self).notes, *([inspect.cleandoc(self.epilog)] if self.epilog else [])]:
            with formatter.section(DETAILS):
                formatter.write_text("\n\n".join(notes))


class Command(_Layout):
    """A command whose help has the layout of this file."""

    @classmethod
    def of(cls, plain: click.Command) -> click.Command:
        """Return ``plain`` with this layout; a group has it already."""
        if isinstance(plain, _Layout):
            return plain
        return cls(
            plain.name,
            context_settings=plain.context_settings,
            callback=plain.callback,
            params=plain.params,
            help=plain.help,
            epilog=plain.epilog,
        )


class CommandGroup(_Layout, click.Group):
    """A group of commands, with the same layout."""

    command_class = Command


@click.command(name="help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> None:
    """Explain COMMAND, or twinbed as a whole.

    \b
    Examples:
      twinbed help
      twinbed help plan
      twinbed help analyse anova
    """
    asked = context.find_root()
    remaining = list(words)
    while remaining:
        if not isinstance(asked.command, click.Group):
            raise click.UsageError(f"{asked.command_path} has no commands of its own", asked)
        name, subcommand, remaining = asked.command.resolve_command(asked, remaining)
        assert subcommand is not None
        asked = asked.__class__(subcommand, info_name=name, parent=asked)
    say_text(asked.get_help() + "\n")
