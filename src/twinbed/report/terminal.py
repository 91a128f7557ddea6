"""Print the conclusion of a study on a terminal: the verdicts, and how many fit."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.compare.conclusion import conclusions
from twinbed.analyses.compare.terminal import print_comparison
from twinbed.analyses.compare.words import nothing_compared
from twinbed.model.comparison import Comparisons
from twinbed.render.terminal import Terminal
from twinbed.show.section import Section
from twinbed.show.words import SYMBOLS


def conclusion(result: Comparisons, over_n: Section | None, console: Terminal) -> None:
    """Print the table of verdicts, and below it how many fit where the number of pairs varies."""
    print_comparison(result, console)
    if over_n:
        print_scaling(over_n, console)


def in_short(result: Comparisons, over_n: Section | None) -> Iterator[str]:
    """Yield the verdicts and how many fit, a line each."""
    of_testbeds = conclusions(result)
    yield from (f"{SYMBOLS[answer.verdict]} {answer.sentence}" for answer in of_testbeds)
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
