"""The protocol of a store that keeps objects by name: a folder, or a server that obstore speaks to."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

MOST_NAMES = 1_000_000
"""The most names in one folder of a bucket."""


class TooLarge(Exception):
    """An object has more bytes than allowed: as many as it claims, or as came."""

    def __init__(self, bytes: int) -> None:
        super().__init__(bytes)
        self.bytes = bytes


class TooMany(Exception):
    """There are more names than MOST_NAMES."""


class Keeper(Protocol):
    """A store of objects, which several threads may ask at once."""

    def names(self, folder: str) -> list[str]:
        """Return the names of all objects below a folder, from the prefix on, sorted. Raises TooMany."""
        ...

    def read(self, name: str, most: int) -> memoryview:
        """Return a whole object, and hold no more than ``most`` bytes.

        Raises FileNotFoundError if there is none, TooLarge if it has more bytes.
        """
        ...

    def put(self, name: str, content: bytes | memoryview | Path) -> None:
        """Put an object in place of an existing one of that name."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Put an object if there is none of that name; return whether there was none."""
        ...
