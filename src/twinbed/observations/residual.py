"""What a fitted model leaves of an observation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Residual:
    """One observation: what the model says of it, what is left, and where a normal error of its rank would lie."""

    predicted: float
    residual: float
    normal_quantile: float
