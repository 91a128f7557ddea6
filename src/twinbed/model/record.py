"""The record of a run in addition to its artifacts: ``run.json`` of a run folder.

A results folder holds ``study.yaml`` (the file as given), ``study.json`` (resolved), ``events.jsonl`` and
``runs/<id>/{run.json,applied.json,passport.json,artifacts/<place>/<file>}``; ``tables/`` is derived and may be deleted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict, cast

from pydantic import ValidationError

from twinbed.model.caution import Caution
from twinbed.model.clients import ClientTimes
from twinbed.model.drawn import Drawn
from twinbed.model.event import Happened
from twinbed.model.json import Document, Json, dataclass_of, document, integer, named, number, text, tuple_of, value_of
from twinbed.model.run import Level, Status, level
from twinbed.model.topology import Topology, topology_of
from twinbed.model.usage import ProgramUsage

FORMAT = 1
IMPORTED = "imported"
"""The kind of testbeds of runs that were measured elsewhere."""


class Settings(TypedDict):
    """Everything that a run depends on except its replicate: levels as written, and what they resolve to."""

    levels: Mapping[str, Level]
    testbed: Document
    """Its ``name``, its driver (``kind``), and the driver's own settings."""
    topology: Document
    workload: Document
    """Its ``kind``, and settings of its own."""
    instruments: Mapping[str, Document]
    background: NotRequired[Mapping[str, Document]]
    """Missing without a background load."""


class Artifact(TypedDict):
    path: str
    """Relative to the run folder."""
    bytes: int
    sha256: NotRequired[str]
    """Only for imported artifacts."""
    source: NotRequired[str]
    """The path of an imported artifact, as its owner knows it."""


_SECTIONS = Settings.__annotations__.keys()
_TAKEN: set[str] = set()
"""Settings that were checked: runs of a cell have the same, and checking is slower than looking them up."""
_MOST_TAKEN = 10_000


def settings(value: Json) -> Settings:
    """Return the settings of a run. Raises ValueError for a section that is missing, unknown, or unreadable."""
    data = document(value)
    if (written := repr(data)) in _TAKEN:
        return cast(Settings, data)
    if unknown := data.keys() - _SECTIONS:
        raise ValueError(f"{min(unknown)}: no section of settings; another version of twinbed wrote it")
    value_of(data, "levels", named(level))
    value_of(data, "testbed", _testbed)
    value_of(data, "topology", _topology)
    value_of(data, "workload", _plugin)
    value_of(data, "instruments", named(_plugin))
    if "background" in data:
        value_of(data, "background", named(_plugin))
    if len(_TAKEN) < _MOST_TAKEN:
        _TAKEN.add(written)
    return cast(Settings, data)


def _plugin(value: Json) -> Document:
    """Return the settings of a plugin. Only the plugin itself can check the rest."""
    data = document(value)
    value_of(data, "kind", text)
    return data


def _testbed(value: Json) -> str:
    return value_of(_plugin(value), "name", text)


def _topology(value: Json) -> Topology:
    try:
        return topology_of(value, strict=True)
    except ValidationError as error:
        raise ValueError(refused(error)) from error


def refused(error: ValidationError) -> str:
    """Describe in one line which setting a model refuses, and why."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    why = first["msg"].removeprefix("Value error, ")
    return f"{where}: {why}" if where else why


_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}==[A-Za-z0-9][A-Za-z0-9.!+_-]{0,99}")


def requirement(value: Json) -> str:
    """Return a package with its version, as pip takes it. Raises ValueError for any other text, which a reader might type."""
    if not _REQUIREMENT.fullmatch(written := text(value)):
        raise ValueError(f"{written!r:.80} is no package with a version, such as twinbed-echo==1.0")
    return written


def artifact(value: Json) -> Artifact:
    """Return the data of an artifact. Raises ValueError if its path leads out of the run's folder."""
    data = document(value)
    path = value_of(data, "path", text)
    if not path or path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise ValueError(f"the artifact {path!r:.60} is outside the run's folder")
    value_of(data, "bytes", integer)
    for name in ("sha256", "source"):
        if name in data:
            value_of(data, name, text)
    return cast(Artifact, data)


@dataclass(frozen=True, slots=True)
class Record:
    """One finished run. ``settings`` is the result of the run's ``settings()``; ``phases`` maps a phase to its seconds."""

    id: str
    cell: str
    levels: Mapping[str, Level]
    replicate: int
    block: int
    position: int
    settings: Settings
    status: Status
    started_s: float
    """Start, seconds since the epoch, on the machine's clock."""
    phases: Mapping[str, float]
    failed_phase: str | None
    reason: str | None
    cautions: tuple[Caution, ...]
    artifacts: Sequence[Artifact]
    twinbed: str
    lab: str
    start_skew_s: float | None = None
    """Seconds between the first and the last client's start."""
    clients: Sequence[ClientTimes] = ()
    """The times of each client."""
    drawn: Mapping[str, Drawn] = field(default_factory=dict)
    """Instrument -> the hosts that carried it, if not all did."""
    programs: Sequence[ProgramUsage] = ()
    """CPU time and context switches of the workload's and the instruments' programs."""
    events: Sequence[Happened] = ()
    """The events that were carried out."""
    machine: str = ""
    """The member of a fleet that made it; empty without a fleet."""
    plugins: Mapping[str, str] = field(default_factory=dict)
    """Plugin that is no built-in, as ``workloads.echo`` -> its package and version, as ``twinbed-echo==1.0``."""

    def to_json(self) -> Document:
        data: dict[str, Json] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["cautions"] = [caution.to_json() for caution in self.cautions]
        data["clients"] = [client.to_json() for client in self.clients]
        data["drawn"] = {name: drawn.to_json() for name, drawn in self.drawn.items()}
        data["programs"] = [program.to_json() for program in self.programs]
        data["events"] = [event.to_json() for event in self.events]
        for name in ("clients", "drawn", "programs", "events", "machine", "plugins"):
            if not data[name]:
                del data[name]
        return {"format": FORMAT, **data}

    @classmethod
    def from_json(cls, data: Document) -> Record:
        """Read a record. Raises ValueError for another format, for a field that is missing, unknown or of another kind, and for
        an artifact outside the run's folder."""
        data = document(data)
        if data.get("format") != FORMAT:
            raise ValueError(f"run.json has format {data.get('format')!r:.60}, this twinbed reads {FORMAT}")
        if unknown := data.keys() - cls.__dataclass_fields__.keys() - {"format"}:
            raise ValueError(f"{min(unknown)}: no field of a run; another version of twinbed wrote it")
        return dataclass_of(
            cls,
            data,
            levels=named(level),
            settings=settings,
            status=lambda value: Status(text(value)),
            phases=named(number),
            cautions=tuple_of(lambda value: Caution.from_json(document(value))),
            artifacts=lambda value: list(tuple_of(artifact)(value)),
            clients=tuple_of(lambda value: ClientTimes.from_json(document(value))),
            drawn=named(lambda value: Drawn.from_json(document(value))),
            programs=tuple_of(lambda value: ProgramUsage.from_json(document(value))),
            events=tuple_of(lambda value: Happened.from_json(document(value))),
            plugins=named(requirement),
        )
