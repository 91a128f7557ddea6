"""What keeps objects by name: a folder, or a server that obstore speaks to."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

MOST_NAMES = 1_000_000
"""In one folder of a bucket that is listed."""


class TooLarge(Exception):
    """An object has more bytes than asked for: as many as it says, or as came."""

    def __init__(self, bytes: int) -> None:
        super().__init__(bytes)
        self.bytes = bytes


class TooMany(Exception):
    """There are more names than MOST_NAMES."""


class Keeper(Protocol):
    """A store of objects, which several threads may ask at once."""

    def names(self, folder: str) -> list[str]:
        """Names of all objects below a folder, from the prefix on, sorted. Raises TooMany."""
        ...

    def read(self, name: str, most: int) -> memoryview:
        """A whole object. Raises FileNotFoundError where there is none, TooLarge where it has more than ``most`` bytes; no more
        than those are held."""
        ...

    def put(self, name: str, content: bytes | memoryview | Path) -> None:
        """Put an object in place of what there is of that name."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Put an object on the condition that there is none of that name; whether there was none."""
        ...
