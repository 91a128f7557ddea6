"""How many fit, on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from twinbed.report.scaling.result import Scaling
from twinbed.report.scaling.words import recommendations, statements


def print_scaling(found: Scaling, console: Console) -> None:
    """Prints how many fit: what to do, and what is known of each objective."""
    _print(console, "\nHow many fit", "bold")
    for text in recommendations(found):
        _print(console, f"{text}.")
    for text in statements(found):
        _print(console, f"  {text}", "dim")


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style), highlight=False)
