"""The command of an analysis, made of it: its settings are the options, its docstring is the help."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from twinbed.contracts.analysis import Inputs, Otherwise, RowsAnalysis
from twinbed.contracts.plugins import AnyAnalysis
from twinbed.model.error import TwinbedError
from twinbed.model.units import Quantity
from twinbed.observations.options import STYLES, write
from twinbed.show.words import heading


def command_of(analysis: AnyAnalysis) -> click.Command:
    """Return ``twinbed analyse NAME``."""
    names = list(analysis.params.model_fields)

    def run(inputs: Inputs, /, results: Path, **given: Any) -> int:
        params: Any = settings(analysis.params, {name: given[name] for name in names})
        if isinstance(analysis, RowsAnalysis) and not inputs.is_results(results):
            from twinbed.observations.source import read_frame

            response, columns = analysis.columns(params)
            frame: Any = read_frame(inputs, results, response, columns, host=params.host, direction=params.direction)
            result = analysis.run(frame, params)
        else:
            result = analysis.run_on(inputs.executor, inputs.tables(results, given.get("reference")), params)
        write(
            analysis,
            result,
            results,
            given["style"],
            given.get("table", ""),
            None,
            given["output"],
            more=given.get("more", False),
        )
        return analysis.exit_code(result)

    metavar = "RESULTS | FILE" if isinstance(analysis, RowsAnalysis) else "RESULTS"
    return click.Command(
        analysis.name,
        callback=click.pass_obj(run),
        params=[click.Argument(["results"], metavar=metavar, type=click.Path(path_type=Path)), *options(analysis)],
        help=inspect.getdoc(type(analysis)),
        epilog=analysis.epilog,
    )


def completed(own: click.Command, analysis: AnyAnalysis) -> click.Command:
    """Return a command that does more than its analysis: with the analysis' help, and options for its settings, which its
    function gets as ``params``. Options of its own stand in place of those with the same name."""
    names, run = list(analysis.params.model_fields), own.callback
    assert run is not None

    def with_settings(*arguments: object, **given: Any) -> object:
        return run(*arguments, params=settings(analysis.params, {name: given.pop(name) for name in names}), **given)

    arguments = [param for param in own.params if isinstance(param, click.Argument)]
    others = [param for param in own.params if param not in arguments]
    taken = {param.name for param in others}
    derived = [param for param in options(analysis) if param.name not in taken]
    text = inspect.getdoc(type(analysis))
    params = [*arguments, *derived, *others]
    return click.Command(own.name, callback=with_settings, params=params, help=text, epilog=analysis.epilog)


def options(analysis: AnyAnalysis) -> Iterator[click.Option]:
    """Yield an option for each setting, then those that all analyses have."""
    if analysis.is_against_a_reference:
        text = "The testbed to compare with. Default: the study's reference."
        yield click.Option(["--reference"], metavar="TESTBED", help=text)
    for name, field in analysis.params.model_fields.items():
        yield option(name, field)
    if analysis.more:
        yield click.Option(["--all", "more"], is_flag=True, help=analysis.more)
    if names := analysis.table_names:
        yield click.Option(["--table"], type=click.Choice(names), default=names[0], help="The table to print as CSV.")
    yield click.Option(
        ["--format", "style"],
        type=click.Choice((*STYLES, "latex")),
        help="Format to print. Default: by the name of -o, else text.",
    )
    file = click.Path(path_type=Path)
    yield click.Option(["-o", "--output"], type=file, help="File to write; .html makes a page. Default: standard output.")


def option(name: str, field: FieldInfo) -> click.Option:
    """Return the option of a setting. Its type, bounds, default and help are those of the setting; its name is the setting's
    alias, where it has one."""
    kind, several, notes = _kind(field)
    words = [f"--{(field.alias or name).replace('_', '-')}", name]
    text = f"{heading(field.description or '')}."
    default = None if field.is_required() or field.default in (None, (), {}) else field.get_default()
    shown = default is not None
    if kind is bool:
        no = next((note.name for note in notes if isinstance(note, Otherwise)), f"no-{words[0][2:]}")
        return click.Option([f"{words[0]}/--{no}", name], default=default, help=text, show_default=shown)
    metavar: str | None = "NAME"
    parse: click.ParamType[Any] = click.STRING
    if get_origin(kind) is Literal:
        metavar, parse = None, click.Choice([str(value) for value in get_args(kind)])
    elif quantity := next((note for note in notes if isinstance(note, Quantity)), None):
        metavar = quantity.name.upper()
    elif kind in (int, float):
        metavar, parse = None if several else "VALUE", _range(kind, notes)
    return click.Option(
        words,
        type=parse,
        metavar=metavar,
        default=default,
        multiple=several,
        show_default=shown,
        help=text,
        required=field.is_required(),
    )


def _kind(field: FieldInfo) -> tuple[Any, bool, Sequence[object]]:
    """Return the type without None, whether there may be several, and what is noted of it."""
    kind, several, notes = field.annotation, False, list(field.metadata)
    while True:
        inner = [member for member in get_args(kind) if member not in (type(None), Ellipsis)]
        if get_origin(kind) in (tuple, Mapping):
            several = True
        elif get_origin(kind) is Annotated:
            notes += inner[1:]
        elif get_origin(kind) not in (Union, UnionType):
            return kind, several, notes
        kind = inner[0]


def _range(kind: type, notes: Sequence[object]) -> click.ParamType[Any]:
    low = next((note for note in notes if isinstance(note, Gt | Ge)), None)
    high = next((note for note in notes if isinstance(note, Lt | Le)), None)
    least = low.gt if isinstance(low, Gt) else low.ge if low else None
    most = high.lt if isinstance(high, Lt) else high.le if high else None
    if least is None and most is None:
        return click.FLOAT if kind is float else click.INT
    made: Any = click.FloatRange if kind is float else click.IntRange
    parse: click.ParamType[Any] = made(least, most, isinstance(low, Gt), isinstance(high, Lt))
    return parse


def settings(model: type[BaseModel], given: dict[str, Any]) -> BaseModel:
    """Return the settings that options gave. Raises TwinbedError, which names the option."""
    try:
        return model(**{name: value for name, value in given.items() if value not in (None, ())})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        if name in model.model_fields:
            name = model.model_fields[name].alias or name
        cause = first.get("ctx", {}).get("error")
        text = str(cause) if cause else f"{first['input']!r}: {first['msg'].removeprefix('Input ')}"
        raise TwinbedError(f"--{name.replace('_', '-')}: {text}") from error
