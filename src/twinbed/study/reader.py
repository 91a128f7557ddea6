"""The reader that turns a study file's tree into a Study: sections, factors, excluded cells, cross checks, all problems."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import BaseModel

from twinbed.contracts.params import BackgroundParams, DriverParams, InstrumentParams, WorkloadParams
from twinbed.model.caution import OF_RUNS
from twinbed.model.keep import Keep
from twinbed.model.near import Near, nearest
from twinbed.model.result import Pairing
from twinbed.model.run import Level
from twinbed.study.catalogue import Catalogue
from twinbed.study.cell import Cell, M, Only, Sections, cells
from twinbed.study.document import Entries, Items, Node, Position, Problem, Scalar, is_absent, listed, place_of
from twinbed.study.factor import (
    DRAW,
    HYPERCUBE,
    INSTRUMENTS,
    NO_INSTRUMENTS,
    TESTBED,
    UNCERTAIN,
    Factor,
    Uncertain,
    instruments_of,
    match_level,
    own_settings,
    read_factors,
    settings,
)
from twinbed.study.params import Section, shown
from twinbed.study.pivot import TABLES, Pivot, PivotReader
from twinbed.study.profile import Profile
from twinbed.study.sample import subset
from twinbed.study.sections import KEEP, ONLY, ONLY_EXAMPLE, SectionReader, read_keep, read_until
from twinbed.study.study import KEYS, Head, Order, Study, pairing, seed_of

MAX_RUNS = 1_000_000
REMOTE = "remote"
"""The driver of physical hosts, which are the natural reference."""

STUDY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_STUDY_NAME_ALLOWED = "letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 64"


class StudyReader:
    def __init__(self, root: Entries, whole: Entries, catalogue: Catalogue, problems: list[Problem]) -> None:
        """Prepare to read. ``whole`` is the study without the changes of a profile and of -s."""
        self.root = root
        self.whole = whole
        self.catalogue = catalogue
        self.problems = problems
        self.sections = SectionReader(root, catalogue, problems)
        self.drawn_of: dict[tuple[str, str], Sequence[Scalar]] = {}
        """Testbed, factor -> the levels of ``only`` that were drawn; none where all are listed."""

    def problem(self, place: Position, key: str, message: str, allowed: str = "", near: Near = ()) -> None:
        self.problems.append(Problem.at(place, key, message, allowed, near))

    def study(self, filename: str, source: str, overrides: tuple[str, ...], profile: Profile | None) -> Study | None:
        for key, place in self.root.keys.items():
            if key not in KEYS:
                self.problem(place, key, "is not a key of a study", listed(KEYS), nearest(key, KEYS))
        head = self.head()
        until = read_until(self.root, None if head is None else head.order, self.problems)
        testbeds = self.sections.testbeds()
        workload = self.sections.workload()
        backgrounds = self.sections.backgrounds()
        topology = self.sections.topology()
        instruments = self.sections.instruments()
        seed = 0 if head is None else seed_of(head.study) if head.seed is None else head.seed
        uncertain, factors = self.factors(testbeds, workload, backgrounds, instruments, seed)
        self.check_instruments_factor(factors, instruments)
        measuring = [] if workload is None else [workload.kind]
        keep = read_keep(self.root, [*measuring, *instruments, *(load.kind for load in backgrounds.values())], self.problems)
        excused = self.excused(factors)
        sections = Sections(
            {name: _excuse(section, excused) for name, section in testbeds.items()},
            None if workload is None else _excuse(workload, excused),
            topology,
            instruments,
            {path: _excuse(section, excused) for path, section in backgrounds.items()},
        )
        self.check_sections(sections, factors)
        exclude, leave_out = self.exclude(factors)
        resolved = cells(factors, exclude, self.only(factors, uncertain, seed), sections, self.problems)
        if not testbeds:
            return None
        if exclude and not resolved and not self.problems:
            self.problem(self.root.entries["exclude"].place, "exclude", "excludes every cell")
        reference, reason = self.reference(factors, testbeds)
        tables = self.tables(factors, reference, workload, resolved)
        if head is None or self.problems:
            return None
        # Draws vary as replicates do, and show more.
        given = head.replicates if "replicates" in self.root.entries or not uncertain.samples else 1
        replicates = given if until is None else until.most
        if len(resolved) * replicates > MAX_RUNS:
            place = self.root.entries["replicates"].place
            self.problem(place, "replicates", f"make {len(resolved) * replicates} runs", f"at most {MAX_RUNS}")
            return None
        return Study(
            name=head.study if profile is None else f"{head.study}-{profile.name}",
            profile=None if profile is None else profile.name,
            reference=reference,
            reference_reason=reason,
            factors={factor.name: factor.values() for factor in factors},
            drawn=self.drawn(testbeds, factors),
            uncertain=uncertain.inputs,
            samples=uncertain.samples,
            exclude_cautions=leave_out,
            exclude=tuple({name: level.value for name, level in entry.items()} for entry in exclude),
            cells=resolved,
            replicates=replicates,
            until=until,
            order=head.order,
            comparison=head.comparison or pairing(head.order, replicates if until is None else until.least),
            keep=keep or Keep(head.keep),
            seed=seed,
            margin=head.margin,
            confidence=head.confidence,
            tables=tables,
            filename=filename,
            source=source,
            overrides=overrides,
        )

    def head(self) -> Head | None:
        own = {key: node for key, node in self.root.entries.items() if key in Head.model_fields}
        for key in ("replicates", KEEP):  # ``read_until`` and ``read_keep`` read them
            if isinstance(own.get(key), Entries):
                del own[key]
        node = Entries(own, {key: self.root.keys[key] for key in own}, self.root.place)
        head = Section("", Head, node).check({}, self.problems)
        if isinstance(head, Head) and head.comparison is Pairing.PAIRED and head.order is not Order.RANDOMIZED_BLOCKS:
            message = f"needs blocks to pair runs by, and order: {head.order} has none"
            self.problem(own["comparison"].place, "comparison", message, "order: randomized-blocks, or comparison: independent")
        name = own.get("study")
        if isinstance(name, Scalar) and isinstance(name.value, str) and not STUDY_NAME.fullmatch(name.value):
            self.problem(name.place, "study", f"{name.value!r} is not a safe folder name", _STUDY_NAME_ALLOWED)
        return head if isinstance(head, Head) else None

    def factors(
        self,
        testbeds: Mapping[str, Section[DriverParams]],
        workload: Section[WorkloadParams] | None,
        backgrounds: Mapping[str, Section[BackgroundParams]],
        instruments: dict[str, Section[InstrumentParams]],
        seed: int,
    ) -> tuple[Uncertain, list[Factor]]:
        node = self.root.entries.get("factors")
        drivers = [section.model for section in testbeds.values()]
        models: dict[str, type[BaseModel]] = {name: section.model for name, section in instruments.items()}
        models |= self.instruments_in_levels(node)
        loads = {path: section.model for path, section in backgrounds.items()}
        known = settings(None if workload is None else workload.model, loads, drivers, models)
        known |= {} if workload is None else own_settings(workload.model, workload.node)
        factors = read_factors(node, known, seed, self.problems)
        if any(factor.name == TESTBED for factor in factors):
            self.check_testbed_factor(factors)
        else:
            factors = [self.all_testbeds(), *factors]
        used = [str(level.value) for factor in factors if factor.name == TESTBED for level in factor.levels]
        uncertain = Uncertain(self.root.entries.get(UNCERTAIN), used, self.problems)
        drawn = uncertain.factors(known, seed)
        by_target = {factor.target: factor for factor in factors}
        for factor in drawn:
            if factor.target in by_target:
                other = by_target[factor.target].name
                self.problem(factor.place, f"{UNCERTAIN}.{factor.name}", f"is the same setting as the factor {other!r}")
        return uncertain, [*factors, *drawn]

    def all_testbeds(self) -> Factor:
        """Return the factor ``testbed`` of a study that does not give it: all its testbeds."""
        node = self.root.entries.get("testbeds")
        names = list(node.entries) if isinstance(node, Entries) else []
        place = self.root.keys.get("testbeds", self.root.place)
        return Factor(TESTBED, place, None, tuple(Scalar(name, place) for name in names or [""]))

    def instruments_in_levels(self, node: Node | None) -> dict[str, type[BaseModel]]:
        """Return the instruments that only levels of the factor ``instruments`` name."""
        levels = node.entries.get(INSTRUMENTS) if isinstance(node, Entries) else None
        names: list[object] = []
        for level in levels.items if isinstance(levels, Items) else ():
            names += [item.value for item in level.items if isinstance(item, Scalar)] if isinstance(level, Items) else []
            names += str(level.value).split("+") if isinstance(level, Scalar) else []
        known = self.catalogue.instruments
        return {name: known[name] for name in names if isinstance(name, str) and name in known}

    def check_testbed_factor(self, factors: Sequence[Factor]) -> None:
        node = self.root.entries.get("testbeds")
        defined = list(node.entries) if isinstance(node, Entries) else []
        for level in next(factor.levels for factor in factors if factor.name == TESTBED):
            if level.value not in defined:
                name = str(level.value)
                self.problem(
                    level.place, "factors.testbed", f"{name!r} is not a testbed", listed(defined), nearest(name, defined)
                )

    def check_instruments_factor(self, factors: Sequence[Factor], instruments: dict[str, Section[InstrumentParams]]) -> None:
        """Add the instruments that only levels name; report one that no level names, which would silently be off."""
        factor = next((factor for factor in factors if factor.name == INSTRUMENTS), None)
        if factor is None:
            return
        known = self.catalogue.instruments
        used: set[str] = set()
        for level in factor.levels:
            for name in instruments_of(level.value):
                used.add(name)
                if name not in known:
                    allowed = listed([*known, NO_INSTRUMENTS])
                    self.problem(
                        level.place, "factors.instruments", f"{name!r} is not an instrument", allowed, nearest(name, known)
                    )
                elif name not in instruments:
                    instruments[name] = self.sections.instrument(name, Entries({}, {}, level.place))
        for name, section in instruments.items():
            if name not in used:
                self.problem(
                    section.node.place,
                    f"instruments.{name}",
                    "is in no level of the factor instruments",
                    "in at least one level",
                )

    def excused(self, factors: Sequence[Factor]) -> frozenset[str]:
        """Return the last names of factors with errors, so that their settings are not reported as missing too."""
        node = self.root.entries.get("factors")
        written = dict(node.entries) if isinstance(node, Entries) else {}
        hypercube = written.pop(HYPERCUBE, None)
        written |= hypercube.entries if isinstance(hypercube, Entries) else {}
        uncertain = self.root.entries.get(UNCERTAIN)
        written |= uncertain.entries if isinstance(uncertain, Entries) else {}
        right = {factor.name for factor in factors}
        return frozenset(name.rpartition(".")[2] for name in written if name not in right)

    def check_sections(self, sections: Sections, factors: Sequence[Factor]) -> None:
        """Report settings that are given twice, and errors of testbeds that no cell uses."""
        for factor in factors:
            if factor.setting is None:
                continue
            for section in _owners(factor.setting.owner, sections):
                node: Node | None = section.node
                for step in factor.setting.field[:-1]:
                    node = node.entries.get(step) if isinstance(node, Entries) else None
                if isinstance(node, Entries) and factor.setting.field[-1] in node.entries:
                    key = ".".join((section.path, *factor.setting.field))
                    self.problem(
                        node.keys[factor.setting.field[-1]], key, f"is also the factor {factor.name!r}", "only one of the two"
                    )
        used = {level.value for factor in factors if factor.name == TESTBED for level in factor.levels}
        driven = {factor.setting.field[0] for factor in factors if factor.setting and factor.setting.owner == "testbed"}
        for name, section in sections.testbeds.items():
            if name not in used:
                _excuse(section, section.excused | driven).check({}, self.problems)

    def exclude(self, factors: Sequence[Factor]) -> tuple[list[dict[str, Scalar]], tuple[str, ...]]:
        """Return the cells that are not run, and the cautions that exclude a run from the main result."""
        node = self.root.entries.get("exclude")
        if node is None or is_absent(node):
            return [], ()
        if not isinstance(node, Items):
            self.problem(node.place, "exclude", "is not a list", "a list of mappings of factors to levels, and of cautions")
            return [], ()
        by_name = {factor.target: factor for factor in factors} | {factor.name: factor for factor in factors}
        written = self.root.entries.get("factors")
        wrong = set(written.entries if isinstance(written, Entries) else ()) - set(by_name)
        excluded = []
        cautions: list[str] = []
        for index, item in enumerate(node.items):
            key = f"exclude[{index}]"
            if isinstance(item, Scalar) and isinstance(item.value, str):
                if item.value not in OF_RUNS:
                    message = f"{item.value!r} is not a caution that can exclude a run"
                    self.problem(item.place, key, message, listed(OF_RUNS), nearest(item.value, OF_RUNS))
                elif item.value in cautions:
                    self.problem(item.place, key, f"{item.value} is given twice")
                else:
                    cautions.append(item.value)
                continue
            if not isinstance(item, Entries) or not item.entries:
                self.problem(
                    item.place,
                    key,
                    "is not a mapping of factors to levels, nor a caution",
                    "such as {testbed: container, payload: 1MiB}, or stall",
                )
                continue
            entry: dict[str, Scalar] = {}
            for name, value in item.entries.items():
                factor = by_name.get(name)
                if factor is None:
                    if name not in wrong:
                        names = [factor.name for factor in factors]
                        self.problem(item.keys[name], f"{key}.{name}", "is not a factor", listed(names), nearest(name, names))
                    continue
                level = match_level(value, factor)
                if level is not None:
                    entry[factor.name] = level
                elif factor.levels:
                    levels = [_text(known.value) for known in factor.levels]
                    near = nearest(_text(value.value), levels) if isinstance(value, Scalar) else ()
                    given = shown(value.value) if isinstance(value, Scalar) else "a list or mapping"
                    self.problem(value.place, f"{key}.{name}", f"{given} is not a level of {factor.name}", listed(levels), near)
            if len(entry) == len(item.entries):
                excluded.append(entry)
        return excluded, tuple(cautions)

    def only(self, factors: Sequence[Factor], uncertain: Uncertain, seed: int) -> Only:
        """Return testbed -> factor -> levels, for testbeds that ``only`` restricts."""
        by_name = {factor.target: factor for factor in factors} | {factor.name: factor for factor in factors}
        names = [factor.name for factor in factors if factor.name != TESTBED]
        wrong = self.excused(factors)
        kept: dict[str, dict[str, Collection[Scalar]]] = {}
        for draws in (factor.levels for factor in factors if factor.name == DRAW):
            kept = {testbed: {DRAW: ran} for testbed, ran in uncertain.only(draws).items()}
        for testbed, node in self.sections.only.items():
            key = f"testbeds.{testbed}.{ONLY}"
            if not isinstance(node, Entries):
                self.problem(node.place, key, "is not a mapping", f"a mapping of factors to levels, {ONLY_EXAMPLE}")
                continue
            for name, value in node.entries.items():
                factor = by_name.get(name)
                if factor is None and name.rpartition(".")[2] in wrong:
                    continue
                if factor is None or factor.name == TESTBED:
                    self.problem(node.keys[name], f"{key}.{name}", "is not a factor", listed(names), nearest(name, names))
                    continue
                levels = self.only_levels(testbed, f"{key}.{name}", value, factor, seed)
                if levels is not None:
                    kept.setdefault(testbed, {})[factor.name] = levels
        return kept

    def drawn(self, testbeds: Iterable[str], factors: Sequence[Factor]) -> Mapping[str, Mapping[str, tuple[Level, ...]]]:
        """Return testbed -> factor -> the levels that were drawn at random."""
        of_all = {factor.name: factor.levels for factor in factors if factor.drawn}
        drawn = {}
        for testbed in testbeds:
            own = {factor: levels for (name, factor), levels in self.drawn_of.items() if name == testbed}
            drawn[testbed] = {
                name: tuple(level.value for level in levels) for name, levels in {**of_all, **own}.items() if levels
            }
        return {testbed: levels for testbed, levels in drawn.items() if levels}

    def only_levels(self, testbed: str, key: str, node: Node, factor: Factor, seed: int) -> Sequence[Scalar] | None:
        if isinstance(node, Items):
            self.drawn_of[testbed, factor.name] = ()
            return self.listed_levels(key, node, factor)
        entries = node.entries if isinstance(node, Entries) else {}
        given = entries.get("random")
        count = given.value if isinstance(given, Scalar) else None
        more = entries.get("also", Items((), node.place))
        wrong = isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= len(factor.levels)
        if wrong or entries.keys() - {"random", "also"} or not isinstance(more, Items) or not isinstance(count, int):
            allowed = f"a list of levels, or {{random: N}} with N from 1 to {len(factor.levels)}, {{random: N, also: [...]}}"
            self.problem(node.place, key, f"does not say which levels of {factor.name} are measured", allowed)
            return None
        also = self.listed_levels(f"{key}.also", more, factor)
        if also is None:
            return None
        drawn = subset(seed, factor.name, factor.levels, count, drawn=factor.drawn)
        self.drawn_of[testbed, factor.name] = drawn
        return [level for level in factor.levels if level in drawn or level in also]

    def listed_levels(self, key: str, node: Items, factor: Factor) -> Sequence[Scalar] | None:
        levels = [match_level(item, factor) for item in node.items]
        for item, level in zip(node.items, levels, strict=True):
            if level is None:
                known = listed([_text(known_level.value) for known_level in factor.levels[:20]])
                self.problem(item.place, key, f"is not a level of {factor.name}", known)
        matched = [level for level in levels if level is not None]
        return matched if len(matched) == len(levels) else None

    def reference(self, factors: Sequence[Factor], testbeds: Mapping[str, Section[DriverParams]]) -> tuple[str, str]:
        names = [str(level.value) for factor in factors if factor.name == TESTBED for level in factor.levels]
        node = self.root.entries.get("reference")
        if isinstance(node, Scalar) and isinstance(node.value, str):
            given = node.value
            if given not in names:
                what = "a level of the factor testbed" if given in testbeds else "a testbed"
                self.problem(node.place, "reference", f"{given!r} is not {what}", listed(names), nearest(given, names))
            return given, "given"
        remote = [name for name in names if name in testbeds and testbeds[name].kind == REMOTE]
        if remote:
            return remote[0], "the first testbed of physical hosts"
        return (names[0] if names else ""), "the first testbed listed"

    def tables(
        self, factors: Sequence[Factor], reference: str, workload: Section[WorkloadParams] | None, resolved: Sequence[Cell]
    ) -> tuple[Pivot, ...]:
        used = dict.fromkeys(name for cell in resolved for name in cell.instruments)
        used |= dict.fromkeys(name for cell in resolved for name in cell.backgrounds)
        metrics = {} if workload is None or not resolved else self.catalogue.metrics(resolved[0].workload, tuple(used))
        self.check_formats(workload, resolved)
        return PivotReader(factors, self.whole, reference, metrics, self.catalogue.printed, self.problems).read(
            self.root.entries.get(TABLES)
        )

    def check_formats(self, workload: Section[WorkloadParams] | None, resolved: Sequence[Cell]) -> None:
        """Report formats of files, and metrics of theirs, that this twinbed does not have."""
        asked = resolved[0].workload.params.formats() if workload is not None and resolved else ()
        known = self.catalogue.formats() if asked else {}
        for path, name, metric in asked:
            wrong, where, names = (name, "format", [*known]) if name not in known else (metric, "metric", known[name])
            if wrong is not None and wrong not in names:
                place = place_of(workload.node, (*path, where)) if workload is not None else self.root.place
                message = "is not a format that `twinbed import` knows" if where == "format" else f"is no metric of {name}"
                key = ".".join(("workload", *path, where))
                self.problem(place, key, f"{wrong!r} {message}", listed(names), nearest(wrong, names))


def _text(value: Level) -> str:
    """Return a level as written, without quotes."""
    return value if isinstance(value, str) else shown(value)


def _excuse(section: Section[M], names: frozenset[str] | set[str]) -> Section[M]:
    return Section(section.path, section.model, section.node, section.kind, section.kind_key, frozenset(names))


def _owners(owner: str, sections: Sections) -> Sequence[Section[BaseModel]]:
    if owner == "testbed":
        return list(sections.testbeds.values())
    if owner == "workload":
        return [] if sections.workload is None else [sections.workload]
    if owner in sections.backgrounds:
        return [sections.backgrounds[owner]]
    if owner == "topology":
        return [sections.topology]
    name = owner.partition(".")[2]
    return [sections.instruments[name]] if name in sections.instruments else []
