"""The reports of a load generator in a text: where each begins and ends, and what stands beside it.

Results are pasted: behind a prompt, between a manual's words, moved in by a list, and without their first lines.  A report
begins at its first line or, where that was left out, at what no report has behind its result.  What is before and behind it is
none of its own, so nothing is missing of it there; it is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from twinbed.contracts.format import Diagnostic, FormatError, Measurement
from twinbed.imports.text.load import SHOWN, head_text

FENCE = "```"
_MARK = re.compile(r"^(?:[\w.-]{1,60} *\| |> )", re.MULTILINE)
"""What may stand before every line of a report: a quote's mark, the name that Docker Compose gives a container."""
_MOVED = re.compile(rf"(?:{_MARK.pattern[1:]})?[ \t]*")
"""The same, and blanks."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the lines of a program's report look like, behind marks and blanks."""

    begins: re.Pattern[str] | None
    """Its first line; None where a program's outputs may be in another order."""
    result: re.Pattern[str]
    """A line that each report has once, unless it is cut."""
    again: re.Pattern[str]
    """Lines of a report that are never behind its result: there they are another's, whose first line was left out."""
    line: re.Pattern[str]
    """Any other line that may be its first or last."""
    last: re.Pattern[str] | None = None
    """Its last line, where that is always the same: what scripts print behind it may look like the report."""


@dataclass(frozen=True, slots=True)
class Report:
    first: int
    """The number of its first line in the text."""
    lines: Sequence[str]
    outside: Sequence[Diagnostic] = ()


def head_of(head: bytes) -> str:
    """A file's first bytes as text without such marks: for recognising."""
    return _MARK.sub("", head_text(head))


def reports(lines: Sequence[str], layout: Layout) -> Iterator[Report]:
    starts = [0]
    begun = done = False
    for index, line in enumerate(lines):
        text = _text(line)
        if _begins(layout, text) or (done and layout.again.match(text)):
            if begun or done:
                starts.append(index)
            begun, done = True, False
        done = done or layout.result.match(text) is not None
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield _report(start, lines[start:end], layout)


def _text(line: str) -> str:
    match = _MOVED.match(line)
    return line[match.end() :] if match is not None else line


def _begins(layout: Layout, text: str) -> bool:
    return layout.begins is not None and layout.begins.match(text) is not None


def _report(start: int, lines: Sequence[str], layout: Layout) -> Report:
    """A part of a text that has one report, without what is before and behind that."""
    texts = [_text(line) for line in lines]
    of_result = [index for index, text in enumerate(texts) if layout.result.match(text)]
    known = [index for index, text in enumerate(texts) if layout.again.match(text) or layout.line.match(text)]
    first = next(
        (index for index, text in enumerate(texts) if _begins(layout, text)), min([*known[:1], *of_result[:1]], default=0)
    )
    ended = max([first, *of_result[:1]])
    behind = next((index for index in range(ended, len(lines)) if texts[index].startswith(FENCE)), len(lines))
    if of_result:
        behind = max(index for index in [*known, *of_result] if index < behind) + 1
        if layout.last is not None:
            behind = next((index + 1 for index in range(ended, behind) if layout.last.match(texts[index])), behind)
    blanks = lines[first][: len(lines[first]) - len(texts[first])] if lines else ""
    outside = [(index, text) for index, text in enumerate(texts) if text.strip() and not first <= index < behind]
    return Report(start + first + 1, [_without(line, blanks) for line in lines[first:behind]], list(_said(start, outside)))


def _without(line: str, blanks: str) -> str:
    return "" if line.rstrip() == blanks.rstrip() else line.removeprefix(blanks)


def _said(start: int, outside: Sequence[tuple[int, str]]) -> Iterator[Diagnostic]:
    if outside:
        index, text = outside[0]
        what = "a line beside the report" if len(outside) == 1 else f"{len(outside)} lines beside the report, the first"
        yield Diagnostic(f"{what}: {text.strip()[:SHOWN]!r}", start + index + 1, harmless=True)


def each_read(
    parts: Iterator[Report],
    read: Callable[[int, Sequence[str], Sequence[Diagnostic]], Measurement],
    cut: Sequence[Diagnostic],
) -> Sequence[Measurement]:
    """The measurements of a text's reports; of one that cannot be read, the reason is a flaw of the one before or after it.
    ``cut``: what is wrong with the last one's end. Raises FormatError where none can be read."""
    measurements: list[Measurement] = []
    waiting: list[Diagnostic] = []
    listed = list(parts)
    for index, part in enumerate(listed):
        try:
            one = read(part.first, part.lines, cut if index == len(listed) - 1 else ())
        except FormatError as error:
            waiting += [Diagnostic(error.reason, error.line or part.first), *part.outside]
            if index == len(listed) - 1 and not measurements:
                raise
            continue
        measurements.append(replace(one, diagnostics=[*waiting, *one.diagnostics, *part.outside]))
        waiting = []
    if waiting:
        measurements[-1] = replace(measurements[-1], diagnostics=[*measurements[-1].diagnostics, *waiting])
    return measurements
