"""The study: what the study file resolves to.  ``loading`` reads it; ``docs/study-file.md`` is its manual.

The keys of a study file, each with its sentence and an example.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from twinbed.contracts.params import DriverParams
from twinbed.model.interim import UntilDecided
from twinbed.model.keep import Keep, Word
from twinbed.model.result import Pairing
from twinbed.model.run import Level
from twinbed.model.units import Share
from twinbed.study.cell import Cell
from twinbed.study.pivot import Pivot
from twinbed.study.run import Choice

FORMAT = 1
"""Of ``Study.to_json``."""


class Order(StrEnum):
    """In which order runs are made."""

    RANDOMIZED_BLOCKS = "randomized-blocks"
    """Each replicate is a block: all cells once, in a random order. What drifts with time hits every cell alike."""
    RANDOM = "random"
    """All runs in one random order."""
    SEQUENTIAL = "sequential"
    """Cell by cell, as written."""


LEAST_PAIRS = 4
"""Replicates from which comparisons are paired by default: with fewer, the differences within blocks have too few degrees of
freedom for what they gain."""


class Head(BaseModel):
    """The keys of a study that stand for themselves."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    study: StrictStr = Field(examples=["my-first"], description="the study's name, which also names its results folder")
    reference: StrictStr | None = Field(
        None, examples=["container"], description="the testbed that the others are held against"
    )
    replicates: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(5, examples=[10], description="runs of each cell")
    order: Order = Field(Order.RANDOMIZED_BLOCKS, description="in which order runs are made")
    comparison: Pairing | None = Field(
        None,
        description="whether means are compared within blocks or as independent runs; paired in randomised blocks of at least "
        f"{LEAST_PAIRS} replicates if not given",
    )
    keep: Word = Field(
        Word.EVERYTHING,
        description="what stays of a run's artifacts once its rows are made: everything; of captures the packets' headers,"
        " compressed; or the rows of all tables alone",
    )
    seed: Annotated[StrictInt, Field(ge=0)] | None = Field(
        None, examples=[20190221], description="what makes the random order repeatable; derived from the name if not given"
    )
    margin: Share = Field(0.1, gt=0, lt=1, description="how far apart still counts as equivalent")
    confidence: Share = Field(0.95, ge=0.5, lt=1, description="level of the intervals")


@dataclass(frozen=True, slots=True)
class Study:
    """A study, checked and resolved."""

    name: str
    """The name of its results folder too; with a profile it ends in that of the profile."""
    profile: str | None
    reference: str
    reference_reason: str
    """Why that testbed is the reference: given, or by which rule it was chosen."""
    factors: Mapping[str, tuple[Level, ...]]
    """Factor -> levels as written; ``testbed`` is always there."""
    drawn: Mapping[str, Mapping[str, tuple[Level, ...]]]
    """Testbed -> factor -> those of its levels there that were drawn at random; a factor whose levels are all listed is not."""
    uncertain: tuple[str, ...]
    """Factors that are uncertain inputs: each level of the factor ``draw`` is a draw of all of them."""
    samples: Mapping[str, int]
    """Testbeds, joined by ``+`` -> the draws that they all run; nothing without uncertain inputs."""
    exclude: tuple[Mapping[str, Level], ...]
    exclude_cautions: tuple[str, ...]
    """Cautions that leave a run out of the main result, by the names that tables have for them."""
    cells: tuple[Cell, ...]
    """In the order of the file, the last factor varying fastest."""
    replicates: int
    """Replicates of each cell; the most that there may be, where the study goes on until it is decided."""
    until: UntilDecided | None
    order: Order
    comparison: Pairing
    keep: Keep
    """It is no setting of a run: what is measured does not hang on it."""
    seed: int
    margin: float
    confidence: float
    tables: tuple[Pivot, ...]
    filename: str
    source: str
    """The text of the file as given."""
    overrides: tuple[str, ...]

    @property
    def testbeds(self) -> Mapping[str, tuple[Choice[DriverParams], ...]]:
        """Testbed -> the distinct parameters that its cells ask of its driver."""
        choices_of: dict[str, dict[str, Choice[DriverParams]]] = {}
        for cell in self.cells:
            choices_of.setdefault(cell.testbed_name, {}).setdefault(cell.testbed.params.model_dump_json(), cell.testbed)
        return {name: tuple(choices.values()) for name, choices in choices_of.items()}

    def to_json(self) -> Mapping[str, object]:
        """What ``study.json`` of a results folder holds; quantities in base units."""
        return {
            "format": FORMAT,
            "study": self.name,
            "profile": self.profile,
            "testbeds": {name: [choice.to_json() for choice in choices] for name, choices in self.testbeds.items()},
            "reference": self.reference,
            "reference_reason": self.reference_reason,
            "factors": {name: list(levels) for name, levels in self.factors.items()},
            "drawn": {testbed: {name: list(of) for name, of in each.items()} for testbed, each in self.drawn.items()},
            "uncertain": {"inputs": list(self.uncertain), "samples": dict(self.samples)} if self.uncertain else None,
            "exclude": [dict(entry) for entry in self.exclude],
            "exclude_cautions": list(self.exclude_cautions),
            "replicates": self.replicates if self.until is None else self.until.model_dump(),
            "order": self.order.value,
            "comparison": self.comparison.value,
            **({} if self.keep.everything else {"keep": self.keep.to_json()}),
            "seed": self.seed,
            "margin": self.margin,
            "confidence": self.confidence,
            "tables": [table.model_dump(mode="json") for table in self.tables],
            "cells": [cell.run(replicate=0, block=0, position=0).settings() for cell in self.cells],
            "filename": self.filename,
            "overrides": list(self.overrides),
            "source": self.source,
        }


