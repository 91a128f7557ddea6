"""Factors: which setting a factor's name means, and its levels.

A factor is ``testbed``, ``instruments``, or any setting of the workload, background load, topology, drivers or instruments.
A setting is named by its own name where only one has it, or by its dotted path, such as ``workload.payload``,
``topology.link.rate``, ``testbed.vcpus`` or ``instruments.packets.snaplen``.

Uncertain inputs are drawn together, and each draw runs on the testbeds of one group:

    uncertain:
      samples: {physical+virtio: 12, virtio: 188}       # or a number: each testbed runs every draw
      payload: {log_uniform: [500B, 16MiB]}

Draws are numbered from 1, group after group as written; the factor ``draw`` has the numbers.  They depend only on the study's
seed and the input's name, so every testbed gets the same draws, and more draws keep the earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from twinbed.contracts.params import WorkloadParams
from twinbed.model.near import nearest
from twinbed.model.run import Level
from twinbed.model.topology import Link, Topology
from twinbed.study.document import Entries, Items, Node, Position, Problem, Scalar, is_absent, listed, plain
from twinbed.study.params import Path, also_of, shown
from twinbed.study.sample import MOST, SAMPLES, independent, is_sample, read_count, read_sample, uniform

TESTBED = "testbed"
INSTRUMENTS = "instruments"
NO_INSTRUMENTS = "none"
HYPERCUBE = "hypercube"
"""Factors whose levels are drawn together."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that can be a factor."""

    owner: str
    """``workload``, ``background`` (``background.KIND`` where there are several), ``topology``, ``testbed`` (the cell's), or
    ``instruments.NAME``."""
    field: Path
    """Its path in the owner's params model."""
    also: tuple[str, ...] = ()
    """Other words that people search for."""

    @property
    def path(self) -> str:
        return ".".join((self.owner, *self.field))


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor as the file gives it; ``setting`` is None for ``testbed`` and ``instruments``."""

    name: str
    place: Position
    setting: Setting | None
    levels: tuple[Scalar, ...]
    drawn: bool = False
    """True if the levels were drawn."""
    together: str = ""
    """The group it is drawn with, ``hypercube`` or ``uncertain``: the n-th levels of a group's factors make a combination."""

    @property
    def target(self) -> str:
        return self.name if self.setting is None else self.setting.path

    def values(self) -> tuple[Level, ...]:
        """Return the levels as written, each once."""
        return tuple(level.value for level in dict.fromkeys(self.levels))


def settings(
    workload: type[BaseModel] | None,
    backgrounds: Mapping[str, type[BaseModel]],
    drivers: Iterable[type[BaseModel]],
    instruments: Mapping[str, type[BaseModel]],
) -> dict[str, Setting]:
    """Return every setting that can be a factor, by its dotted path. ``backgrounds`` are by their paths in the file."""
    every = [*_fields("workload", workload)] if workload else []
    every += [setting for path, params in backgrounds.items() for setting in _fields(path, params)]
    every += [setting for setting in _fields("topology", Topology) if setting.field[0] not in {"kind", "link"}]
    every += _fields("topology", Link, "link")
    every += [setting for driver in drivers for setting in _fields("testbed", driver)]
    every += [setting for kind, params in instruments.items() for setting in _fields(f"instruments.{kind}", params)]
    return {setting.path: setting for setting in every}


def own_settings(workload: type[WorkloadParams], section: Entries) -> dict[str, Setting]:
    """Return the settings that the study's text names itself, by their dotted paths."""
    data = plain(section)
    paths = workload.own_settings(data) if isinstance(data, Mapping) else ()
    return {setting.path: setting for setting in (Setting("workload", path) for path in paths)}


def _fields(owner: str, model: type[BaseModel], *above: str) -> Iterator[Setting]:
    also = also_of(model)
    return (Setting(owner, (*above, name), also[name]) for name in model.model_fields)


def read_factors(node: Node | None, known: Mapping[str, Setting], seed: int, problems: list[Problem]) -> list[Factor]:
    """Return the factors of the section ``factors``, in its order, without those with errors. ``seed`` is for drawn levels."""
    if node is None or is_absent(node):
        return []
    if not isinstance(node, Entries):
        problems.append(Problem.at(node.place, "factors", "is not a mapping", "a mapping of factors to lists of levels"))
        return []
    factors: dict[str, Factor] = {}
    for name, place, value, samples in _written(node, problems):
        target = target_of(f"factors.{name}", name, place, known, problems)
        levels = _levels(name, value, seed, samples, problems)
        if target is None or levels is None:
            continue
        factor = Factor(name, place, known.get(target), levels, is_sample(value), "" if samples is None else HYPERCUBE)
        if target in factors:
            other = factors[target].name
            problems.append(Problem.at(place, f"factors.{name}", f"is the same setting as the factor {other!r}"))
        else:
            factors[target] = factor
    return list(factors.values())


