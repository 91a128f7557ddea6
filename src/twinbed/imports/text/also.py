"""What else a text holds: the programs that wrote into it beside the one that is read, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from twinbed.contracts.format import Diagnostic, Format

Recognises = Callable[[bytes], bool]


def also_holds(others: Mapping[str, int]) -> Iterator[Diagnostic]:
    """``others``: a format's name -> the line, from 1, at which the first of it begins."""
    if others:
        listed = ", ".join(f"{name} at line {line}" for name, line in sorted(others.items(), key=lambda item: item[1]))
        yield Diagnostic(f"also holds {listed}, of which nothing is read: part the file, or name a format in a manifest")


def others_in(text: bytes, kinds: Sequence[str], formats: Mapping[str, Format], before: int = 0) -> dict[str, int]:
    """The lines at which what each of ``kinds`` recognises begins. ``before``: lines of the file before this text."""
    return {name: before + line_of_first(formats[name].recognises, text) for name in kinds if formats[name].recognises(text)}


def line_of_first(recognises: Recognises, text: bytes) -> int:
    """The line, from 1, where that begins by which a text is recognised; it is recognised as a whole."""
    lines = text.splitlines(keepends=True)
    few, enough = 0, len(lines)
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if recognises(b"".join(lines[:middle])) else (middle, enough)
    start, late = 0, enough
    while late - start > 1:
        middle = (start + late) // 2
        start, late = (middle, late) if recognises(b"".join(lines[middle:enough])) else (start, middle)
    return start + 1


def closed(text: bytes) -> bool:
    """Whether a text that begins as JSON ends as such, so that no program wrote below it."""
    return text.rstrip()[-1:] in (b"}", b"]")
