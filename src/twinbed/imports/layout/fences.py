"""Fences of Markdown files as files: output of tools, as people keep it between notes.

A fence is a file below its Markdown file.  Its path goes on with the headings above it, from the widest, and ends with its
number under the last heading, from 1: ``notes.md/docker nat/send, 10 streams/2``.  So a pattern reads headings as it reads
folders.  Fences are those of CommonMark, and may be indented by any number of blanks, as in lists.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SUFFIXES = (".md", ".markdown", ".mdown")
MOST_BYTES = 64 * 2**20
MOST_FENCES = 10_000
_OPENS = re.compile(r"([ \t]*)(`{3,}|~{3,})([^`]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")


@dataclass(frozen=True, slots=True)
class Fence:
    """``path`` is below the Markdown file's own."""

    path: str
    text: str


def is_markdown(path: str) -> bool:
    return path.lower().endswith(SUFFIXES)


def fences(text: str) -> Iterator[Fence]:
    """Yield the fences of a Markdown file that have any text, in order, at most MOST_FENCES."""
    headings: dict[int, str] = {}
    counts: Counter[str] = Counter()
    inside: list[str] | None = None
    moved, mark, before = "", "", ""
    for line in [*text.splitlines(), None]:
        closes = line is None or (inside is not None and _closes(line, mark))
        if inside is not None and closes:
            under = "/".join(headings[level] for level in sorted(headings))
            if any(line.strip() for line in inside):
                counts[under] += 1
                yield Fence(f"{under}/{counts[under]}".lstrip("/"), "\n".join([*inside, ""]))
            if counts.total() >= MOST_FENCES:
                return
            inside = None
        elif inside is not None and line is not None:
            inside.append(line.removeprefix(moved))
        elif line is not None:
            opening = _OPENS.fullmatch(line)
            if opening is not None:
                inside, moved, mark = [], opening[1], opening[2]
            else:
                _take(headings, line, before)
        before = line or ""


def _closes(line: str, mark: str) -> bool:
    text = line.strip()
    return len(text) >= len(mark) and set(text) == {mark[0]}


def _take(headings: dict[int, str], line: str, before: str) -> None:
    """Take in a heading, which ends the headings of its level and below."""
    heading, underline = _HEADING.fullmatch(line), _UNDERLINE.fullmatch(line)
    if heading is not None:
        level, title = len(heading[1]), heading[2] or ""
    elif underline is not None and before.strip():
        level, title = (1 if underline[1][0] == "=" else 2), before
    else:
        return
    for lower in [other for other in headings if other >= level]:
        del headings[lower]
    plain = "".join(character if character.isprintable() else " " for character in _EMPHASIS.sub("", title))
    headings[level] = plain.replace("/", "-").strip().strip(".") or "-"


def fences_of(path: str) -> tuple[Fence, ...]:
    """Return the fences of a Markdown file by its path on disk; none where it is too large or cannot be read."""
    try:
        status = Path(path).stat()
    except OSError:
        return ()
    return _fences_of(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _fences_of(path: str, _mtime_ns: int, size: int) -> tuple[Fence, ...]:
    if size > MOST_BYTES:
        return ()
    try:
        return tuple(fences(Path(path).read_text(encoding="utf-8-sig", errors="replace")))
    except OSError:
        return ()


def opened_fence(path: str) -> int:
    """Return a descriptor of a file in memory with a fence's text, as old as its Markdown file. Raises OSError."""
    file = next((str(parent) for parent in Path(path).parents if parent.is_file()), "")
    same = [fence for fence in fences_of(file) if is_markdown(file) and path == f"{file}/{fence.path}"]
    if not same:
        raise FileNotFoundError(2, "No such file or directory", path)
    descriptor = os.memfd_create("fence", os.MFD_CLOEXEC)
    try:
        content = memoryview(same[0].text.encode())
        while content:
            content = content[os.write(descriptor, content) :]
        mtime_ns = Path(file).stat().st_mtime_ns
        os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
