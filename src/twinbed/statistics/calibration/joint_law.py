"""The law of request rates over payload and concurrent clients: the limit of the host, and the limit of the line. what the host
can do, and what the line can.

    1/rate = [X(t)^-q + (8 p / R)^q]^(1/q),   X(t) = lambda t / (1 + sigma (t - 1) + kappa t (t - 1))

with p bytes of payload, t clients, R the line's rate in bit/s.  X is Gunther's universal scalability law (2007, Guerrilla
Capacity Planning); for one client and q = 1 the whole is Hockney's t = a + p/b (1994, Parallel Comput. 20:389).  It is a mean
to interpolate about, no claim: the process describes how data deviate from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
LEAST_PAYLOADS = 4
STEP = 1e-4


@dataclass(frozen=True, slots=True)
class JointLaw:
    rate: float
    """lambda: requests a second of one client, of nothing."""
    contention: float
    """sigma."""
    coherence: float
    """kappa."""
    line: float
    """R, in bit/s."""
    bend: float
    """q: how sharply one limit gives way to the other."""

    def log_rate(self, payload: Doubles, clients: Doubles) -> Doubles:
        """Return the logarithm of requests a second, at payloads in bytes."""
        return _log_rate(self._logs, payload, clients)

    def slopes(self, payload: Doubles, clients: Doubles) -> Doubles:
        """Return (places, 5): how the logarithm moves with that of each parameter, by central differences."""
        steps = STEP * np.eye(5)
        up, down = ([_log_rate(self._logs + sign * step, payload, clients) for step in steps] for sign in (1, -1))
        return np.column_stack([(one - two) / (2 * STEP) for one, two in zip(up, down, strict=True)])

    @property
    def _logs(self) -> Doubles:
        return np.log([self.rate, self.contention, self.coherence, self.line, self.bend])


def _log_rate(logs: Doubles, payload: Doubles, clients: Doubles) -> Doubles:
    rate, contention, coherence, line, bend = np.exp(logs)
    host = np.log(clients * rate / (1 + contention * (clients - 1) + coherence * clients * (clients - 1)))
    wire = np.log(line / 8) - np.log(payload)
    found: Doubles = -np.logaddexp(-bend * host, -bend * wire) / bend
    return found


def joint_law(payload: Doubles, clients: Doubles, log_rates: Doubles) -> JointLaw | None:
    """Fit the law by least squares of logarithms; None for too few payloads, or if the search finds no law."""
    from scipy.optimize import least_squares

    if len(np.unique(payload)) < LEAST_PAYLOADS or np.any(payload <= 0) or np.any(clients < 1):
        return None
    highest = float(log_rates.max() - np.log(clients[log_rates.argmax()]))
    widest = float((log_rates + np.log(8 * payload)).max())
    low = np.array([highest - 7, -12.0, -18.0, widest - 3, np.log(0.5)])
    high = np.array([highest + 7, 3.0, 2.0, widest + 5, np.log(20.0)])
    start = np.array([highest + 0.1, -4.0, -8.0, widest + 0.05, np.log(2.0)])
    moving = np.array([True, np.ptp(clients) > 0, len(np.unique(clients)) > 2, True, True])

    def whole(some: Doubles) -> Doubles:
        every = np.where(moving, 0.0, low)
        every[moving] = some
        return every

    def off(some: Doubles) -> Doubles:
        return _log_rate(whole(some), payload, clients) - log_rates

    found = least_squares(off, start[moving], bounds=(low[moving], high[moving]), loss="soft_l1", f_scale=0.1)
    if not found.success:
        return None
    return JointLaw(*(float(each) for each in np.exp(whole(found.x))))
