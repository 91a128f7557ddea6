"""Several files as one piece of bytes: a line of JSON, their names and sizes in bytes, then their contents."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from twinbed.executor.protocol import BadAnswer
from twinbed.model.json import loads

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_MOST_FILES = 10_000


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return the files as one piece of bytes."""
    sizes = json.dumps({name: len(content) for name, content in files.items()})
    return b"".join([sizes.encode(), b"\n", *files.values()])


def unpacked(content: bytes) -> dict[str, bytes]:
    """Return the files in a piece of bytes from a worker. Names lead to no other folder. Raises BadAnswer."""
    end = content.find(b"\n", 0, _MOST_FILES * 120)
    try:
        sizes = loads(content[: max(end, 0)])
    except ValueError as error:
        raise BadAnswer(f"a worker's answer is not a list of files: {error}") from None
    if not isinstance(sizes, dict) or len(sizes) > _MOST_FILES:
        raise BadAnswer(f"a worker's answer is not a list of at most {_MOST_FILES:,} files")
    if strange := [name for name, size in sizes.items() if not (_NAME.fullmatch(name) and type(size) is int and size >= 0)]:
        raise BadAnswer(f"a worker's answer has a file with the invalid name {strange[0][:80]!r}, or without a size")
    if sum(sizes.values()) != len(content) - end - 1:
        raise BadAnswer(f"a worker's answer has {len(content) - end - 1:,} bytes of files, not {sum(sizes.values()):,}")
    files: dict[str, bytes] = {}
    start = end + 1
    for name, size in sizes.items():
        files[name] = content[start : start + size]
        start += size
    return files
