"""Format ``nstat``: the counters of the kernel's network stack, as ``nstat`` prints them, as text or with ``--json``.

nstat prints counts since it last ran or, with ``-a`` or the first time, since boot, and does not say which.  So the manifest
says it: ``counts: increments`` (each dump is a measurement of its own) or ``counts: totals`` (the dumps of a file are before
and after a run).  Without it there is the table ``counters`` alone, with the dumps' numbers as they are.

nstat leaves out counts of 0 unless it is called with ``-z``.  A counter that is not in a whole dump which leaves zeros out is
0.  In lines that ``grep`` selected, without a heading, a counter that comes again begins the next dump.

Source: nstat(8) and its own output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.counter_deltas import CounterDelta, counter_deltas, counter_table, joined, resets, summed
from twinbed.imports.text.documents import documents, line_of
from twinbed.imports.text.figures import count, real
from twinbed.metrics.counters import NETWORK
from twinbed.metrics.metric import Value
from twinbed.model.json import Document

_ROW = rb"[A-Z][A-Za-z0-9]+[ \t]+\d+[ \t]+[0-9.]+[ \t]*\r?(?:\n|$)"
_TEXT = re.compile(
    rb"(?:[^\n]{0,200}\n)?\s*#(?:kernel|\d[^\n]*)[ \t]*\r?\n" + _ROW + rb"|(?:(?:Ip6?|Icmp6?|Tcp|Udp6?|MPTcp)" + _ROW + rb")+"
)
"""The command may stand before the heading; text without a heading is recognised by names."""
_JSON = re.compile(rb'\s*\{\s*"kernel"\s*:\s*\{\s*"[A-Z][A-Za-z0-9]+"\s*:')
_NAME = re.compile(r"[A-Z][A-Za-z0-9]{1,60}")
_LAST_GROUPS = ("IpExt", "MPTcpExt")
"""The counters that nstat prints last: a dump that has some of them, below a heading, is whole."""
_HEADING = re.compile(r"^\s*#", re.MULTILINE)
_OF: Mapping[str, str] = {
    "tcp_segments_in": "TcpInSegs",
    "tcp_segments_out": "TcpOutSegs",
    "tcp_retransmitted_segments": "TcpRetransSegs",
    "tcp_timeouts": "TcpExtTCPTimeouts",
    "tcp_listen_drops": "TcpExtListenDrops",
}
_METRICS = tuple(counted.metric for counted in NETWORK)
_UNCLEAR = "does not say whether it counts since boot, so it has no values; set counts to increments or totals"


def _recognises(head: bytes) -> bool:
    return _TEXT.match(head) is not None or _JSON.match(head) is not None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    counts = options.get("counts")
    if counts not in (None, "increments", "totals"):
        raise FormatError(f"counts is {counts!r}, expected increments or totals")
    text = source.text()
    diagnostics: list[Diagnostic] = []
    dumps = _of_json(text, diagnostics) if text.lstrip().startswith("{") else _of_text(text, diagnostics)
    if not any(dumps):
        raise FormatError("has no counter from nstat")
    if not text.lstrip().startswith("{") and not _HEADING.search(text):
        whole = dumps  # what grep left out is not 0
    else:
        whole = [_with_zeros(dump, dumps) for dump in dumps]
    if counts == "totals":
        if len(dumps) < 2:
            raise FormatError("has only one dump; counts: totals needs two")
        deltas = counter_deltas(whole)
        return [_measurement(deltas, [*diagnostics, *resets(deltas)])]
    if counts is None:
        diagnostics.append(Diagnostic(_UNCLEAR))
        return [
            Measurement(
                (), {"counters": joined([counter_table("nstat", counter_deltas([dump])) for dump in dumps])}, (), diagnostics
            )
        ]
    return [_measurement(_increments(dump), diagnostics) for dump in whole]


def _of_text(text: str, diagnostics: list[Diagnostic]) -> list[dict[str, int]]:
    dumps: list[dict[str, int]] = []
    has_headings = _HEADING.search(text) is not None
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if line.startswith("#") or (not has_headings and words and (not dumps or words[0] in dumps[-1])):
            dumps.append({})
        if dumps and words and not line.startswith("#"):
            value = count(words[1]) if len(words) == 3 and real(words[2]) is not None else None
            _take(dumps[-1], words[0], value, diagnostics, number)
    return dumps


def _of_json(text: str, diagnostics: list[Diagnostic]) -> list[dict[str, int]]:
    dumps: list[dict[str, int]] = []
    parts = list(documents(text))
    end = parts[-1][1] if parts else 0
    for document, _ in parts:
        kernel = document.get("kernel") if isinstance(document, dict) else None
        if isinstance(kernel, dict):
            dumps.append({})
            for name, value in kernel.items():
                whole = isinstance(value, int) and not isinstance(value, bool)
                _take(dumps[-1], name, count(str(value)) if whole else None, diagnostics, None)
    if text[end:].strip():
        diagnostics.append(Diagnostic("ends early, or is damaged", line_of(text, end)))
    return dumps


def _take(dump: dict[str, int], name: str, value: int | None, diagnostics: list[Diagnostic], line: int | None) -> None:
    if value is None or not _NAME.fullmatch(name) or name in dump:
        diagnostics.append(Diagnostic(f"is not a readable counter: {name[:80]!r}", line))
    else:
        dump[name] = value


def _with_zeros(dump: Mapping[str, int], dumps: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the counters with the zeros that nstat has left out."""
    leaves_out = all(value for other in dumps for value in other.values())
    is_whole = any(name.startswith(_LAST_GROUPS) for name in dump)
    if not leaves_out or not is_whole:
        return dict(dump)
    names = {*_OF.values(), *(name for other in dumps for name in other)}
    return {**dict.fromkeys(sorted(names), 0), **dump}


def _increments(dump: Mapping[str, int]) -> dict[str, CounterDelta]:
    """Return a dump as differences, which it is."""
    return {name: CounterDelta(name, None, None, value, None) for name, value in dump.items()}


def _measurement(deltas: Mapping[str, CounterDelta], diagnostics: Sequence[Diagnostic]) -> Measurement:
    values: list[Value] = [summed(deltas, metric, [_OF[metric.name]]) for metric in _METRICS]
    return Measurement(values, {"counters": counter_table("nstat", deltas)}, (), diagnostics)


FORMATS = (Format("nstat", "TCP counters, from nstat", _METRICS, _recognises, _read),)
