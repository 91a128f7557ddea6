"""Cells: each combination of the factors' levels that is not excluded, with all its settings checked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from twinbed.contracts.params import BackgroundParams, DriverParams, InstrumentParams, PluginParams, WorkloadParams
from twinbed.model.run import Level
from twinbed.model.template import given
from twinbed.model.topology import Topology
from twinbed.study.document import Problem, Scalar
from twinbed.study.factor import INSTRUMENTS, TESTBED, Factor, Setting, instruments_of
from twinbed.study.params import FromLevel, Path, Section, shown
from twinbed.study.run import Choice, Run

MAX_CELLS = 100_000
M = TypeVar("M", bound=BaseModel)
P = TypeVar("P", bound=PluginParams)


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of levels, and what it resolves to."""

    levels: Mapping[str, Level]
    testbed_name: str
    testbed: Choice[DriverParams]
    topology: Topology
    workload: Choice[WorkloadParams]
    instruments: Mapping[str, Choice[InstrumentParams]]
    backgrounds: Mapping[str, Choice[BackgroundParams]]

    def accompanying(self) -> tuple[Choice[InstrumentParams] | Choice[BackgroundParams], ...]:
        """Return instruments and background loads: what runs besides the workload."""
        return (*self.instruments.values(), *self.backgrounds.values())

    def run(self, *, replicate: int, block: int, position: int, seed: int = 0) -> Run:
        return Run(
            levels=self.levels,
            replicate=replicate,
            block=block,
            position=position,
            testbed_name=self.testbed_name,
            testbed=self.testbed,
            topology=self.topology,
            workload=self.workload,
            instruments=self.instruments,
            backgrounds=self.backgrounds,
            seed=seed,
        )


@dataclass(frozen=True, slots=True)
class Sections:
    """The parts of a study that have settings; a part with an error is missing."""

    testbeds: Mapping[str, Section[DriverParams]]
    workload: Section[WorkloadParams] | None
    topology: Section[Topology]
    instruments: Mapping[str, Section[InstrumentParams]]
    backgrounds: Mapping[str, Section[BackgroundParams]]
    """By their paths: ``background``, or ``background.KIND`` where there are several."""


Only = Mapping[str, Mapping[str, Collection[Scalar]]]
"""Testbed -> factor -> the levels measured there, where not all are."""


def cells(
    factors: Sequence[Factor],
    exclude: Sequence[Mapping[str, Scalar]],
    only: Only,
    sections: Sections,
    problems: list[Problem],
) -> tuple[Cell, ...]:
    """Return all cells, in the order of the file, the last factor varying fastest. Errors are appended to ``problems``.

    ``exclude`` maps factor names to levels; a cell that has all levels of one entry is left out. Factors that were drawn
    together vary together.
    """
    axes = _axes(factors)
    count = math.prod(len(axis) for axis in axes)
    if count > MAX_CELLS:
        problems.append(Problem.at(factors[-1].place, "factors", f"make {count} cells", f"at most {MAX_CELLS}"))
        return ()
    resolver = _Resolver(factors, sections, problems)
    resolved: list[Cell] = []
    for combination in itertools.product(*axes):
        levels = {name: level for part in combination for name, level in part.items()}
        chosen = {factor.name: levels[factor.name] for factor in factors}
        if any(all(chosen[name] is level for name, level in entry.items()) for entry in exclude):
            continue
        if any(chosen[name] not in kept for name, kept in only.get(str(chosen[TESTBED].value), {}).items()):
            continue
        cell = resolver.cell(chosen)
        if cell is not None:
            resolved.append(cell)
    return tuple(resolved)


def _axes(factors: Sequence[Factor]) -> list[list[dict[str, Scalar]]]:
    """Return the axes that vary independently: a factor, or all factors drawn together; each a list of levels by factor."""
    axes: list[list[dict[str, Scalar]]] = []
    done: set[str] = set()
    for factor in factors:
        if not factor.together:
            axes.append([{factor.name: level} for level in factor.levels])
        elif factor.together not in done:
            done.add(factor.together)
            joined = [other for other in factors if other.together == factor.together]
            # Whole numbers may be drawn together more than once.
            draws = dict.fromkeys(zip(*(other.levels for other in joined), strict=True))
            axes.append([dict(zip([other.name for other in joined], draw, strict=True)) for draw in draws])
    return axes


