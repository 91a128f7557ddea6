"""What a study has shown, on a terminal: the verdicts, and how many fit."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from twinbed.analyses.compare.result import Comparisons
from twinbed.analyses.compare.terminal import verdict_table
from twinbed.report.scaling.result import Scaling
from twinbed.report.scaling.words import recommendations, statements


def conclusion(result: Comparisons, over_n: Scaling | None, console: Console) -> None:
    """Prints the table of verdicts, and below it how many fit where the number of pairs varies."""
    verdict_table(result, console)
    if over_n:
        print_scaling(over_n, console)


def print_scaling(found: Scaling, console: Console) -> None:
    """Prints how many fit: what to do, and what is known of each objective."""
    _print(console, "\nHow many fit", "bold")
    for text in recommendations(found):
        _print(console, f"{text}.")
    for text in statements(found):
        _print(console, f"  {text}", "dim")


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style), highlight=False)
