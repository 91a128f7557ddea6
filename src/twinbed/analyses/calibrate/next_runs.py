"""Choose the runs to make next on the expensive testbed, and write the study that makes them."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from twinbed.analyses.calibrate.fit import Fitted
from twinbed.analyses.calibrate.result import Calibrated, Calibrations
from twinbed.model.error import TwinbedError
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.statistics.calibration.planning import course


@dataclass(frozen=True, slots=True)
class Next:
    by: str
    levels: Sequence[Level]
    """The most useful for its time first."""
    half_widths: Sequence[float]
    """The half-width after each level, as a share."""
    now: float
    seconds: float
    """How long all levels take."""


def next_runs(tables: Tables, calibrations: Calibrations, of: Calibrated, steps: int, until: float) -> Next:
    """Return what to measure next. ``until``: the half-width, as a share, at which to stop. Raises TwinbedError if everything
    was measured."""
    fitted, made = of.fitted, of.fitted.calibration
    kinds = list(dict.fromkeys(tuple((n, v) for n, v in cell.items() if n != fitted.by) for cell in fitted.expensive_cells))
    measured = {cell[fitted.by] for cell in fitted.expensive_cells}
    # Nothing is predicted outside of the measured range, so levels beyond its ends may be the best to measure.
    candidates = list(dict.fromkeys(cell[fitted.by] for cell in fitted.cheap_cells if cell[fitted.by] not in measured))
    if not candidates:
        raise TwinbedError(
            f"every {fitted.by} was measured on {calibrations.expensive} already",
            advice=f"add levels of {fitted.by} to the study",
        )
    places = [fitted.places([{fitted.by: level, **dict(kind)} for kind in kinds]) for level in candidates]
    seconds = _seconds(tables, calibrations.expensive, fitted)
    replicates = max(1, round(fmean(made.expensive.runs.tolist())))
    planned = course(
        made,
        places,
        made.cheap.inputs,
        seconds=[seconds(level) * len(kinds) * replicates for level in candidates],
        runs=replicates,
        steps=steps,
        until=math.log1p(until),
    )
    return Next(
        fitted.by,
        [candidates[step.candidate] for step in planned.steps],
        [math.expm1(step.half_width) for step in planned.steps],
        math.expm1(planned.now),
        sum(step.seconds for step in planned.steps),
    )


class _seconds:
    """A run's length at a level: the mean of past runs, interpolated linearly between levels."""

    def __init__(self, tables: Tables, testbed: str, fitted: Fitted) -> None:
        own: dict[float, list[float]] = {}
        factor = fitted.inputs[fitted.group]
        for record in tables.records:
            if record.settings["testbed"]["name"] == testbed and fitted.by in record.levels:
                own.setdefault(factor.scaled(record.levels[fitted.by]), []).append(sum(record.phases.values()))
        self.at = sorted(own)
        self.means = [fmean(own[at]) for at in self.at]
        self.input = factor

    def __call__(self, level: Level) -> float:
        return max(float(np.interp(self.input.scaled(level), self.at, self.means)), 1e-3)


def study_text(tables: Tables, calibrations: Calibrations, chosen: Next) -> str:
    """Return the study of the results, with these levels added to the expensive testbed's. Raises TwinbedError if the results
    have no study file."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML()
    yaml.width = 120
    try:
        study = yaml.load(tables.outline.source)
        testbed = study["testbeds"][calibrations.expensive]
        only = testbed.get("only") or {}
    except (YAMLError, KeyError, TypeError, AttributeError) as error:
        raise TwinbedError(
            f"{tables.shown} has no study file that names {calibrations.expensive}",
            advice=f"add these levels to the study by hand: {', '.join(map(str, chosen.levels))}",
        ) from error
    testbed["only"] = {**only, chosen.by: _added(only.get(chosen.by), tables, calibrations, chosen)}
    stream = io.StringIO()
    yaml.dump(study, stream)
    return stream.getvalue()


def _added(before: object, tables: Tables, calibrations: Calibrations, chosen: Next) -> object:
    levels = [str(level) if not isinstance(level, int | float) else level for level in chosen.levels]
    if isinstance(before, Mapping):
        return {**before, "also": [*before.get("also", ()), *levels]}
    if isinstance(before, Sequence) and not isinstance(before, str):
        return [*before, *levels]
    measured = dict.fromkeys(
        record.levels[chosen.by]
        for record in tables.records
        if record.settings["testbed"]["name"] == calibrations.expensive and chosen.by in record.levels
    )
    return [*measured, *levels]
