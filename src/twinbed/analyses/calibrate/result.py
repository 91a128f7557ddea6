"""The result of ``calibrate``: predictions from one testbed to another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, median

import numpy as np

from twinbed.analyses.calibrate.data import Runs
from twinbed.analyses.calibrate.fit import Doubles, Fitted
from twinbed.model.caution import Cautioned
from twinbed.model.run import Level, level_text
from twinbed.show.quantities import UnitScale, unit_scale
from twinbed.show.words import metric_title
from twinbed.statistics.calibration.area import Area, area, difference_of_areas
from twinbed.statistics.calibration.calibration import Predicted

DIRECTIONS = ("client_to_server", "server_to_client")
OUTSIDE = "outside the measured range"
UNKNOWN = "too far from all measurements"
DISBELIEVED = "left-out measurements lie outside their predictions"
"""Reasons of refusals; programs read them in tables."""


@dataclass(frozen=True)
class Place:
    """One combination of levels, with its prediction and its measurements."""

    levels: Mapping[str, Level]
    value: float | None
    """The prediction for the expensive testbed; None if ``refused``."""
    low: float | None
    high: float | None
    refused: str | None
    cheap: float | None = None
    """The geometric mean of the cheap testbed's runs; None without runs."""
    expensive: float | None = None
    cut_at: float | None = None
    """The most that the link can carry, if the prediction or its interval was above it."""

    @property
    def half_width(self) -> float | None:
        """Return half of the interval as a share: 0.06 is within 6 %."""
        if self.low is None or self.high is None:
            return None
        return math.sqrt(self.high / self.low) - 1


@dataclass(frozen=True)
class Held:
    """A cell of the expensive testbed that was left out with all others of its group."""

    levels: Mapping[str, Level]
    measured: float
    value: float
    low: float
    high: float
    is_outside: bool
    """True if the cell is outside of the others' range, so that they would refuse a prediction."""

    @property
    def is_held(self) -> bool:
        return self.low <= self.measured <= self.high


