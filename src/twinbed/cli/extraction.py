"""Brings the tables of a results folder up to date, and says so where it takes long; the analysis that pages show of them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from twinbed.model.result import Result
from twinbed.model.tables import Tables
from twinbed.store import Store


def extracted(results: Path) -> Store:
    """The opened results folder. Progress goes to standard error, if that is a terminal."""
    from twinbed import registry
    from twinbed.extract import extract

    def progress(done: int, total: int) -> None:
        if total > done and sys.stderr.isatty():
            click.echo(f"\rreading artifacts: {done} of {total} runs", err=True, nl=False)
        elif total == done and sys.stderr.isatty():
            click.echo("\r" + " " * 60 + "\r", err=True, nl=False)

    return extract(results, registry.PLUGINS.workloads, registry.PLUGINS.instruments, progress)


def chains(tables: Tables) -> Result | None:
    """What the analysis ``chain`` finds; None where no run recorded system calls."""
    from twinbed import registry

    if not tables.table("transitions").num_rows:
        return None
    found: Result = registry.analysis("chain").run(tables)
    return found
