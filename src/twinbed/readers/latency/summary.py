"""Values of pairs' probes, and the tables ``probes``, ``delay_windows`` and ``clocks``.

Jitter is owping's: in each window the 95th percentile of the delay's variation less the median.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsFloat

import numpy as np
import numpy.typing as npt

from twinbed.metrics.latency import METRICS, value
from twinbed.metrics.metric import Value
from twinbed.readers.latency.clocks import Clocks, absolute_s, unskewed_s
from twinbed.readers.latency.files import LEAST, WAYS
from twinbed.readers.latency.probes import ABSENT, LOST, MISSING, UNKNOWN, Integers, Numbers, Pair

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Windows:
    """One row a window in which at least one probe arrived; quantiles of too few probes are NaN."""

    index: Integers
    arrived: Integers
    median_s: Numbers
    p95_s: Numbers

    @property
    def jitter_s(self) -> Numbers:
        jitter: Numbers = self.p95_s - self.median_s
        return jitter


def windows(at_s: Numbers, delay_s: Numbers, window_s: float) -> Windows:
    """Divide probes by the time at which they passed the client. Delays may hold any constant; NaN is a lost probe."""
    both = ~(np.isnan(at_s) | np.isnan(delay_s))
    number = np.floor(at_s[both] / window_s).astype(np.int64)
    order = np.lexsort((delay_s[both], number))
    ordered = delay_s[both][order]
    index, first, arrived = np.unique(number[order], return_index=True, return_counts=True)
    return Windows(
        index=index,
        arrived=arrived,
        median_s=_window_quantile(ordered, first, arrived, 0.5),
        p95_s=_window_quantile(ordered, first, arrived, 0.95),
    )


def _window_quantile(ordered: Numbers, first: npt.NDArray[np.intp], count: npt.NDArray[np.intp], share: float) -> Numbers:
    """Return a quantile of each run of sorted values, interpolated (type 7 of Hyndman and Fan 1996)."""
    if not len(count):
        return np.empty(0)
    position = (count - 1) * share
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, count - 1)
    low, high = ordered[first + below], ordered[first + above]
    quantiles: Numbers = np.where(count >= LEAST, low + (position - below) * (high - low), np.nan)
    return quantiles


PPM = 1e6


@dataclass(frozen=True, slots=True)
class PairSummary:
    """A pair, with the delays that its clocks allow."""

    pair: Pair
    clocks: Clocks
    unskewed: dict[str, Numbers]
    """Way -> delays up to a constant."""
    absolute: dict[str, Numbers | None]
    windows: dict[str, Windows]


def summarise(pair: Pair, clocks: Clocks, window_s: float) -> PairSummary:
    unskewed = {way: unskewed_s(pair, way, clocks) for way in WAYS}
    return PairSummary(
        *(pair, clocks, unskewed),
        absolute={way: absolute_s(pair, way, clocks) for way in WAYS},
        windows={way: windows(pair.at_s(way), unskewed[way], window_s) for way in WAYS},
    )


def values(pairs: Sequence[PairSummary], host: str) -> Iterator[Value]:
    """Yield the values of several pairs together, or of one. Means over windows are over all pairs' windows."""
    yield from _round_trip(np.concatenate([summary.pair.rtt_s for summary in pairs]), host)
    yield from _jitter(pairs, host, WAYS, "")
    for way in WAYS:
        yield from _jitter(pairs, host, (way,), way)
        yield from _one_way([summary.absolute[way] for summary in pairs], host, way)
        yield from _variation(pairs, host, way)
        yield value("probe_loss", _ratio([summary.pair.loss(way) for summary in pairs]), host, way)
        yield value("probes_reordered", sum(summary.pair.reordered(way) for summary in pairs), host, way)
    yield value("probes_sent", sum(summary.pair.sent for summary in pairs), host)
    yield value("probes_received", sum(summary.pair.received for summary in pairs), host)
    yield value("probe_loss", _ratio([summary.pair.whole_loss for summary in pairs]), host)
    duplicates = [summary.pair.duplicates for summary in pairs]
    yield value("probe_duplicates", _sum(duplicates), host)


def nothing() -> list[Value]:
    """Return null for every value, for a run whose pairs cannot all be read."""
    return [Value(metric.name, None, metric.unit) for metric in METRICS]


def clock_values(of_pair: PairSummary) -> Iterator[Value]:
    line, host = of_pair.clocks.line, of_pair.pair.client
    yield value("clock_offset", of_pair.clocks.offset_s, host)
    yield value("clock_offset_bound", line.bound_s if line else None, host)
    drift = of_pair.clocks.drift
    yield value("clock_drift", None if drift is None else drift * PPM, host)


def _round_trip(rtt_s: Numbers, host: str) -> Iterator[Value]:
    came_back = rtt_s[~np.isnan(rtt_s)]
    yield value("probe_rtt_mean", _applied(came_back, np.mean), host)
    yield value("probe_rtt_median", _applied(came_back, np.median), host)
    yield value("probe_rtt_p95", _quantile(came_back, 0.95), host)
    yield value("probe_rtt_max", _applied(came_back, np.max), host)


def _one_way(delays: Sequence[Numbers | None], host: str, way: str) -> Iterator[Value]:
    """Yield one-way delays; null unless the clocks of every pair agree."""
    known = [delay for delay in delays if delay is not None]
    joined = np.concatenate(known) if len(known) == len(delays) else np.empty(0)
    arrived = joined[~np.isnan(joined)]
    yield value("one_way_delay_min", _applied(arrived, np.min), host, way)
    yield value("one_way_delay_mean", _applied(arrived, np.mean), host, way)
    yield value("one_way_delay_median", _applied(arrived, np.median), host, way)
    yield value("one_way_delay_p95", _quantile(arrived, 0.95), host, way)
    yield value("one_way_delay_max", _applied(arrived, np.max), host, way)


