"""The analysis ``compare``: every metric of every cell against the reference testbed, with a verdict.

In: runs with levels and status, and the table ``metrics``.  Out: one Comparison for each metric, host, direction, cell and
testbed but the reference, in the order of layers and of the study file; headline metrics in the order of runs.  Limits:
runs are taken as independent but for their blocks or sessions (``observations.units``).  Sources: see ``twinbed.statistics``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict, Field, field_validator

from twinbed.analyses.compare import lengths, settling
from twinbed.analyses.compare.cautions import Carried, Residue, carried, of_group, of_study, residue
from twinbed.analyses.compare.decision import DOUBTS, Case, Judgement, Nature, Rules, doubtful_shape
from twinbed.analyses.compare.estimates import estimate, undecided
from twinbed.analyses.compare.judging import judged
from twinbed.analyses.compare.ordering import order_cautions, orderings, session_cautions
from twinbed.analyses.compare.pool import pooled
from twinbed.analyses.compare.result import (
    OTHER_SETTINGS,
    AllRuns,
    CellCautions,
    Comparison,
    Comparisons,
    Estimate,
    Estimated,
    Pooled,
)
from twinbed.analyses.compare.spreads import decided as decided_spreads
from twinbed.analyses.compare.tallies import tallies
from twinbed.contracts.analysis import Analysis, Section
from twinbed.executor import Executor, Here
from twinbed.metrics.metric import Scale
from twinbed.model.as_of import AsOf
from twinbed.model.caution import NO_VERDICT, OF_RUNS, Caution, Kind
from twinbed.model.columns import Records
from twinbed.model.interim import InterimAnalyses
from twinbed.model.record import IMPORTED
from twinbed.model.result import Verdict
from twinbed.model.run import Level
from twinbed.model.tables import TESTBED, Tables
from twinbed.model.without import Without
from twinbed.observations.apart import Times
from twinbed.observations.excluded import excluded
from twinbed.observations.levels import compared_by, held_against
from twinbed.observations.predictable import predictable
from twinbed.observations.samples import CellRuns, Declared, Key, Samples, gather
from twinbed.observations.units import NONE, TIME, Units, units
from twinbed.show.table import Row
from twinbed.statistics.counts import Tally
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.sample import Sample

FEW = 5
"""Fewer replicates than this get a caution: neither an outlier nor two modes can be seen in them."""


class CompareParams(BaseModel):
    """The settings of ``compare``; null takes what the study file says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str | None = Field(
        default=None,
        description="the factor whose levels are compared; null: testbeds, or of one testbed the switch or choice that varies",
    )
    reference: str | None = Field(default=None, description="the testbed, or the level, that the others are held against")
    margin: float | None = Field(default=None, gt=0, description="how far apart still counts as equivalent: 0.1 is 10 %")
    confidence: float | None = Field(
        default=None, gt=0.5, lt=1, description="1 - alpha: 0.95 keeps each kind of wrong verdict at 5 %"
    )
    sessions: str | None = Field(
        default=None,
        description=f"the factor that says in which session a run was made; {TIME}: by pauses between runs; "
        f"{NONE}: sessions do not matter",
    )

    exclude: tuple[str, ...] = Field(default=(), description="cautions that leave a run out: instead of the study's own")

    @field_validator("exclude")
    @classmethod
    def _of_runs(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in OF_RUNS:
                raise ValueError(f"{name!r} is not a caution that leaves a run out, expected {', '.join(OF_RUNS)}")
        return names


@dataclass(frozen=True, slots=True)
class _Pair:
    """A cell on a testbed and on the reference."""

    name: str
    cell: dict[str, Level]
    names: tuple[str, str]
    groups: tuple[CellRuns, CellRuns]


@dataclass(frozen=True, slots=True)
class _Side:
    """One metric of a cell on a testbed, by itself."""

    estimated: Estimated
    shape: str
    """What makes Student's t doubtful for it; empty where nothing does."""


class _Sides:
    """Each is made once: the reference's is held against every testbed's."""

    def __init__(self, samples: Samples, rules: Rules, units: Units) -> None:
        self._samples = samples
        self._rules = rules
        self._units = units
        self._made: dict[tuple[Key, str, str], _Side] = {}

    def of(self, key: Key, cell: str, testbed: str) -> _Side:
        place = key, cell, testbed
        if place not in self._made:
            about, group = self._samples.metrics[key[0]], self._samples.groups[cell].get(testbed, CellRuns())
            levels, rules = self._samples.cells[cell], self._rules
            estimated = _estimated(key, about, (levels, testbed), group, rules.confidence, self._units)
            self._made[place] = _Side(estimated, doubtful_shape(estimated.estimate.values, about.scale, rules.margin))
        return self._made[place]


def _case(
    key: Key,
    about: Declared,
    pair: _Pair,
    by: str,
    rules: Rules,
    units: Units,
    sides: _Sides,
    counts: tuple[Tally, Tally] | None,
    cautions: tuple[Caution, ...],
    *,
    headline: bool,
) -> tuple[Comparison, Case]:
    """One comparison before it is judged, and what is to be judged."""
    arranged = units.arrange(key, pair.groups)
    here, there = (sides.of(key, pair.name, name) for name in pair.names)
    one, two = here.estimated.estimate, there.estimated.estimate
    shapes = here.shape, there.shape
    nature = Nature(about.margin, (here.estimated.step, there.estimated.step), counts, about.timed)
    values = Sample.of(one.values), Sample.of(two.values)
    bare = undecided(
        *(here.estimated, there.estimated, pair.names, pair.cell, rules.margin),
        (*cautions, *_own_cautions((one, two), pair, shapes), *lengths.cautions(key, pair.groups, rules.margin)),
        headline=headline,
        by=by,
        paired=arranged.paired and about.scale in (Scale.RATIO, Scale.INTERVAL),
        sessions=arranged.sessions,
    )
    return bare, Case(about.scale, *values, arranged, nature, rules, skewed=any(shapes))


def _with(bare: Comparison, judgement: Judgement) -> Comparison:
    """The comparison before Holm's correction; its verdict is not yet final."""
    doubts = ((kind, getattr(judgement, name)) for name, kind in DOUBTS.items())
    own = (Caution(kind, detail, bare.metric) for kind, detail in doubts if detail)
    decided = replace(judgement.on(bare), cautions=(*bare.cautions, *own))
    if any(caution.kind in NO_VERDICT for caution in bare.cautions):
        return replace(decided, verdict=Verdict.INCONCLUSIVE, p_equivalent=None, p_different=None, replicates_needed=None)
    return decided


def _own_cautions(estimates: tuple[Estimate, Estimate], pair: _Pair, shapes: Sequence[str]) -> Iterable[Caution]:
    for name, sample, group, shape in zip(pair.names, estimates, pair.groups, shapes, strict=True):
        if sample.n < FEW:
            yield Caution(Kind.FEW_REPLICATES, f"{sample.n} values", name)
        if sample.n < len(group.complete):
            yield Caution(
                Kind.UNREADABLE, f"{len(group.complete) - sample.n} of {len(group.complete)} runs have no value", name
            )
        if shape:
            yield Caution(Kind.SKEWED, shape, name)


def _decided(comparisons: Sequence[Comparison], alpha: float) -> dict[int, Comparison]:
    """The comparisons of one family with Holm's correction; by position."""
    tested = [index for index, each in enumerate(comparisons) if each.p_different is not None]
    adjusted = holm([comparisons[index].p_different or 0.0 for index in tested])
    decided: dict[int, Comparison] = {}
    for index, p_value in zip(tested, adjusted, strict=True):
        verdict = Verdict.DIFFERENT if p_value <= alpha else comparisons[index].verdict
        alone = comparisons[index].p_different
        decided[index] = replace(
            comparisons[index], p_different=p_value, p_different_alone=alone, family=len(tested), verdict=verdict
        )
    return decided


def _decide(comparisons: list[Comparison], alpha: float) -> list[Comparison]:
    """Headlines are one family and everything else another, so that looking at more costs the headlines nothing. Spreads are
    families of their own."""
    decided = list(comparisons)
    for headline in (True, False):
        members = [index for index, each in enumerate(comparisons) if each.headline is headline]
        for position, each in _decided([comparisons[index] for index in members], alpha).items():
            decided[members[position]] = each
        for index, each in zip(members, decided_spreads([decided[index] for index in members], alpha), strict=True):
            decided[index] = each
    return decided


def _study_cautions(
    tables: Tables, samples: Samples, carry: Carried, left: Residue, comparisons: Sequence[Comparison]
) -> Iterable[Caution]:
    yield from of_study(tables, samples, carry, left)
    for kind in (Kind.FEW_REPLICATES, Kind.SKEWED):
        for testbed in samples.testbeds:
            hit = {
                (str(each.cell), each.metric, each.host, each.direction)
                for each in comparisons
                if each.headline
                for caution in each.cautions
                if caution.kind is kind and caution.subject == testbed
            }
            if hit:
                names = ", ".join(sorted({metric for _cell, metric, *_rest in hit}))
                yield Caution(kind, f"{len(hit)} headline values: {names}", testbed)
    for kind in (*DOUBTS.values(), Kind.UNLIKE_LENGTHS):
        few = {each.metric for each in comparisons if each.headline and any(own.kind is kind for own in each.cautions)}
        if few:
            yield Caution(kind, ", ".join(sorted(few)))


class Compare(Analysis[CompareParams, Comparisons]):
    """The analysis."""

    name = "compare"
    params = CompareParams
    summary = "every metric and cell against the reference testbed: ratio, interval, verdict"

    def run(self, source: Tables, params: CompareParams | None = None) -> Comparisons:
        return self.run_on(Here(), source, params)

    def run_on(self, executor: Executor, source: Tables, params: CompareParams | None = None) -> Comparisons:
        """Where the study leaves runs out for a caution, its result without them, and beside it that of all runs."""
        params = params or CompareParams()
        if params.by is None:
            chosen = compared_by(source)
            by, about = chosen.by, chosen.about
        else:
            by, about = params.by, "" if params.by == TESTBED else f"Levels of {params.by} are compared."
        source = held_against(source, by, params.reference)
        return replace(self._excluding(executor, source, params), by=by, about=about)

    def _excluding(self, executor: Executor, source: Tables, params: CompareParams) -> Comparisons:
        out = excluded(source, params.exclude)
        if out is None:
            return self._of(executor, source, params)
        if not out.ids:
            return replace(self._of(executor, source, params), excluded=out)
        of_all = self._of(executor, source, params)
        whole = {(each.place, each.testbed, str(each.cell)): each for each in of_all.comparisons}
        result = self._of(executor, source, params, out.ids)
        return replace(
            result,
            comparisons=tuple(
                replace(each, all_runs=_all_runs(whole[each.place, each.testbed, str(each.cell)]))
                for each in result.comparisons
            ),
            cautions=(*result.cautions, *out.cautions()),
            excluded=out,
        )

    def _of(
        self, executor: Executor, source: Tables, params: CompareParams, without: frozenset[str] = frozenset()
    ) -> Comparisons:
        tables: Tables = Without(source, without) if without else source
        margin = params.margin if params.margin is not None else tables.outline.margin
        confidence = params.confidence if params.confidence is not None else tables.outline.confidence
        interim = tables.outline.interim
        information = tuple(each.information for each in interim.taken) if interim else None
        elsewhere = any(each["testbed"].get("kind") == IMPORTED for each in Records.of(tables.records).settings.distinct())
        rules = Rules(margin, round(1 - confidence, 12), confidence, information, elsewhere)
        if interim and interim.taken:
            tables = AsOf(tables, interim.blocks)
        asked = params.sessions if params.sessions is not None else tables.outline.data.get("sessions")
        sessions = None if asked == NONE else asked
        samples, arranged = gather(tables, sessions), units(tables, sessions)
        if without:
            _keep_places(samples, gather(source, sessions))
        carry, left = carried(tables), residue(tables, sessions)
        ordered = orderings(samples, tables.records, rules.alpha)
        of_order = order_cautions(ordered, samples.testbeds, margin, rules.alpha)
        of_sessions = {} if arranged.of_run else session_cautions(samples, tables.records, margin, rules.alpha)
        cell_cautions = {
            (cell, testbed): of_group(testbed, cell, group, carry, left)
            for cell, groups in samples.groups.items()
            for testbed, group in groups.items()
        }
        of_looks = _of_looks(interim) if not arranged.sessions else ()
        of_settling = settling.of_cells(samples, margin, confidence)
        for (cell, testbed), caution in of_settling.items():
            cell_cautions[cell, testbed] = (*cell_cautions[cell, testbed], caution)
        of_times = {} if arranged.sessions else _apart(tables, samples, stated=asked == NONE)
        bare: list[Comparison] = []
        cases: list[Case] = []
        over_cells: list[Pooled] = []
        sides = _Sides(samples, rules, arranged)
        for key in samples.keys():  # noqa: SIM118 -- not a mapping
            about = samples.metrics[key[0]]
            headlines = _headlines(samples, key, tables.outline.reference)
            pairs = [*_pairs(samples, key, tables.outline.reference)]
            if about.scale == Scale.RATIO and information is None:
                for testbed in sorted(headlines, key=samples.testbeds.index):
                    of_testbed = [pair for pair in pairs if pair.names[0] == testbed]
                    groups = (pair.groups for pair in of_testbed)
                    over_cells += pooled(key, (testbed, str(tables.outline.reference)), groups, arranged, rules.alpha)
            for pair in pairs:
                kept = [*of_looks]
                kept += [caution for name in pair.names for caution in cell_cautions.get((pair.name, name), ())]
                kept += of_times.get((pair.name, pair.names[0]), ())
                for of_runs in (of_order, of_sessions):
                    kept += dict.fromkeys(caution for name in pair.names for caution in of_runs.get((key, name), ()))
                measured_there = tables.outline.reference in samples.groups[pair.name]
                one, case = _case(
                    *(key, about, pair, tables.outline.by, rules, arranged, sides),
                    *(tallies(samples, key, pair.groups), tuple(kept)),
                    headline=measured_there and pair.names[0] in headlines,
                )
                bare.append(one)
                cases.append(case)
        comparisons = [_with(one, judgement) for one, judgement in zip(bare, judged(cases, executor), strict=True)]
        known = predictable(source)
        decided = tuple(
            replace(each, predictable=known.of(each.testbed, each.reference, each.place, each.cell))
            if each.verdict is Verdict.DIFFERENT
            else each
            for each in _decide(comparisons, rules.alpha)
        )
        of_study = [*_study_cautions(tables, samples, carry, left, decided), *of_looks]
        for of_runs in (of_order, of_sessions):
            of_study += dict.fromkeys(caution for each in of_runs.values() for caution in each)
        of_study += settling.of_study(of_settling, len(samples.groups))
        of_study += dict.fromkeys(caution for cautions in of_times.values() for caution in cautions)
        return Comparisons(
            comparisons=decided,
            alpha=rules.alpha,
            cautions=tuple(of_study),
            pooled=tuple(over_cells),
            orderings=ordered,
            left_out={OTHER_SETTINGS: tables.other_settings} if tables.other_settings else {},
            interim=interim.taken[-1] if interim and interim.taken else None,
            estimates=tuple(_estimates(samples, sides)),
            cell_cautions=tuple(
                CellCautions(samples.cells[cell], testbed, tuple(cautions))
                for (cell, testbed), cautions in cell_cautions.items()
            ),
        )

    def tables(self, result: Comparisons) -> Mapping[str, Sequence[Row]]:
        from twinbed.analyses.compare.rows import order_rows, rows

        return {"comparisons": rows(result.comparisons), "order": order_rows(result.orderings)}

    def section(self, result: Comparisons) -> Section:
        from twinbed.analyses.compare.by_itself import section

        return section(result)


def _of_looks(interim: InterimAnalyses | None) -> Sequence[Caution]:
    """Return the caution of a study that may end with any look: runs that are alike for a while end it too soon."""
    if interim is None or not interim.taken:
        return ()
    return (Caution(Kind.LOOKS, f"{len(interim.taken)} interim analyses, the last of {interim.blocks} replicates"),)


def _apart(tables: Tables, samples: Samples, *, stated: bool) -> Mapping[tuple[str, str], Sequence[Caution]]:
    """(cell, testbed) -> the caution of having been measured apart from the reference."""
    times = Times(tables.records, tables.outline.data.get("order"), stated=stated)
    reference, found = str(tables.outline.reference), {}
    for cell, groups in samples.groups.items():
        theirs = groups.get(reference, CellRuns()).complete
        for testbed, group in groups.items():
            if testbed != reference and (one := times.caution((testbed, group.complete), (reference, theirs))):
                found[cell, testbed] = (one,)
    return found


def _all_runs(each: Comparison) -> AllRuns:
    return AllRuns(each.runs, each.ratio, each.ratio_interval, each.verdict)


def _keep_places(samples: Samples, whole: Samples) -> None:
    """A cell and testbed of which all runs are left out is compared all the same, of no values."""
    for cell, groups in whole.groups.items():
        samples.cells.setdefault(cell, whole.cells[cell])
        for testbed in groups:
            samples.groups.setdefault(cell, {}).setdefault(testbed, CellRuns())
    for metric, about in whole.metrics.items():
        samples.metrics.setdefault(metric, about)
    samples.testbeds = whole.testbeds


def _headlines(samples: Samples, key: Key, reference: str | None) -> set[str]:
    """The testbeds whose comparison of this is a headline: what the reference has no means to measure is none."""
    if reference is None or not samples.is_headline(key) or not samples.measures(reference, key):
        return set()
    return {testbed for testbed in samples.testbeds if samples.measures(testbed, key)}


def _pairs(samples: Samples, key: Key, reference: str | None) -> Iterable[_Pair]:
    """Each cell with each testbed but the reference, where anything there has this metric."""
    empty = CellRuns()
    for cell, levels in samples.cells.items():
        groups = samples.groups[cell]
        if reference is None or not any(key in group.values for group in groups.values()):
            continue
        for testbed in samples.testbeds:
            if testbed != reference and testbed in groups:
                yield _Pair(cell, levels, (testbed, reference), (groups[testbed], groups.get(reference, empty)))


def _estimates(samples: Samples, sides: _Sides) -> Iterable[Estimated]:
    for key in samples.keys():  # noqa: SIM118 -- not a mapping
        headline = samples.is_headline(key)
        for cell, groups in samples.groups.items():
            for testbed in samples.testbeds:
                if testbed in groups and key in groups[testbed].values:
                    estimated = sides.of(key, cell, testbed).estimated
                    yield estimated if estimated.headline == headline else replace(estimated, headline=headline)


def _estimated(
    key: Key, about: Declared, place: tuple[Mapping[str, Level], str], group: CellRuns, confidence: float, units: Units
) -> Estimated:
    """``place`` is a cell and a testbed."""
    made = estimate(group.values.get(key, ()), confidence, about.scale, units.means(key, group))
    return Estimated(
        *key,
        unit=about.unit,
        layer=about.layer,
        headline=about.headline,
        description=about.description,
        cell=place[0],
        testbed=place[1],
        estimate=made,
        few=made.n < FEW,
        scale=about.scale,
        step=group.steps.get(key, 0.0),
        events=about.events,
    )


analysis = Compare()