def pairing(order: Order, replicates: int) -> Pairing:
    """The comparison of a study that asks for none. It hangs on the design alone, so that no value can have a say in it."""
    blocks = order is Order.RANDOMIZED_BLOCKS and replicates >= LEAST_PAIRS
    return Pairing.PAIRED if blocks else Pairing.INDEPENDENT


def seed_of(name: str) -> int:
    """The seed of a study that gives none: the first four bytes of the SHA-256 of its name."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:4])


@dataclass(frozen=True, slots=True)
class Key:
    about: str
    example: str
    """As it stands in a study file."""
    needed: bool = False


def _of_head(name: str, example: str) -> Key:
    field = Head.model_fields[name]
    return Key(field.description or "", example, field.is_required())


KEYS: Mapping[str, Key] = {
    "study": _of_head("study", "study: my-first"),
    "testbeds": Key(
        "where the same work is done: names that you choose, each with a driver and its settings",
        "testbeds: {container: {driver: container}, e1000: {driver: qemu, nic: e1000}}",
        needed=True,
    ),
    "reference": _of_head("reference", "reference: container"),
    "machine": Key(
        "what all testbeds on this machine do with its CPUs: settings of testbeds, given once for all of them",
        "machine: {idle: busy}",
    ),
    "topology": Key("the network between hosts", "topology: {pairs: 2, link: {rate: 100mbit, delay: 5ms}}"),
    "workload": Key(
        "what clients ask of servers: a kind and its settings", "workload: {kind: http, payload: 16KiB}", needed=True
    ),
    "background": Key(
        "what loads the machine, hosts or links besides the workload: a kind and its settings, or a mapping of kinds",
        "background: {kind: stress, cpu: 2}",
    ),
    "factors": Key(
        "what is varied: settings with their levels, as a list or drawn; every combination is a cell",
        "factors: {payload: [500B, 1MiB], offload: [on, off]}",
    ),
    "uncertain": Key(
        "inputs that nobody knows exactly, with their distributions",
        "uncertain: {samples: 40, payload: {log_uniform: [500B, 16MiB]}}",
    ),
    "exclude": Key(
        "combinations of levels that are not run, and cautions that leave a run out of the main result",
        "exclude: [{testbed: container, payload: 1MiB}, stall]",
    ),
    "instruments": Key("what is recorded: a list, or a mapping of each to its settings", "instruments: [packets, counters]"),
    "replicates": Key(
        f"{Head.model_fields['replicates'].description}; or a mapping, to go on until every verdict is reached",
        "replicates: 10",
    ),
    "order": _of_head("order", "order: randomized-blocks"),
    "comparison": _of_head("comparison", "comparison: independent"),
    "keep": Key(f"{Head.model_fields['keep'].description}; or a mapping, of each plugin's", "keep: headers"),
    "seed": _of_head("seed", "seed: 20190221"),
    "margin": _of_head("margin", "margin: 5%"),
    "confidence": _of_head("confidence", "confidence: 90%"),
    "tables": Key(
        "tables that the report has besides its own",
        "tables: [{title: Requests, metric: requests_per_second, rows: [payload]}]",
    ),
    "profiles": Key(
        "named sets of changes: dotted paths, each with its value",
        "profiles: {quick: {replicates: 2, workload.duration: 1s}}",
    ),
}
"""In the order of the manual."""
