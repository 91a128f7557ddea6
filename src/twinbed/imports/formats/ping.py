"""``ping``'s text: of iputils, busybox, macOS and the BSDs.

Lines of replies are preferred to the summary below; where the two disagree beyond their rounding, a caution gives both.  The
time of a probe is that of its first answer; more answers to it are duplicates.  Values in s and counts; median and 95th
percentile only where there are lines.  Several runs of ping in a file are several measurements.  A text without the line that
names the target, such as ``ping | tail -3``, gives its summary alone, as far as it is there.

Table ``probes``: ``sequence``, ``client_received_ns`` (where ping printed times, -D), ``rtt_s``; a row a first answer.

Limits: if ping was cut off before its summary, probes after the last that is named are not counted.  Sequence numbers
are 16 bits wide and are taken to wrap.  In other languages lines are read where only the words differ (``Zeit=0.042 ms``,
``temps=56.8 ms``), and a summary where the share of losses follows from its first two numbers; its other counts are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import count, real, table, unread, values
from twinbed.imports.text.probing import COUNTS, ROUND_TRIP, loss, round_trips
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = re.compile(r"PING6? \S{0,200}? ?\([^()\s]{1,80}\).{0,80}?(\d{1,6})(?:\(\d+\) ?\S.*| (?:data )?[Bb]ytes\b.*)")
_HEADER_6 = re.compile(r"PING6?\((?:\d+=40\+8\+)?(\d{1,6})(?:\+\d+)? bytes\) \S+ --> \S+")
_START = re.compile(
    rb"^[ \t]*PING6?(?: \S{0,200} \(| [0-9A-Fa-f:.%\w]{2,80}\([0-9A-Fa-f:.]{2,45}(?:%\w{1,20})?\) |\()", re.MULTILINE
)
_SUMMARY_ALONE = re.compile(
    rb"^[ \t]*(?:\d{1,9} packet(?:s|\(s\)) transmitted, \d{1,9} (?:packet(?:s|\(s\)) )?received\b"
    rb"|(?:rtt|round-trip) min/avg/max(?:/\S{2,8})? = [0-9.]+/[0-9.]+/[0-9.]+)",
    re.MULTILINE,
)
_REPLY = re.compile(r"(?:\[([0-8]?\d{1,9})\.(\d{1,6})\] )?\d{1,6} [^\W\d_]\S{0,20}.{1,200}? (?:icmp_)?seq=(\S+)(.*)")
_TIME = re.compile(r"(?<!\w)[^\W\d_]{2,12}([=<])([0-9.]+) ?(us|ms|s|sec|мс|毫秒|ミリ秒)(?!\w)")
_UNANSWERED = re.compile(
    r"(?:\[[0-9.]{1,20}\] )?(?:no answer yet for |Request timeout for |From .{1,100}? )"
    r"icmp_seq[= ](\d{1,5})\b(?!.*\b(?:ttl|hlim)=)"
)
_SUMMARY = re.compile(r"(\d{1,9}) packet(?:s|\(s\)) transmitted, (\d{1,9}) (?:packet(?:s|\(s\)) )?received(.*)")
_BEFORE_SUMMARY = re.compile(r"-{2,3} .{1,300} -{2,3}\s*")
_OTHER_SUMMARY = re.compile(
    r"[^\d,，%]{0,40}(\d{1,9})(?: [^\d,，%]{1,40})?"
    r"[,，]\s?[^\d,，%+]{0,40}?(\d{1,9})(?: [^\d,，%]{1,40})?([,，].*?)(\d{1,3}(?:\.\d{1,9})?)% .*"
)
"""The summary in another locale: probes, answers, and the share that was lost."""
_DUPLICATES = re.compile(r"\+(\d{1,9}) duplicates\b")
_TIMES = re.compile(r"(?:rtt|round-trip) min/avg/max(?:/(?:mdev|stddev|std-dev))? = ([0-9./a-z]+) ?(us|ms|s)?\b")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "мс": 1e-3, "毫秒": 1e-3, "ミリ秒": 1e-3}
_WRAP = 65536
METRICS = (*ROUND_TRIP, *COUNTS)


@dataclass
class _Run:
    """One run of ping."""

    line: int
    facts: dict[str, Fact]
    replies: list[tuple[int, int | None, float | None]] = field(default_factory=list)
    """(sequence, nanoseconds since 1970, seconds), in the order in which they came."""
    named: list[int] = field(default_factory=list)
    """Probes that ping reports as unanswered."""
    step_s: float = 0.0
    """The coarsest last place of a printed round-trip time."""
    sent: int | None = None
    received: int | None = None
    duplicates: int | None = None
    more: bool = False
    """True if the summary has another count, in words that are not read."""
    closing: bool = False
    """True if the line before was the summary's heading."""
    headless: bool = False
    """True if the text begins with the summary."""
    times: Sequence[float] = ()
    """The summary's: min, avg, max and, of most, mdev."""
    times_step_s: float = 0.0
    diagnostics: list[Diagnostic] = field(default_factory=list)


