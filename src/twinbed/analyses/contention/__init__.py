"""The analysis ``contention``: where the rate of a pair and the machine's metrics bend over N, and whether the machine's alone
tell a contended run.

In: runs with N, their rate, and the metrics of the host ``machine``.  Out, for each combination of the other levels:

* ``curves``: each metric by LOESS over N, its second difference, scaled (the LDRD report's Figure 3.2; idle metrics mirrored);
* ``inflections``: where each turns, from falling to rising slope or back, in the order of N;
* ``detectors``: the area under the ROC curve on replicates not trained on, with its interval, the shares at its threshold, and
  the lead: from which N it alarms and from which the rate has fallen; ``reason`` where there is no detector;
* ``roc``: the curve.

Limits and sources: twinbed.statistics.curvature and .contention.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from twinbed import _core
from twinbed.model.error import TwinbedError
from twinbed.model.frame import of_tables
from twinbed.model.numbered import Numbered, measured, numbered
from twinbed.model.result import Result
from twinbed.model.tables import Tables
from twinbed.statistics.contention import Detection, Runs, detect
from twinbed.statistics.curvature import Inflection, inflections, scaled, second_difference

MACHINE = "machine"
MIRRORED = "idle"
"""What a metric's name holds if it falls where others rise."""
Row = dict[str, Any]


class ContentionParams(BaseModel):
    """What ``contention`` can be told; null and nothing take the defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    response: str | None = Field(default=None, description="the rate; by default the first headline")
    over: str = Field(default="pairs", description="the factor that is N")
    per_pair: bool = Field(default=True, description="the rate divided by N")
    host: str | None = Field(default=None, description="where the rate was measured, if at several hosts")
    direction: str | None = Field(default=None, description="of the rate, if measured in both")
    metrics: tuple[str, ...] = Field(default=(), description="of the machine; by default all that vary and no run lacks")
    span: float = Field(default=0.75, gt=0, description="of LOESS")
    degree: int = Field(default=2, ge=1, le=2, description="of LOESS")
    drop: float = Field(default=0.05, gt=0, lt=1, description="a run is contended where its rate has fallen by this share")
    fallen: float = Field(default=0.10, gt=0, lt=1, description="a fall that matters, before which it should be told")


class ContentionAnalysis:
    """Where it bends, and whether the machine shows it."""

    name = "contention"
    params = ContentionParams

    def run(self, tables_of_study: Tables, params: ContentionParams | None = None) -> Result:
        """Raises TwinbedError where nothing can be said, and says why."""
        params = params or ContentionParams()
        frame = of_tables(tables_of_study, params.response, params.host, params.direction)
        machine = measured(tables_of_study, MACHINE)
        tables: dict[str, list[Row]] = {"curves": [], "inflections": [], "detectors": [], "roc": []}
        for group in numbered(frame, params.over, per_pair=params.per_pair):
            known = _known(group, machine, params)
            points: list[tuple[str, Inflection]] = []
            for name, values in {frame.response: np.asarray(group.values), **known}.items():
                rows, turns = _curve(group, name, values, params)
                tables["curves"] += [{**group.levels, **row} for row in rows]
                points += [(name, turn) for turn in turns]
            points.sort(key=lambda point: (point[1].at, point[0]))
            tables["inflections"] += [
                {**group.levels, "metric": name, "n": turn.at, "slope": "rises" if turn.rising else "falls"}
                for name, turn in points
            ]
            row, curve = _detector(group, known, params)
            tables["detectors"].append({**group.levels, **row})
            tables["roc"] += [{**group.levels, **point} for point in curve]
        return Result(analysis=self.name, cautions=frame.cautions, tables=tables)


def _known(
    group: Numbered, machine: Mapping[str, Mapping[str, float]], params: ContentionParams
) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """The machine's metrics of a group's runs."""
    found = {}
    for name, by_run in machine.items():
        metric = name.removesuffix(f"@{MACHINE}")
        if params.metrics and metric not in params.metrics:
            continue
        if all(run in by_run for run in group.runs):
            values = np.array([by_run[run] for run in group.runs])
            if np.ptp(values) > 1e-12 * np.abs(values).max():
                found[metric] = values
    if missing := [name for name in params.metrics if name not in found]:
        raise TwinbedError(
            f"{', '.join(missing)}: no such metric of the machine that every run has and that varies",
            advice=f"there are: {', '.join(sorted(found)) or 'none; the study needs an instrument that reads the machine'}",
        )
    return found


def _curve(
    group: Numbered, name: str, values: np.ndarray[Any, np.dtype[np.float64]], params: ContentionParams
) -> tuple[Iterator[Row], list[Inflection]]:
    tested = sorted(set(group.n))
    if len(tested) < 4:
        raise TwinbedError(
            f"{params.over} has {len(tested)} levels: a curve that bends needs at least 4", advice="more levels in the study"
        )
    mirrored = MIRRORED in name
    try:
        table, _summary = _core.loess(
            np.asarray(group.n, dtype=np.float64),
            -values if mirrored else values,
            params.span,
            2 if params.degree == 2 else 1,
            surface="direct",
            at=np.asarray(tested, dtype=np.float64),
        )
    except ValueError as error:
        raise TwinbedError(f"{name} over {params.over}: {error}", advice="a larger span") from error
    smooth = table["fit"].to_pylist()
    bend = scaled(second_difference(tested, smooth))
    rows: Iterator[Row] = (
        {"metric": name, "mirrored": mirrored, "n": n, "smoothed": fit, "curvature": curvature}
        for n, fit, curvature in zip(tested, smooth, [None, *bend, None], strict=True)
    )
    return rows, inflections(tested[1:-1], bend)


def _detector(
    group: Numbered, known: Mapping[str, np.ndarray[Any, np.dtype[np.float64]]], params: ContentionParams
) -> tuple[Row, list[Row]]:
    reason, found = "", None
    if not known:
        reason = "nothing was measured on the machine that varies"
    else:
        runs = Runs(group.n, group.replicates, group.values, np.column_stack(list(known.values())))
        try:
            found = detect(runs, params.drop, params.fallen)
        except ValueError as error:
            reason = str(error)
    return _said(found, reason), _roc(found)


def _said(found: Detection | None, reason: str) -> Row:
    interval = None if found is None else found.area.interval
    return {
        "area": None if found is None else found.area.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "threshold": None if found is None else found.detector.threshold,
        "false_alarms": None if found is None else found.false_alarms,
        "detected": None if found is None else found.detected,
        "alarms_from": None if found is None else found.lead.alarmed,
        "fallen_from": None if found is None else found.lead.fallen,
        "reason": reason,
    }


def _roc(found: Detection | None) -> list[Row]:
    return [
        {
            # Above all scores there is no number: that it never alarms.
            "threshold": None if math.isinf(point.threshold) else point.threshold,
            "false_alarms": point.false_alarms,
            "detected": point.detected,
        }
        for point in (found.curve if found is not None else ())
    ]


analysis = ContentionAnalysis()
