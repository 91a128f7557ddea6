"""Marks for ``Annotated`` that declare more of a setting than its type, default and description."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextAlone:
    """For a mapping: a text in its place is this one of its settings."""

    setting: str


@dataclass(frozen=True, slots=True)
class NumbersToo:
    """For a text: a plain number is taken as a text."""


@dataclass(frozen=True, slots=True)
class Also:
    """Other words that users look for. None of them is the setting's name: whoever writes one gets a message with the name."""

    words: tuple[str, ...]
