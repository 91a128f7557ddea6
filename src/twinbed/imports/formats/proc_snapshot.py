"""Format ``proc-snapshot``: /proc/stat, /proc/net/snmp and others, before a run and after it, in one file.

As ``tail -n +1 /proc/stat /proc/net/snmp ...`` or ``cat`` of the same writes them, appended twice or more; what they are is
told by their lines.  A source that comes again begins the next snapshot.  Read: stat, interrupts, softirqs, vmstat, meminfo,
loadavg, schedstat, uptime, pressure/* (with tail's headings) and net/{snmp,netstat,softnet_stat,dev}.  Metrics and the table
``counters`` are those of the instrument ``counters``: differences from the first to the last snapshot.  Rates are there where
/proc/uptime is.

Limits: one snapshot alone counts since boot, so it has the table and no values but for memory.  Counts are sums over all NICs
but ``lo``, or those that the manifest names (``nics: [eth0]``): a packet that goes through a bridge counts on each of its
interfaces.  Source: Documentation/filesystems/proc.rst of Linux.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.proc_sections import Section, sections, snapshots
from twinbed.metrics.counters import LOST, METRICS, UNEXPLAINED
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document, Json
from twinbed.readers.counters.cautions import place_cautions
from twinbed.readers.counters.place import KERNEL_MARK, Place, read_place

if TYPE_CHECKING:
    import pyarrow as pa

_FILE = "counters.snap"
_UPTIME = "/proc/uptime"
_DEVICES = "/proc/net/dev"
_BEGINS = re.compile(
    rb"^[ \t]*(?:==> /proc/\S+ <==|cpu  \d+ \d+ \d+|Ip: Forwarding |TcpExt: [A-Z]|Inter-\|   Receive|nr_free_pages \d"
    rb"|MemTotal: +\d|[0-9a-f]{8}(?: [0-9a-f]{8}){8,}[ \r]*$|CPU\d+(?: +CPU\d+)* *\r?\n *[A-Z0-9]+:)",
    re.MULTILINE,
)
_ONLY_WHERE_ANY = "snmp:IcmpMsg."
"""The kernel prints types of ICMP that there were, and no value is made of them."""
_FIRST_LINES = 5
"""A word or the date may stand before the first source."""
_PROBE = b"@ "
"""What ``twinbed-probe counters`` writes has the same texts in it."""


class ProcSnapshot(Format):
    """The format."""

    name = "proc-snapshot"
    summary = "/proc before a run and after it: CPU time, interrupts, TCP, NICs"
    metrics: Sequence[Metric] = tuple(metric for metric in METRICS if metric not in (LOST, UNEXPLAINED))

    def recognises(self, head: bytes) -> bool:
        first = b"\n".join(head.split(b"\n", _FIRST_LINES)[:_FIRST_LINES])
        return _BEGINS.search(first) is not None and not head.startswith(_PROBE)

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        parts_, diagnostics = sections(source.text())
        if (nics := options.get("nics")) is not None:
            diagnostics += _keep(parts_, nics)
        parts = snapshots(parts_)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / _FILE
            try:
                place, timed = _place(parts, file)
            except FormatError:
                unread = _unreadable(parts, file)
                diagnostics += unread.values()
                place, timed = _place([_without(part, unread) for part in parts], file)
            diagnostics += [*_lost(place, len(parts)), *_several(place)]
            cautions = list(place_cautions(replace(place, name=source.name)))
        if not timed:
            place = replace(place, seconds=None)
        values = [value for value in place.values() if value.value is not None]
        return [Measurement(values, {"counters": place.moved() if timed else _without_times(place)}, cautions, diagnostics)]


def _keep(texts: Sequence[Section], nics: Json) -> list[Diagnostic]:
    """Leaves out the lines of other interfaces; says which are not there."""
    if not isinstance(nics, list) or not nics or not all(isinstance(nic, str) for nic in nics):
        raise FormatError(f"nics is {nics!r}, expected a list of interfaces: [eth0]")
    lacking: dict[str, Diagnostic] = {}
    for section in texts:
        if section.source == _DEVICES:
            there = {line.partition(":")[0].strip() for line in section.lines}
            lacking |= {nic: Diagnostic(f"has no NIC {nic}", section.line) for nic in nics if nic not in there}
            section.lines = [line for line in section.lines if "|" in line or line.partition(":")[0].strip() in nics]
    return list(lacking.values())


def _several(place: Place) -> Iterator[Diagnostic]:
    """Interfaces that carried something, of which a bridge may be one."""
    keys = zip(place.differences["key"].to_pylist(), place.differences["difference"].to_pylist(), strict=True)
    moved = {key.removeprefix("net/dev:").rpartition(".")[0] for key, by in keys if key and key.startswith("net/dev:") and by}
    if len(nics := sorted(moved & set(place.nics()))) > 1:
        yield Diagnostic(
            f"NICs are a sum of {', '.join(nics)}: what goes through several counts on each (see nics)", harmless=True
        )


def _place(parts: Sequence[Mapping[str, Section]], file: Path) -> tuple[Place, bool]:
    """What the snapshots come to, and whether the times between them are known."""
    if not any(parts):
        raise FormatError("has no source of /proc that can be read")
    times = [time for part in parts if (time := _uptime_s(part.get(_UPTIME))) is not None]
    timed = len(times) == len(parts) and all(later > earlier for earlier, later in pairwise(times))
    return _read(parts, times if timed else range(len(parts)), file), timed


def _without(part: Mapping[str, Section], names: Mapping[str, Diagnostic]) -> dict[str, Section]:
    return {name: section for name, section in part.items() if name not in names}


def _uptime_s(section: Section | None) -> float | None:
    return float(section.lines[0].split()[0]) if section else None


def _written(parts: Sequence[Mapping[str, Section]], times: Sequence[float]) -> bytes:
    """As ``twinbed-probe counters`` writes snapshots."""
    text: list[bytes] = []
    for at, part in enumerate(parts):
        text.append(f"@ {at} {times[at]} 0\n".encode())
        # The kernel is the file's own, whatever of it is there.
        text += [] if KERNEL_MARK in part else [f"# {KERNEL_MARK} -\n".encode()]
        for name, section in part.items():
            content = ("\n".join(section.lines) + "\n").encode()
            text.append(f"# {name} {len(content)}\n".encode() + content + b"\n")
    return b"".join(text)


def _read(parts: Sequence[Mapping[str, Section]], times: Sequence[float], file: Path) -> Place:
    file.write_bytes(_written(parts, times))
    try:
        return replace(read_place(file), name="")
    except ValueError as error:
        raise FormatError(f"cannot be read: {str(error).removeprefix(f'{file}: ')}") from error


def _unreadable(parts: Sequence[Mapping[str, Section]], file: Path) -> dict[str, Diagnostic]:
    """Source -> why it is left out, where one of its texts is damaged."""
    unread: dict[str, Diagnostic] = {}
    for part in parts:
        for name, section in part.items():
            try:
                _read([{name: section}], [0], file)
            except FormatError as error:
                unread[name] = Diagnostic(f"{name}: {error.reason}", section.line)
    return unread


def _lost(place: Place, snapshots: int) -> Iterator[Diagnostic]:
    """Counters that have no difference, and so no part in any value, by reason."""
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


proc_snapshot = ProcSnapshot()
