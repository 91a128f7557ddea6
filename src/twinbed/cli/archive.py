"""`twinbed archive`: pack results into one file for artifact evaluation."""

from __future__ import annotations

import re
from pathlib import Path

import click

from twinbed.contracts import exit_codes as codes
from twinbed.model.amount import amount
from twinbed.terminal import say, say_progress


@click.command(name="archive")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write. Default: RESULTS.zip.")
@click.option(
    "--raw/--no-raw", default=True, show_default=True, help="Include the raw artifacts, from which everything else can be made."
)
@click.option("--author", "authors", multiple=True, metavar="NAME", help="An author of the results; may be repeated.")
@click.option("--title", metavar="TEXT", help="Title of the results. Default: the study's name.")
@click.option(
    "--license", "licence", metavar="SPDX", help="Licence of the results: an SPDX identifier such as CC-BY-4.0, or an address."
)
def command(
    results: Path, output: Path | None, raw: bool, authors: tuple[str, ...], title: str | None, licence: str | None
) -> int:
    """Pack RESULTS into one zip file for artifact evaluation or a repository.

    The file holds the study, every run with its settings and passport, tables, report, raw artifacts, software versions (an
    RO-Crate), checksums and a citation file. The same results give the same file.

    Commands that read results also read the file: `twinbed report study.zip` writes the identical page anywhere.

    \b
    Examples:
      twinbed archive results/quickstart --author "A. Author" --license CC-BY-4.0
      twinbed archive results/quickstart --no-raw -o small.zip      tables and settings alone
      twinbed report small.zip                                      on another machine
    """
    import twinbed
    from twinbed import registry
    from twinbed.cli.envelope import tell
    from twinbed.cli.extraction import extracted
    from twinbed.cli.on import executor
    from twinbed.model.error import TwinbedError
    from twinbed.report.styles import rendered
    from twinbed.results.archive.crate import Authorship
    from twinbed.results.archive.pack import pack

    if licence and not re.fullmatch(r"[A-Za-z0-9.+-]+|https?://\S+", licence):
        raise TwinbedError(
            f"--license {licence!r} is neither an SPDX identifier nor an address",
            advice="give one such as CC-BY-4.0; spdx.org/licenses lists them",
        )

    def progress(done: int, total: int) -> None:
        say_progress("packing", done, total, "files", stays=True)

    store = extracted(results, all_settings=True)
    if store.published:
        raise TwinbedError(f"{store.shown} is in a bucket", advice="archive the results folder that was published")
    facts: dict[tuple[str, str], list[str]] = {}
    table = store.table("facts")
    if table.num_rows:
        for place, fact, value in sorted(
            set(zip(*(table[name].to_pylist() for name in ("place", "fact", "value")), strict=True))
        ):
            facts.setdefault((place, fact), []).append(value)
    current = store.as_it_stands()
    page = rendered("html", current, registry.analysis("compare").run_on(executor(), current))
    file = output or results.resolve().with_name(f"{results.resolve().name}.zip")
    authorship = Authorship(authors, licence, title)
    try:
        files = pack(
            store, facts, page, file, raw=raw, authorship=authorship, version=twinbed.__version__, on_progress=progress
        )
    except OSError as error:
        raise TwinbedError(f"{file} cannot be written: {error.strerror}", advice="choose another with -o") from error
    tell({"written": [str(file)], "files": files, "bytes": file.stat().st_size})
    say(f"{file}: {amount(files, 'file')}, {file.stat().st_size:,} bytes")
    return codes.DONE
