"""A run: one cell, one replicate, with every setting resolved.  Identity is the hash of levels, settings and replicate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

Level: TypeAlias = str | int | float | bool | None


def level_text(level: Level) -> str:
    """A level for readers: ``none``, ``on``, ``off``, ``0.5``, ``500B``."""
    if level is None:
        return "none"
    if isinstance(level, bool):
        return "on" if level else "off"
    return f"{level:g}" if isinstance(level, float) else str(level)


class Status(StrEnum):
    COMPLETE = "complete"
    FAILED = "failed"


class Phase(StrEnum):
    """The phases of a run, in order; a failed run names the one it failed in."""

    UP = "up"
    CONFIGURE = "configure"
    LINK_CHECK = "link-check"
    """Before the first run of a cell."""
    SERVE = "serve"
    WARM_UP = "warm-up"
    BACKGROUND = "background"
    """Only of a run with a background load."""
    INSTRUMENT = "instrument"
    WORKLOAD = "workload"
    COLLECT = "collect"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen plugin with its checked parameters (a frozen pydantic model of the plugin's own)."""

    kind: str
    params: Any

    def to_json(self) -> dict[str, Any]:
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
    testbed: Choice
    topology: Any
    workload: Choice
    instruments: Mapping[str, Choice]
    backgrounds: Mapping[str, Choice] = field(default_factory=dict)
    """Kind -> background load."""

    def settings(self) -> dict[str, Any]:
        """Everything that the run depends on except its replicate, as JSON data. Without a background load it is not named."""
        loads = {name: choice.to_json() for name, choice in self.backgrounds.items()}
        return {
            "levels": dict(self.levels),
            "testbed": {"name": self.testbed_name, **self.testbed.to_json()},
            "topology": self.topology.model_dump(mode="json"),
            "workload": self.workload.to_json(),
            "instruments": {name: choice.to_json() for name, choice in self.instruments.items()},
            **({"background": loads} if loads else {}),
        }

    def beside(self) -> tuple[Choice, ...]:
        """All that runs beside the workload: instruments and background loads."""
        return (*self.instruments.values(), *self.backgrounds.values())

    @property
    def cell(self) -> str:
        """Short hash of all settings but the replicate."""
        return _hash(self.settings())

    @property
    def id(self) -> str:
        """Short hash of all settings and the replicate; the name of the run's folder."""
        return _hash({**self.settings(), "replicate": self.replicate})


def _hash(data: Any) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
