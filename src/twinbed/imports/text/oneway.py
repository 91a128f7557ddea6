"""One direction's probes as OWAMP's tools tell of them, and the values that they come to.

Jitter is OWAMP's: the 95th percentile less the median of a session's delays.  One-way delays are given only where the tool says
that both clocks are synchronised, to less than the shortest delay; else they are null, with a caution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.format import FormatError
from twinbed.imports.text.probing import loss, values
from twinbed.metrics.latency import METRICS as LATENCY
from twinbed.metrics.metric import Value
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.readers.latency.files import CLIENT_TO_SERVER, SERVER_TO_CLIENT

_NAMES = ("one_way_delay_", "jitter", "delay_variation_p95", "ipdv", "probe")
METRICS = tuple(metric for metric in LATENCY if metric.name.startswith(_NAMES) and "rtt" not in metric.name)
DELAYS = ("min", "mean", "median", "p95", "max")


@dataclass(frozen=True, slots=True)
class OneWay:
    """A session. What is not known is None."""

    origin: str
    target: str
    sent: int | None
    lost: int | None
    duplicates: int | None
    reordered: int | None
    delays: Mapping[str, float | None]
    """The delays that DELAYS names, by the two clocks, in seconds."""
    jitter: float | None
    delay_variation_p95: float | None = None
    ipdv: float | None = None
    error_s: float | None = None
    """How far apart the clocks are at most; None where one is not synchronised."""

    @property
    def believed(self) -> bool:
        least = self.delays.get("min")
        return self.error_s is not None and least is not None and self.error_s < least

    @property
    def received(self) -> int | None:
        return None if self.sent is None or self.lost is None or self.lost > self.sent else self.sent - self.lost


def direction(options: Document) -> str:
    """What a manifest says of files with one direction: empty where nothing. Raises FormatError."""
    named = options.get("direction", "")
    if named not in ("", CLIENT_TO_SERVER, SERVER_TO_CLIENT):
        raise FormatError(f"direction is {named!r}; allowed: {CLIENT_TO_SERVER}, {SERVER_TO_CLIENT}")
    return str(named)


def summarised(sessions: Sequence[tuple[str, OneWay]]) -> tuple[list[Value], list[Caution]]:
    """The values of (direction, session), one or the two of a pair, and what is to doubt."""
    values_: list[Value] = []
    cautions: list[Caution] = []
    for way, session in sessions:
        values_ += _of(way, session)
        if not session.believed and session.delays.get("min") is not None:
            cautions.append(Caution(Kind.CLOCKS_APART, f"{session.origin} to {session.target}: {_why(session)}".lstrip()))
    totals: dict[str, float | None] = {
        name: _sum([getattr(session, part) for _, session in sessions])
        for name, part in (("probes_sent", "sent"), ("probes_received", "received"), ("probe_duplicates", "duplicates"))
    }
    values_ += values(totals, METRICS)
    if any(way for way, _ in sessions):
        lost, sent = (_sum([getattr(session, part) for _, session in sessions]) for part in ("lost", "sent"))
        jitters = [session.jitter for _, session in sessions]
        known = [jitter for jitter in jitters if jitter is not None]
        mean = sum(known) / len(known) if known and len(known) == len(jitters) else None
        values_ += values({"probe_loss": loss(lost, sent), "jitter": mean}, METRICS)
    return values_, cautions


def _of(way: str, session: OneWay) -> Iterator[Value]:
    delays = {f"one_way_delay_{name}": session.delays.get(name) if session.believed else None for name in DELAYS}
    rest = {
        "jitter": session.jitter,
        "delay_variation_p95": session.delay_variation_p95,
        "ipdv": session.ipdv,
        "probe_loss": loss(session.lost, session.sent),
        "probes_reordered": session.reordered,
    }
    yield from values({**delays, **rest}, METRICS, direction=way)


def _why(session: OneWay) -> str:
    if session.error_s is None:
        return "not both clocks are synchronised"
    return f"synchronised to {session.error_s:.3g} s at best, and the shortest delay is {session.delays['min']:.3g} s"


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
