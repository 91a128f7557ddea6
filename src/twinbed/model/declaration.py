"""What a declaration of a setting says besides its type, default and sentence: marks for ``Annotated``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextAlone:
    """Of a mapping: where a text stands in its place, it is this one of its settings."""

    setting: str


@dataclass(frozen=True, slots=True)
class Also:
    """Other words by which a setting is looked for. None of them is its name: who writes one is told the name."""

    words: tuple[str, ...]
