"""A host's samples: values, the table ``sockets``, cautions.

The kernel counts since a connection began, so the last sample has everything before it.  Means of the congestion window and
the like are over the time in which a socket was busy sending.  Each sample has the weight of the busy time since the one before
it, a connection's first of that since it began.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from twinbed.metrics import sockets as metrics
from twinbed.metrics.metric import Value
from twinbed.metrics.sockets import value
from twinbed.model.caution import Caution, Kind
from twinbed.readers.sockets.samples import (
    APP_LIMITED,
    CA_STATE,
    CA_STATES,
    FIELDS,
    FLAGS,
    STATE,
    STATES,
    Field,
    Numbers,
    Samples,
    numbers,
)

if TYPE_CHECKING:
    import pyarrow as pa


MAY_SEND = [state for state, word in STATES.items() if word in ("established", "close_wait")]
"""States in which an application may still send (RFC 9293)."""


@dataclass(frozen=True)
class Summary:
    """One host."""

    samples: Samples

    def values(self) -> Iterator[Value]:
        host = self.samples.host
        busy = self._busy_s
        total = _sum(self._since_the_last("busy_s"))
        rwnd, sndbuf = (_sum(self._since_the_last(name)) for name in ("rwnd_limited_s", "sndbuf_limited_s"))
        rest = None if total is None or rwnd is None or sndbuf is None else total - rwnd - sndbuf
        yield value(metrics.CWND, _mean(self._column("cwnd"), busy), host)
        yield value(metrics.SRTT, _mean(self._column("srtt_s"), busy), host)
        yield value(metrics.RETRANSMISSIONS, _sum(self._since_the_last("total_retrans")), host)
        unlimited = np.where(self._app_limited == 0, self._column("delivery_rate"), np.nan)
        yield value(metrics.DELIVERY_RATE, _mean(unlimited, busy), host)
        yield value(metrics.RWND_LIMITED, _share(rwnd, total), host)
        yield value(metrics.SNDBUF_LIMITED, _share(sndbuf, total), host)
        yield value(metrics.NETWORK_LIMITED, _share(rest, total), host)
        yield value(metrics.APPLICATION_LIMITED, self._application_limited(), host)
        yield value(metrics.OPENED, float(self.samples.opened), host)
        yield value(metrics.SEEN, float(self.seen), host)
        yield value(metrics.SEEN_SHARE, self.seen_share, host)
        between = self._between(self.samples.time_s)
        yield value(metrics.INTERVAL, float(np.median(between)) if len(between) else None, host)

    @property
    def seen(self) -> int:
        """Count the workload's sockets with a sample that were opened while it was sampled."""
        sampled = {int(number) for number in np.unique(self.samples.socket)}
        return sum(not socket.at_start for number, socket in enumerate(self.samples.sockets) if number in sampled)

    @property
    def seen_share(self) -> float | None:
        return _share(float(self.seen), float(self.samples.opened))

    def cautions(self) -> Iterator[Caution]:
        host, share = self.samples.host, self.seen_share
        if share is not None and share < metrics.FEWEST_SEEN:
            yield Caution(Kind.UNSAMPLED, f"{host}: {self.seen} of {self.samples.opened} connections have a sample", host)
        if self.samples.dropped:
            yield Caution(Kind.UNSAMPLED, f"{host}: no room for {self.samples.dropped} samples", host)

    def table(self) -> pa.Table:
        """Return a row a sample. Null is unknown."""
        import pyarrow as pa

        samples = self.samples
        of = samples.socket
        ends = {
            "local_address": pa.string(),
            "local_port": pa.int32(),
            "remote_address": pa.string(),
            "remote_port": pa.int32(),
            "congestion": pa.string(),
        }
        columns = {"host": pa.array([samples.host] * len(of), pa.string()), "socket": pa.array(of, pa.int64())}
        for name, kind in ends.items():
            values = pa.array([getattr(socket, name) for socket in samples.sockets], kind)
            columns[name] = values.take(pa.array(of, pa.int64()))
        columns["time_s"] = pa.array(samples.time_s, pa.float64())
        columns["state"] = _words(STATE, STATES, samples)
        columns["ca_state"] = _words(CA_STATE, CA_STATES, samples)
        for name, field in FIELDS.items():
            columns[name] = _column(field, samples)
        limited = self._app_limited
        columns["app_limited"] = pa.array(limited == 1, pa.bool_(), mask=np.isnan(limited))
        return pa.table(columns)

    def _column(self, name: str) -> Numbers:
        return numbers(FIELDS[name], self.samples.infos)

    @cached_property
    def _app_limited(self) -> Numbers:
        """Return 1 where the application limited the last estimate of the delivery rate, else 0."""
        flags, known = FLAGS.read(self.samples.infos)
        return np.where(known, (flags & np.uint64(APP_LIMITED)).astype(np.float64), np.nan)

    @cached_property
    def _first(self) -> npt.NDArray[np.bool_]:
        """Return whether a sample is its socket's first."""
        of = self.samples.socket
        first: npt.NDArray[np.bool_] = np.ones(len(of), np.bool_)
        first[1:] = of[1:] != of[:-1]
        return first

    @cached_property
    def _at_start(self) -> npt.NDArray[np.bool_]:
        """Return whether a sample's socket was there before the first sample."""
        at_start = np.array([socket.at_start for socket in self.samples.sockets], np.bool_)
        return at_start[self.samples.socket] if len(at_start) else np.zeros(0, np.bool_)

    @cached_property
    def _busy_s(self) -> Numbers:
        """Return each sample's time in which its socket was busy sending."""
        return self._since_the_last("busy_s")

    def _since_the_last(self, name: str) -> Numbers:
        """Return a socket's counts in the run, sample by sample."""
        counts = self._column(name)
        before = np.concatenate(([0.0], counts[:-1])) if len(counts) else counts
        # What a connection counted before it was sampled is its own, unless that was before the run.
        before = np.where(self._first, np.where(self._at_start, counts, 0.0), before)
        return counts - before

    def _between(self, column: Numbers) -> Numbers:
        """Return differences from one sample of a socket to its next."""
        differences: Numbers = np.diff(column)
        return differences[~self._first[1:]]

    def _application_limited(self) -> float | None:
        """Return times between samples while the application may send: the beginning of a connection is unknown."""
        state, _ = STATE.read(self.samples.infos)
        inside = ~self._first[1:] & np.isin(state[:-1], MAY_SEND)
        number = self.samples.socket[1:][inside]
        if not len(number):
            return None
        of_each = (self.samples.time_s, self._column("busy_s"), self._column("bytes_sent"))
        time, busy, sent = (np.asarray(np.bincount(number, np.diff(counter)[inside]), np.float64) for counter in of_each)
        connected = time > 0
        # Times are counted in the kernel's ticks, of 1 to 10 ms.
        idle = 1 - np.minimum(busy[connected] / time[connected], 1.0)
        return _mean(idle, sent[connected])


def _column(field: Field, samples: Samples) -> pa.Array:
    """Return a column; whole numbers stay exact."""
    import pyarrow as pa

    values, known = field.read(samples.infos)
    if field.scale is None:
        return pa.array(values.astype(np.int64), pa.int64(), mask=~known)
    return pa.array(values.astype(np.float64) * field.scale, pa.float64(), mask=~known)


def _words(field: Field, words: dict[int, str], samples: Samples) -> pa.Array:
    import pyarrow as pa

    values, known = field.read(samples.infos)
    return pa.array(
        [words.get(int(code)) if is_known else None for code, is_known in zip(values, known, strict=True)], pa.string()
    )


def _mean(column: Numbers, weights: Numbers) -> float | None:
    """Return the weighted mean; None where nothing with a weight is known."""
    usable = ~np.isnan(column) & ~np.isnan(weights) & (weights > 0)
    return float(np.average(column[usable], weights=weights[usable])) if usable.any() else None


def _sum(column: Numbers) -> float | None:
    """Return the sum; None where a part is unknown, or there is none."""
    return None if not len(column) or np.isnan(column).any() else float(column.sum())


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or whole is None or whole <= 0 else part / whole
