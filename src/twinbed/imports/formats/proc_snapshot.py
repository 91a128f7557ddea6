"""Format ``proc-snapshot``: /proc/stat, /proc/net/snmp and others, before a run and after it, in one file.

As ``tail -n +1 /proc/stat /proc/net/snmp ...`` or ``cat`` of the same writes them, appended twice or more.  Sources are
recognised by their lines, or by the headings of ``tail``.  A source that comes again begins the next snapshot.  Read: stat,
interrupts, softirqs, vmstat, meminfo, loadavg, schedstat, uptime, pressure/* (with tail's headings) and
net/{snmp,netstat,softnet_stat,dev}.  Metrics and the table ``counters`` are those of the instrument ``counters``: differences
from the first to the last snapshot.  Rates need /proc/uptime.

Limits: one snapshot alone counts since boot, so it has the table and no values but for memory.  Counts are sums over all NICs
but ``lo``, or over the NICs that the manifest names (``nics: [eth0]``): a packet that goes through a bridge counts on each of
its interfaces.  Source: Documentation/filesystems/proc.rst of Linux.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import unread
from twinbed.metrics.counters import LOST, METRICS, UNEXPLAINED
from twinbed.model.json import Document, Json
from twinbed.readers.counters.cautions import place_cautions
from twinbed.readers.counters.place import KERNEL_MARK, Place, read_place

if TYPE_CHECKING:
    import pyarrow as pa

_HEADING = re.compile(r"==> (/\S+) <==\s*")
_STARTS: dict[str, re.Pattern[str]] = {
    "/proc/stat": re.compile(r"cpu  \d"),
    "/proc/net/snmp": re.compile(r"Ip: Forwarding "),
    "/proc/net/netstat": re.compile(r"TcpExt: [A-Z]"),
    "/proc/net/softnet_stat": re.compile(r"[0-9a-f]{8}(?: [0-9a-f]{8}){8,}\s*$"),
    "/proc/net/dev": re.compile(r"Inter-\|"),
    "/proc/vmstat": re.compile(r"nr_free_pages \d"),
    "/proc/meminfo": re.compile(r"MemTotal:\s+\d"),
    "/proc/schedstat": re.compile(r"version 1[567]\s*$"),
    "/proc/uptime": re.compile(r"\d{1,10}\.\d\d \d{1,12}\.\d\d\s*$"),
    "/proc/loadavg": re.compile(r"\d+\.\d\d \d+\.\d\d \d+\.\d\d \d+/\d+ \d+\s*$"),
}
_PER_CPU = re.compile(r"\s+CPU\d+(?:\s+CPU\d+)*\s*$")
_SOFTIRQS = re.compile(r"\s*HI:")
_LINES: dict[str, re.Pattern[str]] = {
    "/proc/stat": re.compile(r"(?:cpu\d*|intr|ctxt|btime|processes|procs_running|procs_blocked|softirq) "),
    "/proc/net/snmp": re.compile(r"(?:Ip|Icmp|IcmpMsg|Tcp|Udp|UdpLite): "),
    "/proc/net/netstat": re.compile(r"(?:TcpExt|IpExt|MPTcpExt): "),
    "/proc/net/softnet_stat": re.compile(r"[0-9a-f]{8} "),
    "/proc/net/dev": re.compile(r"Inter-\|| face \||\s*[^\s|]+:\s*\d"),
    "/proc/vmstat": re.compile(r"[a-z][a-z0-9_]* \d"),
    "/proc/meminfo": re.compile(r"[A-Z][\w()]*:\s+\d"),
    "/proc/schedstat": re.compile(r"version |timestamp |cpu\d|domain"),
    "/proc/uptime": _STARTS["/proc/uptime"],
    "/proc/loadavg": _STARTS["/proc/loadavg"],
    "/proc/interrupts": re.compile(r"\s*(?:\d+|[A-Z][A-Z0-9]{1,4}):\s|\s+CPU\d"),
    "/proc/softirqs": re.compile(r"\s*[A-Z_]+:\s|\s+CPU\d"),
    **{f"/proc/pressure/{resource}": re.compile(r"(?:some|full) avg10=") for resource in ("cpu", "io", "memory")},
}
"""Source -> the beginning of each of its lines."""
_BETWEEN = re.compile(
    r"[^0-9]*|(?:[A-Z][a-z]{2} ){2} ?\d{1,2} [\d:]{8} .*\d{4}|[A-Z][a-z]{2} \d{1,2} [A-Z][a-z]{2} \d{4} .*"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]+.*|\d{9,10}(?:\.\d+)?"
)
"""Lines that people print between sources: words, and the date."""


@dataclass(slots=True)
class Section:
    """One source's text. ``line`` is where it begins, from 1."""

    source: str
    line: int
    lines: list[str] = field(default_factory=list)


