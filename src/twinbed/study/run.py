"""A run: one cell, one replicate, with every setting resolved.  Identity is the hash of levels, settings and replicate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NotRequired, TypedDict, TypeVar, Unpack

from twinbed.contracts.params import BackgroundParams, DriverParams, InstrumentParams, PluginParams, WorkloadParams
from twinbed.model.caution import Caution
from twinbed.model.clients import ClientTimes
from twinbed.model.drawn import Drawn
from twinbed.model.json import Document
from twinbed.model.record import Artifact, Record, Settings
from twinbed.model.run import Level, Status
from twinbed.model.topology import Topology
from twinbed.model.usage import ProgramUsage

P = TypeVar("P", bound=PluginParams, covariant=True)


class Ended(TypedDict):
    """What a record says of a run beside what was planned."""

    status: Status
    started_s: float
    phases: Mapping[str, float]
    failed_phase: str | None
    reason: str | None
    cautions: tuple[Caution, ...]
    artifacts: Sequence[Artifact]
    twinbed: str
    lab: str
    start_skew_s: NotRequired[float | None]
    clients: NotRequired[Sequence[ClientTimes]]
    drawn: NotRequired[Mapping[str, Drawn]]
    programs: NotRequired[Sequence[ProgramUsage]]
    machine: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Choice(Generic[P]):
    """A chosen plugin with its checked parameters (a frozen pydantic model of the plugin's own)."""

    kind: str
    params: P

    def to_json(self) -> Document:
        return {"kind": self.kind, **self.params.model_dump(mode="json")}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a study.

    ``levels`` holds what the study's factors are set to, as written; the other fields are what they resolve to.
    ``position`` is the place in the order of execution, from 0; ``block`` the block it belongs to, from 0.
    """

    levels: Mapping[str, Level]
    replicate: int
    block: int
    position: int
    testbed_name: str
    testbed: Choice[DriverParams]
    topology: Topology
    workload: Choice[WorkloadParams]
    instruments: Mapping[str, Choice[InstrumentParams]]
    backgrounds: Mapping[str, Choice[BackgroundParams]] = field(default_factory=dict)
    """Kind -> background load."""
    seed: int = 0
    """The study's: no part of what the run is, but of which hosts are drawn for it."""

    def settings(self) -> Settings:
        """Everything that the run depends on except its replicate, as JSON data. Without a background load it is not named."""
        loads = {name: choice.to_json() for name, choice in self.backgrounds.items()}
        settings: Settings = {
            "levels": dict(self.levels),
            "testbed": {"name": self.testbed_name, **self.testbed.to_json()},
            "topology": self.topology.model_dump(mode="json"),
            "workload": self.workload.to_json(),
            "instruments": {name: choice.to_json() for name, choice in self.instruments.items()},
        }
        if loads:
            settings["background"] = loads
        return settings

    def accompanying(self) -> tuple[Choice[InstrumentParams] | Choice[BackgroundParams], ...]:
        """All that runs besides the workload: instruments and background loads."""
        return (*self.instruments.values(), *self.backgrounds.values())

    def record(self, **outcome: Unpack[Ended]) -> Record:
        """What is written about it once it is over; ``outcome`` has the other fields of a record."""
        return Record(
            id=self.id,
            cell=self.cell,
            levels=dict(self.levels),
            replicate=self.replicate,
            block=self.block,
            position=self.position,
            settings=self.settings(),
            **outcome,
        )

    @property
    def cell(self) -> str:
        """Short hash of all settings but the replicate."""
        return _hash(self.settings())

    @property
    def id(self) -> str:
        """Short hash of all settings and the replicate; the name of the run's folder."""
        return _hash({**self.settings(), "replicate": self.replicate})


def _hash(data: Mapping[str, object]) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
