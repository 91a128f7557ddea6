"""One direction of a measurement, as either end recorded it, its numbers, and the measurement of all directions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Fact, Measurement
from twinbed.imports.text.figures import values
from twinbed.metrics.iperf3 import METRICS as OF_WORKLOAD
from twinbed.metrics.metric import Layer, Metric
from twinbed.model.caution import Caution, Kind
from twinbed.readers.iperf3 import SHORT

if TYPE_CHECKING:
    import pyarrow as pa

JITTER_LAST = Metric(
    "interarrival_jitter_last",
    "s",
    Layer.APPLICATION,
    "smoothed variation of transit times (RFC 3550) at the end, mean over streams",
)
METRICS = (*OF_WORKLOAD, JITTER_LAST)
UNITS = {metric.name: metric.unit for metric in METRICS}
OF_TCP = frozenset({"tcp_retransmissions", "tcp_rtt_mean", "tcp_cwnd_mean"})
OF_UDP = frozenset(
    {name for name in UNITS if "datagrams" in name}
    | {"loss", "effective_throughput", "interarrival_jitter", "interarrival_jitter_last"}
)

OF_A_SECOND = (0.8, 1.25)
"""Seconds of an interval that was asked to have one: a busy machine reports late."""
COVERED = 0.98
"""The share of a summary's seconds that its intervals cover. Where they cover less, the summary is used."""
TAIL = 1e-3
"""The share of the bytes that may be in a summary alone: they come between the last interval and the end (1e-5 with 3.0.11
and -R)."""
JITTER_STEP_S = 1.000001e-6
"""The rounding of jitter in text, and a little for binary fractions."""

Number = float | None


@dataclass(frozen=True, slots=True)
class Interval:
    """A record of one end, of all its streams together."""

    start_s: float
    seconds: float
    size_bytes: float
    omitted: bool = False
    retransmissions: Number = None
    datagrams: Number = None
    """Datagrams sent; for a receiver, those that arrived or were missed."""
    lost: Number = None
    out_of_order: Number = None
    jitters_s: Sequence[float] = ()
    """One for each stream that received any; the next two for each stream that sent."""
    rtts_s: Sequence[float] = ()
    cwnds_bytes: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """iperf3's summary of one side."""

    seconds: Number = None
    size_bytes: Number = None
    rate_bit_s: Number = None
    retransmissions: Number = None
    datagrams: Number = None
    lost: Number = None
    jitter_s: Number = None


@dataclass(slots=True)
class Side:
    """The sending or the receiving end.

    ``intervals`` is None where its records are not there; omitted intervals are left out. ``summary`` is None where it is
    unknown; ``counts`` is True if its counts are of the same seconds as the rest.
    """

    intervals: Sequence[Interval] | None = None
    summary: Summary | None = None
    counts: bool = True
    cpu_share: Number = None

    @property
    def lacking(self) -> tuple[float, float] | None:
        """Return the seconds of the intervals and of the summary; None where no interval is missing.

        Intervals with all bytes are complete: only the report took longer.
        """
        summary = self.summary
        if self.intervals is None or summary is None or not summary.size_bytes or not summary.seconds:
            return None
        seconds, size = (
            math.fsum(interval.seconds for interval in self.intervals),
            math.fsum(interval.size_bytes for interval in self.intervals),
        )
        short = seconds < COVERED * summary.seconds and size < COVERED * summary.size_bytes
        return (seconds, summary.seconds) if short else None

    @property
    def records(self) -> Sequence[Interval]:
        """Return the intervals for means and deviations: all or none."""
        return () if self.lacking else self.intervals or ()