def _written(node: Entries, problems: list[Problem]) -> Iterator[tuple[str, Position, Node, int | None]]:
    """Yield each factor's name, place and levels, and the number of draws if it belongs to a hypercube."""
    for name, value in node.entries.items():
        if name != HYPERCUBE:
            yield name, node.keys[name], value, None
            continue
        key = f"factors.{HYPERCUBE}"
        example = "such as {samples: 40, payload: {log_uniform: [500B, 16MiB]}, rate: {log_uniform: [10mbit, 1gbit]}}"
        if not isinstance(value, Entries):
            problems.append(
                Problem.at(value.place, key, "is not a mapping", f"a mapping of factors to distributions, {example}")
            )
            continue
        samples = read_count(key, value, problems)
        for factor, levels in value.entries.items():
            if factor == SAMPLES:
                continue
            if not is_sample(levels):
                problems.append(Problem.at(levels.place, f"{key}.{factor}", "does not name its distribution", example))
            elif samples is not None:
                yield factor, value.keys[factor], levels, samples


def match_level(node: Node, factor: Factor) -> Scalar | None:
    """Return the level of ``factor`` that ``node`` gives; None where it is not one."""
    asked = _level(factor.name, node)
    if asked is None:
        return None
    return next((level for level in factor.levels if _same(level.value, asked.value)), None)


def instruments_of(level: Level) -> tuple[str, ...]:
    """Return the instruments that a level of the factor ``instruments`` switches on."""
    return () if level == NO_INSTRUMENTS else tuple(str(level).split("+"))


def target_of(key: str, name: str, place: Position, known: Mapping[str, Setting], problems: list[Problem]) -> str | None:
    """Return the path of the setting that a factor's name means; None, with a problem, where none or several have it."""
    if name in {TESTBED, INSTRUMENTS} or name in known:
        return name
    paths = [path for path, setting in known.items() if setting.field[-1] == name]
    if len(paths) == 1:
        return paths[0]
    if paths:
        problems.append(Problem.at(place, key, "could be more than one setting", listed(paths)))
        return None
    own = [setting.field[-1] for setting in known.values()]
    names = [TESTBED, INSTRUMENTS, *dict.fromkeys(leaf for leaf in own if own.count(leaf) == 1)]
    alike = [path for path in known if "." in name and path.rpartition(".")[2] == name.rpartition(".")[2]]
    also = {path: setting.also for path, setting in known.items()}
    near = (alike[0],) if len(alike) == 1 else nearest(name, [*names, *known], also)
    problems.append(Problem.at(place, key, "is not a setting of this study", listed(names), near))
    return None


def _levels(name: str, node: Node, seed: int, samples: int | None, problems: list[Problem]) -> tuple[Scalar, ...] | None:
    key = f"factors.{name}"
    if isinstance(node, Entries) and name not in {TESTBED, INSTRUMENTS}:
        drawn = read_sample(f"factors.{name}", node, lambda index: uniform(seed, name, index), samples, problems)
        return None if drawn is None else tuple(drawn)
    if not isinstance(node, Items):
        value: object = node.value if isinstance(node, Scalar) else {}
        example = (
            f"a list of levels, such as [{value}]" if isinstance(node, Scalar) and value is not None else "a list of levels"
        )
        problems.append(Problem.at(node.place, key, f"{shown(value)} is not a list", example))
        return None
    if not node.items:
        problems.append(Problem.at(node.place, key, "has no levels", "at least one level"))
        return None
    levels: list[Scalar] = []
    for item in node.items:
        level = _level(name, item)
        if level is None:
            allowed = "a list of instruments, or none" if name == INSTRUMENTS else "a single value"
            problems.append(Problem.at(item.place, key, "is not a level", allowed))
        elif any(_same(level.value, other.value) for other in levels):
            problems.append(Problem.at(item.place, key, f"the level {shown(level.value)} is given twice"))
        else:
            levels.append(level)
    return tuple(levels) or None


