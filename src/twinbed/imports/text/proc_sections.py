"""Texts of /proc that were put one after another into a file, told apart by their lines or by the headings of ``tail``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from twinbed.contracts.format import Diagnostic

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
    **{f"/proc/pressure/{each}": re.compile(r"(?:some|full) avg10=") for each in ("cpu", "io", "memory")},
}
"""Source -> what all its lines begin with."""
_BETWEEN = re.compile(
    r"[^0-9]*|(?:[A-Z][a-z]{2} ){2} ?\d{1,2} [\d:]{8} .*\d{4}|[A-Z][a-z]{2} \d{1,2} [A-Z][a-z]{2} \d{4} .*"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]+.*|\d{9,10}(?:\.\d+)?"
)
"""What people print between sources: words, and the date."""


@dataclass(slots=True)
class Section:
    """One source's text. ``line`` is where it begins, from 1."""

    source: str
    line: int
    lines: list[str] = field(default_factory=list)


def sections(text: str) -> tuple[list[Section], list[Diagnostic]]:
    """In their order; flaws are the lines that are of none."""
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
    """The source whose first line this is."""
    if _PER_CPU.match(line):
        return "/proc/softirqs" if _SOFTIRQS.match(after) else "/proc/interrupts"
    return next((source for source, start in _STARTS.items() if start.match(line)), None)


def _continues(section: Section, line: str) -> bool:
    """Only of softnet_stat all lines are like the first."""
    return section.source == "/proc/net/softnet_stat" and _LINES[section.source].match(line) is not None


def _diagnostics(strange: Sequence[tuple[int, str]]) -> Iterator[Diagnostic]:
    """One for each run of lines."""
    last = -1
    for number, line in strange:
        if number != last + 1:
            harmless = _BETWEEN.fullmatch(line.strip()) is not None
            yield Diagnostic(f"is of no source that is read: {line.strip()[:80]!r}", number, harmless=harmless)
        last = number


def snapshots(texts: Sequence[Section]) -> list[dict[str, Section]]:
    """A source that is there already begins the next."""
    parts: list[dict[str, Section]] = []
    for section in texts:
        if not parts or section.source in parts[-1]:
            parts.append({})
        parts[-1][section.source] = section
    return parts
