"""The analysis ``detectability``: can an observer tell a testbed from the reference, how well, and from how many packets?

In: the tables ``fingerprints`` and ``windows``.  Out, for each observer, cell and testbed: a classifier two-sample test
(Lopez-Paz and Oquab 2017) with pairs of runs left out, and the accuracy over the length of the observation.  Also the accuracy
of each feature alone, with the setting that removes it, and of the residue without these features.  Runs are the unit: blocks
of one run are never on both sides.  Method, sources and error rates: docs/detectability.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinbed.analyses.detectability import words
from twinbed.analyses.detectability.features import (
    PASSIVE,
    Matrix,
    Observation,
    Seen,
    is_applied,
    lengths,
    matrix,
    of_runs,
    remedy_of,
    seen_by,
)
from twinbed.analyses.detectability.result import TARGET, Accuracy, Cost, Detectability, Detection, Length, Needed, Ranked
from twinbed.contracts.analysis import Analysis, NoSettings
from twinbed.model import units
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.record import Record
from twinbed.model.result import Interval, Pairing
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.observations.apart import Times
from twinbed.observations.frame import headline_places
from twinbed.observations.inside import by_cell, complete
from twinbed.observations.samples import cell_of
from twinbed.show.section import Section
from twinbed.show.words import cell_title
from twinbed.statistics.capacity import isotonic
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.permutations import dealings
from twinbed.statistics.separation import MOST_DEALINGS, PairsOut, alone, any_as_large, apart, least_p, runs_needed, separation

INSTRUMENT = "fingerprint"
"""Reports show the analysis if the study has this instrument."""
Labels = NDArray[np.bool_]


class DetectabilityParams(NoSettings):
    """The settings of ``detectability``; null takes what the study file says."""

    observer: Literal["passive", "active", "host"] | None = Field(
        default=None, description="who observes. Default: every observer with a record"
    )
    confidence: units.Share | None = Field(
        default=None, gt=0.5, lt=1, description="the confidence of tests and intervals, such as 95%. Default: the study's"
    )


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Runs of two testbeds as one observer sees them, the testbed's runs first."""

    cell: Mapping[str, Level]
    testbed: str
    observer: str
    records: tuple[Sequence[Record], Sequence[Record]]
    seen: Sequence[Seen]
    blocks: Sequence[Hashable] | None

    @property
    def labels(self) -> Labels:
        return np.array([True] * len(self.records[0]) + [False] * len(self.records[1]))

    def least_p(self) -> float:
        return least_p(self.labels, self.blocks) if min(map(len, self.records)) > 1 else 1.0


class DetectabilityAnalysis(Analysis[DetectabilityParams, Detectability]):
    """Can an observer tell a testbed from the reference, from how many packets, and by which features?

    The study needs the instrument packets. The active observer and the observer on the host need the instrument fingerprint.

    \b
      twinbed analyse detectability results/
      twinbed analyse detectability results/ -o told.html                   as a page, with the speed that hiding costs
      twinbed analyse detectability results/ --table features -o f.csv      every feature, and the setting that removes it
    """

    name = "detectability"
    params = DetectabilityParams
    epilog = "docs/detectability.md explains the method and its error rates."
    table_names = ("detectability", "features", "lengths", "costs")
    is_against_a_reference = True
    is_in_reports = True

    def run(self, source: Tables, params: DetectabilityParams | None = None) -> Detectability:
        params = params or DetectabilityParams()
        outline = source.outline
        alpha = round(1 - (params.confidence if params.confidence is not None else outline.confidence), 12)
        reference = outline.reference
        if reference is None or len(outline.testbeds) < 2:
            raise TwinbedError(
                f"{source.shown} has only one testbed, and detectability compares two",
                advice="measure another testbed, or merge its results: twinbed merge",
            )
        seen = {name: of for name, of in seen_by(source).items() if params.observer in (None, name)}
        if not seen:
            raise TwinbedError(
                f"{source.shown} has no record of {'any' if params.observer is None else f'the {params.observer}'} observer",
                advice=f"run the study with instruments: [packets, {INSTRUMENT}] (docs/detectability.md)",
            )
        times = Times(source.records, outline.data.get("order"))
        every = list(_comparisons(source, seen, reference, times))
        able = [comparison for comparison in every if comparison.least_p() <= alpha]
        cautions = [*_too_few(every, alpha), *_carried(able, reference), *_unseen(able)]
        if not able:
            raise _refusal(every, alpha, source)
        detections = _holm([_detection(comparison, reference, alpha) for comparison in able])
        cautions += _of_times(able, detections, times, alpha)
        metric, of_costs = costs(source, detections)
        refused = len(every) - len(able)
        left_out = {f"runs without anything that the {name} observer sees": _without(source, of) for name, of in seen.items()}
        left_out["comparisons of too few runs"] = refused
        return Detectability(
            reference=reference,
            alpha=alpha,
            detections=tuple(detections),
            metric=metric,
            costs=of_costs,
            cautions=tuple(dict.fromkeys(cautions)),
            left_out={reason: count for reason, count in left_out.items() if count},
        )

    def section(self, result: Detectability) -> Section:
        return words.section(result)

    def sections(self, source: Tables) -> Sequence[Section]:
        asked = any(INSTRUMENT in record.settings["instruments"] for record in source.records)
        return super().sections(source) if asked else ()


