"""The JSON documents of a text: one or several, with other lines between them, streamed by events, or cut."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from twinbed.contracts.format import Diagnostic, FormatError
from twinbed.imports.text.documents import line_of
from twinbed.imports.text.figures import SHOWN, unread
from twinbed.model.json import Json
from twinbed.model.members import object_at, text_at

_START = re.compile(
    r'\{\s*"(?:(?:start|end)"\s*:\s*\{|intervals"\s*:\s*\[|(?:event|title|extra_data|error)"\s*:\s*")',
)
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_NOT_A_NUMBER = re.compile(r"(?<=[:\[,\s])-?(?:nan|inf(?:inity)?)(?=\s*[,\]}])", re.IGNORECASE)
_CLOSED = ("{", "{[", "{{", "{{[")
"""Brackets that are open after a whole part: a member of the document, an interval, and the same of the server's."""
_OPENS, _CLOSES = {"}": "{", "]": "["}, {"{": "}", "[": "]"}
_EVENTS = ("start", "end", "error", "server_output_json", "server_output_text")
"""Events of a stream, besides intervals, that become members of the document."""
REVERSE = "_bidir_reverse"
"""Ending of iperf3's names for the direction from the server to the client."""
_TWICE = ("sum", "sum_sent", "sum_received")
MOST_DAMAGED = 1000
"""Cut or damaged documents; a text with more is refused."""


@dataclass(slots=True)
class Output:
    """``cut``: it ends before its end."""

    content: dict[str, Json]
    line: int
    diagnostics: list[Diagnostic] = field(default_factory=list)
    cut: bool = False
    unreal: bool = False
    """True if there are numbers such as nan."""
    intervals: list[Json] = field(default_factory=list)
    """The list of a streamed document, which is that of its content and grows."""


def documents(text: str) -> Sequence[Output]:
    """Return all documents in order, each with the diagnostics of the text before and in it; the last also of the text behind.

    Raises FormatError.
    """
    outputs: list[Output] = []
    waiting: list[Diagnostic] = []
    streamed: Output | None = None
    for piece in _pieces(text):
        if isinstance(piece, Diagnostic):
            waiting.append(piece)
            continue
        event = piece.content.get("event")
        if not isinstance(event, str):
            if streamed is not None and cookie(streamed) is not None and cookie(streamed) == cookie(piece):
                # With --json-stream-full-output the same once more, as a whole.
                piece.diagnostics = [*outputs.pop().diagnostics, *piece.diagnostics]
            streamed = None
            outputs.append(piece)
        elif event == "start" or streamed is None:
            streamed = Output({"end": {}}, piece.line, piece.diagnostics, cut=True)
            streamed.content["intervals"] = streamed.intervals
            outputs.append(streamed)
        if streamed is not None:
            _take(streamed, str(event), piece)
            streamed.diagnostics += waiting
        else:
            piece.diagnostics += waiting
        waiting = []
    if not outputs:
        return list(_within(text))
    outputs[-1].diagnostics += waiting
    after = [output.line for output in outputs[1:]]
    for part, end in zip(outputs, [*after, line_of(text.rstrip("\n"), len(text)) + 1], strict=True):
        if part.cut:
            part.diagnostics.append(Diagnostic("the document is cut; only its whole parts are read", max(part.line, end - 1)))
    return outputs


def cookie(document: Output) -> str | None:
    """Return what iperf3 names a test by."""
    return text_at(object_at(document.content, "start"), "cookie")


def _take(streamed: Output, event: str, piece: Output) -> None:
    data = piece.content.get("data")
    if piece is not streamed and piece.diagnostics is not streamed.diagnostics:
        streamed.diagnostics += piece.diagnostics
    if event == "interval":
        streamed.intervals.append(data)
    elif event in _EVENTS:
        streamed.content[event] = data
    else:
        streamed.diagnostics.append(unread(event, piece.line, "is an event that is not read"))
    if event == "end":
        streamed.cut = False


