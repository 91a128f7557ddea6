"""One run's metrics as ``twinbed export --metrics`` writes them, to be imported elsewhere.

CSV with the columns of HEADER, a row a value.  ``host`` and ``direction`` are empty where a value has none, ``value`` where it
is missing; ``started_s`` is the run's, in seconds since 1970.  Option ``units``: metric -> unit, as the manifest in the same
folder declares them.  A row of another metric or unit is a diagnostic.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import real, unread
from twinbed.metrics.metric import Value
from twinbed.model.json import Document

HEADER = ("host", "direction", "metric", "unit", "value", "started_s")
DIRECTIONS = ("", "client_to_server", "server_to_client")
_LINE = ",".join(HEADER)
_MOST_TEXT = 200


def _recognises(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].strip() == _LINE.encode()


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    given = options.get("units")
    units = {metric: unit for metric, unit in given.items() if isinstance(unit, str)} if isinstance(given, Mapping) else {}
    if not isinstance(given, Mapping) or len(units) < len(given):
        raise FormatError("needs the manifest that was exported with it: the options give no units of its metrics")
    text = source.text()
    diagnostics: list[Diagnostic] = []
    values: dict[tuple[str, str, str], Value] = {}
    started: set[float] = set()
    for line, row in _rows(text, diagnostics):
        value, reason = _value(row, units)
        if value is None or (value.metric, value.host, value.direction) in values:
            diagnostics.append(Diagnostic(reason or f"{row[2]} occurs twice", line))
            continue
        values[value.metric, value.host, value.direction] = value
        if (at := real(row[5])) is not None:
            started.add(at)
    if not values:
        raise FormatError(f"has no metric{f': {diagnostics[0]}' if diagnostics else ''}")
    return [Measurement(list(values.values()), {}, (), diagnostics, {}, started.pop() if len(started) == 1 else None)]


def _rows(text: str, diagnostics: list[Diagnostic]) -> Iterator[tuple[int, list[str]]]:
    """Yield lines and their cells. A last line without its end may be cut within a number. Raises FormatError."""
    head, _, rest = text.partition("\n")
    if head.strip() != _LINE:
        raise FormatError(f"begins with {head[:80]!r}, not {_LINE}", 1)
    lines = rest.split("\n")
    if lines.pop():
        diagnostics.append(Diagnostic("the last line is cut", len(lines) + 2))
    for number, line in enumerate(lines, start=2):
        try:
            (row,) = csv.reader([line], strict=True)
        except (csv.Error, ValueError):
            row = []
        if len(row) == len(HEADER):
            yield number, row
        else:
            diagnostics.append(unread(line, number, f"does not have {len(HEADER)} cells"))


def _value(row: Sequence[str], units: Mapping[str, str]) -> tuple[Value | None, str]:
    """Return the value, or the reason why there is none."""
    host, direction, metric, unit, text, _ = row
    if units.get(metric) != unit:
        return None, f"the manifest declares no {metric[:80]!r} in {unit[:40]!r}"
    if direction not in DIRECTIONS or not host.isprintable() or len(host) > _MOST_TEXT:
        return None, f"{direction[:80]!r} of {host[:80]!r} is not a direction of a host"
    number = real(text)
    if number is None and text:
        return None, f"{metric}: {text[:40]!r} is not a number"
    return Value(metric, number, unit, host, direction), ""


twinbed_metrics = Format("twinbed-metrics", "a run's metrics, from twinbed export", (), _recognises, _read)
FORMATS = (twinbed_metrics,)
