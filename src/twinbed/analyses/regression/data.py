"""A frame's columns for a design matrix: numbers, or levels that may also stand for sizes."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.model.error import TwinbedError
from twinbed.model.run import Level, level_text
from twinbed.model.units import magnitudes
from twinbed.observations.frame import Column, Frame
from twinbed.statistics.regression import evaluation
from twinbed.statistics.regression.evaluation import Categorical, Numeric
from twinbed.statistics.regression.formula import Formula


def response_of(formulas: Sequence[Formula]) -> str:
    """Return the column that the models explain. Raises TwinbedError where they have none, or different ones."""
    responses = dict.fromkeys(next(iter(formula.response.names), "") for formula in formulas)
    if "" in responses:
        raise TwinbedError("a formula's response names no column", advice="such as log(requests_per_second) ~ testbed")
    if len(responses) > 1:
        raise TwinbedError(
            f"models side by side explain one response, not {' and '.join(responses)}", advice="make each by its own command"
        )
    return next(iter(responses))


def data_of(frame: Frame, formula: Formula, response: str) -> dict[str, evaluation.Column]:
    """Return the columns that a formula is bound to; the response is under the formula's name for it."""
    columns: dict[str, evaluation.Column] = {response: Numeric(frame.y)}
    return columns | {name: _column(frame.column(name)) for name in formula.names if name != response}


def _column(column: Column) -> evaluation.Column:
    if column.numeric:
        return Numeric(column.numbers())
    return Categorical(column.codes, tuple(map(level_text, column.levels)), _sizes(column.levels))


def _sizes(levels: Sequence[Level]) -> tuple[float, ...] | None:
    """Sizes such as 1MiB are bytes where a formula wants a number."""
    known = magnitudes([str(level) for level in levels])
    return tuple(each[1] for each in known if each) if all(each and each[0] == "bytes" for each in known) else None
