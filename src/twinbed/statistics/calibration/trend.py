"""The mean that a process varies about: a constant, or the joint law of rates with uncertain parameters.

A trend gives its value at places, and a basis: functions added in unknown amounts, for which the process solves (universal
kriging; Matheron 1969).  For the law these are its slopes by parameters, so that it counts as fitted, not as known.

The law of request rates over payload and concurrent clients: the limit of the host, and the limit of the line.

    1/rate = [X(t)^-q + (8 p / R)^q]^(1/q),   X(t) = lambda t / (1 + sigma (t - 1) + kappa t (t - 1))

with p bytes of payload, t clients, R the line's rate in bit/s.  X is Gunther's universal scalability law (2007, Guerrilla
Capacity Planning); for one client and q = 1 the whole is Hockney's t = a + p/b (1994, Parallel Comput. 20:389).  It is a mean
to interpolate about, no claim: the process describes how data deviate from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
FLAT = 1e-3
"""Singular values below this share of the largest belong to parameters that the places do not distinguish."""


class Trend(Protocol):
    def at(self, inputs: Doubles) -> tuple[Doubles, Doubles]:
        """Return (places,) and (places, amounts), at scaled inputs (places, inputs)."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Nothing but an unknown constant."""

    def at(self, inputs: Doubles) -> tuple[Doubles, Doubles]:
        return np.zeros(len(inputs)), np.ones((len(inputs), 1))


@dataclass(frozen=True, slots=True)
class Place:
    """The place of one quantity among scaled inputs: ``low + span * input``, or the exponential of it; a number if it does not
    vary."""

    column: int | None
    low: float
    span: float = 0.0
    is_log: bool = False

    def of(self, inputs: Doubles) -> Doubles:
        at = np.full(len(inputs), self.low) if self.column is None else self.low + self.span * inputs[:, self.column]
        return np.exp(at) if self.is_log else at


@dataclass(frozen=True)
class OfLaw:
    """The joint law, fitted at ``fitted`` (places, inputs)."""

    law: JointLaw
    payload: Place
    clients: Place
    fitted: Doubles
    turn: Doubles = field(init=False)

    def __post_init__(self) -> None:
        _, sizes, turn = np.linalg.svd(self._slopes(self.fitted), full_matrices=False)
        kept = sizes > FLAT * sizes[0]
        object.__setattr__(self, "turn", (turn[kept] / sizes[kept, None]).T * np.sqrt(len(self.fitted)))

    def at(self, inputs: Doubles) -> tuple[Doubles, Doubles]:
        payload, clients = self.payload.of(inputs), self.clients.of(inputs)
        return self.law.log_rate(payload, clients), self._slopes(inputs) @ self.turn

    def _slopes(self, inputs: Doubles) -> Doubles:
        slopes = self.law.slopes(self.payload.of(inputs), self.clients.of(inputs))
        return np.column_stack([np.ones(len(inputs)), slopes])


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
        return np.column_stack([(higher - lower) / (2 * STEP) for higher, lower in zip(up, down, strict=True)])

    @property
    def _logs(self) -> Doubles:
        return np.log([self.rate, self.contention, self.coherence, self.line, self.bend])


def _log_rate(logs: Doubles, payload: Doubles, clients: Doubles) -> Doubles:
    rate, contention, coherence, line, bend = np.exp(logs)
    host = np.log(clients * rate / (1 + contention * (clients - 1) + coherence * clients * (clients - 1)))
    wire = np.log(line / 8) - np.log(payload)
    log_rates: Doubles = -np.logaddexp(-bend * host, -bend * wire) / bend
    return log_rates


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

    fitted = least_squares(off, start[moving], bounds=(low[moving], high[moving]), loss="soft_l1", f_scale=0.1)
    if not fitted.success:
        return None
    return JointLaw(*(float(parameter) for parameter in np.exp(whole(fitted.x))))
