"""A bucket of objects, or a folder that is used as one: what is put there is named by the hash of its bytes, and held to it
when it is read.  One library for S3, Google's, Azure's and a folder (``obstore``), as it has puts on condition for all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from twinbed.model.error import TwinbedError
from twinbed.model.json import Document, integer, text
from twinbed.results.bucket.address import Address

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_OBJECTS = "objects"
_DIGEST_BYTES = 20
_PART_BYTES = 2**20
_CLIENT: ClientConfig = {
    "connect_timeout": timedelta(seconds=10),
    "read_timeout": timedelta(seconds=30),
    "timeout": timedelta(minutes=10),
    # Whoever gives an address without TLS, such as of a server of their own, means it: there is none by default.
    "allow_http": True,
}
_RETRY: RetryConfig = {"max_retries": 6, "retry_timeout": timedelta(minutes=2)}

T = TypeVar("T")


class BucketError(TwinbedError):
    """A bucket cannot be read or written, or what is in it is not what was put there."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object: its name, and how many bytes it has."""

    name: str
    bytes: int

    def to_json(self) -> dict[str, str | int]:
        return {"name": self.name, "bytes": self.bytes}

    @classmethod
    def from_json(cls, data: Document) -> Stored:
        return cls(text(data["name"]), integer(data["bytes"]))


class Objects:
    """The objects of one address. Every method raises BucketError, FileNotFoundError only where it says so."""

    def __init__(self, address: Address) -> None:
        self.address = address
        try:
            import obstore
            from obstore import exceptions
            from obstore.store import LocalStore, from_url
        except ModuleNotFoundError:
            raise BucketError(
                f"{address}: the library that reads such addresses is not installed", advice="pip install 'twinbed[bucket]'"
            ) from None
        self._obstore = obstore
        self._failures = (exceptions.BaseError, OSError, ValueError)
        url = str(address)
        if url.startswith("file:"):
            self._store: ObjectStore = self._asked(lambda: LocalStore(Path(url.removeprefix("file://")), mkdir=True))
        else:
            self._store = self._asked(lambda: from_url(url, client_options=_CLIENT, retry_config=_RETRY))

    def names(self, folder: str) -> list[str]:
        """Names of all objects below a folder, from the prefix on, sorted."""

        def listed() -> list[str]:
            return sorted(each["path"] for page in self._obstore.list(self._store, folder) for each in page)

        return self._asked(listed)

    def read(self, name: str) -> memoryview:
        """A whole object. Raises FileNotFoundError where there is none."""
        return self._asked(lambda: memoryview(self._obstore.get(self._store, name).bytes()))

    def checked(self, stored: Stored) -> memoryview:
        """A whole object that was put by its hash. Raises BucketError where its bytes are others, or it is not there."""
        try:
            content = self.read(stored.name)
        except FileNotFoundError:
            raise self._damaged(f"{stored.name} is missing") from None
        if len(content) != stored.bytes or _named(hashlib.blake2b(content, digest_size=_DIGEST_BYTES)) != stored.name:
            raise self._damaged(f"{stored.name} is not what was put there ({len(content):,} of {stored.bytes:,} bytes)")
        return content

    def put(self, content: bytes | memoryview) -> Stored:
        """Put an object under the hash of its bytes; doing it again changes nothing."""
        stored = Stored(_named(hashlib.blake2b(content, digest_size=_DIGEST_BYTES)), len(content))
        self._asked(lambda: self._obstore.put(self._store, stored.name, content))
        return stored

    def put_file(self, file: Path) -> Stored:
        """The same of a file, which is sent in parts where it is large."""
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        with file.open("rb") as stream:
            while part := stream.read(_PART_BYTES):
                digest.update(part)
        stored = Stored(_named(digest), file.stat().st_size)
        self._asked(lambda: self._obstore.put(self._store, stored.name, file))
        return stored

    def create(self, name: str, content: bytes) -> bool:
        """Put an object on the condition that there is none of that name; whether this one is there now. An answer that was
        lost on the way is no doubt: what is there is looked at."""
        from obstore.exceptions import AlreadyExistsError

        try:
            self._obstore.put(self._store, name, content, mode="create")
        except AlreadyExistsError:
            return bytes(self.read(name)) == content
        except self._failures as error:
            raise self._failed(error) from error
        return True

    def _asked(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except FileNotFoundError:
            raise
        except self._failures as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> BucketError:
        reason = str(error).partition("\n")[0]
        denied = any(status in reason for status in (" 401 ", " 403 "))
        advice = "give credentials in the environment, such as AWS_ACCESS_KEY_ID" if denied else "try again later"
        return BucketError(f"{self.address}: {reason}", advice=advice)

    def _damaged(self, what: str) -> BucketError:
        return BucketError(f"{self.address}: {what}", advice="publish again from the folder to another prefix")


def _named(digest: hashlib.blake2b) -> str:
    return f"{_OBJECTS}/{digest.hexdigest()}"


def stored_all(data: Mapping[str, Sequence[Document]]) -> dict[str, tuple[Stored, ...]]:
    return {name: tuple(Stored.from_json(each) for each in of_name) for name, of_name in data.items()}
