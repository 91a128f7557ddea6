"""The protocol of a store that keeps objects by name: a folder, or a server that obstore speaks to.

A folder used as a bucket. It may be a stranger's: a Tree reads only plain files, and never writes through a link.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from twinbed.tree import Tree

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
        """Return a whole object, and hold no more than ``most`` bytes. Raises FileNotFoundError if there is none, TooLarge if
        it has more bytes."""
        ...

    def put(self, name: str, content: bytes | memoryview | Path) -> None:
        """Put an object in place of an existing one of that name."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Put an object if there is none of that name; return whether there was none."""
        ...


_PART_BYTES = 2**20


class Folder:
    """Objects as files, ``<folder>/<name>``. Every method raises OSError, of which NotPlain is one."""

    def __init__(self, path: Path) -> None:
        self._tree = Tree(path)

    def names(self, folder: str) -> list[str]:
        names = [f"{folder}/{name}" for name in self._tree.entries(folder)]
        if len(names) > MOST_NAMES:
            raise TooMany
        return names

    def read(self, name: str, most: int) -> memoryview:
        content = bytearray()
        with self._tree.open(name) as stream:
            if (size := _size(stream)) > most:
                raise TooLarge(size)
            while part := stream.read(_PART_BYTES):
                content += part
                if len(content) > most:
                    raise TooLarge(len(content))  # it grew meanwhile
        return memoryview(content)

    def put(self, name: str, content: bytes | memoryview | Path) -> None:
        with self._written(name, content) as partial:
            self._tree.rename(partial, name)

    def create(self, name: str, content: bytes) -> bool:
        with self._written(name, content) as partial:
            try:
                self._tree.link(partial, self._tree, name)
            except FileExistsError:
                return False
        return True

    @contextlib.contextmanager
    def _written(self, name: str, content: bytes | memoryview | Path) -> Iterator[str]:
        """Yield the name of a synced file with this content. Several may write the same object."""
        self._tree.path.mkdir(parents=True, exist_ok=True)
        folder = name.rpartition("/")[0]
        self._tree.make(folder)
        partial = f"{folder}/.{secrets.token_hex(8)}.partial"
        try:
            with self._tree.create(partial) as sink:
                for part in _parts(content):
                    sink.write(part)
                sink.flush()
                os.fsync(sink.fileno())
            yield partial
            self._tree.sync(folder)
        finally:
            self._tree.remove(partial)


def _size(stream: BinaryIO) -> int:
    return os.fstat(stream.fileno()).st_size


def _parts(content: bytes | memoryview | Path) -> Iterator[bytes | memoryview]:
    if not isinstance(content, Path):
        yield content
        return
    with content.open("rb") as stream:
        while part := stream.read(_PART_BYTES):
            yield part
