"""The page of commands, and a man page of each, from the help of the program."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

import twinbed
from manual.markdown import code, table
from twinbed.cli.help import VERBATIM, described, groups
from twinbed.cli.lazy import LazyGroup
from twinbed.cli.main import cli


@dataclass(frozen=True, slots=True)
class Page:
    """The help of a command. A paragraph that begins with VERBATIM keeps its lines."""

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    options: Mapping[str, Sequence[tuple[str, str]]]
    """By the title of their group."""
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
    yield Page(
        context.command_path,
        " ".join([context.command_path, *command.collect_usage_pieces(context)]),
        tuple(_paragraphs(command)),
        {title: [(names, " ".join(words.split())) for names, words in rows] for title, rows in groups(context).items()},
        tuple((child.info_name or "", _short(command, child)) for child in children),
        inspect.cleandoc(command.epilog or ""),
    )
    for child in children:
        yield from _pages(child)


def _paragraphs(command: click.Command) -> Iterator[str]:
    """Yield the text of a command in the order of ``--help``."""
    text = described(command)
    yield text.sentence
    if text.examples:
        yield "\n".join([VERBATIM, "Examples:", *(f"  {line}" for line in text.examples)])
    yield from text.notes


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
    parts += map(_paragraph, page.paragraphs)
    for title, rows in page.options.items():
        parts.append(f"**{title}**")
        parts.append(table(("option", "meaning"), [(code(names), _plain(words)) for names, words in rows]).rstrip())
    if page.commands:
        rows = [(f"[`{name}`](#{_anchor(f'{page.name} {name}')})", _plain(words)) for name, words in page.commands]
        parts.append(table(("command", "what it does"), rows).rstrip())
    if page.epilog:
        parts.append(_paragraph(page.epilog))
    return "\n\n".join(parts) + "\n"


def _paragraph(text: str) -> str:
    return f"```\n{_verbatim(text)}\n```" if text.startswith(VERBATIM) else _plain(text)


def _verbatim(paragraph: str) -> str:
    return textwrap.dedent(paragraph.removeprefix(VERBATIM).strip("\n"))


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
        lines += _roff_paragraph(paragraph)
    lines += [".SH OPTIONS"]
    for title, rows in page.options.items():
        lines += [f".SS {_roff(title)}", *_roff_list(rows)]
    if page.commands:
        lines += [".SH COMMANDS", *_roff_list(page.commands)]
    if page.epilog:
        lines += [".SH NOTES", *_roff_paragraph(page.epilog)]
    related = [f"{title}-{name}" for name, _ in page.commands] or ["twinbed"]
    lines += [".SH SEE ALSO", _line(", ".join(f"{name}(1)" for name in related))]
    return "\n".join(lines) + "\n"


def _roff_list(entries: Sequence[tuple[str, str]]) -> list[str]:
    return [line for name, words in entries for line in (".TP", f"\\fB{_roff(name)}\\fR", _line(words))]


def _roff_paragraph(text: str) -> list[str]:
    if text.startswith(VERBATIM):
        return [".PP", ".nf", *map(_line, _verbatim(text).splitlines()), ".fi"]
    return [".PP", _line(" ".join(text.split()))]


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