def _without(source: Tables, seen: Mapping[str, Seen]) -> int:
    return sum(record.id not in seen for record in complete(source))


def _comparisons(source: Tables, seen: Mapping[str, Mapping[str, Seen]], reference: str, times: Times) -> Iterator[_Comparison]:
    """Yield the comparisons. Labels are permuted within the design's blocks if the study compares so, else within sessions that
    both testbeds have, else freely."""
    cells = by_cell(source, complete(source), lambda record: record)
    paired = source.outline.data.get("comparison") == Pairing.PAIRED
    for observer, of in seen.items():
        for cell in cells:
            reference_records = [record for record in cell.runs.get(reference, ()) if record.id in of]
            for testbed, records in cell.runs.items():
                own_records = [record for record in records if record.id in of]
                if testbed == reference or not own_records or not reference_records:
                    continue
                runs = [*own_records, *reference_records]
                alike = sorted(record.block for record in own_records) == sorted(record.block for record in reference_records)
                blocks: Sequence[Hashable] | None = [record.block for record in runs] if paired and alike else None
                if blocks is None:
                    own_sessions, reference_sessions = (
                        times.sessions(record.id for record in of_side) for of_side in (own_records, reference_records)
                    )
                    if len(set(own_sessions)) > 1 and set(own_sessions) == set(reference_sessions):
                        blocks = [*own_sessions, *reference_sessions]
                yield _Comparison(
                    cell.levels, testbed, observer, (own_records, reference_records), [of[run.id] for run in runs], blocks
                )


def _detection(of: _Comparison, reference: str, alpha: float) -> Detection:
    every = lengths(of.seen)
    rows = {packets: [seen.at(packets, whole=packets == every[-1]) for seen in of.seen] for packets in every}
    whole = {packets: matrix(observed) for packets, observed in rows.items()}
    ranked = _ranked(of, rows[every[-1]], whole[every[-1]])
    removable = [feature.feature for feature in ranked if feature.removable]
    residue = {packets: table.without(removable) for packets, table in whole.items()}
    return Detection(
        cell=of.cell,
        testbed=of.testbed,
        reference=reference,
        observer=of.observer,
        runs=(len(of.records[0]), len(of.records[1])),
        as_is=_accuracy(of, whole, alpha),
        residue=_accuracy(of, residue, alpha) if removable else None,
        ranked=ranked,
    )


def _ranked(of: _Comparison, rows: Sequence[Sequence[Observation]], whole: Matrix) -> tuple[Ranked, ...]:
    blocks = of.blocks if of.blocks is not None else [0] * len(of.seen)
    dealt, _ = dealings(of.labels, blocks, MOST_DEALINGS)
    settings = _settings(of.records[0][0]), _settings(of.records[1][0])
    if not whole.columns:
        return ()
    areas = np.array([alone(of_runs(rows, feature), dealt) for feature in whole.columns])
    ordered = []
    for feature, area, p in zip(whole.columns, areas[:, 0].tolist(), any_as_large(areas).tolist(), strict=True):
        remedy = remedy_of(feature)
        entry = Ranked(feature, area, p, remedy, remedy is not None and is_applied(remedy, settings))
        # Of equal areas the one that is seen sooner, then the one that is wider apart.
        order = (-area, min(seen.takes(feature) for seen in of.seen), -apart(of_runs(rows, feature), of.labels), feature)
        ordered.append((order, entry))
    return tuple(ranked for _, ranked in sorted(ordered, key=lambda pair: pair[0]))


def _settings(record: Record) -> Document:
    return {**record.settings["testbed"], "topology": record.settings["topology"]}


