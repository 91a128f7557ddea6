"""`--ssh-config` of commands that log in to a study's hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click


def _allow(context: click.Context, parameter: click.Parameter, files: Sequence[Path]) -> None:
    if files:
        from twinbed.hosts import ssh_config

        ssh_config.allow(files)


option = click.option(
    "--ssh-config",
    "ssh_configs",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    expose_value=False,
    callback=_allow,
    help="Allow hosts of STUDY to use `config: FILE`, another ssh configuration than yours (docs/remote.md).",
)
