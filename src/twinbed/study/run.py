"""A run: one cell, one replicate, all settings resolved.  Its identity is the hash of levels, settings and replicate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NotRequired, TypedDict, TypeVar, Unpack

from twinbed.contracts.params import BackgroundParams, DriverParams, InstrumentParams, PluginParams, WorkloadParams
from twinbed.model.caution import Caution
from twinbed.model.clients import ClientTimes
from twinbed.model.drawn import Drawn
from twinbed.model.event import Happened
from twinbed.model.json import Document
from twinbed.model.record import Artifact, Record, Settings
from twinbed.model.run import Level, Status
from twinbed.model.topology import Topology
from twinbed.model.usage import ProgramUsage

P = TypeVar("P", bound=PluginParams, covariant=True)


class Ended(TypedDict):
    """The fields of a run's record that are known only after the run."""

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
    events: NotRequired[Sequence[Happened]]
    machine: NotRequired[str]
    plugins: NotRequired[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Choice(Generic[P]):
    """A chosen plugin with its checked parameters (a frozen pydantic model of the plugin)."""

    kind: str
    params: P

    def to_json(self) -> Document:
        return {"kind": self.kind, **self.params.model_dump(mode="json")}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a study.

    ``levels`` holds the levels of the study's factors as written; the other fields are what they resolve to.
    ``position`` is the place in the order of execution, ``block`` the run's block; both count from 0.
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
    """The study's seed. It is not part of the run's identity, but decides which hosts are drawn for it."""

    def settings(self) -> Settings:
        """Return all that the run depends on but its replicate, as JSON data. ``background`` is there only with such loads."""
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
        """Return instruments and background loads: what runs besides the workload."""
        return (*self.instruments.values(), *self.backgrounds.values())

    def plugins(self) -> Iterator[tuple[str, str]]:
        """Yield the kind and name of each plugin that it uses, background loads aside, as ``contracts.installed`` has them."""
        yield "drivers", self.testbed.kind
        yield "workloads", self.workload.kind
        yield from (("instruments", choice.kind) for choice in self.instruments.values())
        yield from (("formats", name) for _, name, _ in self.workload.params.formats())

    def record(self, **outcome: Unpack[Ended]) -> Record:
        """Return the record of the finished run; ``outcome`` has the fields that are known only now."""
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
        """Return a short hash of all settings except the replicate."""
        return _hash(self.settings())

    @property
    def id(self) -> str:
        """Return a short hash of all settings and the replicate: the name of the run's folder."""
        return _hash({**self.settings(), "replicate": self.replicate})


def _hash(data: Mapping[str, object]) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