def _accuracy(of: _Comparison, matrices: Mapping[int | None, Matrix], alpha: float) -> Accuracy:
    labels = of.labels
    every = list(matrices)
    folds = {packets: PairsOut.of(table.rows, table.runs) for packets, table in matrices.items()}
    whole = separation(folds[every[-1]], labels, of.blocks, 1 - alpha)
    correct = [fold.correct(labels) for fold in folds.values()]
    of_lengths = [
        Length(
            packets,
            _seconds(of.seen, packets),
            whole.area if packets == every[-1] else float(folds[packets].areas(labels[None])[0]),
            float((right[labels].mean() + right[~labels].mean()) / 2),
        )
        for packets, right in zip(every, correct, strict=True)
    ]
    return Accuracy(
        features=len(matrices[every[-1]].columns),
        area=whole.area,
        interval=Interval(*whole.interval),
        p=whole.p_value,
        exact=whole.exact,
        lengths=tuple(of_lengths),
        needed=needed(of_lengths, correct, labels, 1 - alpha) if whole.p_value <= alpha else None,
    )


def _seconds(runs: Sequence[Seen], packets: int | None) -> float | None:
    """Return the mean duration of that many packets over runs."""
    known = [seen.seconds[packets] for seen in runs if packets is not None and packets in seen.seconds]
    return fmean(known) if known else None


def _holm(detections: Sequence[Detection]) -> list[Detection]:
    """Return the detections with Holm's correction over all observers, cells and testbeds, for the residue likewise."""
    corrected = iter(holm([detection.as_is.p for detection in detections]))
    residues = iter(holm([detection.residue.p for detection in detections if detection.residue]))
    return [
        replace(
            detection,
            as_is=replace(detection.as_is, p=next(corrected)),
            residue=replace(detection.residue, p=next(residues)) if detection.residue else None,
        )
        for detection in detections
    ]


def _where(of: _Comparison) -> str:
    return f"{of.observer} observer, {cell_title(of.cell)}" if of.cell else f"{of.observer} observer"


def _shortfall(of: _Comparison, alpha: float) -> str:
    own_runs, reference_runs = map(len, of.records)
    runs = f"{own_runs} and {reference_runs} runs{' within blocks' if of.blocks is not None else ''}"
    wanted = runs_needed(alpha, of.blocks is not None)
    return f"{runs} reach p = {of.least_p():.2g} at best; {wanted} and {wanted} could show a difference"


def _too_few(every: Sequence[_Comparison], alpha: float) -> Iterator[Caution]:
    for comparison in every:
        if comparison.least_p() > alpha:
            yield Caution(Kind.FEW_REPLICATES, f"{_where(comparison)}: {_shortfall(comparison, alpha)}", comparison.testbed)


def _refusal(every: Sequence[_Comparison], alpha: float, source: Tables) -> TwinbedError:
    if not every:
        return TwinbedError(
            f"{source.shown} has no cell that was observed on the reference and on another testbed",
            advice="measure the cell on both, with the same instruments",
        )
    best = min(every, key=_Comparison.least_p)
    wanted = runs_needed(alpha, best.blocks is not None)
    return TwinbedError(
        f"too few runs: {_shortfall(best, alpha)}", advice=f"set replicates: {wanted} (or more) in the study file"
    )


def _carried(able: Sequence[_Comparison], reference: str) -> Iterator[Caution]:
    """Yield the cautions of the runs, each once for a testbed."""
    for comparison in able:
        for testbed, records in zip((comparison.testbed, reference), comparison.records, strict=True):
            for kind in dict.fromkeys(caution.kind for record in records for caution in record.cautions):
                count = sum(any(caution.kind is kind for caution in record.cautions) for record in records)
                yield Caution(kind, f"{count} of {len(records)} runs", testbed)


def _of_times(able: Sequence[_Comparison], detections: Sequence[Detection], times: Times, alpha: float) -> Iterator[Caution]:
    """Yield cautions that a detection may come from the time of the runs, not from the testbed."""
    for comparison, detection in zip(able, detections, strict=True):
        if detection.as_is.p > alpha:
            continue
        own_ids, reference_ids = ([record.id for record in records] for records in comparison.records)
        if caution := times.caution((comparison.testbed, own_ids), (detection.reference, reference_ids)):
            yield caution
        if len(set(times.sessions([*own_ids, *reference_ids]))) == 1:
            yield Caution(
                Kind.ONE_SESSION,
                f"{len(own_ids)} runs of {comparison.testbed}, {len(reference_ids)} of {detection.reference}",
                comparison.testbed,
            )


def _unseen(able: Sequence[_Comparison]) -> Iterator[Caution]:
    """Yield cautions of captures without the opening of a connection."""
    for comparison in able:
        if comparison.observer == PASSIVE and (count := sum(not seen.once for seen in comparison.seen)):
            detail = f"{count} of {len(comparison.seen)} captures have no SYN, and lack the features of SYNs"
            yield Caution(Kind.INCOMPLETE_CAPTURE, detail, comparison.testbed)


