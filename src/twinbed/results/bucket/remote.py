"""A bucket of S3, Google or Azure, all by one library (``obstore``), which has conditional puts.

A server may send a byte now and then, or list parts without end. Every request therefore ends after DEADLINE_S, and takes no
more than was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import from_url

from twinbed.results.bucket.keeper import MOST_NAMES, TooLarge, TooMany

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

DEADLINE_S = 600.0
"""The longest time of an object or a list: at 4 MB/s an object may have 2 GiB."""
_PART_BYTES = 2**20
_CLIENT: ClientConfig = {
    "connect_timeout": timedelta(seconds=10),
    "read_timeout": timedelta(seconds=30),
    "timeout": timedelta(seconds=DEADLINE_S),
    # Whoever gives an address without TLS, such as of a server of their own, means it: there is none by default.
    "allow_http": True,
}
_RETRY: RetryConfig = {"max_retries": 6, "retry_timeout": timedelta(minutes=2)}

T = TypeVar("T")


class Remote:
    """The objects at an address. Every method raises obstore's errors, and TimeoutError."""

    def __init__(self, url: str) -> None:
        self._store = from_url(url, client_options=_CLIENT, retry_config=_RETRY)

    def names(self, folder: str) -> list[str]:
        async def listed() -> list[str]:
            names: list[str] = []
            async for page in obstore.list(self._store, folder):
                names += (entry["path"] for entry in page)
                if len(names) > MOST_NAMES:
                    raise TooMany
            return sorted(names)

        return _in_time(listed())

    def read(self, name: str, most: int) -> memoryview:
        async def got() -> memoryview:
            answer = await obstore.get_async(self._store, name)
            if answer.meta["size"] > most:
                raise TooLarge(answer.meta["size"])
            content = bytearray()
            async for part in answer.stream(_PART_BYTES):
                content += part
                if len(content) > most:
                    raise TooLarge(len(content))
            return memoryview(content)

        return _in_time(got())

    def put(self, name: str, content: bytes | memoryview | Path) -> None:
        obstore.put(self._store, name, content)

    def create(self, name: str, content: bytes) -> bool:
        try:
            obstore.put(self._store, name, content, mode="create")
        except AlreadyExistsError:
            return False
        return True


def _in_time(work: Coroutine[object, None, T]) -> T:
    async def timed() -> T:
        return await asyncio.wait_for(work, DEADLINE_S)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(timed())
    with ThreadPoolExecutor(1) as pool:  # a notebook's thread has a loop already
        return pool.submit(asyncio.run, timed()).result()
