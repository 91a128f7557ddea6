"""What a study has shown, on a terminal: the verdicts, and how many fit."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.compare.summary import summaries
from twinbed.analyses.compare.terminal import verdict_table
from twinbed.analyses.compare.words import SYMBOLS, nothing_compared
from twinbed.model.comparison import Comparisons
from twinbed.render.terminal import Terminal
from twinbed.show.section import Section


def conclusion(result: Comparisons, over_n: Section | None, console: Terminal) -> None:
    """Print the table of verdicts, and below it how many fit where the number of pairs varies."""
    verdict_table(result, console)
    if over_n:
        print_scaling(over_n, console)


def in_short(result: Comparisons, over_n: Section | None) -> Iterator[str]:
    """Yield the verdicts and how many fit, a line each."""
    of_testbeds = summaries(result)
    for summary in of_testbeds:
        yield f"{SYMBOLS[summary.verdict]} {summary.sentence}"
        if summary.spread_sentence:
            yield f"  {summary.spread_sentence}"
    if not of_testbeds and not over_n:
        yield f"Nothing to compare: {nothing_compared(result)}."
    yield from over_n.answers if over_n else ()


def print_scaling(fits: Section, console: Terminal) -> None:
    """Print how many fit: what to do, and what is known of each objective."""
    console.say("")
    console.say(fits.title, "bold")
    for text in fits.answers:
        console.words(text)
    for item in fits.items:
        for text in item if isinstance(item, tuple) and item != fits.answers else ():
            console.words(f"  {text}", "dim")