@dataclass(slots=True)
class Way:
    """One direction. ``udp`` is None where the file does not name the protocol."""

    udp: bool | None
    sender: Side = field(default_factory=Side)
    receiver: Side = field(default_factory=Side)
    direction: str = ""
    near: str = "client"
    """The end that wrote the file, client or server, and whether it sent."""
    near_sends: bool = True
    rounding: float = 0.0
    """Share by which printed sizes and rates may be rounded."""

    def numbers(self) -> dict[str, Number]:
        unasked = OF_TCP | OF_UDP if self.udp is None else OF_TCP if self.udp else OF_UDP
        by_metric: dict[str, Number] = {name: None for name in UNITS if name not in unasked}
        by_metric |= {"sender_cpu_share": self.sender.cpu_share, "receiver_cpu_share": self.receiver.cpu_share}
        sent, arrived = self._size(self.sender), self._size(self.receiver)
        by_metric |= {"sent_bytes": sent[0], "send_rate": sent[2]}
        by_metric |= {"received_bytes": arrived[0], "goodput": arrived[2], "time_taken": arrived[1]}
        by_metric["goodput_sd"] = self._deviation()
        if self.udp:
            by_metric |= self._datagrams(by_metric["send_rate"])
        elif self.udp is not None:
            by_metric |= self._tcp()
        return by_metric

    def _deviation(self) -> Number:
        """Return the sd of the goodput over intervals of a second; over others it is another quantity."""
        long = _long(self.receiver.records)
        if len(long) < 2 or not OF_A_SECOND[0] <= max(interval.seconds for interval in long) <= OF_A_SECOND[1]:
            return None
        rates = [8 * interval.size_bytes / interval.seconds for interval in long]
        deviation = stdev(rates)
        # A deviation below the rounding of the rates cannot be seen.
        return deviation if deviation >= self.rounding * fmean(rates) else None

    def _size(self, side: Side) -> tuple[Number, Number, Number]:
        """Return bytes, seconds and bit/s."""
        if side.intervals and not side.lacking:
            counted, lasted = (
                math.fsum(interval.size_bytes for interval in side.intervals),
                math.fsum(interval.seconds for interval in side.intervals),
            )
            return counted, lasted, _rate(counted, lasted)
        if side.summary is None or (side.intervals is not None and not side.lacking):
            return None, None, None
        size, seconds = side.summary.size_bytes, side.summary.seconds
        # A rate as printed is rounded once.
        return size, seconds, side.summary.rate_bit_s if self.rounding else _rate(size, seconds)

    def _tcp(self) -> Iterator[tuple[str, Number]]:
        yield "tcp_retransmissions", _count(self.sender, "retransmissions")
        long = _long(self.sender.records)
        yield "tcp_rtt_mean", _mean([rtt for interval in long for rtt in interval.rtts_s])
        yield "tcp_cwnd_mean", _mean([cwnd for interval in long for cwnd in interval.cwnds_bytes])

    def _datagrams(self, send_rate: Number) -> Iterator[tuple[str, Number]]:
        went, counted, missed = (
            _count(self.sender, "datagrams"),
            _count(self.receiver, "datagrams"),
            _count(self.receiver, "lost"),
        )
        came = counted - missed if counted is not None and missed is not None and counted >= missed else None
        yield "sent_datagrams", went
        yield "received_datagrams", came
        yield "lost_datagrams", missed
        # Where the receiver's count is not known, losses are a share of the sender's.
        of = counted if counted is not None else went
        if missed is not None and of and missed <= of:
            yield "loss", missed / of
            if send_rate is not None:
                yield "effective_throughput", (1 - missed / of) * send_rate
        if self.receiver.intervals is not None:
            yield "out_of_order_datagrams", _sum([interval.out_of_order for interval in self.receiver.records])
            yield (
                "interarrival_jitter",
                _mean([jitter for interval in _long(self.receiver.records) for jitter in interval.jitters_s]),
            )
        if self.receiver.summary is not None:
            yield "interarrival_jitter_last", self.receiver.summary.jitter_s

    def contradictions(self) -> Iterator[Caution]:
        """Yield a caution where a summary contradicts its intervals."""
        direction = f" ({self.direction})" if self.direction else ""
        for name, side in (("sender", self.sender), ("receiver", self.receiver)):
            if side.intervals and side.lacking:
                covered, whole = side.lacking
                detail = f"cover {covered:.4g} s of {whole:.4g} s; iperf3's summary is used"
                yield Caution(Kind.UNREADABLE, f"the {name}'s intervals{direction} {detail}")
            elif side.intervals and side.summary is not None:
                for what, summed, counted, unit in self._pairs(name, side.intervals, side.summary):
                    detail = f"{what} {summed:.9g}{unit}, its intervals {counted:.9g}{unit}"
                    yield Caution(Kind.CONTRADICTED, f"iperf3's summary of the {name}{direction} has {detail}")

    def _pairs(self, name: str, intervals: Sequence[Interval], summary: Summary) -> Iterator[tuple[str, float, float, str]]:
        size, seconds = (
            math.fsum(interval.size_bytes for interval in intervals),
            math.fsum(interval.seconds for interval in intervals),
        )
        pairs = [
            ("size", summary.size_bytes, size, " bytes", max(TAIL, 2 * self.rounding)),
            ("rate", summary.rate_bit_s, _rate(size, seconds), " bit/s", 0.01 + 2 * self.rounding),
            ("retransmissions", summary.retransmissions, _sum([interval.retransmissions for interval in intervals]), "", 0.0),
            ("datagrams", summary.datagrams, _sum([interval.datagrams for interval in intervals]), "", 0.0),
        ]
        if name == "receiver":
            jitter = _mean([jitter_s for interval in _long(intervals) for jitter_s in interval.jitters_s])
            pairs.append(("losses", summary.lost, _sum([interval.lost for interval in intervals]), "", 0.0))
            pairs.append(("jitter", summary.jitter_s, jitter, " s", 1e-3 + 2 * self.rounding))
        for what, summed, counted, unit, share in pairs:
            least = JITTER_STEP_S if what == "jitter" and self.rounding else 0.0
            if (
                summed is not None
                and counted is not None
                and abs(summed - counted) > max(least, share * max(abs(summed), abs(counted)))
            ):
                yield what, summed, counted, unit

    def rows(self) -> Iterator[Mapping[str, object]]:
        """Yield the rows of the table ``intervals``."""
        far = "client" if self.near == "server" else "server"
        ends = (self.near, far) if self.near_sends else (far, self.near)
        for side, end in zip((self.sender, self.receiver), ends, strict=True):
            for interval in side.intervals or ():
                row = {
                    "host": "",
                    "end": end,
                    "start_s": interval.start_s,
                    "seconds": interval.seconds,
                    "bytes": int(interval.size_bytes),
                    "retransmissions": _as_int(interval.retransmissions),
                    "datagrams": _as_int(interval.datagrams),
                    "lost_datagrams": _as_int(interval.lost),
                    "jitter_s": _mean(interval.jitters_s),
                }
                yield {**row, "direction": self.direction} if self.direction else row


