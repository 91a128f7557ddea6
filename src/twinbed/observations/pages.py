"""The option ``--html`` of every analysis: a page of the result in addition to the printed output."""

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
"""The folder of results with the pages of their analyses, ``NAME.html``, which the report links."""
_ASKED, _MADE = "twinbed.page.asked", "twinbed.page.made"
_HERE = "RESULTS/pages/NAME.html"


def with_page(command: click.Command) -> click.Command:
    """Return the command with --html added. The command hands its page over by ``write_page`` or ``write_text``."""
    if any("--html" in param.opts for param in command.params):
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
            raise TwinbedError("--html: this has no page")
        return code

    command.callback = with_check
    return command


def no_page(of: str, advice: str) -> None:
    """Refuse --html before anything is done. Raises TwinbedError."""
    if click.get_current_context().meta.get(_ASKED) is not None:
        raise TwinbedError(f"--html: {of} has no page", advice=advice)


def write_page(section: Callable[[], Section], result: Reported, source: Path, *, of_one: bool = True) -> None:
    """Write the page of a result, if --html asks for one; as ``write_text``."""

    def text() -> Markup:
        return shown_as_page(section(), result, source)

    write_text(text, source, of_one=of_one)


def shown_as_page(section: Section, result: Reported, source: Path) -> Markup:
    """Return the page as a text."""
    from twinbed.render.pages import page

    return page(section, result, f"Made of {source}.")


def write_text(text: Callable[[], str], source: Path, *, of_one: bool = True) -> None:
    """Write a page if --html asks for one, and print its place on standard error. ``of_one`` means that the page is made of
    ``source`` alone. Raises TwinbedError if no file is named and the source is no folder that could hold it."""
    from twinbed.render.output import write

    context = click.get_current_context()
    asked = context.meta.get(_ASKED)
    if asked is None:
        return
    if asked == _HERE and not (of_one and source.is_dir()):
        raise TwinbedError(
            "--html needs a file here", advice="give --html FILE; only the page of one results folder has a default place"
        )
    file = source / FOLDER / f"{context.info_name}.html" if asked == _HERE else Path(asked)
    write(text(), file, "--html FILE", below=source if asked == _HERE else None)
    context.meta[_MADE] = file
    say(f"page: {file}", err=True)