def _pieces(text: str) -> Iterator[Output | Diagnostic]:
    """Yield documents and events, and diagnostics for all other text."""
    at = counted_to = damaged = 0
    line = 1
    while at < len(text):
        start = _next(text, at)
        line, counted_to = line + text.count("\n", counted_to, at), at
        if start is None:
            yield from _other(text[at:], line)
            return
        yield from _other(text[at:start], line)
        line, counted_to = line + text.count("\n", counted_to, start), start
        read = _decoded(text, start)
        if read is None:
            after = _next(text, start + 1)
            part = text[start:after]
            saved = _salvaged(part)
            damaged += saved is None or saved[0].cut
            if damaged > MOST_DAMAGED:
                raise FormatError(f"has more than {MOST_DAMAGED} documents that are cut or damaged", line)
            if saved is None or (saved[0].cut and "event" in saved[0].content):
                yield Diagnostic(f"is cut or damaged: {part[:SHOWN]!r}", line)
                at = start + len(part)
                continue
            read = saved[0], start + saved[1]
        document, at = read
        document.line = line
        if document.unreal and (number := _NOT_A_NUMBER.search(text, start, at)) is not None:
            document.diagnostics.append(
                Diagnostic(
                    f"is not a number, and others may not be: {number[0]}", line + text.count("\n", start, number.start())
                )
            )
        yield document


def _next(text: str, at: int) -> int | None:
    """Return where a document starts that is no member's value of another."""
    while (match := _START.search(text, at)) is not None:
        before = text[max(0, match.start() - SHOWN) : match.start()].rstrip()
        if not (before.endswith(":") and before[:-1].rstrip().endswith('"')):
            return match.start()
        at = match.start() + 1
    return None


def _decoded(text: str, at: int) -> tuple[Output, int] | None:
    """Return the document at a place, and where it ends."""
    unreal: list[str] = []
    try:
        content, end = json.JSONDecoder(parse_constant=unreal.append, object_pairs_hook=_object).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return (Output(content, 0, unreal=bool(unreal)), end) if isinstance(content, dict) else None


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return the members of an object.

    With ``--bidir`` iperf3 3.7 to 3.10 writes ``sum``, ``sum_sent`` and ``sum_received`` twice. The second one gets the name
    that iperf3 3.11 gives it, ``..._bidir_reverse`` (esnet/iperf 1196)."""
    members = dict(pairs)
    if len(members) < len(pairs):
        members = {}
        for name, value in pairs:
            members[f"{name}{REVERSE}" if name in members and name in _TWICE else name] = value
    return members


def _salvaged(part: str) -> tuple[Output, int] | None:
    """Return the whole parts of a damaged document, and where it ends.

    Numbers that old versions print as nan are missing; a cut document ends with its last whole part.
    """
    part = _NOT_A_NUMBER.sub(lambda match: "NaN".ljust(len(match[0])), part)
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
                end, closers = token.end(), "".join(_CLOSES[bracket] for bracket in reversed(stack))
    read = _decoded(part[:end] + closers, 0) if end else None
    if read is None:
        return None
    read[0].cut = True
    return read[0], len(part)


def _within(text: str) -> Iterator[Output]:
    """Yield the documents in objects that a harness put around them, such as ``{"node": "7", "Results": {"start": ...}}``."""
    start = re.search(r"[{\[]", text)
    try:
        whole = json.JSONDecoder().raw_decode(text, start.start())[0] if start is not None else []
    except (ValueError, RecursionError):
        return
    waiting: list[tuple[str, Json]] = [("", whole)]
    while waiting:
        name, part = waiting.pop()
        listed = part if isinstance(part, list) else []
        members = list(part.items()) if isinstance(part, dict) else [("", element) for element in listed]
        if isinstance(part, dict) and isinstance(part.get("intervals"), list) and isinstance(part.get("end"), dict):
            diagnostic = Diagnostic(f"the document is a member of another: {name[:SHOWN]!r}", 1, harmless=True)
            yield Output(part, 1, [diagnostic])
        else:
            waiting += [(key or name, member) for key, member in reversed(members) if isinstance(member, dict | list)]


def _other(part: str, line: int) -> Iterator[Diagnostic]:
    """Yield a diagnostic of text that is no document and does not join the elements of a list. ``line``: its first."""
    lines = part.split("\n")
    indices = [index for index, content in enumerate(lines) if content.strip(" \t,[]")]
    if indices:
        more = f" (and {len(indices) - 1} more)" if len(indices) > 1 else ""
        # A line that begins as JSON does may be the rest of a document.
        harmless = not any(lines[index].lstrip().startswith(tuple('{}[]",')) for index in indices)
        yield Diagnostic(f"is not an iperf3 document: {lines[indices[0]].strip()[:SHOWN]!r}{more}", line + indices[0], harmless)
