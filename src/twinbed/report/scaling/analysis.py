"""What a report says of how many fit: the analyses ``capacity`` and ``contention``, where the number of pairs varies."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from statistics import fmean

from twinbed import registry
from twinbed.analyses.capacity.method import CapacityParams
from twinbed.analyses.capacity.method import analysis as capacity
from twinbed.analyses.contention.method import ContentionParams
from twinbed.analyses.contention.method import analysis as contention
from twinbed.model.clients import overlap_share
from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.run import Status, level_text
from twinbed.model.tables import Tables
from twinbed.observations.frame import Frame, of_tables
from twinbed.observations.numbered import Numbered, measured, numbered, of_pairs, varied_numbers
from twinbed.report.scaling.result import AtN, Curvature, LevelScaling, Scaling, Statement
from twinbed.results.extract.rows import described
from twinbed.show.quantities import unit_scale
from twinbed.show.words import metric_name

LEAST_RATE = 0.9
"""The share of the single pair's rate."""
MOST_LOSS = 0.01
LEAST_FAIRNESS = 0.95
"""Jain's index; the objective where no single pair was run to hold rates against."""
LEAST_NUMBERS = 6
"""Tested N of a curve that shows bends: its second difference has two fewer."""
OF_THE_MACHINE = ("cpu_idle_seconds", "interrupts")
"""Metrics whose bends are held against the rate's, as in the LDRD report's Figure 3.2."""
ByRun = Mapping[str, float]


def scaling(tables: Tables, confidence: float | None = None) -> Scaling | None:
    """None where the number of pairs does not vary, or no run has a rate. ``confidence`` is that of each statement: None takes
    the study's."""
    over, kinds = of_pairs(varied_numbers(tables)), {str(record.settings["workload"]["kind"]) for record in tables.records}
    if over is None or len(kinds) != 1:
        return None
    workload = described(registry.PLUGINS.read[kinds.pop()], tables.records[0].settings["workload"])
    if not workload.rate:
        return None
    rates = _frame(tables, workload.rate)
    if rates is None or over not in rates.factors:
        return None
    losses = _frame(tables, "loss", partial=True) if _tells_loss(tables.records) else None
    shares, confidence = _frame(tables, "fairness"), confidence or tables.outline.confidence
    known = {**measured(tables, ""), "loss": _by_run(losses)}
    stages = _stages(tables)
    overlaps = {record.id: share for record in tables.records if (share := overlap_share(record.clients)) is not None}
    skews = {record.id: record.start_skew_s for record in tables.records if record.start_skew_s is not None}
    groups = []
    for group in numbered(rates, over, per_pair=True):
        statements, made = [], _of_cell(tables, group, over)
        if losses is not None and len(of_group := _of_runs(losses, made)):
            statements.append(_loss_kept(of_group, group, over, confidence))
        if 1 in group.n:
            statements.append(_rate_kept(_of_runs(rates, made), group, over, confidence))
        elif shares is not None and len(of_group := _of_runs(shares, made)):
            statements.append(_fairness_kept(of_group, group, over, confidence))
        failed = _shares(made, over, lambda record: record.status is not Status.COMPLETE)
        unrated = _shares(made, over, partial(_is_unrated, frozenset(group.runs)))
        groups.append(
            LevelScaling(group.levels, statements, _points(group, made, over, known, stages, skews, overlaps), failed, unrated)
        )
    curves = _curves(tables, workload.rate, over, groups)
    contended = contention.run(tables, ContentionParams(response=workload.rate, over=over, bends=False))
    return Scaling(
        over, workload.rate, rates.unit, confidence, groups, curves, None if losses is None else MOST_LOSS, contended
    )


def _tells_loss(records: Sequence[Record]) -> bool:
    """Whether the workload does with any of its settings: the protocol may be a factor."""
    settings = {json.dumps(record.settings["workload"], sort_keys=True): record.settings["workload"] for record in records}
    every = (described(registry.PLUGINS.read[str(each["kind"])], each).metrics for each in settings.values())
    return any(metric.name == "loss" for metrics in every for metric in metrics)


def _frame(tables: Tables, metric: str, *, partial: bool = False) -> Frame | None:
    """A metric of the whole run, with ``partial`` of those clients that have it; None where no run has it."""
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
    """The runs made that differ from the group's in N alone, those without a rate among them."""

    def cell(record: Record) -> tuple[object, ...]:
        rest = sorted((name, level_text(level)) for name, level in record.levels.items() if name != over)
        return str(record.settings["testbed"]["name"]), *rest

    of = set(group.runs)
    cells = {cell(record) for record in tables.records if record.id in of}
    return [record for record in tables.records if cell(record) in cells]


