"""Groups of commands whose modules are imported only when they are used, so that ``--help`` is quick.

Each command gets --json, --on, -q and -v here, and the command of an analysis --html.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

from twinbed.analyses import ANALYSES
from twinbed.cli.envelope import with_json
from twinbed.cli.help import Command, CommandGroup
from twinbed.cli.on import with_on
from twinbed.cli.volume import with_volume
from twinbed.observations.pages import with_page


@dataclass(frozen=True, slots=True)
class Lazy:
    """Names the module of a command and its one-line help, so that listing it imports nothing."""

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
    """Makes the command of an analysis, from its settings and from its file ``command.py`` where it has one."""

    def command(self) -> click.Command:
        """Return the command itself."""
        from twinbed.cli.analysis_command import command_of, completed

        own = super().command() if self.module else None
        # Not by the registry, which imports every plugin: a file of rows needs none.
        analysis = importlib.import_module(f"twinbed.analyses.{own.name if own else self.attribute}.method").analysis
        return completed(own, analysis) if own else command_of(analysis)


def of_analysis(name: str) -> Lazy:
    """Return where the command of an analysis is: in a file, or nowhere where it is made of the analysis."""
    entry = ANALYSES[name]
    if entry.own_command:
        return (OfAnalysis if entry.settings else Lazy)(
            f"twinbed.analyses.{name}.command", "command", entry.help, has_page=True
        )
    return OfAnalysis("", name, entry.help, has_page=True)


class LazyGroup(CommandGroup):
    """A group of the commands in ``lazy``, listed under the titles of ``sections``."""

    def __init__(
        self, *args: Any, lazy: Mapping[str, Lazy], sections: Mapping[str, Collection[str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy
        self.sections = sections or {"Commands": lazy}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = self.lazy.get(cmd_name)
        if lazy is None:
            return None
        command = with_on(with_page(lazy.command()) if lazy.has_page else lazy.command(), cmd_name)
        _name_paths(command)
        return Command.of(with_volume(with_json(command, cmd_name), cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.lazy))
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", self.lazy[name].help) for name in names])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.lazy:
            ctx.fail(f"No such command {args[0]!r}.{_hint(args[0], self.lazy)}")
        return super().resolve_command(ctx, args)


class _Named(click.ParamType[object]):
    """A path, but not the empty text (``-o "$UNSET"``), which would be the working directory."""

    def __init__(self, path: click.Path) -> None:
        self._path, self.name = path, path.name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if value == "":
            self.fail("the name of the file is empty", param, ctx)
        return self._path.convert(value, param, ctx)  # type: ignore[arg-type]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return self._path.shell_complete(ctx, param, incomplete)


def _name_paths(command: click.Command) -> None:
    for param in command.params:
        if isinstance(param.type, click.Path):
            param.type = _Named(param.type)
    for member in command.commands.values() if isinstance(command, click.Group) else ():
        _name_paths(member)


def _hint(name: str, names: Iterable[str]) -> str:
    """Return which command was likely meant: an analysis, else one with a similar name."""
    if name in ANALYSES:
        return f" It is 'twinbed {name if ANALYSES[name].own_command else f'analyse {name}'}'."
    from twinbed.contracts.installed import offered
    from twinbed.model.near import did_you_mean, nearest

    if name in offered("analyses"):
        return f" It is 'twinbed analyse {name}'."
    near = did_you_mean(nearest(name, names))
    return f" {near[0].upper()}{near[1:]}" if near else ""
