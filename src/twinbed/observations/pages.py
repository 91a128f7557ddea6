"""A page of a result beside what a command prints: the option ``--html`` of every analysis."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.model.error import TwinbedError
from twinbed.terminal import say

if TYPE_CHECKING:
    from markupsafe import Markup

    from twinbed.contracts.analysis import Reported
    from twinbed.show.section import Section

FOLDER = "pages"
"""Of results: the pages of their analyses, ``NAME.html``, which the report links."""
_ASKED, _MADE = "twinbed.page.asked", "twinbed.page.made"
_HERE = "RESULTS/pages/NAME.html"


def with_page(command: click.Command) -> click.Command:
    """The command, with --html added to it. What comes of a command is handed over by ``write_page`` or ``write_text``."""
    if any("--html" in each.opts for each in command.params):
        return command

    def note(context: click.Context, _: click.Parameter, value: str | None) -> None:
        context.meta[_ASKED] = value

    text = "Write a page too, to FILE. Default: RESULTS/pages/NAME.html, which `twinbed report` links."
    option = click.Option(
        ["--html"], metavar="[FILE]", is_flag=False, flag_value=_HERE, expose_value=False, callback=note, help=text
    )
    command.params.append(option)
    run = command.callback
    assert run is not None

    @functools.wraps(run)
    def with_check(*arguments: object, **given: object) -> object:
        code = run(*arguments, **given)
        meta = click.get_current_context().meta
        if meta.get(_ASKED) is not None and _MADE not in meta:
            raise TwinbedError("--html: there is no page of this")
        return code

    command.callback = with_check
    return command


def no_page(of: str, advice: str) -> None:
    """Refuses --html before anything is done. Raises TwinbedError."""
    if click.get_current_context().meta.get(_ASKED) is not None:
        raise TwinbedError(f"--html: there is no page of {of}", advice=advice)


def write_page(section: Callable[[], Section], result: Reported, source: Path, *, of_one: bool = True) -> None:
    """The page of a result, where --html asks for one; as ``write_text``."""

    def text() -> Markup:
        return shown_as_page(section(), result, source)

    write_text(text, source, of_one=of_one)


def shown_as_page(section: Section, result: Reported, source: Path) -> Markup:
    """The page as a text."""
    from twinbed.render.pages import page

    return page(section, result, f"Made of {source}.")


def write_text(text: Callable[[], str], source: Path, *, of_one: bool = True) -> None:
    """Writes a page where --html asks for one, and says on standard error where it is. ``of_one`` is whether ``source`` is all
    that it is made of. Raises TwinbedError where no file is named and the source is no folder that could hold it."""
    from twinbed.render.output import write

    context = click.get_current_context()
    asked = context.meta.get(_ASKED)
    if asked is None:
        return
    if asked == _HERE and not (of_one and source.is_dir()):
        raise TwinbedError("where does the page go?", advice="--html FILE; only pages of one results folder have a place in it")
    file = source / FOLDER / f"{context.info_name}.html" if asked == _HERE else Path(asked)
    write(text(), file, "--html FILE", below=source if asked == _HERE else None)
    context.meta[_MADE] = file
    say(f"page: {file}", err=True)
