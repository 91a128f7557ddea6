"""Fit a calibration of one response at one combination of other levels: runs in, processes and their predictions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twinbed.analyses.calibrate.data import CLIENTS, Input, Runs, inputs_of
from twinbed.model.error import TwinbedError
from twinbed.model.near import instead
from twinbed.model.run import Level, level_text
from twinbed.statistics.calibration.calibration import Calibration, Predicted, UncalibratedError, calibrate
from twinbed.statistics.calibration.cells import Cells, cells
from twinbed.statistics.calibration.trend import OfLaw, Place, Trend, joint_law

Doubles = NDArray[np.float64]
LAW = "requests_per_second"
"""The response that the joint law describes."""


@dataclass(frozen=True)
class Fitted:
    response: str
    unit: str
    levels: Mapping[str, Level]
    """The levels of factors that are no numbers."""
    inputs: Sequence[Input]
    by: str
    """The input whose levels are left out in turn, such as the payload."""
    drawn: Sequence[Level]
    """Levels of ``by`` that were drawn at random on the expensive testbed."""
    cheap: Runs
    expensive: Runs
    calibration: Calibration
    limit: float | None = None
    """The most that the expensive testbed's links can carry, in the unit of the response; None if unknown."""

    def places(self, wanted: Sequence[Mapping[str, Level]]) -> Doubles:
        """Return scaled levels, shape (places, inputs). Raises TwinbedError if a level is missing, or is no such number."""
        for levels in wanted:
            for factor in self.inputs:
                if factor.name not in levels:
                    raise TwinbedError(f"the prediction needs a level of {factor.name}", advice=f"give --{factor.name} LEVEL")
        return np.array([[factor.scaled(levels[factor.name]) for factor in self.inputs] for levels in wanted])

    def predict(self, wanted: Sequence[Mapping[str, Level]], *, one_run: bool = False) -> Predicted:
        """Return the predictions for the expensive testbed. Raises TwinbedError as ``places`` does."""
        return self.calibration.predict(self.places(wanted), one_run=one_run)

    @cached_property
    def cheap_cells(self) -> Sequence[Mapping[str, Level]]:
        """Return the levels of each of the cheap testbed's cells, in their order."""
        return _levels_of(self.cheap, self.inputs, self.calibration.cheap)

    @cached_property
    def expensive_cells(self) -> Sequence[Mapping[str, Level]]:
        return _levels_of(self.expensive, self.inputs, self.calibration.expensive)

    @property
    def group(self) -> int:
        """Return the column of ``by``."""
        return [factor.name for factor in self.inputs].index(self.by)


def fitted(
    response: str,
    unit: str,
    levels: Mapping[str, Level],
    cheap: Runs,
    expensive: Runs,
    *,
    by: str | None,
    drawn: Sequence[Level],
    level: float,
    limit: float | None = None,
) -> Fitted:
    """Fit both processes. ``by`` None takes the factor with the most levels on the expensive testbed. Raises TwinbedError if
    there are too few runs, or no numbers that vary."""
    inputs = inputs_of(cheap, expensive)
    where = f"{response}{''.join(f', {name} {level_text(own_level)}' for name, own_level in levels.items())}"
    if not inputs:
        raise TwinbedError(
            f"{where}: no factor is a number that varies", advice="vary a payload or a number of threads in the study"
        )
    try:
        cheap_cells, expensive_cells = (
            cells(_scaled(runs, inputs), np.log(runs.values), runs.blocks) for runs in (cheap, expensive)
        )
        group = _group(inputs, expensive_cells, by)
        groups = np.unique(np.round(expensive_cells.inputs[:, group], 9), return_inverse=True)[1]
        random = np.isin(
            np.round(expensive_cells.inputs[:, group], 9),
            [round(inputs[group].scaled(drawn_level), 9) for drawn_level in drawn],
        )
        made = calibrate(
            cheap_cells, expensive_cells, groups, trend=_trend(response, inputs, cheap_cells), random=random, level=level
        )
    except (UncalibratedError, ValueError) as error:
        raise TwinbedError(f"{where}: {error}", advice="make more runs: `twinbed plan` prints their cost") from error
    return Fitted(response, unit, levels, inputs, inputs[group].name, drawn, cheap, expensive, made, limit)


def _scaled(runs: Runs, inputs: Sequence[Input]) -> Doubles:
    scaled = [[factor.scaled(level) for level in runs.levels[factor.name]] for factor in inputs]
    return np.array(scaled, dtype=np.float64).T


def _group(inputs: Sequence[Input], expensive: Cells, by: str | None) -> int:
    names = [factor.name for factor in inputs]
    if by is not None:
        if by not in names:
            raise TwinbedError(f"factor {by} is not a number that varies", advice=instead(by, names))
        return names.index(by)
    return int(np.argmax([len(np.unique(np.round(expensive.inputs[:, column], 9))) for column in range(len(names))]))


def _trend(response: str, inputs: Sequence[Input], cheap: Cells) -> Trend | None:
    """Return the joint law if the response is a rate of requests over payloads, else None."""
    sizes = [column for column, factor in enumerate(inputs) if factor.unit == "bytes" and factor.is_log]
    if response.partition("@")[0] != LAW or len(sizes) != 1:
        return None
    counts = [column for column, factor in enumerate(inputs) if factor.name.rpartition(".")[2] in CLIENTS]
    payload, clients = _place(inputs, sizes[0]), _place(inputs, counts[0] if len(counts) == 1 else None)
    law = joint_law(payload.of(cheap.inputs), clients.of(cheap.inputs), cheap.means)
    return None if law is None else OfLaw(law, payload, clients, cheap.inputs)


def _place(inputs: Sequence[Input], column: int | None) -> Place:
    if column is None:
        return Place(None, 1.0)
    return Place(column, inputs[column].low, inputs[column].span, inputs[column].is_log)


def _levels_of(runs: Runs, inputs: Sequence[Input], of: Cells) -> Sequence[Mapping[str, Level]]:
    names = [factor.name for factor in inputs]
    scaled = np.round(_scaled(runs, inputs), 9).tolist()
    known = {tuple(place): {name: runs.levels[name][at] for name in names} for at, place in enumerate(scaled)}
    return [known[tuple(place)] for place in np.round(of.inputs, 9).tolist()]
