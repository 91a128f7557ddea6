"""`--json` of every command: what it came to, as JSON, in an envelope that says of which command and which twinbed it is.

Where a command has `--format json`, the result is what that prints, passed on as it is written, so that a long one needs no
more memory. Of another command it is what it hands over by ``tell``; its words to people are left out then.  Errors are text on
standard error, and exit codes are the same.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Protocol

import click
from click.core import ParameterSource

import twinbed
from twinbed.terminal import as_json, say, say_text

SCHEMA = 1
"""Version of the envelope, and of what results hold: it grows when something that was there is gone or means another thing."""
WITHOUT: Mapping[str, str] = {
    "describe": "it is prose; `twinbed schema` says the same for programs",
    "schema": "it prints a JSON Schema, which has a form of its own",
    "help": "it is the help of other commands",
}
"""Commands without --json, and why."""
_WRITTEN = ("study_file", "output")
"""Options that name a file to write, where that is all that a command does."""
_RESULT = "twinbed.result"
_NAME = "as_json"


class _Callback(Protocol):
    """What click calls with a command's parameters."""

    def __call__(self, *arguments: object, **given: object) -> object: ...


def tell(result: object) -> None:
    """Hands over the result of the command that runs, for --json."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_RESULT] = result


def with_json(command: click.Command, name: str) -> click.Command:
    """The command, with --json added to it, or to those of a group, unless it is there already."""
    if isinstance(command, click.Group):
        for member in command.commands.values():
            with_json(member, str(member.name))
    elif name not in WITHOUT and not any(each.name == _NAME for each in command.params):
        style = _style(command)
        text = "The same as --format json, in an envelope." if style else "Print as JSON what was done, in an envelope."
        command.params.append(click.Option(["--json", _NAME], is_flag=True, help=f"{text} docs/json.md"))
        command.callback = _wrapped(command, style)
    return command


def _style(command: click.Command) -> str | None:
    """The name of the parameter that --format json sets."""
    for each in command.params:
        if "--format" in each.opts and isinstance(each.type, click.Choice) and "json" in each.type.choices:
            return each.name
    return None


def _wrapped(command: click.Command, style: str | None) -> _Callback:
    run = command.callback
    assert run is not None

    @functools.wraps(run)
    def with_envelope(*arguments: object, **given: object) -> object:
        context = click.get_current_context()
        if not given.pop(_NAME):
            return run(*arguments, **given)
        head = _head(context)
        if style is None:
            with contextlib.redirect_stdout(io.StringIO()):
                code = run(*arguments, **given)
            say_text(f"{head}{as_json(context.meta.get(_RESULT))}}}\n")
            return code
        if context.get_parameter_source(style) is ParameterSource.COMMANDLINE and given[style] != "json":
            raise click.UsageError(f"--json is --format json, not --format {given[style]}: give one of the two")
        with _enveloped(head) as passed_on:
            code = run(*arguments, **{**given, style: "json"})
        if not passed_on.begun:
            written = [str(given[name]) for name in _WRITTEN if given.get(name)][:1]
            say(f"{head}{json.dumps({'written': written})}}}")
        return code

    return with_envelope


def _head(context: click.Context) -> str:
    """All before the result. The command is named as below the program: ``analyse anova``."""
    about = {"twinbed": {"schema": SCHEMA, "version": twinbed.__version__}, "command": context.command_path.partition(" ")[2]}
    return json.dumps(about).removesuffix("}") + ', "result": '


class _After(io.BufferedIOBase):
    """Writes a JSON document to an output, after a beginning. What is said when the result went to a file is left out."""

    name = "<stdout>"

    def __init__(self, output: BinaryIO, beginning: bytes) -> None:
        self.begun = False
        self._output, self._beginning = output, beginning

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        if not self.begun:
            if bytes(view[:1]) not in (b"{", b"["):
                return len(view)
            self.begun = True
            self._output.write(self._beginning)
        return self._output.write(view)

    def flush(self) -> None:
        self._output.flush()


@contextlib.contextmanager
def _enveloped(head: str) -> Iterator[_After]:
    """What is written to standard output comes between the head and a brace."""
    sys.stdout.flush()
    after = _After(sys.stdout.buffer, head.encode())
    with contextlib.redirect_stdout(io.TextIOWrapper(after, encoding="utf-8", write_through=True)) as text:
        yield after
    text.flush()
    text.detach()
    if after.begun:
        say("}")
