"""A number of things in a sentence."""

from __future__ import annotations


def amount(number: int, of_one: str, of_several: str = "") -> str:
    """Return the number with its noun: ``1 packet``, ``1,204 packets``. ``of_several`` is a plural that has no s."""
    return f"{number:,} {of_one if number == 1 else of_several or f'{of_one}s'}"
