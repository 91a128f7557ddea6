"""Reads the study file of a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from twinbed.model.error import TwinbedError
from twinbed.model.units import format_size
from twinbed.study import loading

if TYPE_CHECKING:
    from twinbed.study.study import Study


Arguments = ParamSpec("Arguments")
Code = TypeVar("Code")
MOST_BYTES = 2**18
"""twinbed's longest study has 6 KiB. The YAML reader needs half a minute for a tag of 1 MiB."""


def read_study(path: Path, overrides: Sequence[str] = (), profile: str | None = None) -> Study:
    """Return the study in a file, or the study of this name that comes with twinbed.

    Raises StudyError with every problem of the file, TwinbedError when it cannot be read."""
    if not path.exists():
        path = loading.shipped_file(str(path)) or path
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise TwinbedError(f"{path} is larger than {format_size(MOST_BYTES)}, too large for a study file")
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        advice = "" if path.exists() else "write one: twinbed init; or see those that come with twinbed: twinbed studies"
        raise TwinbedError(f"{path}: {reason}", advice=advice) from None
    # Only now, so that a wrong path is reported at once.
    from twinbed import registry
    from twinbed.study.loading import load

    return load(text, str(path), registry.catalogue(), overrides, profile)


def _allow(context: click.Context, parameter: click.Parameter, files: Sequence[Path]) -> None:
    if files:
        from twinbed.hosts import ssh_config

        ssh_config.allow(files)


def study_options(command: Callable[Arguments, Code]) -> Callable[Arguments, Code]:
    """Add --profile and --set to a command that reads a study."""
    changes = "Change a setting of STUDY, such as replicates=2 or factors.payload=[500B]; may be repeated."
    command = click.option("-s", "--set", "overrides", multiple=True, metavar="KEY=VALUE", help=changes)(command)
    return click.option(
        "--profile",
        metavar="NAME",
        help="Apply the changes in profiles.NAME of STUDY; its results are in results/<study>-NAME.",
    )(command)


ssh_config_option = click.option(
    "--ssh-config",
    "ssh_configs",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    expose_value=False,
    callback=_allow,
    help="Allow hosts of STUDY to use `config: FILE`, another ssh configuration than yours.",
)
