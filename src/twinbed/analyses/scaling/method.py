"""The analysis ``scaling``: how many fit at once, by loss and the rate of a pair, or by fairness if no single pair was run.

In: runs with the number of pairs, their rate, loss, fairness, clients and loss ledgers.  Out: ``statements`` (one for each
objective of each combination of the other levels), ``numbers`` (the measurements at each N) and ``losses`` (where packets were
lost).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from statistics import fmean

import numpy as np
from pydantic import Field

from twinbed.analyses.scaling import words
from twinbed.analyses.scaling.result import AtN, LevelScaling, Scaling, Statement
from twinbed.contracts.analysis import Analysis, NoSettings
from twinbed.model.clients import overlap_share
from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.run import Status, level_text
from twinbed.model.tables import Tables
from twinbed.observations.frame import Frame, of_tables
from twinbed.observations.numbered import (
    LEAST_FAIRNESS,
    LEAST_RATE,
    MOST_LOSS,
    Numbered,
    OverN,
    fitting,
    measured,
    numbered,
    one_of,
    over_n,
)
from twinbed.show.quantities import unit_scale
from twinbed.show.section import Section
from twinbed.show.words import metric_name
from twinbed.statistics.capacity import Objective

ByRun = Mapping[str, float]


class ScalingParams(NoSettings):
    """The settings of ``scaling``."""

    response: str | None = Field(default=None, description="the rate. Default: the first headline metric of RESULTS")
    over: str | None = Field(default=None, description="the factor that is N. Default: the number of pairs")
    confidence: float | None = Field(
        default=None, gt=0.5, lt=1, description="how sure each statement is. Default: the study's confidence"
    )


class ScalingAnalysis(Analysis[ScalingParams, Scaling]):
    """How many pairs fit at once? Pairs fit if loss is at most 1 % and each has at least 90 % of a single pair's rate.

    If no single pair was run, they fit by a fairness of at least 0.95. For other objectives: `twinbed analyse capacity`.

    \b
      twinbed analyse scaling results/
      twinbed analyse scaling results/ --format csv --table numbers
    """

    name = "scaling"
    params = ScalingParams
    epilog = "docs/capacity.md explains the tests, and why only tested N are named."
    table_names = ("statements", "numbers", "losses")

    def run(self, source: Tables, params: ScalingParams | None = None) -> Scaling:
        params = params or ScalingParams()
        rates, over, cells = over_n(source, OverN(response=params.response, over=params.over))
        if over not in rates.factors:
            raise TwinbedError(
                f"only one level of {over} has {rates.response}, and scaling needs two", advice=f"add levels of {over}"
            )
        losses = _frame(source, "loss", partial=True)
        shares, confidence = _frame(source, "fairness"), params.confidence or source.outline.confidence
        known = {**measured(source, ""), "loss": _by_run(losses)}
        stages = _stages(source)
        overlaps = {record.id: share for record in source.records if (share := overlap_share(record.clients)) is not None}
        skews = {record.id: record.start_skew_s for record in source.records if record.start_skew_s is not None}
        groups = []
        for group in cells:
            statements, made = [], _of_cell(source, group, over)
            if losses is not None and len(of_group := _of_runs(losses, made)):
                statements.append(_loss_kept(of_group, group, over, confidence))
            if 1 in group.n:
                statements.append(_rate_kept(_of_runs(rates, made), group, over, confidence))
            elif shares is not None and len(of_group := _of_runs(shares, made)):
                statements.append(_fairness_kept(of_group, group, over, confidence))
            failed = _shares(made, over, lambda record: record.status is not Status.COMPLETE)
            unrated = _shares(made, over, partial(_is_unrated, frozenset(group.runs)))
            points = _points(group, made, over, known, stages, skews, overlaps)
            groups.append(LevelScaling(group.levels, statements, points, failed, unrated))
        most_loss = None if losses is None else MOST_LOSS
        names, notes = (over, rates.response, rates.unit), (rates.cautions, rates.left_out)
        return Scaling(*names, confidence, groups, most_loss, cautions=notes[0], left_out=notes[1])

    def section(self, result: Scaling) -> Section:
        return words.section(result)


def _frame(tables: Tables, metric: str, *, partial: bool = False) -> Frame | None:
    """Return a metric of the whole run (``partial``: of the clients that have it); None where no run has it."""
    try:
        frame = of_tables(tables, metric, partial=partial)
    except TwinbedError:
        return None
    return frame if len(frame) else None


def _by_run(frame: Frame | None) -> ByRun:
    if frame is None:
        return {}
    runs = frame.column("run")
    return {str(runs.levels[code]): float(value) for code, value in zip(runs.codes, frame.y, strict=True)}


def _of_cell(tables: Tables, group: Numbered, over: str) -> Sequence[Record]:
    """Return the runs that differ from the group's in N alone, also those without a rate."""

    def cell(record: Record) -> tuple[object, ...]:
        rest = sorted((name, level_text(level)) for name, level in record.levels.items() if name != over)
        return str(record.settings["testbed"]["name"]), *rest

    of = set(group.runs)
    cells = {cell(record) for record in tables.records if record.id in of}
    return [record for record in tables.records if cell(record) in cells]