def _recognises(head: bytes) -> bool:
    return _START.search(head) is not None or _SUMMARY_ALONE.search(head) is not None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    runs = _runs(source.text().split("\n"))
    if not runs:
        raise FormatError("has no line of ping that names the target")
    measurements = [
        _measurement(run) for run in runs if run.replies or run.sent is not None or run.named or (run.headless and run.times)
    ]
    if not measurements:
        raise FormatError("ends before ping's first answer", runs[0].line)
    return measurements


def _runs(lines: Sequence[str]) -> list[_Run]:
    runs: list[_Run] = []
    blanks = ""
    for number, line in enumerate(lines, start=1):
        text = line.lstrip(" \t")
        if text.startswith("PING"):
            runs.append(_Run(number, _facts(text)))
            blanks = line[: len(line) - len(text)]
            continue
        if _begins_headless(runs[-1] if runs else None, text):
            runs.append(_Run(number, {}, headless=True))
            blanks = line[: len(line) - len(text)]
        if runs and text.strip():
            _line(runs[-1], number, line.removeprefix(blanks))
    return runs


def _begins_headless(run: _Run | None, text: str) -> bool:
    """Return whether a line of a summary is of another run than the one before it, which has its own."""
    if run is not None and not run.headless:
        return False
    if _SUMMARY.match(text):
        return run is None or run.sent is not None or bool(run.times)
    return _TIMES.match(text) is not None and (run is None or bool(run.times))


def _facts(line: str) -> dict[str, Fact]:
    facts: dict[str, Fact] = {"protocol": "icmp"}
    if (match := _HEADER.fullmatch(line)) or (match := _HEADER_6.match(line)):
        facts["probe_bytes"] = int(match[1])
    return facts


def _line(run: _Run, number: int, line: str) -> None:
    if match := _REPLY.match(line):
        _reply(run, number, match)
    elif match := _UNANSWERED.match(line):
        run.named.append(_unwrapped(run, int(match[1])))
    elif match := _SUMMARY.match(line):
        run.sent, run.received = int(match[1]), int(match[2])
        if copies := _DUPLICATES.search(match[3]):
            run.duplicates = int(copies[1])
    elif run.closing and (match := _OTHER_SUMMARY.fullmatch(line)):
        _other_summary(run, number, match)
    elif match := _TIMES.match(line):
        _summarised(run, number, match)
    elif "seq=" in line or "packets transmitted" in line or "min/avg/max" in line:
        run.diagnostics.append(unread(line, number))
    run.closing = _BEFORE_SUMMARY.fullmatch(line) is not None


def _other_summary(run: _Run, number: int, match: re.Match[str]) -> None:
    """Take two numbers with unknown words as probes and answers, only where the share of losses follows from them."""
    sent, received, lost = int(match[1]), int(match[2]), float(match[4])
    if not 0 <= received <= sent or not sent or abs(100 * (sent - received) / sent - lost) >= 1:
        run.diagnostics.append(unread(match[0], number))
        return
    run.sent, run.received = sent, received
    run.more = "+" in match[3]


def _reply(run: _Run, number: int, match: re.Match[str]) -> None:
    sequence = count(match[3].rstrip(":"))
    if sequence is None or sequence >= _WRAP:
        run.diagnostics.append(Diagnostic(f"has no sequence number: {match[3][:40]}", number))
        return
    rest, time_s = match[4], None
    if time := _TIME.search(rest):
        time_s = real(time[2])
        if time_s is not None:
            time_s *= _SECONDS[time[3]]
            run.step_s = max(run.step_s, _step(time[2]) * _SECONDS[time[3]])
    if time_s is None and "=" in rest.replace("ttl=", "").replace("hlim=", ""):
        run.diagnostics.append(Diagnostic(f"has no round-trip time: {rest.strip()[:60]}", number))
    at_ns = None
    if match[1]:
        at_ns = int(match[1]) * 10**9 + int(match[2].ljust(9, "0"))
    run.replies.append((_unwrapped(run, sequence), at_ns, time_s))


def _unwrapped(run: _Run, sequence: int) -> int:
    last = max(run.replies[-1][0] if run.replies else 0, run.named[-1] if run.named else 0)
    while sequence < last - _WRAP // 2:
        sequence += _WRAP
    return sequence


