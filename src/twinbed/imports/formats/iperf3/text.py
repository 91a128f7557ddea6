"""Format ``iperf3-text``: what iperf3 prints for people, with -V, -f, --timestamps and --get-server-output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.formats.iperf3.run import PART, Run, row
from twinbed.imports.formats.iperf3.way import METRICS
from twinbed.imports.text.figures import DECIMAL, head_text, number, unread, whole_lines
from twinbed.model.json import Document

_HEADING = re.compile(r"\[ ID\](?:\[Role\])? Interval {2,}Transfer {2,}(?:Bitrate|Bandwidth)")
_JSON = re.compile(r'\{\s*"(?:start|event)"\s*:')
_ERROR = re.compile(r"iperf3: ((?:error|interrupt) - .*)")
_SERVER_AGAIN = re.compile(r"Server listening on ")
_NOTHING = re.compile(
    "|".join(
        (
            r"\[ *[0-9]+\](?:\[..-.\])? (?:local .* connected to |Sent [0-9]+ datagrams)",
            r"- - - - |-{10}|\s*Cookie: |\s+TCP MSS: |Control connection MSS |(?:snd|rcv)_tcp_congestion |CPU Utilization: ",
            r"iperf 3\.[0-9]|(?:Linux|Darwin|FreeBSD|CYGWIN\S*) \S+ \S+ |Time: |Starting Test: |Test Complete\. ",
            r"Target Bitrate: |Reverse mode, |\w{3} \w{3} +[0-9]+ [0-9:]{8} [0-9]{4} *$",
        )
    )
)
"""Lines without a measured number."""
_FACTS = (
    ("version", re.compile(r"iperf (3\.\S+)\s*$")),
    ("kernel", re.compile(r"((?:Linux|Darwin|FreeBSD)) \S+ (\S+) ")),
    ("mss", re.compile(r"\s+TCP MSS: ([0-9]+)")),
    ("congestion", re.compile(r"snd_tcp_congestion (\S+)")),
)
_IPERF_2 = re.compile(
    r"^(?:Client connecting to |Server listening on )\S*,? ?(?:TCP|UDP) port |local .* connected with ", re.MULTILINE
)
_UNHEARD = re.compile(r"\[ *[0-9]+\](?:\[..-.\])? \((?:sender|receiver) statistics not available\)")
_DISORDER = "iperf3: OUT OF ORDER"
_CONNECTED = re.compile(r"\[ *[0-9]+\](?:\[..-.\])? local .* connected to ")
_TEST = re.compile(rf"Starting Test: protocol: (TCP|UDP), ([0-9]+) streams, .*?, ({DECIMAL}) second test")
_CPU = re.compile(rf"CPU Utilization: local/(sender|receiver) ({DECIMAL})% .*, remote/(?:sender|receiver) ({DECIMAL})% ")
_TIME = re.compile(r"Time: (.*)")


def _recognises(head: bytes) -> bool:
    text = head_text(head)
    if _JSON.search(text) or _IPERF_2.search(text):
        return False
    return _HEADING.search(text) is not None or re.search(r"^iperf3: (?:error|interrupt) - ", text, re.MULTILINE) is not None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    text = source.text()
    if _IPERF_2.search(text):
        raise FormatError("is from iperf 2; its format is iperf2")
    lines, cut = whole_lines(text, ("sender", "receiver", "Done."))
    reader = _Reader()
    for index, line in enumerate(lines):
        reader.take(line, index + 1)
    measured = [run for run in reader.runs if run.measured or run.error]
    if not measured:
        raise FormatError(
            "has no run of iperf3 that can be read" + "".join(f"; {diagnostic}" for diagnostic in reader.diagnostics[:1])
        )
    measured[-1].diagnostics += [*reader.diagnostics, *cut]
    return [run.measurement() for run in measured]


class _Reader:
    """Gathers lines, one after another, into runs."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.diagnostics: list[Diagnostic] = []
        """Before the next run, or behind the last one."""
        self._open: Run | None = None
        self._facts: dict[str, str | int] = {}
        self._started_s: float | None = None
        self._heading = ""

    def take(self, line: str, number_: int) -> None:
        match = PART.search(line)
        if match is not None:
            self._part(line, number_, match)
        elif (heading := _HEADING.search(line)) is not None:
            self._heading = line[heading.start() :]
            self._run().heading(self._heading)
        else:
            self._other(line, number_)

    def _part(self, line: str, number_: int, match: re.Match[str]) -> None:
        parsed = row(match, line)
        if parsed is None:
            self._current().append(unread(line, number_))
        else:
            self._run().add(number_, parsed, line)

    def _current(self) -> list[Diagnostic]:
        return self._open.diagnostics if self._open else self.diagnostics

    def _in_server_output(self) -> bool:
        return self._open is not None and self._open.server_output

    def _run(self, *, server: bool = False, fresh: bool = False) -> Run:
        if self._open is None or fresh:
            self._open = Run(server, dict(self._facts), self._started_s, [*self.diagnostics])
            self.runs.append(self._open)
            self._facts, self._started_s, self.diagnostics = {}, None, []
        return self._open

    def _other(self, line: str, number_: int) -> None:
        plain = line.strip()
        if "Connecting to host " in line:
            self._run(fresh=True)
        elif "Accepted connection from " in line:
            if not self._in_server_output():
                self._run(server=True, fresh=True)
        elif plain.endswith("Server output:"):
            if self._open is not None:
                self._open.begin_server_output()
        elif "iperf Done." in line:
            if self._open is not None:
                self._open.done = True
                self._open = None
        elif _SERVER_AGAIN.search(line):
            if not self._in_server_output():
                self._open = None
        elif self._open is not None and _UNHEARD.search(line) is not None:
            self._open.unheard = True
        elif _DISORDER in line:
            self._run().disordered += 1
        elif (match := _ERROR.search(line)) is not None:
            if (self._open is None and self.runs) or (self._open is not None and self._open.complete):
                self._current().append(Diagnostic(f"iperf3: {match[1]}", number_))
            else:
                self._run().error = match[1]
        elif plain and not self._circumstance(line) and not _NOTHING.search(line):
            # A date, an echo or a prompt between two reports does no harm; a line that begins as a row may be a damaged row.
            between = (self._open is None or self._open.complete) and not plain.startswith("[")
            self._current().append(replace(unread(line, number_, "is not a line of iperf3"), harmless=between))

    def _circumstance(self, line: str) -> bool:
        facts = self._open.facts if self._open is not None else self._facts
        if self._in_server_output():
            return False
        for name, pattern in _FACTS:
            if (match := pattern.search(line)) is not None:
                facts[name] = int(match[1]) if name == "mss" and len(match[1]) < 9 else " ".join(match.groups())
                return True
        if (match := _TIME.search(line)) is not None:
            self._started_s = _seconds(match[1])
            return True
        if self._open is None:
            return False
        if _CONNECTED.search(line):
            self._open.streams += 1
        elif "Reverse mode, " in line:
            self._open.reverse = True
        elif (match := _TEST.search(line)) is not None:
            self._open.duration_s = number(match[3]) or None
        elif (match := _CPU.search(line)) is not None:
            self._open.cpu = (match[1] == "sender", number(match[2]), number(match[3]))
        else:
            return False
        return True


def _seconds(text: str) -> float | None:
    """Return a date in seconds since the epoch."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


iperf3_text = Format(
    "iperf3-text",
    "iperf3's text output, from a client or a server",
    METRICS,
    _recognises,
    _read,
    work="received_bytes",
    rate="goodput",
)
