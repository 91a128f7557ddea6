"""What the command of an analysis prints of tables that a test has made."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from twinbed.cli.analysis_command import command_of
from twinbed.contracts.plugins import AnyAnalysis
from twinbed.executor.local import Processes


class Given:
    """What the command line opens."""

    executor = Processes(1)

    def __init__(self, tables: Any) -> None:
        self.opened = tables

    def is_results(self, source: Path) -> bool:
        return True

    def tables(self, results: Path, reference: str | None = None, *, all_settings: bool = False) -> Any:
        return self.opened


def printed(analysis: AnyAnalysis, tables: Any, *arguments: str) -> str:
    """Return the standard output of ``twinbed analyse NAME results ARGUMENTS``, which is to end well."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        assert command_of(analysis).main(["results", *arguments], standalone_mode=False, obj=Given(tables)) == 0
    return text.getvalue()
