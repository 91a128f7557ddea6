"""Format ``h2load``: what this load generator of nghttp2 prints; several runs in one text.

The metrics are the workload's ``http``, and a connection's time to its first byte (``first_byte_time_...``: from its start, so
that it is not the workload's waiting time).  Times have three digits and a unit, which is read; ``KB`` and so on are powers of
1024, but the exact counts in brackets are taken.  Rates of bytes are over the time taken or, where it has more digits, the time
of the requests by their rate.  ``requests`` were answered, with whatever status; h2load counts ``failed_requests`` as errored.
Columns are read by their heading; newer versions have more columns.

With ``-D`` h2load may count more bytes of documents than bytes in all: a caution gives both.  Another caution is for more
answers with a status than requests that were started.

Not read: clients' own rates (``req/s``), shares within a deviation, what compression of headers saves.
Source: h2load(1), and what h2load 1.52 wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from twinbed.contracts.format import Diagnostic, Fact, FormatError, Measurement
from twinbed.imports.text.figures import DECIMAL, SECONDS, finer_seconds, number, plain, rounding, unread, values
from twinbed.imports.text.reports import Layout, holding, load_format
from twinbed.metrics.http import METRICS as OF_HTTP
from twinbed.metrics.metric import Layer, Metric
from twinbed.model.caution import Caution, Kind
from twinbed.readers.http import request_cautions

_FIRST = "from the start of a connection until the first byte of an answer"
METRICS = (
    *OF_HTTP,
    *(
        Metric(f"first_byte_time_{moment}", "s", Layer.APPLICATION, f"{moment} over connections of the time {_FIRST}")
        for moment in ("min", "mean", "sd", "max", "median")
    ),
)
UNITS = {metric.name: metric.unit for metric in METRICS}
_LAYOUT = Layout(
    begins=re.compile(r"starting benchmark\.\.\."),
    result=re.compile(r"finished in \S+, "),
    again=re.compile(r"spawning thread #[0-9]+: |finished in \S+, "),
    line=re.compile(r"requests: |status codes: |traffic: |min\s+max\s|time (?:for|to) |req/s\s+: "),
)
_FINISHED = re.compile(rf"finished in ({DECIMAL})(us|ms|s|m|h), ({DECIMAL}) req/s, {DECIMAL}[KMGT]?B/s\s*")
_RECOGNISED = re.compile(
    r"^[ \t]*(?:finished in \S+, \S+ req/s, |spawning thread #[0-9]+: [0-9]+ total client\(s\))", re.MULTILINE
)
_REQUESTS = re.compile(
    r"requests: ([0-9]+) total, ([0-9]+) started, ([0-9]+) done, ([0-9]+) succeeded, ([0-9]+) failed, ([0-9]+) errored,"
    r" ([0-9]+) timeout\s*"
)
_STATUS = re.compile(r"status codes: ([0-9]+) 2xx, ([0-9]+) 3xx, ([0-9]+) 4xx, ([0-9]+) 5xx\s*")
_TRAFFIC = re.compile(
    r"traffic: \S+ \(([0-9]+)\) total, \S+ \(([0-9]+)\) headers \(space savings [^()]*\), \S+ \(([0-9]+)\) data\s*"
)
_OLD_TRAFFIC = re.compile(
    r"traffic: ([0-9]+) bytes total, ([0-9]+) bytes headers(?: \(space savings [^()]*\))?, ([0-9]+) bytes data\s*"
)
"""The line of older versions, which gave exact counts alone."""
_HEADING = re.compile(r"\s+min\s+max\s+.*sd\s+\+/- sd\s*")
_TIMES = re.compile(r"time (for request|for connect|to 1st byte)\s*:\s+(.*)")
_TIME = re.compile(rf"({DECIMAL})(us|ms|s|m|h)")
_SPAWNED = re.compile(r"spawning thread #[0-9]+: ([0-9]+) (?:total client\(s\)\. |concurrent clients, )")
_FACT = re.compile(r"(Application protocol|TLS Protocol|Cipher): (.*)")
_NOTHING = re.compile(
    r"\s*$|starting benchmark|progress: |Warm-up |Main benchmark duration |Stopped all clients |req/s\s+:"
    r"|Server Temp Key: |No protocol negotiated|UDP datagram: "
)
_STEMS = {"for request": "total_time_", "for connect": "connect_time_", "to 1st byte": "first_byte_time_"}


class _Report:
    def __init__(self) -> None:
        self.finished: tuple[float, float] | None = None
        """Seconds, and requests per second."""
        self.requests: Mapping[str, float] = {}
        self.statuses: Sequence[float] = ()
        self.traffic: tuple[float, float] | None = None
        """Bytes with headers, and of documents."""
        self.times: dict[str, float] = {}
        self.resolution: dict[str, float] = {}
        self.facts: dict[str, Fact] = {}
        self.diagnostics: list[Diagnostic] = []
        self._columns: list[str] = []
        self._rate_step = 0.0

    @property
    def seconds(self) -> float | None:
        """Return the duration by the time taken or by the rate, whichever has more digits."""
        if self.finished is None:
            return None
        taken, rate = self.finished
        return finer_seconds(taken, self.resolution["time_taken"], self.requests["done"], rate, self._rate_step)

    def take(self, line: str, at: int) -> None:
        if not self._known(line) and not _NOTHING.match(line):
            self.diagnostics.append(unread(line, at))

    def _known(self, line: str) -> bool:
        if (match := _FINISHED.fullmatch(line)) is not None:
            seconds, rate = number(match[1]), number(match[3])
            if seconds is None or rate is None:
                return False
            self.finished = seconds * SECONDS[match[2]], rate
            self._rate_step = rounding(match[3])
            self.resolution["time_taken"] = rounding(match[1]) * SECONDS[match[2]]
        elif (match := _REQUESTS.fullmatch(line)) is not None:
            counts = _counts(match)
            names = ("total", "started", "done", "succeeded", "failed", "errored", "timeout")
            self.requests = dict(zip(names, counts, strict=True)) if counts else {}
            return bool(counts)
        elif (match := _STATUS.fullmatch(line)) is not None:
            self.statuses = _counts(match)
            return bool(self.statuses)
        elif (match := _TRAFFIC.fullmatch(line) or _OLD_TRAFFIC.fullmatch(line)) is not None:
            counts = _counts(match)
            self.traffic = (counts[0], counts[2]) if counts else None
            return bool(counts)
        elif _HEADING.fullmatch(line) is not None:
            self._columns = line.replace("+/- sd", "within").split()
        elif (match := _TIMES.fullmatch(line)) is not None:
            return self._moments(_STEMS[match[1]], match[2].split())
        elif (match := _SPAWNED.match(line)) is not None:
            self.facts["clients"] = plain(float(self.facts.get("clients", 0)) + (number(match[1]) or 0))
            self.facts["threads"] = int(self.facts.get("threads", 0)) + 1
        elif (match := _FACT.fullmatch(line)) is not None:
            name = {"Application protocol": "protocol", "TLS Protocol": "tls", "Cipher": "cipher"}[match[1]]
            self.facts[name] = match[2].strip()
        else:
            return False
        return True

    def _moments(self, stem: str, words: Sequence[str]) -> bool:
        """Take all times of a line or, where one is no time, none."""
        if len(words) != len(self._columns):
            return False
        moments: dict[str, tuple[float, float]] = {}
        for column, word in zip(self._columns, words, strict=True):
            if stem + column in UNITS:
                parts = _TIME.fullmatch(word)
                value = number(parts[1]) if parts is not None else None
                if parts is None or value is None:
                    return False
                moments[stem + column] = value * SECONDS[parts[2]], rounding(parts[1]) * SECONDS[parts[2]]
        self.times |= {name: time for name, (time, _) in moments.items()}
        self.resolution |= {name: step for name, (_, step) in moments.items()}
        return True


def _counts(match: re.Match[str]) -> Sequence[float]:
    """Return all of them, or none."""
    numbers = [number(text) for text in match.groups()]
    return [text for text in numbers if text is not None] if None not in numbers else ()


def _measurement(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    report = _Report()
    for index, line in enumerate(lines):
        report.take(line, first + index)
    if not report.requests:
        raise FormatError("has no line of requests that can be read", first)
    report.diagnostics += cut
    numbers = dict(_numbers(report))
    return Measurement(
        values=list(values(numbers, METRICS)),
        cautions=[*request_cautions(numbers, report.requests["total"]), *_contradictions(report)],
        diagnostics=report.diagnostics,
        facts=report.facts,
        resolution=report.resolution,
    )


def _contradictions(report: _Report) -> Iterator[Caution]:
    if report.traffic is not None and report.traffic[1] > report.traffic[0]:
        total, data = report.traffic
        yield Caution(Kind.CONTRADICTED, f"documents have {data:.0f} bytes, but only {total:.0f} bytes were received in all")
    started = max(report.requests["total"], report.requests["started"])
    if sum(report.statuses) > started:
        yield Caution(
            Kind.CONTRADICTED, f"status codes count {sum(report.statuses):.0f} answers, but there were {started:.0f} requests"
        )


def _numbers(report: _Report) -> Iterator[tuple[str, float | None]]:
    counts = report.requests
    answered = counts["succeeded"] + counts["failed"] - counts["errored"]
    taken, rate = report.finished if report.finished is not None else (None, None)
    seconds = report.seconds
    total, data = report.traffic if report.traffic is not None else (None, None)
    yield "requests", answered if answered >= 0 else None
    yield "requests_per_second", rate if answered > 0 else None
    yield "goodput", 8 * data / seconds if data is not None and seconds and answered > 0 else None
    yield (
        "transfer_rate",
        total / seconds if total is not None and seconds and answered > 0 else None,
    )
    yield "time_taken", taken
    yield "transferred_bytes", total
    yield "document_transferred_bytes", data
    yield "failed_requests", counts["errored"]
    yield "failed_timeout", counts["timeout"]
    yield "non_2xx", sum(report.statuses[1:]) if report.statuses else None
    for name in UNITS:
        if name.startswith(tuple(_STEMS.values())) and (
            name in report.times or name.rpartition("_")[2] in ("min", "mean", "max")
        ):
            # Zeros of what never happened.
            yield name, report.times.get(name) if answered > 0 else None


FORMATS = (
    load_format(
        "h2load", "what h2load prints", METRICS, holding(_RECOGNISED, " req/s, ", " total client(s)"), _LAYOUT, _measurement
    ),
)
