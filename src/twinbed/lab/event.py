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


Event: TypeAlias = StudyBegan | PhaseBegan | RunEnded
Listener: TypeAlias = Callable[[Event], None]