@dataclass(frozen=True)
class Calibrated:
    """One response at one combination of the levels that are no numbers."""

    fitted: Fitted
    others: Mapping[str, Runs] = field(default_factory=dict)
    """Further testbeds, whose curves are compared with the cheap one's. Not kept in a file."""

    @property
    def response(self) -> str:
        return self.fitted.response

    @property
    def unit(self) -> str:
        return self.fitted.unit

    @property
    def place(self) -> tuple[str, str | None, str | None]:
        """Return the metric, its host and its direction, None where it has none."""
        metric, *where = self.response.split("@")
        direction = next((part for part in where if part in DIRECTIONS), None)
        return metric, next((part for part in where if part != direction), None), direction

    @property
    def title(self) -> str:
        """Return ``CPU seconds per request (machine)``."""
        metric, host, direction = self.place
        return metric_title(metric, host or "", direction or "")

    @property
    def factors(self) -> Sequence[str]:
        return [*self.fitted.levels, *(factor.name for factor in self.fitted.inputs)]

    def predict(self, wanted: Sequence[Mapping[str, Level]], *, one_run: bool = False) -> Sequence[Place]:
        """Return the predictions. Raises TwinbedError if a level is missing or no number."""
        return self.places(wanted, self.fitted.predict(wanted, one_run=one_run))

    def places(self, wanted: Sequence[Mapping[str, Level]], predicted: Predicted) -> Sequence[Place]:
        return [self._place(levels, predicted, at) for at, levels in enumerate(wanted)]

    @cached_property
    def cells(self) -> Sequence[Place]:
        """Return the cells of the cheap testbed."""
        fitted, made = self.fitted, self.fitted.calibration
        # Match cells by scaled levels: a level may be written in several ways.
        expensive, cheap_places = (map(tuple, np.round(of.inputs, 9).tolist()) for of in (made.expensive, made.cheap))
        measured = dict(zip(expensive, np.exp(made.expensive.means).tolist(), strict=True))
        predicted = self.predict(fitted.cheap_cells)
        return [
            replace(cell, cheap=math.exp(mean), expensive=measured.get(place))
            for cell, place, mean in zip(predicted, cheap_places, made.cheap.means, strict=True)
        ]

    @cached_property
    def held(self) -> Sequence[Held]:
        cells = self.fitted.expensive_cells
        return [
            Held(
                {**self.fitted.levels, **cells[left.cell]},
                math.exp(left.measured),
                math.exp(left.mean),
                math.exp(left.low),
                math.exp(left.high),
                left.outside,
            )
            for left in self.fitted.calibration.left_out
        ]

    @property
    def inside(self) -> Sequence[Held]:
        """Return the left-out cells that the others predict."""
        return [held for held in self.held if not held.is_outside]

    @property
    def scale(self) -> UnitScale:
        """Return the unit of figures and of tables for readers."""
        return unit_scale(self.unit, [place.cheap for place in self.cells])

    @property
    def half_width(self) -> float | None:
        """Return the median half-width over predicted cells not measured on the expensive testbed; None without any."""
        every = [place.half_width for place in self.unmeasured if place.half_width is not None]
        return median(every) if every else None

    @property
    def unmeasured(self) -> Sequence[Place]:
        """Return the predicted cells that were not measured on the expensive testbed."""
        return [place for place in self.cells if place.expensive is None and place.refused is None]

    @property
    def assured(self) -> float | None:
        """Return the coverage of an interval whatever the curve: n / (n + 1) for n levels drawn at random, at most the level.
        None without random levels."""
        made = self.fitted.calibration
        groups = made.drawn_groups
        return min(groups / (groups + 1), made.level) if groups else None

    @property
    def ratios(self) -> tuple[float, float] | None:
        """Return the least and the greatest predicted ratio of the expensive testbed to the cheap one."""
        ratios = [place.value / place.cheap for place in self.cells if place.value is not None and place.cheap is not None]
        return (min(ratios), max(ratios)) if ratios else None

    @cached_property
    def area(self) -> Area | None:
        """Return the area between both testbeds' curves over ``by``, where both were measured; None without two levels."""
        at, [own] = self._apart([self.fitted.cheap])
        return area(at, own, self.fitted.calibration.level) if len(at) > 1 else None

    @cached_property
    def distances(self) -> Mapping[str, Area]:
        """Return testbed -> by how much the cheap testbed's curve is farther from the expensive one's than that testbed's.
        Both use the same levels of ``by``; testbeds without two such levels are left out."""
        areas = {}
        for name, runs in self.others.items():
            at, [own, other] = self._apart([self.fitted.cheap, runs])
            if len(at) > 1:
                areas[name] = difference_of_areas(at, own, other, self.fitted.calibration.level)
        return areas

    def _apart(self, sides: Sequence[Runs]) -> tuple[Doubles, Sequence[Doubles]]:
        """Return scaled levels of ``by``, and for each side the expensive testbed's mean less its own, in logarithms, of shape
        (levels, kinds). Only levels where all were measured at all kinds."""
        fitted = self.fitted
        names = [fitted.by, *(factor.name for factor in fitted.inputs if factor.name != fitted.by)]
        expensive, *means = (_log_means(runs, names) for runs in (fitted.expensive, *sides))
        shared = [place for place in expensive if all(place in other for other in means)]
        kinds = sorted({place[1:] for place in shared}, key=str)
        whole = [
            level for level in dict.fromkeys(place[0] for place in shared) if all((level, *kind) in shared for kind in kinds)
        ]
        by = fitted.inputs[fitted.group]
        at = np.array([by.scaled(level) for level in whole])
        return at, [
            np.array([[expensive[level, *kind] - other[level, *kind] for kind in kinds] for level in whole]).reshape(
                len(whole), -1
            )
            for other in means
        ]

    def _place(self, levels: Mapping[str, Level], predicted: Predicted, at: int) -> Place:
        where = {**self.fitted.levels, **levels}
        if why := self._refusal(predicted, at):
            return Place(where, None, None, None, why)
        value, low, high = (math.exp(values[at]) for values in (predicted.mean, predicted.low, predicted.high))
        most = self.fitted.limit
        if most is None or high <= most:
            return Place(where, value, low, high, None)
        return Place(where, min(value, most), min(low, most), most, None, cut_at=most)

    def _refusal(self, predicted: Predicted, at: int) -> str | None:
        if self.fitted.calibration.is_disbelieved:
            return DISBELIEVED
        if predicted.outside[at]:
            return OUTSIDE
        return UNKNOWN if predicted.unknown[at] else None


def _log_means(runs: Runs, names: Sequence[str]) -> dict[tuple[Level, ...], float]:
    logs: dict[tuple[Level, ...], list[float]] = {}
    for at, value in enumerate(runs.values):
        logs.setdefault(tuple(runs.levels[name][at] for name in names), []).append(math.log(value))
    return {place: fmean(values) for place, values in logs.items()}


@dataclass(frozen=True)
class Calibrations(Cautioned):
    source: str
    cheap: str
    """The cheap testbed, which predicts."""
    expensive: str
    """The expensive testbed, which is predicted."""
    level: float
    accepted: Sequence[str]
    """Disqualifying cautions that the user accepted."""
    passports: Mapping[str, Mapping[str, Sequence[str]]]
    """Testbed -> fact -> its values."""
    responses: Sequence[Calibrated]
    runs: str
    """The digest of its runs (``observations.predictable``)."""

    def of(self, response: str | None, levels: Mapping[str, Level]) -> Calibrated | None:
        """Return the calibration of this response (None: the first) at these levels of factors that are no numbers."""
        for calibrated in self.responses:
            if response in (None, calibrated.response) and all(
                name in levels and level_text(levels[name]) == level_text(level)
                for name, level in calibrated.fitted.levels.items()
            ):
                return calibrated
        return None
