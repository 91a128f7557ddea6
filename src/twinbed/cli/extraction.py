"""Brings the tables of a results folder up to date, with progress on a terminal."""

from __future__ import annotations

from pathlib import Path

from twinbed.results.store import Store
from twinbed.terminal import say_progress


def extracted(results: Path, *, all_settings: bool = False) -> Store:
    """Open a results folder or an archive: the runs of the study as it is now, or all runs with ``all_settings``."""
    from twinbed import registry
    from twinbed.cli.on import executor
    from twinbed.results.archive.unpack import folder_of
    from twinbed.results.extract import extract

    def progress(done: int, total: int) -> None:
        say_progress("reading artifacts", done, total, "runs")

    store = extract(folder_of(results), registry.PLUGINS.read, registry.PLUGINS.accompanying, progress, results, executor())
    return store if all_settings else store.as_it_stands()