def _of_runs(frame: Frame, records: Sequence[Record]) -> Frame:
    """Return these runs alone, so that one combination's problems are not reported for another. The frame may be empty: TCP has
    no loss."""
    runs, of = frame.column("run"), {record.id for record in records}
    codes = [at for at, run in enumerate(runs.levels) if run in of]
    return frame.rows(np.isin(runs.codes, codes), {})


def _is_unrated(rated: Set[str], record: Record) -> bool:
    """Return whether a run is complete, and has no rate of all pairs."""
    return record.status is Status.COMPLETE and record.id not in rated


def _shares(records: Sequence[Record], over: str, belongs: Callable[[Record], bool]) -> Mapping[int, tuple[int, int]]:
    """Return N -> (runs that belong, all runs), ordered by N, only where some belong."""
    of_n: dict[int, list[bool]] = {}
    for record in records:
        n = record.levels.get(over)
        if isinstance(n, int | float):
            of_n.setdefault(int(n), []).append(belongs(record))
    return {n: (sum(flags), len(flags)) for n, flags in sorted(of_n.items()) if any(flags)}


def _loss_kept(frame: Frame, group: Numbered, over: str, confidence: float) -> Statement:
    percent = replace(frame, y=100 * frame.y, unit="%")
    return _kept(
        percent, group, over, confidence, f"loss at most {100 * MOST_LOSS:g} %", Objective(100 * MOST_LOSS, at_most=True)
    )


def _rate_kept(frame: Frame, group: Numbered, over: str, confidence: float) -> Statement:
    scale = unit_scale(frame.unit, group.values)
    noun = one_of(over)
    objective = f"{metric_name(frame.response)} per {noun} at least {100 * LEAST_RATE:g} % of that at 1 {noun}"
    shown = replace(frame, y=frame.y / scale.factor, unit=scale.unit)
    return _kept(shown, group, over, confidence, objective, Objective(LEAST_RATE, at_most=False, relative=True))


def _fairness_kept(frame: Frame, group: Numbered, over: str, confidence: float) -> Statement:
    objective = Objective(LEAST_FAIRNESS, at_most=False)
    return _kept(frame, group, over, confidence, f"fairness at least {LEAST_FAIRNESS:g}", objective)


def _kept(frame: Frame, group: Numbered, over: str, confidence: float, text: str, objective: Objective) -> Statement:
    """Return the statement on an objective. Relative objectives (a share of the single pair's) take the values of a pair."""
    [of_n] = numbered(frame, over, per_pair=objective.relative)
    try:
        made = fitting(of_n, over, objective, confidence, frame.unit)
    except TwinbedError as error:
        return Statement(text, f"cannot tell: {error.message.removeprefix(f'{group.name}: ')}", decided=False)
    fit = made.capacity
    return Statement(text, made.statement, True, fit.keeps, fit.fails, objective.relative)


def _points(
    group: Numbered,
    made: Sequence[Record],
    over: str,
    known: Mapping[str, ByRun],
    stages: Mapping[str, ByRun],
    skews: ByRun,
    overlaps: ByRun,
) -> Sequence[AtN]:
    """Return the measurements of complete runs at each N, also of runs without a rate."""
    runs_of: dict[int, list[str]] = {}
    for record in made:
        n = record.levels.get(over)
        if isinstance(n, int | float) and record.status is Status.COMPLETE:
            runs_of.setdefault(int(n), []).append(record.id)
    points, rates_of = [], group.samples()
    for n, runs in sorted(runs_of.items()):
        rates = rates_of.get(n, [])
        ledgers = [stages[run] for run in runs if run in stages]
        points.append(
            AtN(
                n,
                rates,
                [known["loss"][run] for run in runs if run in known.get("loss", {})],
                [known["fairness"][run] for run in runs if run in known.get("fairness", {})],
                max((skews[run] for run in runs if run in skews), default=None) if n > 1 else None,
                min((overlaps[run] for run in runs if run in overlaps), default=None),
                {stage: fmean(of[stage] for of in ledgers) for stage in ledgers[0]} if ledgers else None,
            )
        )
    return points


def _stages(tables: Tables) -> Mapping[str, ByRun]:
    """Return run -> stage -> packets, over all pairs and directions. A stage without a counter adds nothing, and is not 0."""
    table = tables.table("losses")
    packets_of: dict[str, dict[str, float]] = {}
    if table.num_rows:
        for run, stage, packets in zip(*(table[name].to_pylist() for name in ("run", "stage", "packets")), strict=True):
            of_run = packets_of.setdefault(run, defaultdict(float))
            of_run[stage] += packets or 0.0
    return packets_of


analysis = ScalingAnalysis()