def _sections(text: str) -> tuple[list[Section], list[Diagnostic]]:
    """Return sources in order, and diagnostics of the lines that belong to none."""
    lines = text.split("\n")
    texts: list[Section] = []
    strange: list[tuple[int, str]] = []
    current: Section | None = None
    for at, line in enumerate(lines):
        if heading := _HEADING.fullmatch(line):
            current = Section(heading[1], at + 1) if heading[1] in _LINES else None
            texts += [current] if current else []
            if current is None:
                strange.append((at + 1, line))
            continue
        source = _begins(line, lines[at + 1] if at + 1 < len(lines) else "")
        if source and (current is None or current.lines) and not (current and _continues(current, line)):
            current = Section(source, at + 1)
            texts.append(current)
        if current and _LINES[current.source].match(line):
            current.lines.append(line)
        elif line.strip():
            strange.append((at + 1, line))
            current = None
    return [section for section in texts if section.lines], list(_diagnostics(strange))


def _begins(line: str, after: str) -> str | None:
    """Return the source whose first line this is."""
    if _PER_CPU.match(line):
        return "/proc/softirqs" if _SOFTIRQS.match(after) else "/proc/interrupts"
    return next((source for source, start in _STARTS.items() if start.match(line)), None)


def _continues(section: Section, line: str) -> bool:
    """Return whether a line goes on with a section: only in softnet_stat are all lines like the first."""
    return section.source == "/proc/net/softnet_stat" and _LINES[section.source].match(line) is not None


