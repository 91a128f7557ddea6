"""The results of a merge, and the names and numbers that keep them apart."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.run import Level
from twinbed.results.store import Store, testbed_of

Named = tuple[int, str]
"""The position of a source, and the name of something in it."""


@dataclass(frozen=True)
class Source:
    """One of the merged results."""

    name: str
    store: Store
    testbeds: Mapping[str, str]
    """A testbed of the source -> its new name."""
    given: Mapping[str, Level]
    """Factor -> the level that the user gives all runs of the source."""
    replicates_after: Mapping[str, int]
    """New name of a testbed -> its replicates in earlier sources."""
    blocks_after: int
    positions_after: int

    def identity(self, old: str) -> str:
        """Return the new id of a run or a cell."""
        return hashlib.sha256(json.dumps([self.name, old]).encode()).hexdigest()[:12]


def sources(stores: Sequence[Store], renamed: Mapping[Named, str], given: Mapping[Named, Level]) -> list[Source]:
    """Return the sources of a merge. Testbeds of one name also get their source's name, unless the user gives both that name:
    then they are one testbed, whose replicates are numbered on. Mapping ``renamed`` gives testbeds their new names, ``given``
    the levels of factors of all runs."""
    names = _distinct([store.path.resolve().name for store in stores])
    asked = [
        {testbed: renamed.get((at, testbed), testbed) for testbed in store.outline.testbeds} for at, store in enumerate(stores)
    ]
    taken = [name for of_source in asked for name in of_source.values()]
    sources: list[Source] = []
    replicates: dict[str, int] = {}
    blocks = positions = 0
    for at, store in enumerate(stores):
        testbeds = {
            testbed: name if (at, testbed) in renamed or taken.count(name) == 1 else f"{name}@{names[at]}"
            for testbed, name in asked[at].items()
        }
        levels = {factor: level for (source, factor), level in given.items() if source == at}
        sources.append(Source(names[at], store, testbeds, levels, dict(replicates), blocks, positions))
        for record in store.records:
            name = testbeds[testbed_of(record)]
            replicates[name] = max(replicates.get(name, 0), sources[-1].replicates_after.get(name, 0) + record.replicate + 1)
        blocks += max((record.block for record in store.records), default=-1) + 1
        positions += max((record.position for record in store.records), default=-1) + 1
    return sources


def _distinct(names: Sequence[str]) -> list[str]:
    """Number equal names from the second on."""
    distinct: list[str] = []
    for name in names:
        numbered = (f"{name}-{number}" for number in itertools.count(2))
        distinct.append(next(candidate for candidate in itertools.chain([name], numbered) if candidate not in distinct))
    return distinct
