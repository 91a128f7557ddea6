"""The artifacts that are kept of a run once its rows are made: ``keep`` of a study file, and of ``twinbed prune``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from twinbed.model.json import Json

DEFAULT = "default"
"""The name for all that are not named."""
REST = "the rest"
"""Artifacts of no workload, instrument or background load: consoles, kernel logs, link checks."""


class Word(StrEnum):
    """How much is kept, from most to least."""

    EVERYTHING = "everything"
    """Every artifact, as it was collected."""
    HEADERS = "headers"
    """The packets' headers of captures, compressed; other artifacts stay."""
    TABLES = "tables"
    """The rows of all tables, and no artifact."""


@dataclass(frozen=True, slots=True)
class Keep:
    """A word for the artifacts of each workload, instrument and background load."""

    default: Word = Word.EVERYTHING
    of: Mapping[str, Word] = field(default_factory=dict)
    """Name -> its word, if it is not the default."""

    def word(self, name: str) -> Word:
        return self.of.get(name, self.default)

    @property
    def everything(self) -> bool:
        return {self.default, *self.of.values()} == {Word.EVERYTHING}

    def __str__(self) -> str:
        """Return ``tables``, or ``packets=tables, default=everything``."""
        named = [f"{name}={word}" for name, word in sorted(self.of.items())]
        return ", ".join([*named, f"{DEFAULT}={self.default}"]) if named else str(self.default)

    def to_json(self) -> Json:
        return (
            {**{name: str(word) for name, word in self.of.items()}, DEFAULT: str(self.default)}
            if self.of
            else str(self.default)
        )
