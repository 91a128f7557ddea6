"""Runs by how many there were at once, for analyses of N (pairs, flows, receivers).

Find which N keep an objective, among runs that agree in all other factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import Field

from twinbed.contracts.analysis import Otherwise, Placed
from twinbed.metrics.metric import computable
from twinbed.model.error import TwinbedError
from twinbed.model.run import Level, level_text
from twinbed.model.tables import Tables
from twinbed.observations.frame import Frame, of_tables

if TYPE_CHECKING:
    from twinbed.statistics.capacity import Capacity, Objective

Outcome = TypeVar("Outcome")
PAIRS = "pairs"
ALONE = "runs alone at their N"
"""The reason why a run is left out if no other run has its N."""


class OverN(Placed):
    """Settings of an analysis over N."""

    response: str | None = Field(default=None, description="the metric. Default: the first headline metric of RESULTS")
    over: str | None = Field(default=None, description="the factor that is N. Default: the number of pairs")
    per_pair: Annotated[bool, Otherwise("whole")] = Field(default=True, description="divide the response by N")


@dataclass(frozen=True, slots=True)
class Numbered:
    """The observations that agree in all factors but N; one entry each."""

    levels: Mapping[str, Level]
    n: Sequence[int]
    values: Sequence[float]
    runs: Sequence[str]
    """Identities; empty texts for rows of files."""
    replicates: Sequence[int]
    """0 for rows of files."""

    @property
    def name(self) -> str:
        """Return a name such as ``testbed e1000, payload 500B``; empty if no other factor varies."""
        return ", ".join(f"{factor} {level_text(level)}" for factor, level in self.levels.items())

    def samples(self, least: int = 1) -> dict[int, list[float]]:
        """Return values by N, in its order, for each N that has at least so many."""
        by_n: dict[int, list[float]] = {n: [] for n in sorted(set(self.n))}
        for n, value in zip(self.n, self.values, strict=True):
            by_n[n].append(value)
        return {n: values for n, values in by_n.items() if len(values) >= least}

    def enough(self, least: int, needed: int | None = None) -> dict[int, list[float]]:
        """Return samples without each N that has fewer than ``least``, so that such an N does not cost what is known of the
        others. If ``needed`` is such an N, or no other is left, all N are returned."""
        samples = self.samples(least)
        return samples if samples and (needed is None or needed in samples) else self.samples()


def over_n(source: Tables | Frame, params: OverN) -> tuple[Frame, str, list[Numbered]]:
    """Return the observations, the factor that is N, and the observations by the levels of the other factors. Raises
    TwinbedError if no factor could be N, and as ``numbered`` does."""
    over = params.over or (PAIRS if isinstance(source, Frame) else _pairs_of(source))
    frame = source if isinstance(source, Frame) else of_tables(source, params.response, params.host, params.direction)
    return frame, over, numbered(frame, over, per_pair=params.per_pair)


def _pairs_of(tables: Tables) -> str:
    """Return the factor that is the number of pairs, however the study writes it."""
    numbers = varied_numbers(tables)
    factor = of_pairs(numbers)
    if factor is None:
        choices = ", ".join(numbers)
        advice = f"choose --over FACTOR from: {choices}" if choices else "N must be a factor of whole numbers, such as pairs"
        raise TwinbedError(f"{tables.shown}: no number of pairs varies", advice=advice)
    return factor


def one_of(over: str) -> str:
    """Return what N counts, without the path to the factor: ``pair``."""
    return over.rpartition(".")[2].removesuffix("s")


def each_by_itself(groups: Sequence[Numbered], judge: Callable[[Numbered], Outcome]) -> tuple[list[Outcome], dict[str, int]]:
    """Judge each group; return the outcomes, and the runs of refused groups by the reason. One group does not cost what is
    known of the others. Raises the first TwinbedError if ``judge`` refuses all."""
    outcomes: list[Outcome] = []
    left_out: dict[str, int] = {}
    refused = None
    for group in groups:
        try:
            outcomes.append(judge(group))
        except TwinbedError as error:
            refused = refused or error
            left_out[f"runs of {group.name}: {error.message.removeprefix(f'{group.name}: ')}"] = len(group.runs)
    if refused is not None and not outcomes:
        raise refused
    return outcomes, left_out


def varied_numbers(tables: Tables) -> dict[str, list[Level]]:
    """Return the factors that could be N, with their levels: those that vary and are whole numbers from 1 on."""
    numbers: dict[str, dict[Level, None]] = {}
    for record in tables.records:
        for factor, level in record.levels.items():
            numbers.setdefault(factor, {})[level] = None
    return {name: list(levels) for name, levels in numbers.items() if len(levels) > 1 and all(map(_is_number, levels))}


def of_pairs(factors: Iterable[str]) -> str | None:
    """Return the factor that is the number of pairs, by its short name or its full one (``topology.pairs``)."""
    return next((name for name in factors if name.rpartition(".")[2] == PAIRS), None)


def _is_number(level: Level) -> bool:
    return isinstance(level, int | float) and not isinstance(level, bool) and level >= 1 and float(level).is_integer()


def numbered(frame: Frame, over: str, *, per_pair: bool = False) -> list[Numbered]:
    """Return the values by the levels of the frame's other factors, in their order; with ``per_pair`` values are divided by N.
    Raises TwinbedError if ``over`` is no column of whole numbers from 1 on, or if there is no observation."""
    column = frame.column(over)
    if not len(frame):
        left_out = ", ".join(f"{count} {reason}" for reason, count in frame.left_out.items())
        raise TwinbedError(
            f"{frame.source} has no value of {frame.response}", advice=f"left out: {left_out}" if left_out else "it has no rows"
        )
    for level in column.levels:
        if not _is_number(level):
            raise TwinbedError(
                f"{over} has the level {level_text(level)}, expected whole numbers from 1 on",
                advice="give the factor with the number of simultaneous pairs",
            )
    of_n = [int(number) for number in column.numbers()]
    others = [name for name in frame.factors if name != over]
    runs, replicates = _texts(frame, "run"), _numbers(frame, "replicate")
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in range(len(frame)):
        groups.setdefault(tuple(int(frame.columns[name].codes[row]) for name in others), []).append(row)
    return [
        Numbered(
            {name: frame.columns[name].levels[code] for name, code in zip(others, codes, strict=True)},
            [of_n[row] for row in rows],
            [float(frame.y[row]) / (of_n[row] if per_pair else 1) for row in rows],
            [runs[row] for row in rows],
            [replicates[row] for row in rows],
        )
        for codes, rows in sorted(groups.items())
    ]


def _texts(frame: Frame, name: str) -> list[str]:
    column = frame.columns.get(name)
    return [""] * len(frame) if column is None else [level_text(column.levels[code]) for code in column.codes]


def _numbers(frame: Frame, name: str) -> list[int]:
    column = frame.columns.get(name)
    return [0] * len(frame) if column is None or not column.numeric else [int(number) for number in column.numbers()]


def measured(tables: Tables, host: str | None = None) -> dict[str, dict[str, float]]:
    """Return every metric as name, name@host or name@host@direction, with its known values by run; only of ``host`` if
    given."""
    table = tables.table("metrics")
    if not table.num_rows:
        return {}
    values_of: dict[str, dict[str, float]] = {}
    columns = (table[name].to_pylist() for name in ("metric", "host", "direction", "run", "value"))
    for metric, at, direction, run, value in zip(*columns, strict=True):
        if value is not None and (host is None or at == host):
            values_of.setdefault("@".join(part for part in (metric, at, direction) if part), {})[run] = float(value)
    return values_of


LEAST_RATE = 0.9
"""The share of the single pair's rate that a report requires."""
MOST_LOSS = 0.01
LEAST_FAIRNESS = 0.95
"""Jain's index; a report requires it if no single pair was run to compare rates with."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """The N that keep one objective."""

    capacity: Capacity
    samples: Mapping[int, Sequence[float]]
    """The values of each N with enough runs."""
    statement: str


def fitting(group: Numbered, over: str, objective: Objective, confidence: float, unit: str) -> Fitting:
    """Return which N keep the objective. ``unit`` is the values' unit, for the statement. Raises TwinbedError with the group
    that cannot be judged, and the reason."""
    from twinbed.statistics.capacity import LEAST, capacity, sentence

    where = f"{group.name}: " if group.name else ""
    largest = max(map(abs, group.values), default=0.0)
    if not computable(largest):
        raise TwinbedError(f"{where}values are of size {largest:.0e}", advice="use another unit")
    samples = group.enough(LEAST, 1 if objective.relative else None)
    try:
        fitted = capacity(samples, objective, confidence)
    except ValueError as error:
        raise TwinbedError(
            f"{where}{error}, with N the {over}",
            advice="use replicates: 5 or more, and N = 1 for a share of it; `twinbed run --retry-failed` repeats failed runs",
        ) from error
    unit_of_n = one_of(over)
    return Fitting(fitted, samples, sentence(fitted, unit_of_n, f"{unit_of_n}s", unit.removeprefix("1")))