def _summarised(run: _Run, number: int, match: re.Match[str]) -> None:
    texts = match[1].split("/")
    times = [real(text) for text in texts]
    scale = _SECONDS[match[2] or "ms"]
    if len(times) < 3 or None in times:
        run.diagnostics.append(Diagnostic(f"has no round-trip times: {match[1][:60]}", number))
        return
    run.times = [time * scale for time in times if time is not None]
    run.times_step_s = max(_step(text) for text in texts) * scale


def _step(text: str) -> float:
    """Return the value of one in the last place of a number."""
    return float(10 ** -len(text.partition(".")[2]))


def _measurement(run: _Run) -> Measurement:
    cautions: list[Caution] = []
    if not run.headless and (run.replies or not run.received):
        numbers = _of_lines(run, cautions)
    else:
        numbers = _of_summary(run)
    tables = {"probes": _table(run)} if run.replies else {}
    started = next((at for _, at, _ in run.replies if at is not None), None)
    return Measurement(
        values=list(values(numbers, METRICS)),
        tables=tables,
        cautions=cautions,
        diagnostics=run.diagnostics,
        facts=run.facts,
        started_s=None if started is None else started / 1e9,
    )


def _of_summary(run: _Run) -> dict[str, float | None]:
    numbers: dict[str, float | None] = {metric.name: None for metric in METRICS}
    for name, time in zip(("min", "mean", "max", "sd"), run.times, strict=False):
        numbers[f"probe_rtt_{name}"] = time
    numbers["probes_sent"], numbers["probes_received"] = run.sent, run.received
    if run.sent is not None and run.received is not None:
        numbers["probe_loss"] = loss(run.sent - run.received, run.sent)
        numbers["probe_duplicates"] = None if run.more else run.duplicates or 0
    return numbers


def _first(run: _Run) -> dict[int, tuple[int | None, float | None]]:
    first: dict[int, tuple[int | None, float | None]] = {}
    for sequence, at, time in run.replies:
        first.setdefault(sequence, (at, time))
    return first


def _of_lines(run: _Run, cautions: list[Caution]) -> dict[str, float | None]:
    first = _first(run)
    numbers = round_trips([time for _, time in first.values() if time is not None])
    received, duplicates = len(first), len(run.replies) - len(first)
    sent = run.sent
    if sent is None:
        run.diagnostics.append(Diagnostic("has no summary: probes after the last that is named are not counted"))
        known = {*first, *run.named}
        # iputils counts from 1, the others from 0.
        sent = max(known) - min(1, *known) + 1 if known else 0
    if run.received is not None and run.received != received:
        cautions.append(_contradicted("answers", received, run.received))
    if run.received is not None and not run.more and (run.duplicates or 0) != duplicates:
        cautions.append(_contradicted("duplicates", duplicates, run.duplicates or 0))
    cautions += _contradicted_times(run)
    numbers |= {
        "probes_sent": sent,
        "probes_received": received,
        "probe_loss": loss(sent - received, sent),
        "probe_duplicates": duplicates,
        "probes_reordered": _reordered(list(first)),
    }
    return numbers


def _contradicted_times(run: _Run) -> Iterator[Caution]:
    """Warn where lines contradict the summary by two last places: ping counts duplicates, and cuts means but rounds lines."""
    times = [time for _, _, time in run.replies if time is not None]
    if len(run.times) < 3 or not times or len(times) < len(run.replies):
        return
    ours = (min(times), sum(times) / len(times), max(times))
    allowed_s = 2 * max(run.step_s, run.times_step_s)
    for name, lines, printed in zip(("shortest", "mean", "longest"), ours, run.times, strict=False):
        if abs(lines - printed) > allowed_s:
            yield _contradicted(f"{name} round-trip time in s", f"{lines:.9g}", f"{printed:.9g}")


def _contradicted(what: str, lines: object, printed: object) -> Caution:
    return Caution(Kind.CONTRADICTED, f"{what}: {lines} by the lines, {printed} by the summary")


def _reordered(sequence: Sequence[int]) -> int:
    """Count the answers that came after one to a later probe."""
    latest, count = -1, 0
    for number in sequence:
        count += number < latest
        latest = max(latest, number)
    return count


def _table(run: _Run) -> pa.Table:
    first = _first(run)
    return table(
        {
            "sequence": ("int64", first),
            "client_received_ns": ("int64", [at for at, _ in first.values()]),
            "rtt_s": ("float64", [time for _, time in first.values()]),
        }
    )


FORMATS = (Format("ping", "ping's lines and summary (iputils, busybox, macOS, BSD)", METRICS, _recognises, _read),)