def _count(side: Side, name: str) -> Number:
    if side.intervals is not None and not side.lacking:
        return _sum([getattr(interval, name) for interval in side.intervals])
    summarised: Number = getattr(side.summary, name) if side.summary is not None and side.counts else None
    return summarised


def _long(intervals: Sequence[Interval] | None) -> Sequence[Interval]:
    """Return the intervals without slivers: the last may be one."""
    longest = max((interval.seconds for interval in intervals or ()), default=0.0)
    return [interval for interval in intervals or () if interval.seconds >= SHORT * longest and interval.seconds > 0]


def _sum(numbers: Sequence[Number]) -> Number:
    """Return the sum; None where a number is missing, or there is none."""
    present = [number for number in numbers if number is not None]
    return math.fsum(present) if present and len(present) == len(numbers) else None


def _mean(numbers: Sequence[float]) -> Number:
    return fmean(numbers) if numbers else None


def _rate(size_bytes: Number, seconds: Number) -> Number:
    return 8 * size_bytes / seconds if size_bytes is not None and seconds else None


def _as_int(number: Number) -> int | None:
    return None if number is None else int(number)


C_TO_S, S_TO_C = "client_to_server", "server_to_client"
CLEARLY_SHORT = 0.98
"""Share of the duration below which a stream ended early, as for the workload."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The circumstances of a measurement. ``error``: iperf3's own message."""

    facts: Mapping[str, Fact]
    started_s: float | None
    duration_s: float | None
    error: str | None
    diagnostics: Sequence[Diagnostic]


def measurement(ways: Sequence[Way], circumstances: Circumstances) -> Measurement:
    rows = [row for way in ways for row in way.rows()]
    return Measurement(
        values=[value for way in ways for value in values(way.numbers(), METRICS, direction=way.direction)],
        tables={"intervals": table(rows)} if rows else {},
        cautions=[*_cautions(ways, circumstances), *(caution for way in ways for caution in way.contradictions())],
        diagnostics=circumstances.diagnostics,
        facts=circumstances.facts,
        started_s=circumstances.started_s,
    )


def _cautions(ways: Sequence[Way], circumstances: Circumstances) -> Iterator[Caution]:
    if circumstances.error:
        yield Caution(Kind.CUT_SHORT, f"iperf3: {circumstances.error}")
        return
    for way in ways:
        side = way.receiver if way.receiver.intervals is not None else way.sender
        intervals = None if side.lacking else side.intervals
        whole = math.fsum(interval.seconds for interval in intervals or ())
        if circumstances.duration_s and intervals and whole < CLEARLY_SHORT * circumstances.duration_s:
            direction = f" ({way.direction})" if way.direction else ""
            yield Caution(Kind.CUT_SHORT, f"only {whole:.3g} s of {circumstances.duration_s:g} s are recorded{direction}")
        if way.udp and way.near_sends and way.near == "client" and way.sender.intervals:
            yield from _unknown(way.numbers())


def _unknown(numbers: Mapping[str, float | None]) -> Iterator[Caution]:
    """Warn of numbers that no report has. A client before iperf 3.7 has only losses, with those of omitted seconds."""
    if numbers.get("goodput") is None and numbers.get("loss") is None:
        detail = "goodput and loss are null: this report does not say what arrived, or only with the omitted seconds included"
        yield Caution(Kind.UNREADABLE, detail)


def table(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Return the workload's ``intervals``, with a column ``direction`` where there are two."""
    from twinbed.readers.iperf3 import interval_table

    intervals = interval_table(rows)
    if "direction" in rows[0]:
        import pyarrow as pa

        intervals = intervals.append_column("direction", pa.array([row["direction"] for row in rows], pa.string()))
    return intervals
