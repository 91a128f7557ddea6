"""`--json` of every command: its result as JSON, in an envelope with the command's name and twinbed's version.

Where a command has `--format json`, the envelope holds that output, passed on as it is written, so that a long one needs no
more memory. Another command hands its result over by ``tell``, and its text for people is left out. Errors are text on
standard error, and exit codes stay the same.
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
"""Version of the envelope and its results. It grows when a field is removed or changes its meaning."""
WITHOUT: Mapping[str, str] = {
    "describe": "it is prose; `twinbed schema` has the same for programs",
    "schema": "it prints a JSON Schema already",
    "help": "it prints the help of other commands",
}
"""Commands without --json, with the reason."""
_WRITTEN = ("study_file", "output")
"""Options that name a file to write, of commands that do nothing else."""
_RESULT = "twinbed.result"
_NAME = "as_json"


class _Callback(Protocol):
    """Is called by click with a command's parameters."""

    def __call__(self, *arguments: object, **given: object) -> object: ...


def tell(result: object) -> None:
    """Hand over the result of the running command, for --json."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_RESULT] = result


def with_json(command: click.Command, name: str) -> click.Command:
    """Add --json to a command, or to the commands of a group, unless it is there already."""
    if isinstance(command, click.Group):
        for member in command.commands.values():
            with_json(member, str(member.name))
    elif name not in WITHOUT and not any(param.name == _NAME for param in command.params):
        style = _style(command)
        text = "Print --format json in an envelope" if style else "Print the result as JSON"
        command.params.append(click.Option(["--json", _NAME], is_flag=True, help=f"{text} (docs/json.md)."))
        command.callback = _wrapped(command, style)
    return command


def _style(command: click.Command) -> str | None:
    """Return the name of the parameter that --format json sets; None without one."""
    for param in command.params:
        if "--format" in param.opts and isinstance(param.type, click.Choice) and "json" in param.type.choices:
            return param.name
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
            raise click.UsageError(f"--json means --format json, not --format {given[style]}: give one of the two")
        with _enveloped(head) as passed_on:
            code = run(*arguments, **{**given, style: "json"})
        if not passed_on.begun:
            written = [str(given[name]) for name in _WRITTEN if given.get(name)][:1]
            say(f"{head}{json.dumps({'written': written})}}}")
        return code

    return with_envelope


def _head(context: click.Context) -> str:
    """Return everything before the result. The command is named without the program: ``analyse anova``."""
    head = {"twinbed": {"schema": SCHEMA, "version": twinbed.__version__}, "command": context.command_path.partition(" ")[2]}
    return json.dumps(head).removesuffix("}") + ', "result": '


class _After(io.BufferedIOBase):
    """Writes a JSON document to an output, after a beginning. Other text is left out."""

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
    """Put everything that is written to standard output between ``head`` and a brace."""
    sys.stdout.flush()
    after = _After(sys.stdout.buffer, head.encode())
    with contextlib.redirect_stdout(io.TextIOWrapper(after, encoding="utf-8", write_through=True)) as text:
        yield after
    text.flush()
    text.detach()
    if after.begun:
        say("}")
