"""What is written about a run beside its artifacts: ``run.json`` of a run folder.

A results folder holds ``study.yaml`` (the file as given), ``study.json`` (resolved), ``events.jsonl`` and
``runs/<id>/{run.json,applied.json,passport.json,artifacts/<place>/<file>}``; ``tables/`` is derived and may be deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from twinbed.model.caution import Caution
from twinbed.model.run import Level, Status

FORMAT = 1
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("id", "cell"), str),
    **dict.fromkeys(("replicate", "block", "position"), int),
    "started_s": (int, float),
    **dict.fromkeys(("levels", "settings", "phases"), dict),
    "artifacts": list,
}
"""What fields of run.json are: it may come from an archive that nobody vouches for."""


@dataclass(frozen=True, slots=True)
class Record:
    """One finished run. ``settings`` is what the run's ``settings()`` gave; ``phases`` maps a phase to its seconds."""

    id: str
    cell: str
    levels: Mapping[str, Level]
    replicate: int
    block: int
    position: int
    settings: Mapping[str, Any]
    status: Status
    started_s: float
    """Start, seconds since the epoch, on the machine's clock."""
    phases: Mapping[str, float]
    failed_phase: str | None
    reason: str | None
    cautions: tuple[Caution, ...]
    artifacts: Sequence[Mapping[str, Any]]
    """{"path": relative to the run folder, "bytes": size}"""
    twinbed: str
    lab: str
    start_skew_s: float | None = None
    """Between the first and the last client's start."""

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        data["cautions"] = [caution.to_json() for caution in self.cautions]
        return {"format": FORMAT, **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Raises ValueError where the format is not this one, a field is no such thing, or an artifact lies outside the run's
        folder; KeyError or TypeError where a field is missing."""
        fields = dict(data)
        if fields.pop("format", None) != FORMAT:
            raise ValueError(f"run.json has format {data.get('format')!r}, this twinbed reads {FORMAT}")
        for name, kind in _KINDS.items():
            if not isinstance(fields[name], kind):
                raise ValueError(f"run.json has {name} {fields[name]!r:.60}")
        for artifact in fields["artifacts"]:
            path = artifact["path"]
            if path.startswith("/") or ".." in path.split("/"):
                raise ValueError(f"run.json names the artifact {path!r}, outside the run's folder")
        fields["cautions"] = tuple(Caution.from_json(item) for item in fields["cautions"])
        fields["status"] = Status(fields["status"])
        return cls(**fields)
