"""The mean that a process varies about: a constant, or the joint law of rates with uncertain parameters. a constant, or the
joint law of rates with what is not known of its parameters.

A trend gives its value at places, and a basis: functions added in unknown amounts, for which the process solves (universal
kriging; Matheron 1969).  For the law these are its slopes by parameters, so that it counts as fitted, not as known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.calibration.joint_law import JointLaw

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
