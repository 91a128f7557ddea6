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
    dear: Runs
    calibration: Calibration
    limit: float | None = None
    """The most that the expensive testbed's links can carry, in the unit of the response; None if unknown."""

    def places(self, wanted: Sequence[Mapping[str, Level]]) -> Doubles:
        """Return scaled levels, shape (places, inputs). Raises TwinbedError if a level is missing, or is no such number."""
        for each in wanted:
            for one in self.inputs:
                if one.name not in each:
                    raise TwinbedError(f"the prediction needs a level of {one.name}", advice=f"give --{one.name} LEVEL")
        return np.array([[one.scaled(each[one.name]) for one in self.inputs] for each in wanted])

    def predict(self, wanted: Sequence[Mapping[str, Level]], *, one_run: bool = False) -> Predicted:
        """Return the predictions for the expensive testbed. Raises TwinbedError as ``places`` does."""
        return self.calibration.predict(self.places(wanted), one_run=one_run)

    @cached_property
    def cheap_cells(self) -> Sequence[Mapping[str, Level]]:
        """Return the levels of each of the cheap testbed's cells, in their order."""
        return _levels_of(self.cheap, self.inputs, self.calibration.cheap)

    @cached_property
    def dear_cells(self) -> Sequence[Mapping[str, Level]]:
        return _levels_of(self.dear, self.inputs, self.calibration.dear)

    @property
    def group(self) -> int:
        """Return the column of ``by``."""
        return [each.name for each in self.inputs].index(self.by)


def fitted(
    response: str,
    unit: str,
    levels: Mapping[str, Level],
    cheap: Runs,
    dear: Runs,
    *,
    by: str | None,
    drawn: Sequence[Level],
    level: float,
    limit: float | None = None,
) -> Fitted:
    """Fit both processes. ``by`` None takes the factor with the most levels on the expensive testbed. Raises TwinbedError if
    there are too few runs, or no numbers that vary."""
    inputs = inputs_of(cheap, dear)
    where = f"{response}{''.join(f', {name} {level_text(each)}' for name, each in levels.items())}"
    if not inputs:
        raise TwinbedError(
            f"{where}: no factor is a number that varies", advice="vary a payload or a number of threads in the study"
        )
    try:
        one, two = (cells(_scaled(runs, inputs), np.log(runs.values), runs.blocks) for runs in (cheap, dear))
        group = _group(inputs, two, by)
        groups = np.unique(np.round(two.inputs[:, group], 9), return_inverse=True)[1]
        random = np.isin(np.round(two.inputs[:, group], 9), [round(inputs[group].scaled(each), 9) for each in drawn])
        made = calibrate(one, two, groups, trend=_trend(response, inputs, one), random=random, level=level)
    except (UncalibratedError, ValueError) as error:
        raise TwinbedError(f"{where}: {error}", advice="make more runs: `twinbed plan` prints their cost") from error
    return Fitted(response, unit, levels, inputs, inputs[group].name, drawn, cheap, dear, made, limit)


def _scaled(runs: Runs, inputs: Sequence[Input]) -> Doubles:
    scaled = [[each.scaled(level) for level in runs.levels[each.name]] for each in inputs]
    return np.array(scaled, dtype=np.float64).T


def _group(inputs: Sequence[Input], dear: Cells, by: str | None) -> int:
    names = [each.name for each in inputs]
    if by is not None:
        if by not in names:
            raise TwinbedError(f"factor {by} is no number that varies", advice=instead(by, names))
        return names.index(by)
    return int(np.argmax([len(np.unique(np.round(dear.inputs[:, column], 9))) for column in range(len(names))]))


def _trend(response: str, inputs: Sequence[Input], cheap: Cells) -> Trend | None:
    """Return the joint law if the response is a rate of requests over payloads, else None."""
    sizes = [column for column, each in enumerate(inputs) if each.unit == "bytes" and each.is_log]
    if response.partition("@")[0] != LAW or len(sizes) != 1:
        return None
    counts = [column for column, each in enumerate(inputs) if each.name.rpartition(".")[2] in CLIENTS]
    payload, clients = _place(inputs, sizes[0]), _place(inputs, counts[0] if len(counts) == 1 else None)
    law = joint_law(payload.of(cheap.inputs), clients.of(cheap.inputs), cheap.means)
    return None if law is None else OfLaw(law, payload, clients, cheap.inputs)


def _place(inputs: Sequence[Input], column: int | None) -> Place:
    if column is None:
        return Place(None, 1.0)
    return Place(column, inputs[column].low, inputs[column].span, inputs[column].is_log)


def _levels_of(runs: Runs, inputs: Sequence[Input], of: Cells) -> Sequence[Mapping[str, Level]]:
    names = [each.name for each in inputs]
    scaled = np.round(_scaled(runs, inputs), 9).tolist()
    known = {tuple(place): {name: runs.levels[name][at] for name in names} for at, place in enumerate(scaled)}
    return [known[tuple(place)] for place in np.round(of.inputs, 9).tolist()]