class _Resolver:
    """A checker of cells' settings; cells that share settings share the check."""

    def __init__(self, factors: Sequence[Factor], sections: Sections, problems: list[Problem]) -> None:
        self.by_owner: dict[str, list[tuple[Factor, Setting]]] = {}
        for factor in factors:
            if factor.setting is not None:
                self.by_owner.setdefault(factor.setting.owner, []).append((factor, factor.setting))
        self.sections = sections
        self.problems = problems
        self.checked: dict[tuple[object, ...], BaseModel | None] = {}
        self.resolved: dict[tuple[str, str, str], Scalar] = {}
        self.kinds: dict[str, tuple[str, Scalar]] = {}
        """Factor -> the kind of its first level, for settings of the study's own."""

    def cell(self, chosen: Mapping[str, Scalar]) -> Cell | None:
        name = str(chosen[TESTBED].value)
        testbed = self._choice(self.sections.testbeds.get(name), "testbed", chosen, f" (testbed {name})")
        workload = self._choice(self.sections.workload, "workload", chosen)
        loads = {path: self._choice(section, path, chosen) for path, section in self.sections.backgrounds.items()}
        topology = self._params(self.sections.topology, "topology", chosen)
        used = self._instruments(chosen)
        instruments = {kind: self._choice(section, f"instruments.{kind}", chosen) for kind, section in used.items()}
        self._unused_instruments(used, chosen)
        if testbed is None or workload is None or not isinstance(topology, Topology):
            return None
        complete = {kind: choice for kind, choice in instruments.items() if choice is not None}
        backgrounds = {choice.kind: choice for choice in loads.values() if choice is not None}
        if len(complete) < len(instruments) or len(backgrounds) < len(loads):
            return None
        for path, load in loads.items():
            self._fits(self.sections.backgrounds[path], load, topology)
        if self.sections.workload is not None:
            if not self._fits(self.sections.workload, workload, topology):
                return None
            topology = workload.params.hosts_on(topology)
        levels = {factor: level.value for factor, level in chosen.items()}
        return Cell(levels, name, testbed, topology, workload, complete, backgrounds)

    def _fits(
        self,
        section: Section[BackgroundParams] | Section[WorkloadParams],
        choice: Choice[BackgroundParams] | Choice[WorkloadParams] | None,
        topology: Topology,
    ) -> bool:
        """Report a setting of a workload or background load that this topology cannot have; return whether there is none."""
        unfit = choice.params.unfit(topology) if choice is not None else None
        if unfit is not None:
            place = section.node.keys.get(unfit.setting, section.node.place)
            self.problems.append(Problem.at(place, f"{section.path}.{unfit.setting}", unfit.message, unfit.allowed))
        return unfit is None

    def _instruments(self, chosen: Mapping[str, Scalar]) -> Mapping[str, Section[InstrumentParams]]:
        if INSTRUMENTS not in chosen:
            return self.sections.instruments
        names = instruments_of(chosen[INSTRUMENTS].value)
        return {name: self.sections.instruments[name] for name in names if name in self.sections.instruments}

    def _unused_instruments(self, used: Mapping[str, Section[InstrumentParams]], chosen: Mapping[str, Scalar]) -> None:
        for kind in self.sections.instruments:
            if kind not in used:
                for factor, setting in self.by_owner.get(f"instruments.{kind}", ()):
                    self._not_there(factor, setting, chosen, f"the instrument {kind!r} is not used in every cell")

    def _choice(self, section: Section[P] | None, owner: str, chosen: Mapping[str, Scalar], note: str = "") -> Choice[P] | None:
        if section is None:
            return None
        params = self._params(section, owner, chosen, note)
        return None if params is None else Choice(section.kind, params)

    def _params(self, section: Section[M], owner: str, chosen: Mapping[str, Scalar], note: str = "") -> M | None:
        levels = dict(self._levels(section, owner, chosen))
        key = (section.path, *((path, type(made.level.value), made.level.value) for path, made in levels.items()))
        if key not in self.checked:
            for path, made in levels.items():
                if issubclass(section.model, WorkloadParams) and section.model.has_own_settings and len(path) > 1:
                    self._same_kind(made)
            params = self.checked[key] = section.check(levels, self.problems, note)
            if params is not None:
                self._find_twins(section, levels, params)
        known = self.checked[key]
        return known if isinstance(known, section.model) else None

    def _levels(self, section: Section[M], owner: str, chosen: Mapping[str, Scalar]) -> Iterator[tuple[Path, FromLevel]]:
        for factor, setting in self.by_owner.get(owner, ()):
            if setting.field[0] in section.model.model_fields:
                yield setting.field, FromLevel(factor.name, chosen[factor.name])
            else:
                reason = f"the testbed {section.path.partition('.')[2]!r} ({section.kind}) has no setting {setting.field[0]!r}"
                self._not_there(factor, setting, chosen, reason)

    def _not_there(self, factor: Factor, setting: Setting, chosen: Mapping[str, Scalar], reason: str) -> None:
        """Report a level of a setting that this cell does not have, unless it is null."""
        if chosen[factor.name].value is not None:
            allowed = f"null as its level of {factor.name}, and the other such cells under exclude"
            self.problems.append(Problem.at(factor.place, f"factors.{factor.name}", reason, allowed))

    def _same_kind(self, made: FromLevel) -> None:
        """Report a level of a setting of the study's own that is of another kind than the first."""
        kind = given(made.level.value).kind
        first, level = self.kinds.setdefault(made.factor, (kind, made.level))
        if kind != first:
            text = f"{shown(made.level.value)} is a {kind}, and {shown(level.value)} is a {first}"
            self.problems.append(Problem.at(made.level.place, f"factors.{made.factor}", text, "levels of one kind"))

    def _find_twins(self, section: Section[M], levels: Mapping[Path, FromLevel], params: BaseModel) -> None:
        """Report levels that are written differently and mean the same, such as 1MiB and 1024KiB."""
        for path, made in levels.items():
            value: object = params
            for step in path:
                value = value[step] if isinstance(value, Mapping) else getattr(value, step)
            key = (made.factor, section.path, repr(value))
            first = self.resolved.setdefault(key, made.level)
            if first is not made.level:
                text = f"the level {shown(made.level.value)} means the same as {shown(first.value)}"
                self.problems.append(Problem.at(made.level.place, f"factors.{made.factor}", text))