def _of_runs(frame: Frame, records: Sequence[Record]) -> Frame:
    """These runs alone, so that what is wrong with one combination is not said of another; nothing where they lack it, as TCP
    has no loss."""
    import numpy as np

    runs, of = frame.column("run"), {record.id for record in records}
    codes = [at for at, run in enumerate(runs.levels) if run in of]
    return frame.rows(np.isin(runs.codes, codes), {})


def _is_unrated(rated: Set[str], record: Record) -> bool:
    """Whether it is complete, and has no rate of all pairs."""
    return record.status is Status.COMPLETE and record.id not in rated


def _shares(records: Sequence[Record], over: str, belongs: Callable[[Record], bool]) -> Mapping[int, tuple[int, int]]:
    """N -> runs that belong, of so many; in the order of N, and only where some do."""
    of_n: dict[int, list[bool]] = {}
    for record in records:
        n = record.levels.get(over)
        if isinstance(n, int | float):
            of_n.setdefault(int(n), []).append(belongs(record))
    return {n: (sum(each), len(each)) for n, each in sorted(of_n.items()) if any(each)}


def _loss_kept(frame: Frame, group: Numbered, over: str, confidence: float) -> Statement:
    percent = replace(frame, y=100 * frame.y, unit="%")
    return _kept(percent, group, over, confidence, f"loss at most {100 * MOST_LOSS:g} %", bound=100 * MOST_LOSS, at_most=True)


def _rate_kept(frame: Frame, group: Numbered, over: str, confidence: float) -> Statement:
    scale = unit_scale(frame.unit, group.values)
    one = over.rpartition(".")[2].removesuffix("s")
    objective = f"{metric_name(frame.response)} per {one} at least {100 * LEAST_RATE:g} % of that at 1 {one}"
    shown = replace(frame, y=frame.y / scale.factor, unit=scale.unit)
    objective_params = {"bound": LEAST_RATE, "at_most": False, "relative": True, "per_pair": True}
    return _kept(shown, group, over, confidence, objective, **objective_params)


def _fairness_kept(frame: Frame, group: Numbered, over: str, confidence: float) -> Statement:
    return _kept(frame, group, over, confidence, f"fairness at least {LEAST_FAIRNESS:g}", bound=LEAST_FAIRNESS, at_most=False)


def _kept(
    frame: Frame, group: Numbered, over: str, confidence: float, objective: str, **objective_params: float | bool
) -> Statement:
    try:
        result = capacity.run(frame, CapacityParams(over=over, confidence=confidence, **objective_params))
    except TwinbedError as error:
        return Statement(objective, f"nothing can be said: {error.message.removeprefix(f'{group.name}: ')}", decided=False)
    [of_n] = result.groups
    of_one = bool(objective_params.get("relative"))
    return Statement(objective, of_n.statement, True, of_n.keeps, of_n.fails, of_one)


def _points(
    group: Numbered,
    made: Sequence[Record],
    over: str,
    known: Mapping[str, ByRun],
    stages: Mapping[str, ByRun],
    skews: ByRun,
    overlaps: ByRun,
) -> Sequence[AtN]:
    """Of the complete runs, with a rate or without."""
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
    """Run -> stage -> packets, over all pairs and directions; a stage of which no counter tells is not 0 but adds nothing."""
    table = tables.table("losses")
    packets_of: dict[str, dict[str, float]] = {}
    if table.num_rows:
        for run, stage, packets in zip(*(table[name].to_pylist() for name in ("run", "stage", "packets")), strict=True):
            of_run = packets_of.setdefault(run, defaultdict(float))
            of_run[stage] += packets or 0.0
    return packets_of


def _curves(tables: Tables, rate: str, over: str, groups: Sequence[LevelScaling]) -> Sequence[Curvature]:
    """Nothing where the machine was not measured, or there are too few N for a bend."""
    known = measured(tables, "machine")
    there = tuple(name for name in OF_THE_MACHINE if f"{name}@machine" in known)
    if not there or min(sum(bool(point.rates) for point in group.points) for group in groups) < LEAST_NUMBERS:
        return ()
    try:
        result = contention.run(tables, ContentionParams(response=rate, over=over, metrics=there))
    except TwinbedError:
        return ()
    factors = groups[0].levels
    return [
        Curvature({name: row[name] for name in factors}, row["metric"], row["mirrored"], row["n"], row["curvature"])
        for row in contention.tables(result)["curves"]
    ]