def _jitter(pairs: Sequence[PairSummary], host: str, ways: Sequence[str], direction: str) -> Iterator[Value]:
    jitter = np.concatenate([summary.windows[way].jitter_s for summary in pairs for way in ways])
    jitter = jitter[~np.isnan(jitter)]
    yield value("jitter", _applied(jitter, np.mean), host, direction)
    yield value("jitter_max", _applied(jitter, np.max), host, direction)


def _variation(pairs: Sequence[PairSummary], host: str, way: str) -> Iterator[Value]:
    above = np.concatenate([_above_least(summary.unskewed[way]) for summary in pairs])
    yield value("delay_variation_p95", _quantile(above, 0.95), host, way)
    successive = np.concatenate([np.abs(np.diff(summary.unskewed[way])) for summary in pairs])
    yield value("ipdv", _applied(successive[~np.isnan(successive)], np.mean), host, way)


def _above_least(delays: Numbers) -> Numbers:
    """Return PDV (RFC 5481, 4.2): each delay less the least of its pair."""
    arrived = delays[~np.isnan(delays)]
    least: Numbers = arrived - arrived.min() if len(arrived) else arrived
    return least


def _applied(numbers: Numbers, what: Callable[[Numbers], SupportsFloat]) -> float | None:
    return float(what(numbers)) if len(numbers) else None


def _quantile(numbers: Numbers, share: float) -> float | None:
    return float(np.quantile(numbers, share)) if len(numbers) else None


def _ratio(counts: Sequence[tuple[int, int] | None]) -> float | None:
    known = [count for count in counts if count is not None]
    sent = sum(count[1] for count in known)
    return sum(count[0] for count in known) / sent if sent and len(known) == len(counts) else None


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def probes_table(of_pair: PairSummary) -> pa.Table:
    """Return a row a probe. Stamps are wall clock nanoseconds since 1970 of the host where it was; null: unknown, or lost."""
    import pyarrow as pa

    pair = of_pair.pair
    columns: dict[str, pa.Array] = {
        **_names(pair, len(pair.sequence)),
        "sequence": pa.array(pair.sequence),
        "client_sent_ns": _stamps(pair.wall.client_sent),
        "server_received_ns": _stamps(pair.wall.server_received),
        "server_sent_ns": _stamps(pair.wall.server_sent),
        "client_received_ns": _stamps(pair.wall.client_received),
        "rtt_s": _seconds(pair.rtt_s),
    }
    for way in WAYS:
        absolute = of_pair.absolute[way]
        columns[f"{way}_s"] = _seconds(np.full(len(pair.sequence), np.nan) if absolute is None else absolute)
        least = of_pair.unskewed[way] - _least(of_pair.unskewed[way])
        columns[f"{way}_variation_s"] = _seconds(least)
        fate = pair.fate[way]
        columns[f"lost_{way}"] = pa.array(fate == LOST, mask=np.isin(fate, (UNKNOWN, ABSENT)) | ~pair.settled)
    return pa.table(columns)


def windows_table(of_pair: PairSummary, window_s: float) -> pa.Table:
    """Return a row a window and direction. Variations are above the direction's least delay of the run."""
    import pyarrow as pa

    parts = []
    for way in WAYS:
        rows, least = of_pair.windows[way], _least(of_pair.unskewed[way])
        parts.append(
            pa.table(
                {
                    **_names(of_pair.pair, len(rows.index)),
                    "direction": pa.repeat(pa.scalar(way), len(rows.index)),
                    "begin_s": pa.array(rows.index * window_s, pa.float64()),
                    "arrived": pa.array(rows.arrived, pa.int64()),
                    "variation_p50_s": _seconds(rows.median_s - least),
                    "variation_p95_s": _seconds(rows.p95_s - least),
                    "jitter_s": _seconds(rows.jitter_s),
                }
            )
        )
    return pa.concat_tables(parts)


def clocks_row(of_pair: PairSummary) -> dict[str, object]:
    clocks, line = of_pair.clocks, of_pair.clocks.line
    return {
        "client": of_pair.pair.client,
        "server": of_pair.pair.server,
        "shared": clocks.shared,
        "max_error_s": clocks.max_error_s,
        "offset_s": clocks.offset_s,
        "offset_bound_s": line.bound_s if line else None,
        "drift_ppm": line.drift * PPM if line else None,
        "drift_low_ppm": line.drift_low * PPM if line else None,
        "drift_high_ppm": line.drift_high * PPM if line else None,
        "steps": len(clocks.steps),
    }


def clocks_schema() -> pa.Schema:
    import pyarrow as pa

    numbers = ("max_error_s", "offset_s", "offset_bound_s", "drift_ppm", "drift_low_ppm", "drift_high_ppm")
    return pa.schema(
        [
            *((name, pa.string()) for name in ("client", "server")),
            ("shared", pa.bool_()),
            *((name, pa.float64()) for name in numbers),
            ("steps", pa.int64()),
        ]
    )


def _names(pair: Pair, rows: int) -> dict[str, pa.Array]:
    import pyarrow as pa

    return {"client": pa.repeat(pa.scalar(pair.client), rows), "server": pa.repeat(pa.scalar(pair.server), rows)}


def _least(delays: Numbers) -> float:
    return float(np.nanmin(delays)) if (~np.isnan(delays)).any() else 0.0


def _stamps(stamps: Integers) -> pa.Array:
    import pyarrow as pa

    return pa.array(stamps, mask=stamps == MISSING)


def _seconds(numbers: Numbers) -> pa.Array:
    import pyarrow as pa

    return pa.array(numbers, mask=np.isnan(numbers))
