"""Groups of commands whose modules are imported only when they are used, so that ``--help`` is quick. Each gets
its --json, --on, -q and -v here, and those of analyses their --html.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

from twinbed.analyses import ANALYSES
from twinbed.cli.envelope import with_json
from twinbed.cli.on import with_on
from twinbed.cli.volume import with_volume
from twinbed.observations.pages import with_page
from twinbed.terminal import visible


@dataclass(frozen=True, slots=True)
class Lazy:
    """The place of a command and its one-line help, so that listing it imports nothing."""

    module: str
    attribute: str
    help: str
    has_page: bool = False

    def command(self) -> click.Command:
        """Return the command itself."""
        command = getattr(importlib.import_module(self.module), self.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.module}.{self.attribute} is not a command")
        return command


class OfAnalysis(Lazy):
    """The command that is made of an analysis, or of what it does beyond its settings in a file of its own."""

    def command(self) -> click.Command:
        """Return the command itself."""
        from twinbed.cli.analysis_command import command_of, completed

        own = super().command() if self.module else None
        # Not by the registry, which imports every plugin: a file of rows needs none.
        analysis = importlib.import_module(f"twinbed.analyses.{own.name if own else self.attribute}.method").analysis
        return completed(own, analysis) if own else command_of(analysis)


def of_analysis(name: str) -> Lazy:
    """Return the place of an analysis' command: a file of its own, or nowhere, where it is made of the analysis."""
    entry = ANALYSES[name]
    if entry.own_command:
        return (OfAnalysis if entry.settings else Lazy)(
            f"twinbed.analyses.{name}.command", "command", entry.help, has_page=True
        )
    return OfAnalysis("", name, entry.help, has_page=True)


class LazyGroup(click.Group):
    """A group of the commands in ``lazy``."""

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = self.lazy.get(cmd_name)
        if lazy is None:
            return None
        command = lazy.command()
        command = _guarded(with_on(with_page(command) if lazy.has_page else command, cmd_name))
        return with_volume(with_json(command, cmd_name), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.help) for name, lazy in self.lazy.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.lazy:
            ctx.fail(f"No such command {args[0]!r}.{_hint(args[0], self.lazy)}")
        return super().resolve_command(ctx, args)


class _Formatter(click.HelpFormatter):
    def getvalue(self) -> str:
        return visible(super().getvalue())


class Context(click.Context):
    """Writes help, of plug-ins too, as all other text is written."""

    formatter_class = _Formatter


class _Named(click.ParamType[object]):
    """A path, but not the empty text, which would be the working directory: ``-o "$UNSET"``."""

    def __init__(self, path: click.Path) -> None:
        self._path, self.name = path, path.name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if value == "":
            self.fail("an empty text names no file", param, ctx)
        return self._path.convert(value, param, ctx)  # type: ignore[arg-type]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return self._path.shell_complete(ctx, param, incomplete)


def _guarded(command: click.Command) -> click.Command:
    """The command, whose paths have names and whose help obeys the writer."""
    command.context_class = Context
    for param in command.params:
        if isinstance(param.type, click.Path):
            param.type = _Named(param.type)
    for member in command.commands.values() if isinstance(command, click.Group) else ():
        _guarded(member)
    return command


def _hint(name: str, names: Iterable[str]) -> str:
    """What was likely meant: an analysis at its place, else what is spelt alike."""
    if name in ANALYSES:
        return f" It is 'twinbed {name if ANALYSES[name].own_command else f'analyse {name}'}'."
    from twinbed.model.near import did_you_mean, nearest

    near = did_you_mean(nearest(name, names))
    return f" {near[0].upper()}{near[1:]}" if near else ""
