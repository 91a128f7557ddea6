"""JSON documents in a text, one after another; the last may be cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator

from twinbed.contracts.format import FormatError
from twinbed.model.json import Json, foreign

_DECODER = json.JSONDecoder()


def document(text: str | bytes) -> Json:
    """Return the one document of a text. Raises FormatError."""
    try:
        content: Json = foreign(text)
        return content
    except json.JSONDecodeError as error:
        raise FormatError(f"is not JSON: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not JSON: {error}") from None


def documents(text: str) -> Iterator[tuple[Json, int]]:
    """Yield each document and the place after it, up to one that cannot be read."""
    at = _start(text, 0)
    while at < len(text):
        try:
            content, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield content, at
        at = _start(text, at)


def elements(text: str, at: int) -> Iterator[tuple[Json, int]]:
    """Yield the whole elements of an array that begins at ``at``, after its bracket, and the place after each."""
    while True:
        at = _start(text, at)
        if at < len(text) and text[at] == ",":
            at = _start(text, at + 1)
        try:
            content, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield content, at


def line_of(text: str, at: int) -> int:
    """Return the line of a place, from 1."""
    return text.count("\n", 0, at) + 1


def _start(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n\r":
        at += 1
    return at
