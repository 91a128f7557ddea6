"""The study that a study file resolves to, and the keys of the file with a sentence and an example each.

``loading`` reads it; ``docs/study-file.md`` is its manual.
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
"""The format number of ``Study.to_json``."""


class Order(StrEnum):
    """The order in which runs are made."""

    RANDOMIZED_BLOCKS = "randomized-blocks"
    """Each replicate is a block: all cells once, in a random order. Drift over time affects every cell alike."""
    RANDOM = "random"
    """All runs in one random order."""
    SEQUENTIAL = "sequential"
    """Cell by cell, as written."""


LEAST_PAIRS = 4
"""The fewest replicates with which comparisons are paired by default. With fewer, pairing costs more degrees of freedom than it
gains."""


class Head(BaseModel):
    """The keys of a study that are single values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    study: StrictStr = Field(examples=["my-first"], description="name of the study and of its results folder")
    reference: StrictStr | None = Field(None, examples=["container"], description="testbed with which the others are compared")
    replicates: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(5, examples=[10], description="runs of each cell")
    order: Order = Field(Order.RANDOMIZED_BLOCKS, description="order in which runs are made")
    comparison: Pairing | None = Field(
        None,
        description="paired: compare runs within blocks; independent: compare all runs; default: paired in randomised blocks "
        f"with at least {LEAST_PAIRS} replicates",
    )
    keep: Word = Field(
        Word.EVERYTHING,
        description="how much of a run's artifacts is kept after extraction: everything; headers: of captures only packet"
        " headers, compressed; tables: only the rows of tables",
    )
    seed: Annotated[StrictInt, Field(ge=0)] | None = Field(
        None, examples=[20190221], description="seed of the random order; default: derived from the study's name"
    )
    margin: Share = Field(0.1, gt=0, lt=1, description="largest relative difference that counts as equivalent")
    confidence: Share = Field(0.95, ge=0.5, lt=1, description="confidence level of intervals")


@dataclass(frozen=True, slots=True)
class Study:
    """A study whose settings are checked and resolved."""

    name: str
    """The name of the study and of its results folder; with a profile it ends in the profile's name."""
    profile: str | None
    reference: str
    reference_reason: str
    """Why this testbed is the reference: given, or the rule by which it was chosen."""
    factors: Mapping[str, tuple[Level, ...]]
    """Factor -> levels as written; ``testbed`` is always there."""
    drawn: Mapping[str, Mapping[str, tuple[Level, ...]]]
    """Testbed -> factor -> the levels there that were drawn at random, for factors that have such levels."""
    uncertain: tuple[str, ...]
    """Factors that are uncertain inputs: each level of the factor ``draw`` is a draw of all of them."""
    samples: Mapping[str, int]
    """Testbeds, joined by ``+`` -> the number of draws that they all run; empty without uncertain inputs."""
    exclude: tuple[Mapping[str, Level], ...]
    exclude_cautions: tuple[str, ...]
    """Cautions that exclude a run from the main result, by their names in tables."""
    cells: tuple[Cell, ...]
    """In the order of the file, the last factor varying fastest."""
    replicates: int
    """Replicates of each cell; the most allowed, where the study runs until it is decided."""
    until: UntilDecided | None
    order: Order
    comparison: Pairing
    keep: Keep
    """How much is kept. It is not a setting of a run: no measurement depends on it."""
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
        """Return testbed -> the distinct parameters that its cells give to its driver."""
        choices_of: dict[str, dict[str, Choice[DriverParams]]] = {}
        for cell in self.cells:
            choices_of.setdefault(cell.testbed_name, {}).setdefault(cell.testbed.params.model_dump_json(), cell.testbed)
        return {name: tuple(choices.values()) for name, choices in choices_of.items()}

    def to_json(self) -> Mapping[str, object]:
        """Return the content of ``study.json`` in a results folder; quantities in base units."""
        return {
            "format": FORMAT,
            "study": self.name,
            "profile": self.profile,
            "testbeds": {name: [choice.to_json() for choice in choices] for name, choices in self.testbeds.items()},
            "reference": self.reference,
            "reference_reason": self.reference_reason,
            "factors": {name: list(levels) for name, levels in self.factors.items()},
            "drawn": {name: {key: list(levels) for key, levels in drawn.items()} for name, drawn in self.drawn.items()},
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
    """Return the comparison of a study that names none. It depends on the design alone, never on measured values."""
    blocks = order is Order.RANDOMIZED_BLOCKS and replicates >= LEAST_PAIRS
    return Pairing.PAIRED if blocks else Pairing.INDEPENDENT


def seed_of(name: str) -> int:
    """Return the seed of a study that gives none: the first four bytes of the SHA-256 of its name."""
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
        "testbeds to compare: a name of your choice for each, with a driver and its settings",
        "testbeds: {container: {driver: container}, e1000: {driver: qemu, nic: e1000}}",
        needed=True,
    ),
    "reference": _of_head("reference", "reference: container"),
    "machine": Key(
        "how testbeds on this machine use its CPUs: settings given once for all of them",
        "machine: {idle: busy}",
    ),
    "topology": Key("the network between hosts", "topology: {pairs: 2, link: {rate: 100mbit, delay: 5ms}}"),
    "workload": Key(
        "work that clients ask of servers: a kind and its settings", "workload: {kind: http, payload: 16KiB}", needed=True
    ),
    "background": Key(
        "load on the machine, hosts or links in addition to the workload: a kind and its settings, or a mapping of kinds",
        "background: {kind: stress, cpu: 2}",
    ),
    "factors": Key(
        "settings to vary, each with a list of levels or a distribution; every combination is a cell",
        "factors: {payload: [500B, 1MiB], offload: [on, off]}",
    ),
    "uncertain": Key(
        "inputs that are not known exactly, with their distributions",
        "uncertain: {samples: 40, payload: {log_uniform: [500B, 16MiB]}}",
    ),
    "exclude": Key(
        "combinations of levels to leave out, and cautions that exclude a run from the main result",
        "exclude: [{testbed: container, payload: 1MiB}, stall]",
    ),
    "instruments": Key(
        "instruments that record: a list, or a mapping of each to its settings", "instruments: [packets, counters]"
    ),
    "replicates": Key(
        f"{Head.model_fields['replicates'].description}; or a mapping, to run until every verdict is reached",
        "replicates: 10",
    ),
    "order": _of_head("order", "order: randomized-blocks"),
    "comparison": _of_head("comparison", "comparison: independent"),
    "keep": Key(f"{Head.model_fields['keep'].description}; or a mapping with one word for each plugin", "keep: headers"),
    "seed": _of_head("seed", "seed: 20190221"),
    "margin": _of_head("margin", "margin: 5%"),
    "confidence": _of_head("confidence", "confidence: 90%"),
    "tables": Key(
        "additional tables of the report",
        "tables: [{title: Requests, metric: requests_per_second, rows: [payload]}]",
    ),
    "profiles": Key(
        "named sets of changes, each a mapping of dotted paths to values",
        "profiles: {quick: {replicates: 2, workload.duration: 1s}}",
    ),
}
"""In the order of the manual."""