def _diagnostics(strange: Sequence[tuple[int, str]]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each run of lines."""
    last = -1
    for number, line in strange:
        if number != last + 1:
            harmless = _BETWEEN.fullmatch(line.strip()) is not None
            yield replace(unread(line, number, "is of no source that is read"), harmless=harmless)
        last = number


def _snapshots(texts: Sequence[Section]) -> list[dict[str, Section]]:
    """Split sections into snapshots: a source that is there already begins the next."""
    parts: list[dict[str, Section]] = []
    for section in texts:
        if not parts or section.source in parts[-1]:
            parts.append({})
        parts[-1][section.source] = section
    return parts


_FILE = "counters.snap"
_UPTIME = "/proc/uptime"
_DEVICES = "/proc/net/dev"
_BEGINS = re.compile(
    rb"^[ \t]*(?:==> /proc/\S+ <==|cpu  \d+ \d+ \d+|Ip: Forwarding |TcpExt: [A-Z]|Inter-\|   Receive|nr_free_pages \d"
    rb"|MemTotal: +\d|[0-9a-f]{8}(?: [0-9a-f]{8}){8,}[ \r]*$|CPU\d+(?: +CPU\d+)* *\r?\n *[A-Z0-9]+:)",
    re.MULTILINE,
)
_ONLY_WHERE_ANY = "snmp:IcmpMsg."
"""The kernel prints only the types of ICMP that occurred, and they give no value."""
_FIRST_LINES = 5
"""A word or the date may stand before the first source."""
_PROBE = b"@ "
"""Output of ``twinbed-probe counters`` has the same texts in it."""


def _recognises(head: bytes) -> bool:
    first = b"\n".join(head.split(b"\n", _FIRST_LINES)[:_FIRST_LINES])
    return _BEGINS.search(first) is not None and not head.startswith(_PROBE)


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    in_order, diagnostics = _sections(source.text())
    if (nics := options.get("nics")) is not None:
        diagnostics += _keep(in_order, nics)
    parts = _snapshots(in_order)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / _FILE
        try:
            place, timed = _place(parts, file)
        except FormatError:
            damaged = _unreadable(parts, file)
            diagnostics += damaged.values()
            place, timed = _place([_without(part, damaged) for part in parts], file)
        diagnostics += [*_lost(place, len(parts)), *_several(place)]
        cautions = list(place_cautions(replace(place, name=source.name)))
    if not timed:
        place = replace(place, seconds=None)
    values = [value for value in place.values() if value.value is not None]
    return [Measurement(values, {"counters": place.moved() if timed else _without_times(place)}, cautions, diagnostics)]


def _keep(texts: Sequence[Section], nics: Json) -> list[Diagnostic]:
    """Leave out the lines of other interfaces, and return a diagnostic for each NIC that is not there."""
    if not isinstance(nics, list) or not nics or not all(isinstance(nic, str) for nic in nics):
        raise FormatError(f"nics is {nics!r}, expected a list of interfaces: [eth0]")
    lacking: dict[str, Diagnostic] = {}
    for section in texts:
        if section.source == _DEVICES:
            present = {line.partition(":")[0].strip() for line in section.lines}
            lacking |= {nic: Diagnostic(f"has no NIC {nic}", section.line) for nic in nics if nic not in present}
            section.lines = [line for line in section.lines if "|" in line or line.partition(":")[0].strip() in nics]
    return list(lacking.values())


def _several(place: Place) -> Iterator[Diagnostic]:
    """Yield a note if several interfaces carried packets, of which one may be a bridge."""
    keys = zip(place.differences["key"].to_pylist(), place.differences["difference"].to_pylist(), strict=True)
    moved = {key.removeprefix("net/dev:").rpartition(".")[0] for key, by in keys if key and key.startswith("net/dev:") and by}
    if len(nics := sorted(moved & set(place.nics()))) > 1:
        yield Diagnostic(
            f"NICs are a sum of {', '.join(nics)}: a packet that goes through several counts on each (see nics)", harmless=True
        )


def _place(parts: Sequence[Mapping[str, Section]], file: Path) -> tuple[Place, bool]:
    """Return the differences of the snapshots, and whether the times between them are known."""
    if not any(parts):
        raise FormatError("has no source of /proc that can be read")
    times = [time for part in parts if (time := _uptime_s(part.get(_UPTIME))) is not None]
    timed = len(times) == len(parts) and all(later > earlier for earlier, later in pairwise(times))
    return _read_place(parts, times if timed else range(len(parts)), file), timed


def _without(part: Mapping[str, Section], names: Mapping[str, Diagnostic]) -> dict[str, Section]:
    return {name: section for name, section in part.items() if name not in names}


def _uptime_s(section: Section | None) -> float | None:
    return float(section.lines[0].split()[0]) if section else None


def _written(parts: Sequence[Mapping[str, Section]], times: Sequence[float]) -> bytes:
    """Write snapshots as ``twinbed-probe counters`` does."""
    text: list[bytes] = []
    for at, part in enumerate(parts):
        text.append(f"@ {at} {times[at]} 0\n".encode())
        # The kernel is the file's own, however much of it is there.
        text += [] if KERNEL_MARK in part else [f"# {KERNEL_MARK} -\n".encode()]
        for name, section in part.items():
            content = ("\n".join(section.lines) + "\n").encode()
            text.append(f"# {name} {len(content)}\n".encode() + content + b"\n")
    return b"".join(text)


def _read_place(parts: Sequence[Mapping[str, Section]], times: Sequence[float], file: Path) -> Place:
    file.write_bytes(_written(parts, times))
    try:
        return replace(read_place(file), name="")
    except ValueError as error:
        raise FormatError(f"cannot be read: {str(error).removeprefix(f'{file}: ')}") from error


def _unreadable(parts: Sequence[Mapping[str, Section]], file: Path) -> dict[str, Diagnostic]:
    """Return source -> the reason it is left out, where one of its texts is damaged."""
    damaged: dict[str, Diagnostic] = {}
    for part in parts:
        for name, section in part.items():
            try:
                _read_place([{name: section}], [0], file)
            except FormatError as error:
                damaged[name] = Diagnostic(f"{name}: {error.reason}", section.line)
    return damaged


def _lost(place: Place, snapshots: int) -> Iterator[Diagnostic]:
    """Yield the counters without a difference, which have no part in any value, by reason."""
    keys: dict[str, list[str]] = {}
    if snapshots > 1:
        rows = zip(place.differences["key"].to_pylist(), place.differences["note"].to_pylist(), strict=True)
        for key, note in rows:
            if key is not None and note is not None and not key.startswith(_ONLY_WHERE_ANY):
                keys.setdefault(note, []).append(key)
    for note, lost in keys.items():
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        yield Diagnostic(f"no difference, {note}: {lost[0]}{more}")


def _without_times(place: Place) -> pa.Table:
    import pyarrow as pa

    table = place.moved()
    at = table.column_names.index("seconds")
    return table.set_column(at, "seconds", pa.nulls(table.num_rows, pa.float64()))


FORMATS = (
    Format(
        "proc-snapshot",
        "/proc before a run and after it: CPU time, interrupts, TCP, NICs",
        tuple(metric for metric in METRICS if metric not in (LOST, UNEXPLAINED)),
        _recognises,
        _read,
    ),
)
