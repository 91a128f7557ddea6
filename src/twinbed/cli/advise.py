"""`twinbed advise`: rules of thumb from results, with their evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.pages import write_text
from twinbed.terminal import as_json, one_line

if TYPE_CHECKING:
    from twinbed.report.advice.result import Advice

SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}


@click.command(name="advise", epilog="docs/advise.md explains what is tested, and which evidence each sentence needs.")
@click.argument("results", metavar="RESULTS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--margin", metavar="SHARE", help="Largest difference that counts as equivalent, such as 10%. Default: each study's."
)
@click.option("--reference", metavar="TESTBED", help="The testbed to compare with. Default: each study's reference.")
@click.option(
    "--error",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Largest chance that any rule is wrong.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Test every metric, not only headlines: more tests, so fewer are significant."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "markdown", "html"]),
    help="Format to print. Default: by the name of -o, else text.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write. Default: standard output.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    results: tuple[Path, ...],
    margin: str | None,
    reference: str | None,
    error: float,
    everything: bool,
    style: str | None,
    output: Path | None,
) -> int:
    """Print rules of thumb from RESULTS: which testbed can replace which, what settings change, how many pairs fit.

    A rule is printed only where the data prove it. The chance that any rule is wrong is at most --error, for all rules
    together. For everything else, the output names how many runs would decide it.

    \b
    Examples:
      twinbed advise results/nic-survey
      twinbed advise results/nic-survey --margin 5%
      twinbed advise results/nic-survey results/oversubscription -o advice.html
    """
    from twinbed.model.error import TwinbedError
    from twinbed.model.units import QuantityError, parse_share
    from twinbed.render.output import put
    from twinbed.report.advice.analysis import advise
    from twinbed.report.advice.study import Settings

    try:
        share = None if margin is None else parse_share(margin)
    except QuantityError as wrong:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="give 10% or 0.1") from wrong
    asked = Settings(share or None, error, everything, reference)
    advice = advise([inputs.tables(folder, reference) for folder in dict.fromkeys(results)], asked, inputs.executor)
    write_text(lambda: _html(advice), results[0], of_one=len(results) == 1)
    chosen = style or SUFFIXES.get(output.suffix.lower() if output else "", "text")
    put(STYLES[chosen](advice), output)
    return codes.DONE


def _text(advice: Advice) -> str:
    from twinbed.report.advice.text import text

    return "".join(f"{one_line(line)}\n" for line in text(advice))


def _markdown(advice: Advice) -> str:
    from twinbed.report.advice.text import markdown

    return "".join(f"{line}\n" for line in markdown(advice))


def _json(advice: Advice) -> str:
    from twinbed.report.advice.rows import document

    return as_json(document(advice), allow_nan=False) + "\n"


def _html(advice: Advice) -> str:
    from twinbed.report.advice.page import page

    return page(advice)


STYLES: Mapping[str, Callable[[Advice], str]] = {"text": _text, "json": _json, "markdown": _markdown, "html": _html}
