"""Objects of a bucket: each is named by the hash of its bytes; hash and size are verified when it is read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from twinbed.model.error import TwinbedError
from twinbed.model.json import Document, dataclass_of
from twinbed.results.bucket.address import Address
from twinbed.results.bucket.keeper import MOST_NAMES, Folder, Keeper, TooLarge, TooMany
from twinbed.tree import NotPlain

MOST_BYTES = 2**31
"""The most bytes of an object that is read: a publisher begins another at 32 MiB, and a catalogue of 500,000 runs has some
hundred."""
_OBJECTS = "objects"
_DIGEST_BYTES = 20
_NAME = re.compile(rf"{_OBJECTS}/[0-9a-f]{{{2 * _DIGEST_BYTES}}}")
_PART_BYTES = 2**20
_PUBLISH_AGAIN = "publish again from the folder to another prefix"

T = TypeVar("T")


class BucketError(TwinbedError):
    """A bucket cannot be read or written, or holds something else than was put there."""


class TooLargeObject(BucketError):
    """An object has more bytes than allowed."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object: its name and size."""

    name: str
    bytes: int

    def to_json(self) -> dict[str, str | int]:
        return {"name": self.name, "bytes": self.bytes}

    @classmethod
    def from_json(cls, data: Document) -> Stored:
        """Read a listed object. Raises ValueError, LookupError or TypeError for one that no publisher lists."""
        stored = dataclass_of(cls, data)
        if _NAME.fullmatch(stored.name) is None:
            raise ValueError(f"{stored.name!r:.80} is not a valid object name")
        if not 0 <= stored.bytes <= MOST_BYTES:
            raise ValueError(f"{stored.name} has a stated size of {stored.bytes:,} bytes; at most {MOST_BYTES:,} are read")
        return stored


class Objects:
    """The objects of one address. Every method raises BucketError; FileNotFoundError only if stated."""

    def __init__(self, address: Address) -> None:
        self.address = address
        url = str(address)
        self._failures: tuple[type[Exception], ...] = (OSError, ValueError)
        if url.startswith("file:"):
            self._keeper: Keeper = self._asked(lambda: Folder(Path(url.removeprefix("file://"))))
            return
        try:
            from obstore.exceptions import BaseError

            from twinbed.results.bucket.remote import Remote
        except ModuleNotFoundError:
            raise BucketError(
                f"{address}: the library that reads such addresses is not installed", advice="pip install 'twinbed[bucket]'"
            ) from None
        self._failures += (BaseError,)
        self._keeper = self._asked(lambda: Remote(url))

    def names(self, folder: str) -> list[str]:
        """Return the names of all objects below a folder, from the prefix on, sorted."""
        return self._asked(lambda: self._keeper.names(folder), folder)

    def read(self, name: str, most: int) -> memoryview:
        """Return a whole object of at most so many bytes. Raises FileNotFoundError if there is none."""
        return self._asked(lambda: self._keeper.read(name, most), name, most)

    def checked(self, stored: Stored) -> memoryview:
        """Return a whole object that was put by its hash. Raises BucketError if its bytes differ, or it is missing."""
        try:
            content = self.read(stored.name, stored.bytes)
        except FileNotFoundError:
            raise self._damaged(f"{stored.name} is missing") from None
        if len(content) != stored.bytes or _named(hashlib.blake2b(content, digest_size=_DIGEST_BYTES)) != stored.name:
            raise self._damaged(f"{stored.name} differs from what was put there ({len(content):,} of {stored.bytes:,} bytes)")
        return content

    def put(self, content: bytes | memoryview) -> Stored:
        """Put an object under the hash of its bytes; repeating this changes nothing."""
        stored = Stored(_named(hashlib.blake2b(content, digest_size=_DIGEST_BYTES)), len(content))
        self._asked(lambda: self._keeper.put(stored.name, content), stored.name)
        return stored

    def put_file(self, file: Path) -> Stored:
        """Put a file in the same way; a large one is sent in parts."""
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        with file.open("rb") as stream:
            while part := stream.read(_PART_BYTES):
                digest.update(part)
        stored = Stored(_named(digest), file.stat().st_size)
        self._asked(lambda: self._keeper.put(stored.name, file), stored.name)
        return stored

    def create(self, name: str, content: bytes) -> bool:
        """Put an object if there is none of that name; return whether this one is there now. A lost answer leaves no doubt: the
        existing object is compared."""
        if self._asked(lambda: self._keeper.create(name, content), name):
            return True
        try:
            return self.read(name, len(content)) == content
        except TooLargeObject:
            return False

    def _asked(self, work: Callable[[], T], name: str = "", most: int = 0) -> T:
        try:
            return work()
        except FileNotFoundError:
            raise
        except TooLarge as error:
            raise TooLargeObject(
                f"{self.address}: {name} has {error.bytes:,} bytes, more than the allowed {most:,}",
                advice=_PUBLISH_AGAIN,
            ) from error
        except TooMany as error:
            raise BucketError(
                f"{self.address}: {name} has more than {MOST_NAMES:,} objects", advice="remove older ones"
            ) from error
        except NotPlain as error:
            raise BucketError(
                f"{self.address}: {name} {error.strerror}",
                advice="check who may write there, and publish again to another prefix",
            ) from error
        except TimeoutError as error:
            raise BucketError(
                f"{self.address}: {name} did not arrive in time",
                advice="try again later, or over a faster connection",
            ) from error
        except self._failures as error:
            raise self._failed(error, name) from error

    def _failed(self, error: Exception, name: str) -> BucketError:
        reason = str(error).partition("\n")[0]
        if isinstance(error, OSError) and error.strerror:
            reason = f"{name or 'the folder'}: {error.strerror}"
        denied = any(status in reason for status in (" 401 ", " 403 "))
        advice = "give credentials in the environment, such as AWS_ACCESS_KEY_ID" if denied else "try again later"
        return BucketError(f"{self.address}: {reason}", advice=advice)

    def _damaged(self, what: str) -> BucketError:
        return BucketError(f"{self.address}: {what}", advice=_PUBLISH_AGAIN)


def _named(digest: hashlib.blake2b) -> str:
    return f"{_OBJECTS}/{digest.hexdigest()}"


def stored_all(data: Mapping[str, Sequence[Document]]) -> dict[str, tuple[Stored, ...]]:
    """Read lists of objects. Each counts once, however often it is listed: objects without rows are alike."""
    return {name: tuple(dict.fromkeys(Stored.from_json(stored) for stored in of_name)) for name, of_name in data.items()}
