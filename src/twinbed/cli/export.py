"""`twinbed export`: write results as files for papers, notebooks and other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.model.error import TwinbedError
from twinbed.terminal import say, say_progress

if TYPE_CHECKING:
    from twinbed.api import Results
    from twinbed.model.comparison import Comparisons
    from twinbed.results.store import Store

STYLES: Mapping[str, tuple[str, ...]] = {"csv": ("csv",), "parquet": ("parquet",), "both": ("csv", "parquet")}


@click.command(name="export")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Folder to write.")
@click.option("--tables", type=click.Choice(list(STYLES)), help="Every table in tidy form, with a dictionary of its columns.")
@click.option("--latex", is_flag=True, help="The report's tables for LaTeX (booktabs), and every comparison as CSV.")
@click.option("--figures", is_flag=True, help="Each figure of the report: Vega-Lite JSON, SVG, PNG, PDF.")
@click.option("--chains", is_flag=True, help="Each program's chain of system calls: GraphML, DOT.")
@click.option("--flent", is_flag=True, help="Each run's time series as a data file for flent.")
@click.option("--metrics", is_flag=True, help="Each run's metrics as a file, with a manifest for `twinbed import`.")
def command(
    results: Path, output: Path, tables: str | None, latex: bool, figures: bool, chains: bool, flent: bool, metrics: bool
) -> int:
    """Write RESULTS (a folder or an archive) as files for papers, notebooks and other programs.

    Without a flag, everything is written, with tables as CSV and Parquet. The same command again replaces its own parts and
    keeps others. A folder that `twinbed export` did not make is never changed.

    \b
    Examples:
      twinbed export results/quickstart -o quickstart-export
      twinbed export results/quickstart -o paper --latex --figures
      twinbed export study.zip -o data --tables parquet
    """
    import twinbed
    from twinbed.cli.envelope import tell
    from twinbed.cli.extraction import extracted
    from twinbed.exporting import folder

    everything = not (tables or latex or figures or chains or flent or metrics)
    store = extracted(results)
    if not store.records:
        raise TwinbedError(f"{results} has no runs", advice="run the study first, or import files")
    asked = _Asked(store, output, everything)
    try:
        folder.opened(output, store.outline.name, twinbed.__version__)
        if tables or everything:
            asked.tables(STYLES[tables or "both"])
        if latex or everything:
            asked.latex()
        if figures or everything:
            asked.figures()
        if chains or everything:
            asked.chains()
        if flent or everything:
            asked.flent()
        if metrics or everything:
            asked.metrics()
    except OSError as error:
        reason = error.strerror or str(error)
        raise TwinbedError(
            f"{error.filename or output} cannot be written: {reason}", advice="choose another folder with -o"
        ) from error
    tell({"written": asked.written, "without": asked.without})
    return codes.DONE


@dataclass(frozen=True)
class _Asked:
    """Writes the parts. A part without data is an error only if its flag was given."""

    store: Store
    output: Path
    everything: bool
    written: list[str] = field(default_factory=list)
    without: dict[str, str] = field(default_factory=dict)
    """Each part without data, with the reason."""

    @cached_property
    def opened(self) -> Results:
        from twinbed.api import Results

        return Results(self.store.shown)

    @cached_property
    def compared(self) -> Comparisons:
        from twinbed import registry
        from twinbed.cli.on import executor

        result: Comparisons = registry.analysis("compare").run_on(executor(), self.store)
        return result

    def tables(self, styles: tuple[str, ...]) -> None:
        from twinbed.exporting import tables
        from twinbed.exporting.folder import part

        with part(self.output, "tables") as made:
            rows = tables.write(self.opened, made, styles, progress("tables"))
        self._written("tables", f"{len(rows)} tables, {sum(rows.values()):,} rows, as {' and '.join(styles)}")

    def latex(self) -> None:
        from twinbed.exporting.folder import part
        from twinbed.render.output import write
        from twinbed.report.styles import rendered

        texts = {"report.tex": "latex", "verdicts.csv": "csv"}
        if self.store.outline.data.get("tables"):
            texts["tables.csv"] = "tables-csv"
        with part(self.output, "latex") as made:
            for name, style in texts.items():
                write(rendered(style, self.store, self.compared), made / name)
        self._written("latex", f"{', '.join(texts)}; {len(self.compared.comparisons):,} comparisons")

    def figures(self) -> None:
        from twinbed.exporting import figures
        from twinbed.exporting.folder import part
        from twinbed.render.collected import collected
        from twinbed.report.styles import rendered

        with collected() as drawn:
            rendered("html", self.store, self.compared, whole=True)
        if not drawn and self._without("figures", "the report has no figure", "figures need two testbeds with runs"):
            return
        with part(self.output, "figures") as made:
            files = figures.write(drawn, made, progress("figures"))
        self._written("figures", f"{len(drawn)} figures, {files} files")

    def chains(self) -> None:
        from twinbed import registry
        from twinbed.exporting.folder import part
        from twinbed.render.output import write

        if not self.store.table("transitions").num_rows:
            self._without("chains", "no run recorded system calls", "add syscalls to the study's instruments and run it")
            return
        with part(self.output, "chains") as made:
            for file in registry.analysis("chain").files(self.store):
                write(file.text, made / file.name)
            count = len(list(made.glob("*.dot")))
        self._written("chains", f"{count} chains, as GraphML and DOT")

    def flent(self) -> None:
        from twinbed.exporting import flent
        from twinbed.exporting.folder import part

        if not any(self.store.table(name).num_rows for name in flent.TABLES):
            self._without("flent", "no run recorded a time series", "use the workload iperf3 or the instrument latency")
            return
        with part(self.output, "flent") as made:
            count = flent.write(self.opened, made, progress("flent's files"))
        self._written("flent", f"{count} runs")

    def metrics(self) -> None:
        from twinbed.exporting import reimport
        from twinbed.exporting.folder import part

        if not self.store.table("metrics").num_rows:
            self._without("metrics", "no run has a metric", "see in the report why runs failed")
            return
        with part(self.output, "metrics") as made:
            count = reimport.write(self.opened, made)
        rest = len(self.store.records) - count
        left_out = f"; {rest} without values left out" if rest else ""
        self._written("metrics", f"{count} runs, and {reimport.MANIFEST}{left_out}")

    def _written(self, name: str, what: str) -> None:
        self.written.append(str(self.output / name))
        say(f"{self.output / name}: {what}")

    def _without(self, name: str, reason: str, advice: str) -> bool:
        if not self.everything:
            raise TwinbedError(f"{self.store.outline.name} has no {name}: {reason}", advice=advice)
        self.without[name] = reason
        say(f"no {name}: {reason}")
        return True


def progress(what: str) -> Callable[[int, int], None]:
    """Return a callback that shows progress on a terminal."""

    def on_progress(done: int, total: int) -> None:
        say_progress(what, done, total)

    return on_progress
