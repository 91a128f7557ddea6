"""The page of commands, and a man page of each, from the help of the program."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

import twinbed
from manual.markdown import code, table
from twinbed.cli.lazy import LazyGroup
from twinbed.cli.main import cli

_VERBATIM = "\b"
"""Begins a paragraph whose lines stay as they are."""


@dataclass(frozen=True, slots=True)
class Page:
    """The help of a command. A paragraph that begins with _VERBATIM keeps its lines."""

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    commands: tuple[tuple[str, str], ...]
    epilog: str


def pages() -> Iterator[Page]:
    """Yield the program's page and those of all commands, in the order of ``twinbed --help``."""
    yield from _pages(click.Context(cli, info_name="twinbed", **cli.context_settings))


def _pages(context: click.Context) -> Iterator[Page]:
    command = context.command
    children = []
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            children.append(click.Context(child, info_name=name, parent=context))
    records = [record for parameter in command.get_params(context) if (record := parameter.get_help_record(context))]
    yield Page(
        context.command_path,
        " ".join([context.command_path, *command.collect_usage_pieces(context)]),
        tuple(part for part in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")) if part.strip()),
        tuple((names, " ".join(words.split())) for names, words in records if words),
        tuple((child.info_name or "", _short(command, child)) for child in children),
        " ".join((command.epilog or "").split()),
    )
    for child in children:
        yield from _pages(child)


def _short(group: click.Command, child: click.Context) -> str:
    """Return a command's line in the list of its group."""
    if isinstance(group, LazyGroup):
        return group.lazy[child.info_name or ""].help
    return child.command.get_short_help_str(200)


def text() -> str:
    """Return a section of each command."""
    return "\n".join(map(section, pages()))


def section(page: Page) -> str:
    """Return the section of one command."""
    parts = [f"## {page.name}\n\n```\n{page.usage}\n```"]
    for paragraph in page.paragraphs:
        if paragraph.startswith(_VERBATIM):
            parts.append(f"```\n{_verbatim(paragraph)}\n```")
        else:
            parts.append(_plain(paragraph))
    if page.options:
        parts.append(table(("option", "meaning"), [(code(names), _plain(words)) for names, words in page.options]).rstrip())
    if page.commands:
        rows = [(f"[`{name}`](#{_anchor(f'{page.name} {name}')})", _plain(words)) for name, words in page.commands]
        parts.append(table(("command", "what it does"), rows).rstrip())
    if page.epilog:
        parts.append(page.epilog)
    return "\n\n".join(parts) + "\n"


def _verbatim(paragraph: str) -> str:
    return textwrap.dedent(paragraph.removeprefix(_VERBATIM).strip("\n"))


def _plain(paragraph: str) -> str:
    """Return a paragraph that Markdown reads as itself; code stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join(paragraph.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([*_<\[])", r"\\\1", part) for part in parts)


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def man(page: Page) -> str:
    """Return a man page in man(7)'s macros."""
    title = page.name.replace(" ", "-")
    first = " ".join(page.paragraphs[0].split()) if page.paragraphs else ""
    lines = [
        f'.TH "{title.upper()}" "1" "" "twinbed {twinbed.__version__}"',
        ".SH NAME",
        f"{_roff(title)} \\- {_roff(re.split(r'(?<=[.?])[ ]', first)[0].rstrip('.'))}",
        ".SH SYNOPSIS",
        f"\\fB{_roff(page.name)}\\fR{_roff(page.usage.removeprefix(page.name))}",
        ".SH DESCRIPTION",
    ]
    for paragraph in page.paragraphs:
        if paragraph.startswith(_VERBATIM):
            lines += [".PP", ".nf", *map(_line, _verbatim(paragraph).splitlines()), ".fi"]
        else:
            lines += [".PP", _line(" ".join(paragraph.split()))]
    for heading, entries in (("OPTIONS", page.options), ("COMMANDS", page.commands)):
        if entries:
            lines.append(f".SH {heading}")
        for name, words in entries:
            lines += [".TP", f"\\fB{_roff(name)}\\fR", _line(words)]
    if page.epilog:
        lines += [".SH EXIT STATUS", _line(page.epilog.removeprefix("Exit codes: "))]
    related = [f"{title}-{name}" for name, _ in page.commands] or ["twinbed"]
    lines += [".SH SEE ALSO", _line(", ".join(f"{name}(1)" for name in related))]
    return "\n".join(lines) + "\n"


def _line(words: str) -> str:
    """Return a line of text, even one that begins with a control character."""
    escaped = _roff(words)
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def _roff(words: str) -> str:
    return words.replace("\\", "\\e").replace("-", "\\-")


def write_man(folder: Path) -> None:
    """Write a man page of each command into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages():
        (folder / f"{page.name.replace(' ', '-')}.1").write_text(man(page), encoding="utf-8")
