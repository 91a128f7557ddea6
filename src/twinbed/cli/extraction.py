"""Brings the tables of a results folder up to date, and says so where it takes long; the analyses that pages show of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.model.error import TwinbedError
from twinbed.model.result import Result
from twinbed.model.tables import Tables
from twinbed.results.store import Store

if TYPE_CHECKING:
    from twinbed.model.variance import Anova, Unexplained
    from twinbed.render.pivots import Levels, Table

MOST_EXPLAINED = 3
"""Metrics of which a page shows what explains them."""


def extracted(results: Path) -> Store:
    """The opened results folder, or archive of one. Progress goes to standard error, if that is a terminal."""
    from twinbed import registry
    from twinbed.results.archive.unpack import folder_of
    from twinbed.results.extract import extract

    def progress(done: int, total: int) -> None:
        if total > done and sys.stderr.isatty():
            click.echo(f"\rreading artifacts: {done} of {total} runs", err=True, nl=False)
        elif total == done and sys.stderr.isatty():
            click.echo("\r" + " " * 60 + "\r", err=True, nl=False)

    return extract(folder_of(results), registry.PLUGINS.read, registry.PLUGINS.beside, progress, results)


def chains(tables: Tables) -> Result | None:
    """What the analysis ``chain`` finds; None where no run recorded system calls."""
    from twinbed import registry

    if not tables.table("transitions").num_rows:
        return None
    found: Result = registry.analysis("chain").run(tables)
    return found


def explained(tables: Tables) -> tuple[Anova | Unexplained, ...]:
    """What the analysis ``anova`` finds of the application's first headline metrics; nothing where no factor varies."""
    from twinbed import registry
    from twinbed.metrics.metric import Layer
    from twinbed.model.frame import headlines, of_tables
    from twinbed.model.variance import Unexplained

    levels = [{"testbed": record.settings["testbed"]["name"], **record.levels} for record in tables.records]
    if not any(level != levels[0] for level in levels):
        return ()
    anova = registry.analysis("anova")
    found: list[Anova | Unexplained] = []
    for name in headlines(tables, Layer.APPLICATION)[:MOST_EXPLAINED]:
        try:
            one: Anova = anova.analyse(of_tables(tables, name), anova.params())
        except TwinbedError as error:
            found.append(Unexplained(name, error.message))
            continue
        alone = one.errors.freedom == 0
        found.append(Unexplained(name, "one value a cell, and so nothing to estimate errors from") if alone else one)
    return tuple(found)


def study_tables(tables: Tables, result: Result) -> tuple[Table, ...]:
    """The tables that the study file asks for, with the printed numbers beside them where it names some."""
    from twinbed.published.beside import printed_at
    from twinbed.published.printed import library
    from twinbed.render import pivots

    def printed(name: str, levels: Levels, metric: str) -> str | None:
        return printed_at(library(), library().table(name), levels, metric)

    return pivots.study_tables(tables, result, printed)
