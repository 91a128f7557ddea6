"""Format ``dmesg``: the kernel's log, as ``dmesg`` prints it (also ``-T``, ``-H``, ``-x``, ``-r``, ``-d``, ``-J``,
``--time-format iso``), or ``journalctl -k`` and kern.log have it.

Gives the table ``kernel_log``, and cautions where a NIC was reset or stopped sending, or memory ran out.  A log goes back to
boot, so an event may have been before the run: the caution has the first such line with its time.  The kernel that booted is a
fact.  Lines that begin otherwise belong to the record before them.

Source: dmesg(1), and the messages of Linux.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.documents import documents, elements, line_of
from twinbed.imports.text.figures import of_json, table, unread
from twinbed.model.json import Document
from twinbed.model.members import text_at
from twinbed.readers.kernel_log import nic_trouble, out_of_memory

if TYPE_CHECKING:
    import pyarrow as pa

_LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
_SHORT = {"warn": "warning"}
_FACILITIES = ("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp")
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}"
_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d"
_HUMAN = r"[A-Z][a-z]{2} ?[ \d]\d \d\d:\d\d| *<? *\+\d{1,9}\.\d{6}>?"
_STAMP = (
    r"(?:(?:<(?P<pri>\d{1,4})>|(?P<facility>[a-z]{2,8}) *:(?P<level>[a-z]{3,6}) *: ?)?"
    rf"(?:\[ *(?P<seconds>\d{{1,9}}\.\d{{6}})(?: <[ \d.]+>)?\](?:\[ *[TC]\d{{1,9}}\])?"
    rf"|\[(?P<day>{_DAY}|{_HUMAN})\]|(?P<iso>{_ISO}))"
    r"|(?P<date>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?|\d{4}-\d\d-\d\dT[\d:.,+-]+Z?) \S+ kernel:"
    r"(?: \[ *(?P<since>\d{1,9}\.\d{6})\])?) ?"
)
_OF_JOURNAL = re.compile(r"-- .* --")
"""A line of journalctl between records."""
_LINE = re.compile(_STAMP + r"(?P<text>.*)")
_STARTS = re.compile(_STAMP.encode())
_JSON = re.compile(rb'\s*\{\s*"dmesg"\s*:\s*\[')
_KERNEL = re.compile(r"Linux version (\S{1,120}) ")
_LINES = 50


@dataclass(slots=True)
class _Record:
    seconds: float | None
    """Since boot."""
    stamp: str
    """Its time as printed, where that is no time since boot."""
    level: str | None
    facility: int | None
    text: str


def _recognises(head: bytes) -> bool:
    if _JSON.match(head):
        return True
    lines = [line for line in head.split(b"\n", _LINES)[:_LINES] if line.strip() and not line.startswith((b" ", b"\t", b"-- "))]
    return 2 * sum(1 for line in lines if _STARTS.match(line)) > len(lines)


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    text = source.text()
    diagnostics: list[Diagnostic] = []
    is_json = _JSON.match(text[:1000].encode(errors="replace")) is not None
    records = list(_of_json(text, diagnostics) if is_json else _of_text(text, diagnostics))
    if not records:
        raise FormatError("has no record of a kernel's log")
    shown = [_shown(record) for record in records]
    where = f"since boot, {source.name}"
    cautions = [caution for caution in (nic_trouble(where, shown), out_of_memory(where, shown)) if caution]
    booted = [match[1] for record in records if (match := _KERNEL.match(record.text))]
    return [Measurement((), {"kernel_log": _table(records)}, cautions, diagnostics, {"kernel": booted[-1]} if booted else {})]


def _shown(record: _Record) -> str:
    line = record.text.partition("\n")[0]
    at = f"{record.seconds:.6f} s" if record.seconds is not None else record.stamp
    return f"{line} (at {at})" if at else line


def _of_text(text: str, diagnostics: list[Diagnostic]) -> Iterator[_Record]:
    record: _Record | None = None
    for number, line in enumerate(text.split("\n"), 1):
        match = _LINE.fullmatch(line)
        if match:
            if record:
                yield record
            record = _record(match)
        elif _OF_JOURNAL.fullmatch(line):
            continue
        elif record:
            record.text += f"\n{line}" if line.strip() else ""
        elif line.strip():
            diagnostics.append(unread(line, number, "is not a kernel log record"))
    if record:
        yield record


def _record(match: re.Match[str]) -> _Record:
    seconds = match["seconds"] or match["since"]
    level, facility = None, None
    if match["pri"]:
        level, facility = _LEVELS[int(match["pri"]) & 7], int(match["pri"]) >> 3
    elif match["level"]:
        named = _SHORT.get(match["level"], match["level"])
        level = named if named in _LEVELS else None
        facility = _FACILITIES.index(match["facility"]) if match["facility"] in _FACILITIES else None
    stamp = (match["day"] or match["iso"] or match["date"] or "").strip()
    return _Record(float(seconds) if seconds else None, stamp, level, facility, match["text"])


def _of_json(text: str, diagnostics: list[Diagnostic]) -> Iterator[_Record]:
    begins = text.index("[") + 1
    end = begins
    for entry, end in elements(text, begins):
        message = text_at(entry, "msg")
        if not isinstance(entry, dict) or message is None:
            diagnostics.append(Diagnostic(f"is not a kernel log record: {json.dumps(entry)[:80]}", line_of(text, end)))
            continue
        pri, seconds = of_json(entry.get("pri")), of_json(entry.get("time"))
        known = pri is not None and 0 <= pri < 8192
        level, facility = (_LEVELS[int(pri or 0) & 7], int(pri or 0) >> 3) if known else (None, None)
        yield _Record(seconds, "", level, facility, message)
    if next(documents(text), None) is None:
        diagnostics.append(Diagnostic("ends early, or is damaged", line_of(text, end)))


def _table(records: Sequence[_Record]) -> pa.Table:
    return table(
        {
            "host": ("string", [""] * len(records)),
            "sequence": ("int64", range(len(records))),
            "seconds": ("float64", [record.seconds for record in records]),
            "level": ("string", [record.level for record in records]),
            "facility": ("int64", [record.facility for record in records]),
            "text": ("string", [record.text for record in records]),
        }
    )


FORMATS = (Format("dmesg", "the kernel's log: NICs that were reset, memory that ran out", (), _recognises, _read),)
