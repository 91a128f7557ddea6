"""The relation of a client's and its server's clock, and the delays that it allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from twinbed.model.caution import Caution, Kind
from twinbed.readers.latency.files import CLIENT_TO_SERVER, WAYS
from twinbed.readers.latency.host_clock import HostClock
from twinbed.readers.latency.probes import MISSING, Flags, Numbers, Pair, difference_s
from twinbed.statistics.two_clocks import Straight, contradictions, level_shifts, straight

LEAST_STEP_S = 1e-4
"""The least step of a clock. A smaller one looks like the time between two readings of a busy host."""
BOUNDS_WINDOW_S = 1.0
MOST_DRIFT = 1e-3
"""Between two clocks: Linux adjusts a clock by at most 500 ppm (MAXFREQ), and so two by twice that."""


@dataclass(frozen=True, slots=True)
class Step:
    host: str
    at_s: float
    """Since the first probe."""
    by_s: float


@dataclass(frozen=True, slots=True)
class Clocks:
    """``offset_s`` is the server's wall clock less the client's at the middle of the run."""

    shared: bool
    max_error_s: float | None
    """The largest error of both clocks together, by their kernels; None where one is not synchronised."""
    line: Straight | None
    """The line of the clocks by which delays are computed."""
    offset_s: float | None
    steps: tuple[Step, ...]

    @property
    def drift(self) -> float | None:
        """Return the drift in seconds a second; None where the run is too short to narrow it down."""
        line = self.line
        return line.drift if line and line.drift_low > -MOST_DRIFT and line.drift_high < MOST_DRIFT else None

    def agree(self, least_delay_s: float) -> bool:
        """Return whether differences of the wall clocks' stamps are one-way delays. The least of them is given."""
        if self.steps:
            return False
        return self.shared or (self.max_error_s is not None and self.max_error_s < least_delay_s)


def relate(pair: Pair, client: HostClock | None, server: HostClock | None) -> Clocks:
    shared = client is not None and server is not None and client.boot_id is not None and client.boot_id == server.boot_id
    errors = [clock.max_error_s if clock else None for clock in (client, server)]
    known = [error for error in errors if error is not None]
    base = _base(pair)
    forth, back = (raw_s(pair, way, base) for way in WAYS)
    there_at, back_at = (pair.at_s(way) for way in WAYS)
    went, came = ~np.isnan(forth), ~np.isnan(back)
    line = straight(there_at[went], forth[went], back_at[came], back[came])
    return Clocks(
        shared=shared,
        max_error_s=sum(known) if len(known) == len(errors) else None,
        line=line,
        offset_s=_offset_s(pair, line, base) if line else None,
        steps=tuple(_steps(pair, went, there_at, forth, came, back_at, back)),
    )


def _base(pair: Pair) -> int:
    """Return a whole number of nanoseconds near the clocks' difference, so that the rest is small."""
    sent, received = pair.steady.ends(CLIENT_TO_SERVER)
    arrived = (sent != MISSING) & (received != MISSING)
    return int((received[arrived] - sent[arrived]).min()) if arrived.any() else 0


def raw_s(pair: Pair, way: str, base: int | None = None) -> Numbers:
    """Return received less sent by the hosts' own clocks: the delay, and a part that only drift changes. NaN where lost."""
    base = _base(pair) if base is None else base
    sent, received = pair.steady.ends(way)
    return difference_s(received, sent, base if way == CLIENT_TO_SERVER else -base)


def _offset_s(pair: Pair, line: Straight, base: int) -> float:
    middle_s = float(np.nanmax(pair.at_s(CLIENT_TO_SERVER))) / 2
    return line.offset_s + line.drift * middle_s + (base + _wall_ahead(pair)) / 1e9


def _wall_ahead(pair: Pair) -> int:
    """Return how much farther apart the wall clocks are than the steady ones, server less client, in nanoseconds."""
    if pair.monotonic is None:
        return 0
    arrived = pair.wall.server_received != MISSING
    server = (pair.wall.server_received - pair.monotonic.server_received)[arrived]
    client = (pair.wall.client_sent - pair.monotonic.client_sent)[arrived]
    apart = server - client
    first = int(apart[0])
    return first + int(np.median(apart - first))


def _steps(
    pair: Pair, went: Flags, there_at: Numbers, forth: Numbers, came: Flags, back_at: Numbers, back: Numbers
) -> Iterator[Step]:
    if pair.monotonic is None:
        if went.any() and came.any():
            bounds = contradictions(there_at[went], forth[went], back_at[came], back[came], BOUNDS_WINDOW_S, MOST_DRIFT)
            yield from (Step(pair.server, at_s, by_s) for at_s, by_s in bounds)
        return
    ends = (
        (pair.client, pair.wall.client_sent, pair.monotonic.client_sent),
        (pair.server, pair.wall.server_received, pair.monotonic.server_received),
    )
    for host, wall, monotonic in ends:
        stamped = wall != MISSING
        ahead = (wall - monotonic)[stamped]
        levels = (ahead - ahead[0]) / 1e9 if len(ahead) else np.empty(0)
        at_s = there_at[stamped]
        yield from (Step(host, float(at_s[index]), by_s) for index, by_s in level_shifts(levels, LEAST_STEP_S))


def unskewed_s(pair: Pair, way: str, clocks: Clocks) -> Numbers:
    """Return delays up to a constant, without a proven drift of the clocks. Clocks of one kernel have none."""
    raw = raw_s(pair, way)
    if clocks.shared or clocks.line is None or not clocks.line.drifts:
        return raw
    skew_s = clocks.line.drift * pair.at_s(way)
    return raw - skew_s if way == CLIENT_TO_SERVER else raw + skew_s


def absolute_s(pair: Pair, way: str, clocks: Clocks) -> Numbers | None:
    """Return one-way delays; None unless the clocks agree."""
    ends = {name: pair.wall.ends(name) for name in WAYS}
    delays = {name: difference_s(received, sent) for name, (sent, received) in ends.items()}
    if not all((~np.isnan(delays_s)).any() for delays_s in delays.values()):
        return None
    least_s = min(float(np.nanmin(delays_s)) for delays_s in delays.values())
    return delays[way] if least_s > 0 and clocks.agree(least_s) else None


def cautions(pair: Pair, clocks: Clocks) -> Iterator[Caution]:
    for step in clocks.steps:
        yield Caution(Kind.CLOCK_STEP, f"{step.host}: by {step.by_s:+.6g} s, {step.at_s:.1f} s after the first probe")
    if not clocks.steps and absolute_s(pair, CLIENT_TO_SERVER, clocks) is None:
        yield Caution(Kind.CLOCKS_APART, f"{pair.client} and {pair.server}: {_why(clocks)}")


def _why(clocks: Clocks) -> str:
    if clocks.shared:
        return "they share a clock, but delays are not above 0"
    apart = "" if clocks.offset_s is None else f", {clocks.offset_s:+.3g} s apart"
    if clocks.max_error_s is None:
        return f"different kernels, not both synchronised{apart}"
    return f"synchronised to {clocks.max_error_s:.3g} s at best, which is no less than the delays{apart}"
