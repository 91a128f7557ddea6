"""The difference between an observation and a fitted model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Residual:
    """One observation: the model's prediction, the residual, and where a normal error of its rank would lie."""

    predicted: float
    residual: float
    normal_quantile: float
