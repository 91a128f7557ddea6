"""Tools that probe a path: their metrics, round-trip times, and the values of one-way sessions.

The metrics are the instrument ``latency``'s, and two more that ping and its like give.

One-way jitter is OWAMP's: the 95th percentile less the median of a session's delays.  One-way delays are given only where the
tool reports that both clocks are synchronised, to less than the shortest delay; else they are null, with a caution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.format import FormatError
from twinbed.imports.text.figures import total, values
from twinbed.metrics.latency import METRICS as LATENCY
from twinbed.metrics.metric import Layer, Metric, Value
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.readers.latency.files import CLIENT_TO_SERVER, SERVER_TO_CLIENT

RTT_MIN = Metric("probe_rtt_min", "s", Layer.NETWORK, "shortest round-trip time of probes")
RTT_SD = Metric("probe_rtt_sd", "s", Layer.NETWORK, "standard deviation of the round-trip times of probes, as ping's mdev")
_ALL = {metric.name: metric for metric in (*LATENCY, RTT_MIN, RTT_SD)}

ROUND_TRIP = tuple(_ALL[f"probe_rtt_{what}"] for what in ("min", "mean", "median", "p95", "max", "sd"))
COUNTS = tuple(_ALL[name] for name in ("probes_sent", "probes_received", "probe_loss", "probe_duplicates", "probes_reordered"))


def round_trips(times_s: Sequence[float]) -> dict[str, float | None]:
    """Return the metrics of ROUND_TRIP; all None where there is no time."""
    import numpy as np

    if not times_s:
        return {metric.name: None for metric in ROUND_TRIP}
    times = np.array(times_s)
    moments = (times.min(), times.mean(), np.median(times), np.quantile(times, 0.95), times.max(), times.std())
    return {metric.name: float(number) for metric, number in zip(ROUND_TRIP, moments, strict=True)}


def loss(lost: float | None, sent: float | None) -> float | None:
    """Return the share of probes lost; None where either is not known, nothing was sent, or more was lost than sent."""
    return lost / sent if lost is not None and sent and 0 <= lost <= sent else None


_NAMES = ("one_way_delay_", "jitter", "delay_variation_p95", "ipdv", "probe")
METRICS = tuple(metric for metric in LATENCY if metric.name.startswith(_NAMES) and "rtt" not in metric.name)
DELAYS = ("min", "mean", "median", "p95", "max")


@dataclass(frozen=True, slots=True)
class OneWay:
    """A session. An unknown number is None."""

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
    """The largest difference of the two clocks; None where one is not synchronised."""

    @property
    def believed(self) -> bool:
        least = self.delays.get("min")
        return self.error_s is not None and least is not None and self.error_s < least

    @property
    def received(self) -> int | None:
        return None if self.sent is None or self.lost is None or self.lost > self.sent else self.sent - self.lost


def direction_of(options: Document) -> str:
    """Return the direction that a manifest gives for files with one direction; empty without one. Raises FormatError."""
    direction = options.get("direction", "")
    if direction not in ("", CLIENT_TO_SERVER, SERVER_TO_CLIENT):
        raise FormatError(f"direction is {direction!r}; allowed: {CLIENT_TO_SERVER}, {SERVER_TO_CLIENT}")
    return str(direction)


def summarised(sessions: Sequence[tuple[str, OneWay]]) -> tuple[list[Value], list[Caution]]:
    """Return the values and cautions of (direction, session), one or the two of a pair."""
    of_sessions: list[Value] = []
    cautions: list[Caution] = []
    for direction, session in sessions:
        of_sessions += _of_session(direction, session)
        if not session.believed and session.delays.get("min") is not None:
            cautions.append(Caution(Kind.CLOCKS_APART, f"{session.origin} to {session.target}: {_doubt(session)}".lstrip()))
    counts = (("probes_sent", "sent"), ("probes_received", "received"), ("probe_duplicates", "duplicates"))
    totals = {name: total(getattr(session, part) for _, session in sessions) for name, part in counts}
    if any(direction for direction, _ in sessions):
        lost, sent = (total(getattr(session, part) for _, session in sessions) for part in ("lost", "sent"))
        jitter = total(session.jitter for _, session in sessions)
        totals |= {"probe_loss": loss(lost, sent), "jitter": None if jitter is None else jitter / len(sessions)}
    return [*of_sessions, *values(totals, METRICS)], cautions


def _of_session(direction: str, session: OneWay) -> Iterator[Value]:
    delays = {f"one_way_delay_{name}": session.delays.get(name) if session.believed else None for name in DELAYS}
    rest = {
        "jitter": session.jitter,
        "delay_variation_p95": session.delay_variation_p95,
        "ipdv": session.ipdv,
        "probe_loss": loss(session.lost, session.sent),
        "probes_reordered": session.reordered,
    }
    yield from values({**delays, **rest}, METRICS, direction=direction)


def _doubt(session: OneWay) -> str:
    if session.error_s is None:
        return "not both clocks are synchronised"
    return f"synchronised to {session.error_s:.3g} s at best, but the shortest delay is {session.delays['min']:.3g} s"
