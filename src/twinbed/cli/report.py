"""`twinbed report`: write results as one HTML page, or as Markdown, LaTeX or CSV."""

from __future__ import annotations

from pathlib import Path

import click

from twinbed.terminal import say, say_text


@click.command(name="report")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write; - is standard output. Default: RESULTS/report.*, or NAME-report.* for an archive or an address.",
)
@click.option("--html", "style", flag_value="html", default="html", help="One self-contained page (default).")
@click.option("--markdown", "style", flag_value="markdown", help="Markdown with GitHub's tables.")
@click.option(
    "--latex", "style", flag_value="latex", help="LaTeX tables to \\input; they need the packages booktabs and longtable."
)
@click.option("--csv", "style", flag_value="csv", help="Every comparison of every metric, one per row, in base units.")
@click.option(
    "--tables-csv", "style", flag_value="tables-csv", help="The study's own tables, one number per row, in base units."
)
@click.option("--by", metavar="FACTOR", help="Compare the levels of this factor, as `twinbed compare --by`.")
@click.option("--reference", metavar="NAME", help="The testbed or level to compare with. Default: the study's reference.")
@click.option("--all-settings", is_flag=True, help="Include runs with settings that the study no longer has.")
def command(results: Path, output: Path | None, style: str, by: str | None, reference: str | None, all_settings: bool) -> int:
    """Write RESULTS as one page: the verdict, then each layer, then the evidence.

    \b
    Examples:
      twinbed report results/quickstart
      twinbed report results/quickstart --markdown -o -
      twinbed report results/nic-survey --by nic --reference e1000

    The page opens from disk without a network. The name of the file is printed.
    """
    from twinbed import registry
    from twinbed.cli.envelope import tell
    from twinbed.cli.extraction import extracted
    from twinbed.cli.on import executor
    from twinbed.render.output import write
    from twinbed.report.styles import SUFFIXES, rendered
    from twinbed.results.bucket.address import address_of

    tables = extracted(results, all_settings=all_settings)
    compare = registry.analysis("compare")
    to_standard = output is not None and str(output) == "-"
    if address := address_of(results):
        base = Path(f"{address.name}-report")
    else:
        base = results / "report" if results.is_dir() else results.with_name(f"{results.stem}-report")
    file = output or base.with_name(base.name + SUFFIXES[style])
    result = compare.run_on(executor(), tables, compare.params(by=by, reference=reference))
    text = rendered(style, tables, result, None if to_standard else file)
    if to_standard:
        tell({"written": [], "text": text})
        say_text(text)
        return 0
    write(text, file, below=results if output is None and results.is_dir() else None)
    tell({"written": [str(file)]})
    say(str(file))
    return 0
