"""What a study tells those who watch it: a line in the log, a bar on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from twinbed.model.run import Phase, Status
from twinbed.study.run import Run


@dataclass(frozen=True, slots=True)
class StudyBegan:
    total: int
    done: int
    at_once: int = 1
    """Machines that make runs side by side."""


@dataclass(frozen=True, slots=True)
class PhaseBegan:
    run: Run
    phase: Phase


@dataclass(frozen=True, slots=True)
class RunEnded:
    run: Run
    status: Status
    seconds: float
    failed_phase: Phase | None
    reason: str | None
    machine: str = ""
    """The member of a fleet that made it."""


@dataclass(frozen=True, slots=True)
class MachineJoined:
    name: str
    machines: int
    """That there are now."""


@dataclass(frozen=True, slots=True)
class MachineLeft:
    name: str
    reason: str
    machines: int
    """That are left."""


Event: TypeAlias = StudyBegan | PhaseBegan | RunEnded | MachineJoined | MachineLeft
Listener: TypeAlias = Callable[[Event], None]
