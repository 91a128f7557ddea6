"""`-q` and `-v` of every command that has none of its own."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from twinbed.cli.envelope import WITHOUT
from twinbed.terminal import one_line

_QUIET, _VERBOSE = "_quiet", "_verbose"
_LOGGER = logging.getLogger("twinbed")


def with_volume(command: click.Command, name: str) -> click.Command:
    """Add -q and -v to a command, or to the commands of a group, unless it only prints prose."""
    if isinstance(command, click.Group):
        for member in command.commands.values():
            with_volume(member, str(member.name))
        return command
    taken = {option for param in command.params for option in param.opts}
    if name in WITHOUT or _QUIET in {param.name for param in command.params}:
        return command
    if "-q" not in taken:
        text = "Print nothing but errors and --json."
        command.params.append(click.Option(["-q", "--quiet", _QUIET], is_flag=True, help=text))
    if "-v" not in taken:
        text = "Log on standard error what is read, started and written, with times."
        command.params.append(click.Option(["-v", "--verbose", _VERBOSE], is_flag=True, help=text))
    run = command.callback
    assert run is not None

    @functools.wraps(run)
    def at_volume(*arguments: object, **given: object) -> object:
        quiet, verbose = bool(given.pop(_QUIET, False)), bool(given.pop(_VERBOSE, False))
        with _nothing_printed() if quiet and not given.get("as_json") else contextlib.nullcontext(), _logged(verbose):
            return run(*arguments, **given)

    command.callback = at_volume
    return command


@contextlib.contextmanager
def _nothing_printed() -> Iterator[None]:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


@contextlib.contextmanager
def _logged(verbose: bool) -> Iterator[None]:
    """Write log records of twinbed's modules, with the seconds since the program began."""
    if not verbose:
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    level = _LOGGER.level
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.INFO)
    try:
        yield
        _LOGGER.info("done")
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(level)


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return one_line(f"{record.relativeCreated / 1e3:7.2f} s  {record.getMessage()}")
