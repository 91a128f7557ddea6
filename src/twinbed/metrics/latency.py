"""The metrics of probes: name, unit, description."""

from __future__ import annotations

from collections.abc import Mapping

from twinbed.metrics.metric import Layer, Metric, Scale, Value

ROUND_TRIP: Mapping[str, tuple[str, str]] = {
    "probe_rtt_mean": ("s", "mean round-trip time of probes less the server's own time"),
    "probe_rtt_median": ("s", "median round-trip time of probes less the server's own time"),
    "probe_rtt_p95": ("s", "95th percentile of the round-trip time of probes less the server's own time"),
    "probe_rtt_max": ("s", "longest round-trip time of probes less the server's own time"),
}
ONE_WAY: Mapping[str, tuple[str, str]] = {
    "one_way_delay_min": ("s", "shortest one-way delay of probes (RFC 7679); null unless the hosts' clocks agree"),
    "one_way_delay_mean": ("s", "mean one-way delay of probes; null unless the hosts' clocks agree"),
    "one_way_delay_median": ("s", "median one-way delay of probes; null unless the hosts' clocks agree"),
    "one_way_delay_p95": ("s", "95th percentile of the one-way delay of probes; null unless the hosts' clocks agree"),
    "one_way_delay_max": ("s", "longest one-way delay of probes; null unless the hosts' clocks agree"),
}
VARIATION: Mapping[str, tuple[str, str]] = {
    "jitter": ("s", "95th percentile less median of one-way delay, as owping's; mean over windows, each way and of both"),
    "jitter_max": ("s", "jitter of the window with the largest: 95th percentile less median of one-way delay"),
    "delay_variation_p95": ("s", "95th percentile of one-way delay less the shortest (PDV, RFC 5481), over the run"),
    "ipdv": ("s", "difference between successive probes' one-way delays (RFC 3393), mean of the absolute values"),
}
COUNTS: Mapping[str, tuple[str, str]] = {
    "probes_sent": ("1", "probes that clients sent"),
    "probes_received": ("1", "probes that came back"),
    "probe_loss": ("1", "probes lost, of those sent (RFC 7680); one way null if the direction of a loss is unknown"),
    "probe_duplicates": ("1", "replies that came more than once"),
    "probes_reordered": ("1", "probes that arrived after a later one (RFC 4737)"),
}
CLOCKS: Mapping[str, tuple[str, str]] = {
    "clock_offset": ("s", "the server's clock less the client's, at the middle of the run; exact if the path is symmetric"),
    "clock_offset_bound": ("s", "largest error of the clock offset: half the least round trip"),
    "clock_drift": ("ppm", "how fast the server's clock runs away from the client's, from both directions' least delays"),
}
HEADLINE = frozenset({"jitter", "probe_rtt_median", "probe_loss"})
UNITS = {name: unit for group in (ROUND_TRIP, ONE_WAY, VARIATION, COUNTS, CLOCKS) for name, (unit, _) in group.items()}

METRICS = tuple(
    Metric(
        *(name, unit, Layer.NETWORK, description),
        scale=Scale.INTERVAL if name in ("clock_offset", "clock_drift") else Scale.RATIO,
        headline=name in HEADLINE,
    )
    for group in (ROUND_TRIP, ONE_WAY, VARIATION, COUNTS, CLOCKS)
    for name, (unit, description) in group.items()
)


def value(name: str, number: float | None, host: str, direction: str = "") -> Value:
    return Value(name, number, UNITS[name], host, direction)
