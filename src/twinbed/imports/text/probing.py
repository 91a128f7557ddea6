"""What tools that probe a path have in common: their metrics, and what round-trip times come to.

The metrics are the instrument ``latency``'s, and the two that ping and its like give besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twinbed.metrics.latency import METRICS as LATENCY
from twinbed.metrics.metric import Layer, Metric, Value

RTT_MIN = Metric("probe_rtt_min", "s", Layer.NETWORK, "shortest round-trip time of probes")
RTT_SD = Metric("probe_rtt_sd", "s", Layer.NETWORK, "standard deviation of the round-trip times of probes, as ping's mdev")
_ALL = {metric.name: metric for metric in (*LATENCY, RTT_MIN, RTT_SD)}

ROUND_TRIP = tuple(_ALL[f"probe_rtt_{what}"] for what in ("min", "mean", "median", "p95", "max", "sd"))
COUNTS = tuple(_ALL[name] for name in ("probes_sent", "probes_received", "probe_loss", "probe_duplicates", "probes_reordered"))


def round_trips(times_s: Sequence[float]) -> dict[str, float | None]:
    """The metrics of ROUND_TRIP; all None where there is no time."""
    import numpy as np

    if not times_s:
        return {metric.name: None for metric in ROUND_TRIP}
    times = np.array(times_s)
    moments = (times.min(), times.mean(), np.median(times), np.quantile(times, 0.95), times.max(), times.std())
    return {metric.name: float(number) for metric, number in zip(ROUND_TRIP, moments, strict=True)}


def values(
    numbers: Mapping[str, float | None], metrics: Sequence[Metric], host: str = "", direction: str = ""
) -> Iterator[Value]:
    """Numbers of these metrics, as values."""
    units = {metric.name: metric.unit for metric in metrics}
    yield from (Value(name, number, units[name], host, direction) for name, number in numbers.items())


def loss(lost: float | None, sent: float | None) -> float | None:
    """Probes lost, of those sent; None where either is not known, nothing was sent, or more was lost than sent."""
    return lost / sent if lost is not None and sent and 0 <= lost <= sent else None
