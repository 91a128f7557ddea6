"""The error of a regression that a formula and data do not allow."""

from __future__ import annotations


class RegressionError(ValueError):
    """What is wrong, and what to do about it."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class FormulaError(RegressionError):
    """A formula that cannot be read; ``position`` counts characters from 0."""

    def __init__(self, message: str, formula: str, position: int, advice: str = "") -> None:
        pointed = f"formula, character {position + 1}: {message}\n  {formula}\n  {' ' * position}^"
        super().__init__(pointed, advice)
        self.position = position
