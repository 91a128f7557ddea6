"""One pair's probes: when each was sent and received at both ends, and what was lost.

Stamps are whole nanoseconds: by the wall clocks since 1970, by the monotonic clocks since any time of each program's own.
A missing number is MISSING in arrays of stamps and NaN in arrays of seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinbed.readers.latency.files import CLIENT_TO_SERVER

MISSING = np.iinfo(np.int64).min
ARRIVED, LOST, UNKNOWN, ABSENT = range(4)
"""The fate of a probe in one direction. UNKNOWN: it did not come back, and nothing shows where it was lost. ABSENT: it was
never sent that way."""

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stamps:
    """A row a probe; all four by the same kind of clock."""

    client_sent: Integers
    server_received: Integers
    server_sent: Integers
    client_received: Integers

    def ends(self, way: str) -> tuple[Integers, Integers]:
        """Return (sent, received)."""
        if way == CLIENT_TO_SERVER:
            return self.client_sent, self.server_received
        return self.server_sent, self.client_received


@dataclass(frozen=True, slots=True)
class Pair:
    """The probes between a client and its server."""

    client: str
    server: str
    sequence: Integers
    wall: Stamps
    monotonic: Stamps | None
    """None where a tool has none."""
    fate: dict[str, Integers]
    """Direction -> ARRIVED, LOST, UNKNOWN or ABSENT, of each probe."""
    settled: Flags
    """Probes that had the time to come back; it is unknown whether others were lost."""
    duplicates: int | None

    @property
    def steady(self) -> Stamps:
        """Return stamps that no step of a clock disturbs, where there are any."""
        return self.monotonic or self.wall

    @property
    def rtt_s(self) -> Numbers:
        stamps = self.steady
        return difference_s(stamps.client_received, stamps.client_sent) - difference_s(
            stamps.server_sent, stamps.server_received
        )

    def at_s(self, way: str) -> Numbers:
        """Return when probes passed the client, by its clock, from its first stamp on."""
        stamps = self.steady
        passed = stamps.client_sent if way == CLIENT_TO_SERVER else stamps.client_received
        return difference_s(passed, self.begin)

    @property
    def begin(self) -> int:
        stamps = self.steady
        return min(
            int(np.min(stamp[stamp != MISSING])) for stamp in (stamps.client_sent, stamps.client_received) if _any(stamp)
        )

    def loss(self, way: str) -> tuple[int, int] | None:
        """Return (lost, sent) of the judged probes in a direction; None where the fate of one is unknown."""
        fate = self.fate[way][self.settled]
        fate = fate[fate != ABSENT]
        if (fate == UNKNOWN).any():
            return None
        return int((fate == LOST).sum()), len(fate)

    @property
    def sent(self) -> int:
        return len(self.sequence)

    @property
    def received(self) -> int:
        return int((~self._lost).sum())

    @property
    def whole_loss(self) -> tuple[int, int]:
        """Return (lost, sent) of the judged probes, wherever they were lost."""
        lost = self._lost[self.settled]
        return int(lost.sum()), len(lost)

    @property
    def _lost(self) -> Flags:
        lost: Flags = np.any([np.isin(fate, (LOST, UNKNOWN)) for fate in self.fate.values()], axis=0)
        return lost

    def reordered(self, way: str) -> int:
        """Count the probes that a later one overtook."""
        sent, received = self.steady.ends(way)
        arrived = (sent != MISSING) & (received != MISSING)
        order = np.lexsort((sent[arrived], received[arrived]))
        by_arrival = sent[arrived][order]
        return int((by_arrival < np.maximum.accumulate(by_arrival)).sum()) if len(by_arrival) else 0


def _any(stamps: Integers) -> bool:
    return bool((stamps != MISSING).any())


def difference_s(later: Integers, earlier: Integers | int, less: int = 0) -> Numbers:
    """Return seconds between stamps, less some nanoseconds; subtracted as integers, so that no nanosecond is lost."""
    both = (later != MISSING) & (earlier != MISSING)
    return np.where(both, (np.where(both, later, 0) - np.where(both, earlier, 0) - less) / 1e9, np.nan)
