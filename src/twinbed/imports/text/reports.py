"""The reports of a load generator in a text: where each begins and ends, and what stands around it.

People paste results behind a prompt, between a manual's words, indented by a list, or without their first lines. A report
begins at its first line or, where that was left out, at a line that no report has behind its result. Lines before and behind
it belong to no report, so nothing is missing there; a diagnostic names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import head_text, unread, whole_lines
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

FENCE = "```"
_MARK = re.compile(r"^(?:[\w.-]{1,60} *\| |> )", re.MULTILINE)
"""Text before every line of a report: a quote's mark, the name that Docker Compose gives a container."""
_INDENT = re.compile(rf"(?:{_MARK.pattern[1:]})?[ \t]*")
"""The same, and blanks."""
Read = Callable[[int, Sequence[str], Sequence[Diagnostic]], Measurement]
"""Makes a measurement of a report: the number of its first line, its lines, and what is wrong behind its last line."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The lines of a program's report, behind marks and blanks."""

    begins: re.Pattern[str] | None
    """Its first line; None where a program's outputs may be in another order."""
    result: re.Pattern[str]
    """A line that each report has once, unless it is cut."""
    again: re.Pattern[str]
    """Lines of a report that are never behind its result: there they belong to another report, without its first line."""
    line: re.Pattern[str]
    """Any other line that may be its first or last."""
    last: re.Pattern[str] | None = None
    """Its last line, where that is always the same. Text that scripts print behind it may look like the report."""


@dataclass(frozen=True, slots=True)
class Report:
    first: int
    """The number of its first line in the text."""
    lines: Sequence[str]
    outside: Sequence[Diagnostic] = ()


def load_format(
    name: str, summary: str, metrics: Sequence[Metric], recognises: Callable[[bytes], object], layout: Layout, read: Read
) -> Format:
    """Declare the format of a generator of HTTP load, whose reports follow each other in a text."""
    return Format(name, summary, metrics, recognises, partial(_read_reports, layout, read), "requests", "requests_per_second")


def holding(pattern: re.Pattern[str], *marks: str) -> Callable[[bytes], bool]:
    """Return a check whether a file's first bytes hold one of ``marks``, which are quickly searched for, and ``pattern``."""
    return partial(_holds, pattern, marks)


def _holds(pattern: re.Pattern[str], marks: Sequence[str], head: bytes) -> bool:
    text = head_of(head)
    return any(mark in text for mark in marks) and pattern.search(text.replace("\r\n", "\n")) is not None


def _read_reports(layout: Layout, read: Read, source: Source, options: Document) -> Sequence[Measurement]:
    lines, cut = whole_lines(source.text())
    return each_read(reports(lines, layout), read, cut)


def head_of(head: bytes) -> str:
    """Return a file's first bytes as text without the marks before lines: for recognising."""
    return _MARK.sub("", head_text(head))


def reports(lines: Sequence[str], layout: Layout) -> Iterator[Report]:
    """Yield each report of a text, in order."""
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
    match = _INDENT.match(line)
    return line[match.end() :] if match is not None else line


def _begins(layout: Layout, text: str) -> bool:
    return layout.begins is not None and layout.begins.match(text) is not None


def _report(start: int, lines: Sequence[str], layout: Layout) -> Report:
    """Return the report of a part of a text that has one, without the lines before and behind it."""
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
    return Report(start + first + 1, [_without(line, blanks) for line in lines[first:behind]], list(_outside(start, outside)))


def _without(line: str, blanks: str) -> str:
    return "" if line.rstrip() == blanks.rstrip() else line.removeprefix(blanks)


def _outside(start: int, lines: Sequence[tuple[int, str]]) -> Iterator[Diagnostic]:
    if lines:
        index, text = lines[0]
        number = "a line" if len(lines) == 1 else f"{len(lines)} lines"
        diagnostic = unread(text, start + index + 1, f"{number} outside the report{'' if len(lines) == 1 else ', the first'}")
        yield replace(diagnostic, harmless=True)


def each_read(parts: Iterator[Report], read: Read, cut: Sequence[Diagnostic]) -> Sequence[Measurement]:
    """Return the measurements of a text's reports. ``cut``: what is wrong with the last report's end.

    A report that cannot be read is a diagnostic of the measurement before or after it. Raises FormatError where none can be
    read.
    """
    measurements: list[Measurement] = []
    waiting: list[Diagnostic] = []
    listed = list(parts)
    for index, part in enumerate(listed):
        try:
            measurement = read(part.first, part.lines, cut if index == len(listed) - 1 else ())
        except FormatError as error:
            waiting += [Diagnostic(error.reason, error.line or part.first), *part.outside]
            if index == len(listed) - 1 and not measurements:
                raise
            continue
        measurements.append(replace(measurement, diagnostics=[*waiting, *measurement.diagnostics, *part.outside]))
        waiting = []
    if waiting:
        measurements[-1] = replace(measurements[-1], diagnostics=[*measurements[-1].diagnostics, *waiting])
    return measurements
