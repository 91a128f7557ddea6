"""Measure, the first stage of comparisons: each metric of each cell on a testbed and the reference, and its case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from twinbed.analyses.compare import lengths
from twinbed.analyses.compare.decision import Case, Nature, doubtful_shape
from twinbed.analyses.compare.doubts import doubts
from twinbed.analyses.compare.estimates import estimate, measured
from twinbed.analyses.compare.gathered import Gathered
from twinbed.analyses.compare.pool import pooled
from twinbed.analyses.compare.tallies import tallies
from twinbed.metrics.metric import Scale
from twinbed.model.caution import Caution, Kind
from twinbed.model.comparison import FEW, Estimate, Estimated, Measured, Pooled
from twinbed.model.run import Level
from twinbed.observations.samples import CellRuns, Key
from twinbed.statistics.sample import Sample


@dataclass(frozen=True, slots=True)
class Pair:
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
    """The reason that makes Student's t doubtful for it; empty without one."""


class Measurement:
    """Measurements by themselves and in pairs. Each side is made once: the reference's serves every testbed."""

    def __init__(self, gathered: Gathered) -> None:
        self.gathered, self.doubts = gathered, doubts(gathered)
        self._sides: dict[tuple[Key, str, str], _Side] = {}

    def stages(self) -> Iterator[tuple[Measured, Case]]:
        """Yield each comparison before it is judged, and the case that is to be judged, in the order of metrics."""
        for key in self.gathered.samples.keys():  # noqa: SIM118 -- not a mapping
            headlines = self.gathered.headlines(key)
            for pair in self._pairs(key):
                yield self._stage(key, pair, headlines)

    def pooled(self) -> Iterator[Pooled]:
        """Yield the ratio of each headline metric over all cells; nothing of a study that goes on until it is decided."""
        gathered = self.gathered
        for key in gathered.samples.keys() if gathered.rules.information is None else ():
            if gathered.samples.metrics[key[0]].scale != Scale.RATIO:
                continue
            for testbed in gathered.headlines(key):
                groups = [pair.groups for pair in self._pairs(key) if pair.names[0] == testbed]
                names = testbed, str(gathered.tables.outline.reference)
                yield from pooled(key, names, groups, gathered.units, gathered.rules.alpha)

    def estimates(self) -> Iterator[Estimated]:
        """Yield every metric of every cell and testbed by itself."""
        samples = self.gathered.samples
        for key in samples.keys():  # noqa: SIM118 -- not a mapping
            headline = samples.is_headline(key)
            for cell, groups in samples.groups.items():
                for testbed in samples.testbeds:
                    if testbed in groups and key in groups[testbed].values:
                        own = self._side(key, cell, testbed).estimated
                        yield own if own.headline == headline else replace(own, headline=headline)

    def _pairs(self, key: Key) -> Iterator[Pair]:
        """Yield each cell with each testbed but the reference, where anything there has this metric."""
        samples, reference = self.gathered.samples, self.gathered.tables.outline.reference
        for cell, levels in samples.cells.items() if reference is not None else ():
            groups = samples.groups[cell]
            if any(key in group.values for group in groups.values()):
                for testbed in samples.testbeds:
                    if reference is not None and testbed != reference and testbed in groups:
                        yield Pair(cell, levels, (testbed, reference), (groups[testbed], groups.get(reference, CellRuns())))

    def _stage(self, key: Key, pair: Pair, headlines: Sequence[str]) -> tuple[Measured, Case]:
        gathered, rules = self.gathered, self.gathered.rules
        declared, arranged = gathered.samples.metrics[key[0]], gathered.units.arrange(key, pair.groups)
        side, reference_side = (self._side(key, pair.name, name) for name in pair.names)
        estimates, shapes = (side.estimated.estimate, reference_side.estimated.estimate), (side.shape, reference_side.shape)
        counts = tallies(gathered.samples, key, pair.groups)
        cautions = (
            *self.doubts.of(key, pair.name, pair.names),
            *_own_cautions(estimates, pair, shapes),
            *lengths.cautions(key, pair.groups, rules.margin),
        )
        both = measured(
            *(side.estimated, reference_side.estimated, pair.names, pair.cell, rules.margin, cautions),
            headline=pair.names[0] in headlines and pair.names[1] in gathered.samples.groups[pair.name],
            by=gathered.tables.outline.by,
            paired=arranged.paired and declared.scale in (Scale.RATIO, Scale.INTERVAL),
            sessions=arranged.sessions,
        )
        nature = Nature(declared.margin, (side.estimated.step, reference_side.estimated.step), counts, declared.timed)
        sample, reference_sample = (Sample.of(side_estimate.values) for side_estimate in estimates)
        return both, Case(declared.scale, sample, reference_sample, arranged, nature, rules, skewed=any(shapes))

    def _side(self, key: Key, cell: str, testbed: str) -> _Side:
        place = key, cell, testbed
        if place not in self._sides:
            declared = self.gathered.samples.metrics[key[0]]
            estimated = self._estimated(key, cell, testbed)
            shape = doubtful_shape(estimated.estimate.values, declared.scale, self.gathered.rules.margin)
            self._sides[place] = _Side(estimated, shape)
        return self._sides[place]

    def _estimated(self, key: Key, cell: str, testbed: str) -> Estimated:
        gathered = self.gathered
        declared, group = gathered.samples.metrics[key[0]], gathered.samples.groups[cell].get(testbed, CellRuns())
        made = estimate(group.values.get(key, ()), gathered.rules.confidence, declared.scale, gathered.units.means(key, group))
        levels: Mapping[str, Level] = gathered.samples.cells[cell]
        return Estimated(
            *key,
            unit=declared.unit,
            layer=declared.layer,
            headline=declared.headline,
            description=declared.description,
            cell=levels,
            testbed=testbed,
            estimate=made,
            few=made.n < FEW,
            scale=declared.scale,
            step=group.steps.get(key, 0.0),
            events=declared.events,
        )


def _own_cautions(estimates: tuple[Estimate, Estimate], pair: Pair, shapes: Sequence[str]) -> Iterable[Caution]:
    for name, sample, group, shape in zip(pair.names, estimates, pair.groups, shapes, strict=True):
        if sample.n < FEW:
            yield Caution(Kind.FEW_REPLICATES, f"{sample.n} values", name)
        if sample.n < len(group.complete):
            yield Caution(
                Kind.UNREADABLE, f"{len(group.complete) - sample.n} of {len(group.complete)} runs have no value", name
            )
        if shape:
            yield Caution(Kind.SKEWED, shape, name)
