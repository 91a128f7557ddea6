"""The effect of a change of one variable on the response, with all others constant: a contrast of coefficients, as a
percentage.

The contrast is the difference of two rows of the design.  In a model of log y it is the difference d of logarithms, and e^d - 1
is the relative change of y, strictly that of its geometric mean or median.  Section 3.1.2 of the LDRD report reads
Table 3.4 in this way.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twinbed.statistics.regression.design import Design
from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.evaluation import Categorical, Column, Numeric
from twinbed.statistics.regression.least_squares import Doubles

Value = float | str


def difference(
    design: Design, data: Mapping[str, Column], variable: str, to: Value, base: Value, at: Mapping[str, Value]
) -> Doubles:
    """Return the contrast (p) of ``variable`` between ``to`` and ``base``, where the variables in ``at`` have the given values.

    Raises RegressionError where the effect depends on a variable that ``at`` does not give, or a level is not there.
    """
    used = design.sources
    for name in (variable, *at):
        if name not in used:
            raise RegressionError(f"{name} is not on the right side of the model", f"there are {', '.join(used)}")
    for term in design.terms:
        open_ = [name for name in term.sources if name != variable and name not in at]
        if variable in term.sources and open_:
            levels = _some(design, data, open_[0])
            raise RegressionError(
                f"the effect of {variable} depends on {open_[0]}: they interact in {term.label}",
                f"give its value: --at {open_[0]}=VALUE, such as {levels}",
            )
    values: dict[str, Value] = {name: at.get(name, _held(design, data, name)) for name in used}
    rows = []
    for value in (to, base):
        values[variable] = value
        for name in used:
            _check(design, data, name, values[name])
        rows.append(design.at(values).astype(np.float64))
    return np.asarray(rows[0] - rows[1])


def _held(design: Design, data: Mapping[str, Column], name: str) -> Value:
    """Return a value for a variable that cancels in the difference."""
    if levels := design.levels(name):
        return levels[0]
    column = data[name]
    if isinstance(column, Numeric):
        return float(column.values[design.rows[0]])
    code = int(column.codes[design.rows[0]])
    return column.levels[code] if column.numbers is None else column.numbers[code]


def _check(design: Design, data: Mapping[str, Column], name: str, value: Value) -> None:
    levels = design.levels(name)
    if levels and str(value) not in levels:
        raise RegressionError(f"{name} has no level {value!r} in the rows that are used", f"there are {', '.join(levels)}")
    if not levels and isinstance(value, str):
        raise RegressionError(f"{name} is a number, but {value!r} is not")


def _some(design: Design, data: Mapping[str, Column], name: str) -> str:
    if levels := design.levels(name):
        return " or ".join(levels[:2])
    column = data[name]
    if isinstance(column, Categorical):
        return " or ".join(column.levels[:2])
    return f"{float(np.median(column.values[design.rows])):g}"