DRAWS = 999


def needed(
    lengths: Sequence[Length], correct: Sequence[NDArray[np.float64]], labels: NDArray[np.bool_], level: float
) -> Needed | None:
    """Return how many packets give the accuracy TARGET; None if it is not reached.

    ``correct``: for each length, the share of each run's observations that are identified correctly. The accuracy is made
    monotone in the length, and interpolated linearly over its logarithm. The shortest length tried is an upper bound. The
    interval is a percentile bootstrap over runs, with the classification rules unchanged.
    """
    packets = [length.packets for length in lengths]
    if None in packets:
        return None
    logs = [math.log(count) for count in packets if count is not None]
    at = _crossing(logs, [length.accuracy for length in lengths])
    if at is None:
        return None
    noise = np.random.default_rng(0)
    ones, others = np.flatnonzero(labels), np.flatnonzero(~labels)
    table = np.array(correct)
    ends = []
    for _ in range(DRAWS):
        drawn_ones, drawn_others = noise.choice(ones, len(ones)), noise.choice(others, len(others))
        accuracy = (table[:, drawn_ones].mean(axis=1) + table[:, drawn_others].mean(axis=1)) / 2
        crossing = _crossing(logs, accuracy.tolist())
        ends.append(math.inf if crossing is None else crossing)
    ends.sort()
    beyond = math.floor((1 - level) / 2 * DRAWS)
    low, high = (None if math.isinf(end) else math.exp(end) for end in (ends[beyond], ends[-1 - beyond]))
    known = [(log, math.log(length.seconds)) for log, length in zip(logs, lengths, strict=True) if length.seconds]
    starts, times = [log for log, _ in known], [time for _, time in known]
    seconds = math.exp(float(np.interp(at, starts, times))) if known and at >= starts[0] else None
    return Needed(math.exp(at), seconds, low, high)


def _crossing(logs: Sequence[float], accuracy: Sequence[float]) -> float | None:
    monotone = isotonic(accuracy)
    for at, value in enumerate(monotone):
        if value >= TARGET - 1e-12:
            if at == 0 or value == monotone[at - 1]:
                return logs[at]
            share = (TARGET - monotone[at - 1]) / (value - monotone[at - 1])
            return logs[at - 1] + share * (logs[at] - logs[at - 1])
    return None


def costs(source: Tables, detections: Sequence[Detection]) -> tuple[str, tuple[Cost, ...]]:
    """Return the name of the first headline, and a point for each detection that has a mean of it on both testbeds."""
    places = headline_places(source)
    if not places:
        return "", ()
    metric = places[0][0]
    means = _means(source, places[0])
    points = []
    for detection in detections:
        cell = cell_of(detection.cell)[0]
        own_mean, reference_mean = means.get((cell, detection.testbed)), means.get((cell, detection.reference))
        if own_mean is not None and reference_mean:
            own = detection.as_is
            points.append(
                Cost(
                    detection.cell,
                    detection.testbed,
                    detection.observer,
                    own.area,
                    own.interval,
                    own_mean / reference_mean,
                    best=False,
                )
            )
    return metric, tuple(replace(point, best=not any(_beats(other, point) for other in points)) for point in points)


def _means(source: Tables, place: tuple[str, str, str]) -> dict[tuple[str, str], float]:
    import pyarrow.compute as pc

    table = source.table("metrics")
    metric, host, direction = place
    wanted = pc.and_(pc.equal(table["metric"], metric), pc.and_(pc.equal(table["host"], host), pc.is_valid(table["value"])))
    kept = table.filter(pc.and_(wanted, pc.equal(table["direction"], direction)))
    values = dict(zip(kept["run"].to_pylist(), kept["value"].to_pylist(), strict=True))
    cells = by_cell(source, [record for record in source.records if record.id in values], lambda record: record)
    return {
        (cell_of(cell.levels)[0], testbed): fmean(values[record.id] for record in records)
        for cell in cells
        for testbed, records in cell.runs.items()
    }


def _beats(cost: Cost, other: Cost) -> bool:
    """Return whether one is at least as good in both, and better in one. An area below 0.5 hides no better than chance."""
    if (cost.cell, cost.observer) != (other.cell, other.observer):
        return False
    first, second = (max(cost.area, 0.5), -cost.ratio), (max(other.area, 0.5), -other.ratio)
    return first != second and first[0] <= second[0] and first[1] <= second[1]


analysis = DetectabilityAnalysis()
