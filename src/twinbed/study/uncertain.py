"""Inputs that are uncertain: each draw of all of them together is run on the testbeds of one group.

    uncertain:
      samples: {physical+virtio: 12, virtio: 188}       or a number: each testbed runs every draw
      payload: {log_uniform: [500B, 16MiB]}

Draws are numbered from 1, group after group as written, and hang on the study's seed and the input's name alone: the same on
every testbed, and the same when there are more of them.  The factor ``draw`` has their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinbed.model.near import nearest
from twinbed.study.document import Entries, Node, Scalar, is_absent
from twinbed.study.factor import Factor, Setting, target_of
from twinbed.study.params import shown
from twinbed.study.problem import Problem, listed
from twinbed.study.sample import MOST, SAMPLES, independent, is_sample, read_sample

UNCERTAIN = "uncertain"
DRAW = "draw"
EXAMPLE = "such as {samples: 40, payload: {log_uniform: [500B, 16MiB]}}"


class Uncertain:
    """The section, read; of a wrong one what is right."""

    def __init__(self, node: Node | None, testbeds: Sequence[str], problems: list[Problem]) -> None:
        """``testbeds`` are those that the study uses."""
        self.problems = problems
        self.testbeds = testbeds
        self.node = node if isinstance(node, Entries) else None
        if node is not None and not is_absent(node) and self.node is None:
            problems.append(Problem.at(node.place, UNCERTAIN, "is not a mapping", f"inputs and how they are drawn, {EXAMPLE}"))
        self.samples: Mapping[str, int] = {} if self.node is None else self._samples(self.node)
        """Testbeds, joined by ``+`` -> how many draws they all run."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return () if self.node is None else tuple(name for name in self.node.entries if name != SAMPLES)

    def factors(self, known: Mapping[str, Setting], seed: int) -> list[Factor]:
        """``draw`` and the inputs, drawn together."""
        node, count = self.node, sum(self.samples.values())
        if node is None or not count:
            return []
        numbers = tuple(Scalar(number, node.place) for number in range(1, count + 1))
        factors = [Factor(DRAW, node.place, None, numbers, True, UNCERTAIN)]
        for name in self.inputs:
            key, value = f"{UNCERTAIN}.{name}", node.entries[name]
            if not isinstance(value, Entries) or not is_sample(value):
                self.problems.append(Problem.at(value.place, key, "does not say from what it is drawn", EXAMPLE))
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
        """Testbed -> the draws that it runs."""
        of: dict[str, set[Scalar]] = {name: set() for name in self.testbeds}
        first = 0
        for group, count in self.samples.items():
            for testbed in group.split("+"):
                of[testbed].update(draws[first : first + count])
            first += count
        return {name: frozenset(kept) for name, kept in of.items()}

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
