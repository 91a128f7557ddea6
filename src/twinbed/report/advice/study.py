"""The comparisons of one study: testbeds with the reference, and levels of settings with the first level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed import registry
from twinbed.analyses.compare.contrasts import contrasts
from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis as compare
from twinbed.executor import Executor
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.record import IMPORTED
from twinbed.model.run import Level
from twinbed.model.tables import Tables
from twinbed.observations.levels import is_ordered
from twinbed.observations.numbered import of_pairs, varied_numbers
from twinbed.report.advice.result import Basis, Contrast
from twinbed.show.numbers import joined

Held = tuple[Contrast, Comparison]


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of ``advise``."""

    margin: float | None = None
    """None: each study's own."""
    error: float = 0.05
    everything: bool = False
    """Every metric, not only the headlines."""
    reference: str | None = None
    """As the user gave it, for the commands that show more."""


@dataclass(frozen=True, slots=True)
class Study:
    """One results folder. The verdicts of ``held`` are not yet corrected for all studies."""

    tables: Tables
    result: Comparisons
    margin: float
    varying: Mapping[str, Sequence[Level]]
    """Each factor that varies, except the testbed, with its levels in the order of the study."""
    axis: str | None
    """The factor along which ranges are described."""
    held: tuple[Held, ...]

    @property
    def basis(self) -> Basis:
        outline = self.tables.outline
        unreal = tuple(_unreal(self.tables))
        return Basis(str(self.tables.shown), outline.name, len(self.tables.records), outline.reference, unreal, self.margin)

    @property
    def notes(self) -> Iterator[str]:
        """Questions that the results cannot answer, with the reason."""
        outline = self.tables.outline
        if not self.result.comparisons:
            yield f"{self.tables.shown} does not have two testbeds to compare"
        settings = [name for name in self.varying if not is_question(self.tables, name)]
        if settings and not _tells_of_settings(self.tables):
            why = "the study had interim analyses" if outline.interim is not None else "it compares sessions"
            yield f"{self.tables.shown}: no rule about {', '.join(settings)}, because {why}"


def study_of(tables: Tables, asked: Settings, executor: Executor) -> Study:
    """Compare everything in a results folder that rules can be about."""
    margin = asked.margin if asked.margin is not None else tables.outline.margin
    result = compare.run_on(executor, tables, CompareParams(margin=margin, confidence=1 - asked.error))
    varying = _varying(tables)
    source = str(tables.shown)
    held = [(Contrast(source, comparison.testbed, comparison.reference), comparison) for comparison in result.comparisons]
    for factor in varying if _tells_of_settings(tables) else ():
        if not is_question(tables, factor):
            of_factor = contrasts(executor, result, factor, varying[factor], margin, 1 - asked.error)
            held += [
                (Contrast(source, comparison.testbed, comparison.reference, testbed, factor), comparison)
                for testbed, comparison in of_factor
            ]
    ordered = [name for name, levels in varying.items() if is_ordered(levels)]
    axis = max(ordered, key=lambda name: (is_question(tables, name), len(varying[name])), default=None)
    wanted = tuple(pair for pair in held if asked.everything or pair[1].headline)
    return Study(tables, result, margin, varying, axis, wanted)


def _tells_of_settings(tables: Tables) -> bool:
    """Return whether runs are independent, and their number did not depend on their values."""
    return tables.outline.interim is None and not tables.outline.data.get("sessions")


def _varying(tables: Tables) -> dict[str, list[Level]]:
    given = tables.outline.data.get("factors") or {}
    present: dict[str, dict[tuple[bool, Level], Level]] = {name: {} for name in given}
    for record in tables.records:
        for name, level in record.levels.items():
            present.setdefault(name, {})[isinstance(level, bool), level] = level
    varying = {}
    for name, of_runs in present.items():
        order = [key for level in given.get(name, ()) if (key := (isinstance(level, bool), level)) in of_runs]
        levels = [of_runs[key] for key in (*order, *(key for key in of_runs if key not in order))]
        if name not in ("testbed", tables.outline.data.get("sessions")) and len(levels) > 1:
            varying[name] = levels
    return varying


def is_question(tables: Tables, factor: str) -> bool:
    """Return whether a factor belongs to the workload (or is the number of pairs), not to how testbeds are made.

    Imported files do not say; there a factor with an order counts as the workload's."""
    workload = tables.records[0].settings["workload"]
    path, _, name = factor.rpartition(".")
    if factor == of_pairs(varied_numbers(tables)) or path.partition(".")[0] == "workload" or (not path and name in workload):
        return True
    return workload.get("kind") == IMPORTED and is_ordered([record.levels.get(factor) for record in tables.records])


def _unreal(tables: Tables) -> Iterator[str]:
    """Yield the testbeds that are no machines."""
    of_kinds: dict[str, dict[str, None]] = {}
    order = tables.outline.testbeds
    for record in sorted(tables.records, key=lambda record: order.index(str(record.settings["testbed"]["name"]))):
        of_kinds.setdefault(str(record.settings["testbed"].get("kind")), {})[str(record.settings["testbed"]["name"])] = None
    for kind, names in of_kinds.items():
        driver = registry.PLUGINS.drivers.get(kind)
        if driver is not None and driver.in_process:
            yield f"no machine: {joined([*names])} ({driver.name}: {driver.summary})"