def _level(name: str, node: Node) -> Scalar | None:
    """Return one level. A list of instruments becomes ``a+b``, an empty one ``none``."""
    if isinstance(node, Scalar):
        return None if name in {TESTBED, INSTRUMENTS} and not isinstance(node.value, str) else node
    if name == INSTRUMENTS and isinstance(node, Items):
        names = [item.value for item in node.items if isinstance(item, Scalar) and isinstance(item.value, str)]
        return Scalar("+".join(names) or NO_INSTRUMENTS, node.place) if len(names) == len(node.items) else None
    return None


def _same(one: Level, other: Level) -> bool:
    """Compare levels as written: 1, 1.0 and true are three levels."""
    return type(one) is type(other) and one == other


UNCERTAIN = "uncertain"
DRAW = "draw"
EXAMPLE = "such as {samples: 40, payload: {log_uniform: [500B, 16MiB]}}"


class Uncertain:
    """The section ``uncertain``, without the parts that have errors."""

    def __init__(self, node: Node | None, testbeds: Sequence[str], problems: list[Problem]) -> None:
        """Read the section. ``testbeds`` are those that the study uses."""
        self.problems = problems
        self.testbeds = testbeds
        self.node = node if isinstance(node, Entries) else None
        if node is not None and not is_absent(node) and self.node is None:
            problems.append(
                Problem.at(node.place, UNCERTAIN, "is not a mapping", f"a mapping of inputs to distributions, {EXAMPLE}")
            )
        self.samples: Mapping[str, int] = {} if self.node is None else self._samples(self.node)
        """Testbeds, joined by ``+`` -> the number of draws that they all run."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return () if self.node is None else tuple(name for name in self.node.entries if name != SAMPLES)

    def factors(self, known: Mapping[str, Setting], seed: int) -> list[Factor]:
        """Return ``draw`` and the inputs as factors that are drawn together."""
        node, count = self.node, sum(self.samples.values())
        if node is None or not count:
            return []
        numbers = tuple(Scalar(number, node.place) for number in range(1, count + 1))
        factors = [Factor(DRAW, node.place, None, numbers, True, UNCERTAIN)]
        for name in self.inputs:
            key, value = f"{UNCERTAIN}.{name}", node.entries[name]
            if not isinstance(value, Entries) or not is_sample(value):
                self.problems.append(Problem.at(value.place, key, "does not name its distribution", EXAMPLE))
                continue
            target = target_of(key, name, node.keys[name], known, self.problems)
            if target is not None and target not in known:
                self.problems.append(Problem.at(node.keys[name], key, "is not a setting that can be drawn"))
                continue
            levels = read_sample(key, value, lambda index, name=name: independent(seed, name, index), count, self.problems)  # type: ignore[misc]
            if target is not None and levels is not None:
                factors.append(Factor(name, node.keys[name], known[target], tuple(levels), True, UNCERTAIN))
        if not self.inputs:
            self.problems.append(Problem.at(node.place, UNCERTAIN, "names no input", EXAMPLE))
        return factors

    def only(self, draws: Sequence[Scalar]) -> Mapping[str, frozenset[Scalar]]:
        """Return testbed -> the draws that it runs."""
        draws_of: dict[str, set[Scalar]] = {name: set() for name in self.testbeds}
        first = 0
        for group, count in self.samples.items():
            for testbed in group.split("+"):
                draws_of[testbed].update(draws[first : first + count])
            first += count
        return {name: frozenset(kept) for name, kept in draws_of.items()}

    def _samples(self, node: Entries) -> dict[str, int]:
        key, given = f"{UNCERTAIN}.{SAMPLES}", node.entries.get(SAMPLES)
        everyone = "+".join(self.testbeds)
        allowed = f"a whole number from 1 to {MOST:,}, or one for each group of testbeds, such as {{{everyone}: 40}}"
        if given is None:
            self.problems.append(Problem.at(node.place, key, "is required: how many draws are run", allowed))
            return {}
        groups = given.entries if isinstance(given, Entries) else {everyone: given}
        samples: dict[str, int] = {}
        for group, count in groups.items():
            value = count.value if isinstance(count, Scalar) else None
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
                self.problems.append(Problem.at(count.place, key, f"{shown(value)} is not a number of draws", allowed))
                return {}
            for name in group.split("+"):
                if name not in self.testbeds:
                    place = given.keys[group] if isinstance(given, Entries) else given.place
                    near = nearest(name, self.testbeds)
                    self.problems.append(Problem.at(place, key, f"{name!r} is not a testbed", listed(self.testbeds), near))
                    return {}
            samples[group] = value
        if sum(samples.values()) > MOST:
            self.problems.append(Problem.at(given.place, key, f"{sum(samples.values()):,} draws", f"at most {MOST:,}"))
            return {}
        return samples
