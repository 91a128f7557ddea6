"""The error of a regression that a formula and data do not allow."""

from __future__ import annotations

from collections.abc import Sequence


class RegressionError(ValueError):
    """A message with advice on what to do; for an unknown ``name``, the ``known`` ones."""

    def __init__(self, message: str, advice: str = "", *, name: str = "", known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.name, self.known = name, tuple(known)


class FormulaError(RegressionError):
    """A formula that cannot be read; ``position`` counts characters from 0."""

    def __init__(
        self, message: str, formula: str, position: int, advice: str = "", *, name: str = "", known: Sequence[str] = ()
    ) -> None:
        pointed = f"formula, character {position + 1}: {message}\n  {formula}\n  {' ' * position}^"
        super().__init__(pointed, advice, name=name, known=known)
        self.position = position
