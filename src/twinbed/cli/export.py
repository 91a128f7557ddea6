"""`twinbed export`: results as files for papers, notebooks and other programs."""

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
@click.option("-o", "--output", required=True, metavar="DIR", type=click.Path(path_type=Path), help="The folder to make.")
@click.option("--tables", type=click.Choice(list(STYLES)), help="Every table, tidy, with a dictionary of its columns.")
@click.option("--latex", is_flag=True, help="The report's tables for LaTeX (booktabs), and every comparison as CSV.")
@click.option("--figures", is_flag=True, help="Each figure of the report: Vega-Lite JSON, SVG, PNG, PDF.")
@click.option("--chains", is_flag=True, help="Each program's chain of system calls: GraphML, DOT.")
@click.option("--flent", is_flag=True, help="Each run's series over time as a data file of flent's.")
@click.option("--metrics", is_flag=True, help="Each run's metrics as a file, and a manifest with which they can be imported.")
def command(
    results: Path, output: Path, tables: str | None, latex: bool, figures: bool, chains: bool, flent: bool, metrics: bool
) -> int:
    """Write RESULTS, a folder or an archive of one, as files for papers, notebooks and other programs. Without any flag: all
    that there is, tables as CSV and Parquet.

    The same command again makes the same parts anew and leaves others. A folder that no export made is left alone.

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
        raise TwinbedError(f"{results} has no runs", advice="run the study, or import something, first")
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
        raise TwinbedError(f"{error.filename or output} cannot be written: {reason}", advice="name another with -o") from error
    tell({"written": asked.written, "without": asked.without})
    return codes.DONE


@dataclass(frozen=True)
class _Asked:
    """The parts. One that there is nothing for is an error where it was asked for by its flag."""

    store: Store
    output: Path
    everything: bool
    written: list[str] = field(default_factory=list)
    without: dict[str, str] = field(default_factory=dict)
    """Part that there is nothing for -> why."""

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
        self._said("tables", f"{len(rows)} tables, {sum(rows.values()):,} rows, as {' and '.join(styles)}")

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
        self._said("latex", f"{', '.join(texts)}; {len(self.compared.comparisons):,} comparisons")

    def figures(self) -> None:
        from twinbed.exporting import figures
        from twinbed.exporting.folder import part
        from twinbed.render.collected import collected
        from twinbed.report.styles import rendered

        with collected() as drawn:
            rendered("html", self.store, self.compared, whole=True)
        if not drawn and self._without("figures", "its report has no figure", "they come with runs to compare"):
            return
        with part(self.output, "figures") as made:
            files = figures.write(drawn, made, progress("figures"))
        self._said("figures", f"{len(drawn)} figures, {files} files")

    def chains(self) -> None:
        from twinbed import registry
        from twinbed.exporting.folder import part
        from twinbed.render.output import write

        if not self.store.table("transitions").num_rows:
            self._without("chains", "it has no system calls", "put syscalls into the study's instruments, and run it")
            return
        with part(self.output, "chains") as made:
            for file in registry.analysis("chain").files(self.store):
                write(file.text, made / file.name)
            count = len(list(made.glob("*.dot")))
        self._said("chains", f"{count} chains, as GraphML and DOT")

    def flent(self) -> None:
        from twinbed.exporting import flent
        from twinbed.exporting.folder import part

        if not any(self.store.table(name).num_rows for name in flent.TABLES):
            self._without("flent", "it has no series over time", "the workload iperf3 and the instrument latency make some")
            return
        with part(self.output, "flent") as made:
            count = flent.write(self.opened, made, progress("flent's files"))
        self._said("flent", f"{count} runs")

    def metrics(self) -> None:
        from twinbed.exporting import reimport
        from twinbed.exporting.folder import part

        if not self.store.table("metrics").num_rows:
            self._without("metrics", "no run has any value", "the report says why runs failed")
            return
        with part(self.output, "metrics") as made:
            count = reimport.write(self.opened, made)
        rest = len(self.store.records) - count
        left_out = f"; {rest} without values left out" if rest else ""
        self._said("metrics", f"{count} runs, and {reimport.MANIFEST}{left_out}")

    def _said(self, name: str, what: str) -> None:
        self.written.append(str(self.output / name))
        say(f"{self.output / name}: {what}")

    def _without(self, name: str, reason: str, advice: str) -> bool:
        if not self.everything:
            raise TwinbedError(f"no {name} of {self.store.outline.name}: {reason}", advice=advice)
        self.without[name] = reason
        say(f"no {name}: {reason}")
        return True


def progress(what: str) -> Callable[[int, int], None]:
    """On a terminal: how many of how many."""

    def on_progress(done: int, total: int) -> None:
        say_progress(what, done, total)

    return on_progress
