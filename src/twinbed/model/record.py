"""What is written about a run beside its artifacts: ``run.json`` of a run folder.

A results folder holds ``study.yaml`` (the file as given), ``study.json`` (resolved), ``events.jsonl`` and
``runs/<id>/{run.json,applied.json,passport.json,artifacts/<place>/<file>}``; ``tables/`` is derived and may be deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NotRequired, TypedDict, cast

from twinbed.model.caution import Caution
from twinbed.model.clients import ClientTimes
from twinbed.model.drawn import Drawn
from twinbed.model.json import Document, document, documents, integer, number, text
from twinbed.model.run import Level, Status
from twinbed.model.usage import ProgramUsage

FORMAT = 1
IMPORTED = "imported"
"""The kind of testbeds of runs that were measured elsewhere."""
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("id", "cell"), str),
    **dict.fromkeys(("replicate", "block", "position"), int),
    "started_s": (int, float),
    **dict.fromkeys(("levels", "settings", "phases"), dict),
    "artifacts": list,
}
"""What fields of run.json are: it may come from an archive that nobody vouches for."""


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
    """Not there without a background load."""


class Artifact(TypedDict):
    path: str
    """Relative to the run folder."""
    bytes: int
    sha256: NotRequired[str]
    """Of what was imported."""
    source: NotRequired[str]
    """The path of what was imported, as its owner knows it."""


@dataclass(frozen=True, slots=True)
class Record:
    """One finished run. ``settings`` is what the run's ``settings()`` gave; ``phases`` maps a phase to its seconds."""

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
    """Between the first and the last client's start."""
    clients: Sequence[ClientTimes] = ()
    """When each client ran."""
    drawn: Mapping[str, Drawn] = field(default_factory=dict)
    """Instrument -> the hosts that it was put on, of one that was not put on all."""
    programs: Sequence[ProgramUsage] = ()
    """What the workload's programs and the instruments' used."""
    machine: str = ""
    """The member of a fleet that made it; empty where there was none."""

    def to_json(self) -> Document:
        data = asdict(self)
        data["cautions"] = [caution.to_json() for caution in self.cautions]
        data["clients"] = [client.to_json() for client in self.clients]
        data["drawn"] = {name: drawn.to_json() for name, drawn in self.drawn.items()}
        data["programs"] = [program.to_json() for program in self.programs]
        for name in ("clients", "drawn", "programs", "machine"):
            if not data[name]:
                del data[name]
        return {"format": FORMAT, **data}

    @classmethod
    def from_json(cls, data: Document) -> Record:
        """Raises ValueError where the format is not this one, a field is no such thing, or an artifact lies outside the run's
        folder; KeyError or TypeError where a field is missing."""
        fields = dict(data)
        if fields.pop("format", None) != FORMAT:
            raise ValueError(f"run.json has format {data.get('format')!r}, this twinbed reads {FORMAT}")
        for name, kind in _KINDS.items():
            if not isinstance(fields[name], kind):
                raise ValueError(f"run.json has {name} {fields[name]!r:.60}")
        artifacts = documents(fields["artifacts"])
        for artifact in artifacts:
            path = text(artifact["path"])
            if not path or path.startswith("/") or ".." in path.split("/") or "\0" in path:
                raise ValueError(f"run.json names the artifact {path!r}, outside the run's folder")
        if unknown := fields.keys() - cls.__dataclass_fields__.keys():
            raise TypeError(f"run.json has {', '.join(sorted(unknown))}, which no record has")
        phase, reason, skew = fields["failed_phase"], fields["reason"], fields.get("start_skew_s")
        return cls(
            id=text(fields["id"]),
            cell=text(fields["cell"]),
            levels=cast(Mapping[str, Level], fields["levels"]),
            replicate=integer(fields["replicate"]),
            block=integer(fields["block"]),
            position=integer(fields["position"]),
            settings=cast(Settings, fields["settings"]),
            status=Status(text(fields["status"])),
            started_s=number(fields["started_s"]),
            phases={name: number(seconds) for name, seconds in document(fields["phases"]).items()},
            failed_phase=None if phase is None else text(phase),
            reason=None if reason is None else text(reason),
            cautions=tuple(Caution.from_json(item) for item in documents(fields["cautions"])),
            artifacts=cast(Sequence[Artifact], artifacts),
            twinbed=text(fields["twinbed"]),
            lab=text(fields["lab"]),
            start_skew_s=None if skew is None else number(skew),
            clients=tuple(ClientTimes.from_json(each) for each in documents(fields.get("clients", []))),
            drawn={name: Drawn.from_json(document(each)) for name, each in document(fields.get("drawn", {})).items()},
            programs=tuple(ProgramUsage.from_json(each) for each in documents(fields.get("programs", []))),
            machine=text(fields.get("machine", "")),
        )
