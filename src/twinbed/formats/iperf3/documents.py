"""The JSON documents of a text: one or several, with other lines between them, streamed by events, or cut."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinbed.model.format import Flaw
from twinbed.reading.load import SHOWN, line_of

_START = re.compile(
    r'\{\s*"(?:(?:start|end)"\s*:\s*\{|intervals"\s*:\s*\[|(?:event|title|extra_data|error)"\s*:\s*")',
)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_NOT_A_NUMBER = re.compile(r"(?<=[:\[,\s])-?(?:nan|inf(?:inity)?)(?=\s*[,\]}])", re.IGNORECASE)
_CLOSED = ("{", "{[", "{{", "{{[")
"""Where a part is whole: members of the document, its intervals, and the same of the server's within it."""
_OPENS, _CLOSES = {"}": "{", "]": "["}, {"{": "}", "[": "]"}


@dataclass(slots=True)
class Document:
    """``cut``: it ends before its end."""

    content: dict[str, Any]
    line: int
    flaws: list[Flaw] = field(default_factory=list)
    cut: bool = False
    unreal: bool = False
    """Whether there are numbers such as nan."""


def documents(text: str) -> Sequence[Document]:
    """All documents in order, each with the flaws before and in it; the last one's with those behind it."""
    found: list[Document] = []
    waiting: list[Flaw] = []
    streamed: Document | None = None
    for piece in _pieces(text):
        if isinstance(piece, Flaw):
            waiting.append(piece)
            continue
        event = piece.content.get("event")
        if not isinstance(event, str):
            if streamed is not None and _cookie(streamed) is not None and _cookie(streamed) == _cookie(piece):
                # With --json-stream-full-output the same once more, as a whole.
                piece.flaws = [*found.pop().flaws, *piece.flaws]
            streamed = None
            found.append(piece)
        elif event == "start" or streamed is None:
            streamed = Document({"intervals": [], "end": {}}, piece.line, piece.flaws, cut=True)
            found.append(streamed)
        if streamed is not None:
            _take(streamed, str(event), piece)
            streamed.flaws += waiting
        else:
            piece.flaws += waiting
        waiting = []
    if found:
        found[-1].flaws += waiting
    for each in found:
        if each.cut:
            each.flaws.append(
                Flaw("the document is cut: there is only what its whole parts say", line_of_end(text, each, found))
            )
    return found


def line_of_end(text: str, document: Document, found: Sequence[Document]) -> int:
    """The last line that a cut document can have."""
    later = [each.line for each in found if each.line > document.line]
    return max(document.line, later[0] - 1) if later else line_of(text.rstrip("\n"), len(text))


def _cookie(document: Document) -> object:
    """What iperf3 names a test by."""
    start = document.content.get("start")
    return start.get("cookie") if isinstance(start, dict) else None


def _take(streamed: Document, event: str, piece: Document) -> None:
    data = piece.content.get("data")
    if piece is not streamed and piece.flaws is not streamed.flaws:
        streamed.flaws += piece.flaws
    if event == "interval":
        streamed.content["intervals"].append(data)
    else:
        streamed.content[event] = data
    if event == "end":
        streamed.cut = False


def _pieces(text: str) -> Iterator[Document | Flaw]:
    """Documents and events; and flaws for all text that is neither."""
    at = 0
    while at < len(text):
        start = _next(text, at)
        if start is None:
            yield from _other(text, at, len(text))
            return
        yield from _other(text, at, start)
        read = _decoded(text, start)
        if read is None:
            after = _next(text, start + 1)
            part = text[start:after]
            saved = _salvaged(part)
            if saved is None or (saved[0].cut and "event" in saved[0].content):
                yield Flaw(f"is cut or damaged: {part[:SHOWN]!r}", line_of(text, start))
                at = start + len(part)
                continue
            read = saved[0], start + saved[1]
        document, at = read
        document.line = line_of(text, start)
        if document.unreal and (number := _NOT_A_NUMBER.search(text, start, at)) is not None:
            document.flaws.append(Flaw(f"is not a number, and others may not be: {number[0]}", line_of(text, number.start())))
        yield document


def _next(text: str, at: int) -> int | None:
    """Where a document starts that is no part of another: no member's value."""
    while (found := _START.search(text, at)) is not None:
        before = text[max(0, found.start() - SHOWN) : found.start()].rstrip()
        if not (before.endswith(":") and before[:-1].rstrip().endswith('"')):
            return found.start()
        at = found.start() + 1
    return None


def _decoded(text: str, at: int) -> tuple[Document, int] | None:
    """The document at a place, and where it ends."""
    unreal: list[str] = []
    try:
        content, end = json.JSONDecoder(parse_constant=unreal.append).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return (Document(content, 0, unreal=bool(unreal)), end) if isinstance(content, dict) else None


def _salvaged(part: str) -> tuple[Document, int] | None:
    """What is whole of a damaged document: numbers that old versions print as nan are missing, and a cut one ends with its last
    whole part."""
    part = _NOT_A_NUMBER.sub(lambda found: "NaN".ljust(len(found[0])), part)
    read = _decoded(part, 0)
    if read is not None:
        return read
    stack: list[str] = []
    end, closers = 0, ""
    for token in _TOKEN.finditer(part):
        mark = token[0]
        if mark in "{[":
            stack.append(mark)
        elif mark in "}]":
            if not stack or stack.pop() != _OPENS[mark]:
                break
            if len(stack) <= len(_CLOSED[-1]) and "".join(stack) in _CLOSED:
                end, closers = token.end(), "".join(_CLOSES[each] for each in reversed(stack))
    read = _decoded(part[:end] + closers, 0) if end else None
    if read is None:
        return None
    read[0].cut = True
    return read[0], len(part)


def _other(text: str, start: int, end: int) -> Iterator[Flaw]:
    """Text that is no document, but for what joins the elements of a list."""
    part = text[start:end]
    lines = [line for line in part.split("\n") if line.strip(" \t,[]")]
    if lines:
        first = start + part.index(lines[0])
        more = f" (and {len(lines) - 1} lines more)" if len(lines) > 1 else ""
        yield Flaw(f"is no document of iperf3: {lines[0].strip()[:SHOWN]!r}{more}", line_of(text, first))
